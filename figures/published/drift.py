"""The error that students keep of a teacher that drifts: each rule with the decay that suits it, against the drift.

The optimal rule decays at the rate of the drift, the perceptron needs no decay, and Hebb's best is
sqrt(drift^2 + 4 drift/pi). Lines are stationary states of the equations, to drifts at which their powers can be seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from figures.inspection import AID
from figures.labels import size_of
from figures.style import DASHES, PAGE, label_of, log_ticks, look_of, points, styled
from statmech.results.dataset import scenario_of
from theory import stationary

if TYPE_CHECKING:
    import xarray as xr

AXES = ("rule", "drift", "decay")  # of the sweep, that this figure shows
LEAST, PLACES = 1e-4, 17  # of the lines
DECAYS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "bayes": (r"decay $\delta$", lambda drift: drift),
    "hebb": (r"decay $\sqrt{\delta^2+4\delta/\pi}$", lambda drift: np.sqrt(drift**2 + 4 * drift / np.pi)),
}
NONE: tuple[str, Callable[[Any], Any]] = ("no decay", lambda drift: 0 * drift)
POWERS = {"bayes": (0.4473209420, 1 / 3), "perceptron": (0.5052854482, 1 / 3), "hebb": (0.4237772081, 1 / 4)}
CAPTION = (
    r"Stationary generalization error of one student of a teacher that drifts, against the rate $\delta$ of the drift; "
    r"each rule with the weight decay that suits it. Dotted: powers of small drifts, $0.4473\,\delta^{1/3}$, "
    r"$0.5053\,\delta^{1/3}$ and $0.4238\,\delta^{1/4}$."
)
LINES = r"Lines: stationary states of the order-parameter equations, $N\to\infty$."


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """One panel with a line per rule; points where the sweep has the rule's decay."""
    figure = Figure(figsize=(PAGE, 4.0))
    ax = figure.add_subplot()
    drifts = np.geomspace(LEAST, max(1.0, float(theory.drift.max())), PLACES)
    last = simulation.eps_g.isel(t=-1).mean("student")
    for index, rule in enumerate(map(str, theory.rule.values)):
        words, decay = DECAYS.get(rule, NONE)
        look = {"color": look_of(index)["color"], "linestyle": DASHES[index % len(DASHES)]}
        ax.plot(drifts, _states(theory, rule, drifts, decay(drifts)), **look, label=f"{label_of(rule)}, {words}")
        if (cloud := _matching(last.sel(rule=rule), decay)) is not None:
            points(ax, cloud.drift, cloud, index)
        amplitude, power = POWERS.get(rule, (np.nan, 1.0))
        ax.plot(drifts, amplitude * drifts**power, color="0.5", linestyle=":", linewidth=0.8, gid=AID)
    ax.set(xscale="log", yscale="log", xlabel=r"drift $\delta$", ylabel=r"stationary $\epsilon_g$")
    log_ticks(ax.xaxis)
    log_ticks(ax.yaxis)
    ax.set_title(f"{size_of(simulation)}, $t$ = {float(simulation.t[-1]):g}", fontsize=8)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _states(theory: xr.Dataset, rule: str, drifts: np.ndarray, decays: np.ndarray) -> np.ndarray:
    """The stationary eps_g of a rule at each drift with its decay."""
    scenario = scenario_of(theory)
    own = {name: value for name, value in scenario.config().items() if name not in ("rule", "drift", "decay", "zip")}
    together = {"drift": drifts.tolist(), "decay": decays.tolist()}
    return np.asarray(stationary(type(scenario)(**{**own, "rule": rule, "zip": together})).eps_g)


def _matching(values: xr.DataArray, decay: Callable[[Any], Any]) -> xr.DataArray | None:
    """The values at each drift whose decay is among those of the sweep, to its written digits."""
    import xarray as xr

    found = []
    for drift in values.drift.values:
        near = values.sel(drift=drift).isel(decay=int(np.argmin(abs(values.decay.values - decay(drift)))))
        if np.isclose(near.decay, decay(drift), rtol=1e-3, atol=1e-12):
            found.append(near.drop_vars("decay"))
    return xr.concat(found, "drift") if found else None
