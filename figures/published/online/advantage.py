"""The gain of an ensemble against t: error of an infinite ensemble over the error of one student, for every rule.

The gain is largest early, after 2 to 6 N examples. All rules that use the stability end with the same ratio, 1/sqrt 2.
The gain of AdaTron is only temporarily larger.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.legends import make_line_handle, make_points_handle
from figures.panels import (
    add_title_and_legend,
    combine_with_lines,
    draw_guide,
    draw_panel,
    make_figure,
    modify_scenario,
    solve_dense_theory,
)
from figures.style import MINIMUM_STAR_STYLE, set_log_ticks
from theory import advantage

AXES = ("rule",)  # sweep axes that this figure shows
MIN_LINE_TIME, MAX_LINE_TIME, GAIN_LINE_POINTS = 0.05, 1e5, 200  # the lines extend to late times to show their limit
LATE_ENSEMBLE_ERROR_RATIO = 1 / np.sqrt(2)
FINITE_ENSEMBLE_STYLE: dict[str, Any] = {"linestyle": "--", "linewidth": 0.7}
CAPTION = (
    r"Generalization error of an ensemble, divided by the error of one student, during learning. Solid: infinite "
    r"ensemble, whose majority vote and averaged weights perform equally well; stars: maximum gain. Dashed lines and "
    r"points: averaged weights of $K$ students. Dotted: $1/\sqrt{2}$, the limit $t\to\infty$ of all rules but Hebb's."
)
POINTS_CAPTION = (
    "Points: error of the averaged weights divided by the mean error of the run's students, averaged over runs; bars: "
    "standard errors."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the ratio of errors against t, one line per rule, up to times that show the limit."""
    (figure, ax), K, lines, finite = (
        make_figure(3.8),
        theory.K.item(),
        _solve_infinite_ensemble(theory),
        solve_dense_theory(theory, "t"),
    )
    runs = simulation.sel(t=simulation.t > 0)  # at t = 0 all errors are equal
    runs = runs.assign(gain=runs.eps_g_weight_mean / runs.eps_g.mean("student"))
    results = combine_with_lines(runs, theory, lines.to_dataset(name="gain"))
    keys: list[Any] = draw_panel(ax, results, "t", "gain", "rule", label=r"$\epsilon_g(K)\,/\,\epsilon_g(1)$", log="x")
    for key, rule in zip(keys, theory.rule.values, strict=True):
        at_finite_K, gain = finite.sel(rule=rule), lines.sel(rule=rule)
        t, min_gain = float(gain.idxmin()), float(gain.min())  # time and value of the largest gain
        ax.plot(
            at_finite_K.t,
            at_finite_K.eps_g_weight_mean / at_finite_K.eps_g.isel(student=0),
            color=key.get_color(),
            **FINITE_ENSEMBLE_STYLE,
        )
        ax.plot(t, min_gain, color=key.get_color(), **MINIMUM_STAR_STYLE)
        key.set_label(f"{key.get_label()} ({min_gain:.3f})")
    draw_guide(ax, y=LATE_ENSEMBLE_ERROR_RATIO, text=r"$1/\sqrt{2}$", color="0.4", linewidth=1)
    ax.set(xlim=(MIN_LINE_TIME, MAX_LINE_TIME), ylim=(0.5, 1.02))
    set_log_ticks(ax.xaxis)
    keys += [
        make_line_handle(r"theory, $K=\infty$"),
        make_line_handle(r"minimum (its value), $K=\infty$", **MINIMUM_STAR_STYLE),
        make_line_handle(f"theory, weight mean of $K={K}$", **FINITE_ENSEMBLE_STYLE),
        make_points_handle(label=f"simulation, weight mean of $K={K}$"),
    ]
    return add_title_and_legend(figure, results, keys, "K", columns=3)


def _solve_infinite_ensemble(theory: xr.Dataset) -> xr.DataArray:
    """Solve theory for an infinite ensemble up to late times."""
    times = np.geomspace(MIN_LINE_TIME, MAX_LINE_TIME, GAIN_LINE_POINTS).tolist()
    return advantage(modify_scenario(theory, rule=[str(rule) for rule in theory.rule.values], t=times))
