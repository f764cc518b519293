"""Effect of MinOver's updates on eps_g and on the distance from the largest stability, and the assignment's tmax.

In updates, tmax = 20 gives eps_g = 0.19 for every alpha >= 5, as in the assignment's Figure 3, since the student is a
sum of 20 examples. In epochs, as in the assignment's text, the curves are already flat at tmax = 20.
"""

from __future__ import annotations

from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from figures.derived_data import get_recorded_dimension
from figures.legends import make_curve_handle, make_line_handle
from figures.panels import add_panel_letters, add_title_and_legend, draw_guide, make_figure, set_log_axes
from figures.style import (
    COLUMN_WIDTH,
    SMALL_FONT_SIZE,
    choose_drawn_steps,
    draw_mean_points,
    get_curve_style,
    standard_error_over_seeds,
)

AXES = ("alpha",)  # sweep axes that this figure shows
SUPPORTED_VALUES = {"learner": ("minover",)}
CAPTION = (
    r"MinOver on $P=\alpha N$ stored examples against the number of updates: (a) generalization error, (b) certified "
    r"relative distance of the stability from its maximum, where this distance is below 1. Dashed: theory of maximum "
    r"stability for $N\to\infty$. Dotted: the assignment's $t_{\max}=20$, 100 and 5000 read as updates. Vertical "
    r"ticks: $t_{\max}=20$ read as epochs of $P$ updates."
)
ASSIGNMENT_TMAX, ASSIGNMENT_EPOCHS = (20, 100, 5000), 20  # tmax read as updates, and the smallest read as epochs
EPOCH_TICK_STYLE: dict[str, Any] = {"marker": "|", "markersize": 12, "markeredgewidth": 1.4, "linestyle": "none"}


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw means over data sets with standard errors, and theory for infinite N."""
    recorded_unit, keys = get_recorded_dimension(simulation), []
    figure, (error, distance) = make_figure(4.6, 2, width=COLUMN_WIDTH, sharex=True)
    for index, alpha in enumerate(simulation.alpha.values):
        cell, color = simulation.sel(alpha=alpha), get_curve_style(index)["color"]
        marked = choose_drawn_steps(cell.sizes[recorded_unit])
        mean, gap = cell.eps_g.mean("seed"), cell.gap.mean("seed")
        for ax, values, errors in (
            (error, mean, standard_error_over_seeds(cell.eps_g)),
            (distance, gap.where(gap < 1), None),
        ):
            ax.plot(cell[recorded_unit], values, color=color, linewidth=0.6)
            draw_mean_points(
                ax, cell[recorded_unit][marked], values[marked], None if errors is None else errors[marked], index
            )
        keys.append(make_curve_handle(index, rf"$\alpha={alpha:g}$", linewidth=0.6))
        draw_guide(error, y=theory.eps_g.sel(alpha=alpha).isel({recorded_unit: 0}).item(), color=color, linestyle="--")
        if recorded_unit == "updates" and ASSIGNMENT_EPOCHS * int(cell.P) <= cell.updates[-1]:
            error_at_tick = mean.interp(updates=ASSIGNMENT_EPOCHS * int(cell.P))
            error.plot([ASSIGNMENT_EPOCHS * int(cell.P)], [error_at_tick], color=color, zorder=5, **EPOCH_TICK_STYLE)
    error.set_ylabel(r"$\epsilon_g$")
    distance.set(xlabel=f"MinOver {recorded_unit}", ylabel="certified distance from\nthe largest stability")
    for ax in (error, distance):
        set_log_axes(ax, "xy")
    add_panel_letters(error, distance)
    keys.append(make_line_handle(r"theory, $N\to\infty$", linestyle="--", linewidth=0.8))
    if recorded_unit == "updates":
        first, last = error.get_xlim()
        for tmax in ASSIGNMENT_TMAX:
            if first < tmax < last:
                draw_guide(error, distance, x=tmax, linewidth=1)
                coordinates: dict[str, Any] = {"xycoords": error.get_xaxis_transform(), "textcoords": "offset points"}
                error.annotate(
                    f"{tmax}", (tmax, 1), (2, -1), va="top", color="0.4", fontsize=SMALL_FONT_SIZE, **coordinates
                )
        keys.append(make_line_handle(f"{ASSIGNMENT_EPOCHS} epochs", **EPOCH_TICK_STYLE))
    return add_title_and_legend(figure, simulation, keys, columns=2)
