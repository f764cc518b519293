"""eps_g t against t: the optimal rule, a lower bound for all online rules, and the other rules.

Rules with errors that decay as 1/t tend to constants. The errors of the perceptron and of Hebb's rule decay as t^(-1/3)
and t^(-1/2), so that their lines rise without limit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.panels import (
    add_title_and_legend,
    combine_with_lines,
    draw_guide,
    draw_panel,
    make_figure,
    modify_scenario,
)
from figures.style import NO_LEGEND_GID, SMALL_FONT_SIZE, set_log_ticks
from theory import solve

AXES = ("rule",)  # sweep axes that this figure shows
MAX_DRAWN_TIME, OPTIMAL_LINE_POINTS = 1e4, 250  # the lines extend to late times to show their limits
LATE_SCALED_ERRORS = {
    r"0.8834: optimal": 0.8834000872,
    r"$4/\pi$: perceptron, best $\eta(R)$": 4 / np.pi,
    r"$4/3$: AdaTron (textbook), $\eta=3/2$": 4 / 3,
    r"$3/2$: AdaTron (textbook), $\eta=1$": 3 / 2,
}
START_DEPENDENT_RULE = "adatron"  # the limit of this rule depends on the initial length
MAX_DRAWN_SCALED_ERROR = 2.3  # upper end of the eps_g t axis
CAPTION = (
    r"Generalization error times $t$ of one student, which starts at $R=l=0.2$ unless stated otherwise. A rule whose "
    r"error decays as $1/t$ tends to a constant; no online rule lies below the optimal rule. Dotted, grey: limits "
    r"$t\to\infty$ of the optimal rule, of a perceptron with the best rate $\eta(R)$ at every time, and of the "
    r"textbook AdaTron at its best rate $3/2$ and at rate 1. Error bars smaller than the markers are not visible."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g t against t, one line per rule, up to times that show the limits."""
    start = float(theory.t[theory.t > 0][0])
    lines = solve(modify_scenario(theory, t=np.geomspace(start, MAX_DRAWN_TIME, OPTIMAL_LINE_POINTS).tolist(), K=1))
    scaled = _add_scaled_error(lines)
    results = combine_with_lines(_add_scaled_error(simulation), theory, scaled)
    (figure, ax), first = make_figure(4.0), 0.85 * start  # room for the first markers
    keys = draw_panel(ax, results, "t", "scaled", "rule", label=r"$\epsilon_g\,t$", log="x")
    for label, value in LATE_SCALED_ERRORS.items():
        draw_guide(ax, y=value, zorder=2)
        _label_line(ax, label, (first * 1.1, value), above="pi" not in label, ha="left")
    if START_DEPENDENT_RULE in lines.rule.values:
        last = scaled.scaled.sel(rule=START_DEPENDENT_RULE).isel(t=-1).item()
        _label_line(ax, f"{last:.2f}: AdaTron, this start", (MAX_DRAWN_TIME, last), above=True, ha="right")
    ax.set(xlim=(first, MAX_DRAWN_TIME), ylim=(0, MAX_DRAWN_SCALED_ERROR))
    set_log_ticks(ax.xaxis)
    return add_title_and_legend(figure, results, keys, columns=3)


def _label_line(ax: Axes, label: str, position: tuple[float, float], *, above: bool, ha: str) -> None:
    """Write the name of a line above or below the line."""
    text_options: dict[str, Any] = {
        "fontsize": SMALL_FONT_SIZE,
        "ha": ha,
        "va": "bottom" if above else "top",
        "gid": NO_LEGEND_GID,
    }
    ax.annotate(label, position, (0, 2 if above else -2), textcoords="offset points", **text_options)


def _add_scaled_error(dataset: xr.Dataset) -> xr.Dataset:
    """Add eps_g t to a dataset, with NaN where its mean lies outside the axis."""
    scaled = dataset.eps_g * dataset.t
    mean = scaled.mean([dim for dim in ("seed", "student") if dim in scaled.dims])
    return dataset.assign(scaled=scaled.where(mean < MAX_DRAWN_SCALED_ERROR))
