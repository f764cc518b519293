"""The stationary error for a drifting teacher against the drift, for each rule with a suitable weight decay.

The optimal rule decays at the rate of the drift, the perceptron needs no decay, and the best decay for Hebb's rule is
sqrt(drift^2 + 4 drift/pi). Lines are stationary states of the equations, down to drifts that show the power laws.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.legends import line_with_points
from figures.panels import finish, guide, logarithmic, page, scenario_with
from figures.published import parallel_axes
from figures.style import AID, SMALL, label_of, look_of, points
from statmech.errors import ConfigError
from theory import stationary

ALONG = ("rule", "drift", "decay")
AXES = ("_".join(ALONG),)  # sweep axes that this figure shows
LEAST, PLACES = 1e-4, 25
DECAYS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "bayes": (r"decay $\delta$", lambda drift: drift),
    "hebb": (r"decay $\sqrt{\delta^2+4\delta/\pi}$", lambda drift: np.sqrt(drift**2 + 4 * drift / np.pi)),
}
NONE: tuple[str, Callable[[Any], Any]] = ("no decay", lambda drift: 0 * drift)
POWERS = {  # amplitude, inverse exponent, side of the text that faces the line
    "bayes": (0.4473209420, 3, "top"),
    "perceptron": (0.5052854482, 3, "bottom"),
    "hebb": (0.4237772081, 4, "bottom"),
}
PAIR = ("hebb", "perceptron")  # the better rule depends on the drift
CAPTION = (
    r"Stationary generalization error of one student of a drifting teacher, against the rate $\delta$ of the drift; "
    r"each rule has a suitable weight decay. Thin grey: powers of small drifts. Dotted: drift at which Hebb's rule and "
    r"the perceptron are equally good. Error bars smaller than the markers are not visible."
)
LINES = r"Lines: stationary states of the order-parameter equations, $N\to\infty$."


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the stationary eps_g against the drift, with a line and points per rule."""
    parallel_axes.check("drift", theory, ALONG)
    figure, ax = page(4.0)
    drifts = np.geomspace(LEAST, max(1.0, float(np.max(theory.drift))), PLACES)
    states = {rule: _states(theory, rule, drifts) for rule in dict.fromkeys(theory.rule.values.tolist())}
    keys = []
    for index, (rule, line) in enumerate(states.items()):
        ax.plot(drifts, line, color=look_of(index)["color"])
        keys.append(line_with_points(index, f"{label_of(rule)}, {_decay_of(rule)[0]}"))
        rule_errors = _matching(simulation.eps_g.isel(t=-1, student=0), rule)
        points(ax, rule_errors.drift, rule_errors, index)
        _power(ax, rule, drifts[-1])
    ax.set(xlabel=r"drift $\delta$", ylabel=r"stationary $\epsilon_g$", xlim=(0.8 * LEAST, 1.3 * drifts[-1]))
    _crossing(ax, drifts, states)
    logarithmic(ax, "xy")
    return finish(figure, simulation, keys, f"$t$ = {float(simulation.t[-1]):g}", columns=3)


def _decay_of(rule: str) -> tuple[str, Callable[[Any], Any]]:
    """Return the suitable decay of a rule: its label, and a function of the drift."""
    return DECAYS.get(rule, NONE)


def _power(ax: Axes, rule: str, last: float) -> None:
    """Draw the small-drift asymptote of a rule, labelled with its amplitude."""
    if rule not in POWERS:
        return
    amplitude, root, side = POWERS[rule]
    ends = np.array([LEAST, last])
    ax.plot(ends, amplitude * ends ** (1 / root), color="0.6", linewidth=0.6, zorder=0, gid=AID)
    text_drift, height_drift = (
        (LEAST, 2 * LEAST) if side == "bottom" else (2 * LEAST, 2 * LEAST)
    )  # a word above the line is higher
    text = rf"${amplitude:.4f}\,\delta^{{1/{root}}}$"
    ax.text(
        1.05 * text_drift, amplitude * height_drift ** (1 / root), text, color="0.4", fontsize=SMALL, va=side, gid=AID
    )


def _crossing(ax: Axes, drifts: np.ndarray, states: dict[str, np.ndarray]) -> None:
    """Mark the drift with equal errors of Hebb's rule and the perceptron."""
    if not set(PAIR) <= states.keys():
        return
    excess = np.log(states["hebb"] / states["perceptron"])[::-1]
    drift = float(np.exp(np.interp(0.0, excess, np.log(drifts)[::-1])))
    guide(ax, x=drift, text=rf"equal at $\delta={drift:.2g}$")


def _states(theory: xr.Dataset, rule: str, drifts: np.ndarray) -> np.ndarray:
    """Solve for the stationary eps_g of a rule at each drift, with the suitable decay."""
    together = {"drift": drifts.tolist(), "decay": _decay_of(rule)[1](drifts).tolist()}
    return np.ravel(stationary(scenario_with(theory, rule=rule, drift=None, decay=None, zip=together)).eps_g)


def _matching(runs: xr.DataArray, rule: str) -> xr.DataArray:
    """Select the runs of a rule.

    Raises `ConfigError` unless the runs have the suitable decay, to the digits of a config.
    """
    rule_runs = runs.isel({AXES[0]: runs.rule.values == rule})
    if not np.allclose(rule_runs.decay, _decay_of(rule)[1](rule_runs.drift), rtol=1e-3, atol=1e-12):
        raise ConfigError(f"the figure drift needs the rule {rule} with the weight decay that suits it")
    return rule_runs
