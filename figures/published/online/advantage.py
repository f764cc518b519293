"""The gain of an ensemble against t: error of infinitely many students over the error of one, for every rule.

The gain is largest early, after 2 to 6 N examples. All rules that use the stability end with the same ratio, 1/sqrt 2.
The gain of AdaTron is only temporarily larger.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.legends import entry, points_with_bars
from figures.panels import dense, finish, guide, page, panel, scenario_with, with_lines
from figures.style import STAR, log_ticks
from theory import advantage

AXES = ("rule",)  # sweep axes that this figure shows
EARLIEST, LATEST, PLACES = 0.05, 1e5, 200  # the lines extend to late times to show their limit
LATE = 1 / np.sqrt(2)
FEW: dict[str, Any] = {"linestyle": "--", "linewidth": 0.7}
CAPTION = (
    r"Generalization error of an ensemble over that of one student during learning. Solid: infinitely many "
    r"students, whose majority vote and weight mean are equally good; stars: maximum gain. Dashed, and "
    r"points: the weight mean of $K$ students. Dotted: $1/\sqrt{2}$, the limit $t\to\infty$ of all rules but Hebb's."
)
POINTS = (
    "Points: means over runs of the error of the weight mean over the mean error of the run's students; bars: standard "
    "errors."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the ratio of errors against t, a line per rule, up to times that show the limit."""
    (figure, ax), K, lines, finite = page(3.8), theory.K.item(), _many(theory), dense(theory, "t")
    runs = simulation.sel(t=simulation.t > 0)  # at t = 0 all errors are equal
    runs = runs.assign(gain=runs.eps_g_weight_mean / runs.eps_g.mean("student"))
    results = with_lines(runs, theory, lines.to_dataset(name="gain"))
    keys: list[Any] = panel(ax, results, "t", "gain", "rule", label=r"$\epsilon_g(K)\,/\,\epsilon_g(1)$", log="x")
    for key, rule in zip(keys, theory.rule.values, strict=True):
        at_finite_K, gain = finite.sel(rule=rule), lines.sel(rule=rule)
        t, min_gain = float(gain.idxmin()), float(gain.min())  # time and value of the largest gain
        ax.plot(
            at_finite_K.t,
            at_finite_K.eps_g_weight_mean / at_finite_K.eps_g.isel(student=0),
            color=key.get_color(),
            **FEW,
        )
        ax.plot(t, min_gain, color=key.get_color(), **STAR)
        key.set_label(f"{key.get_label()} ({min_gain:.3f})")
    guide(ax, y=LATE, text=r"$1/\sqrt{2}$", color="0.4", linewidth=1)
    ax.set(xlim=(EARLIEST, LATEST), ylim=(0.5, 1.02))
    log_ticks(ax.xaxis)
    keys += [
        entry(r"theory, $K=\infty$"),
        entry(r"minimum (its value), $K=\infty$", **STAR),
        entry(f"theory, weight mean of $K={K}$", **FEW),
        points_with_bars(label=f"simulation, weight mean of $K={K}$"),
    ]
    return finish(figure, results, keys, "K", columns=3)


def _many(theory: xr.Dataset) -> xr.DataArray:
    """Solve theory of infinitely many students up to late times."""
    times = np.geomspace(EARLIEST, LATEST, PLACES).tolist()
    return advantage(scenario_with(theory, rule=[str(rule) for rule in theory.rule.values], t=times))
