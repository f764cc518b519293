"""The figure of networks that forget a first task while they learn a second one."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.panels import (
    add_title_and_legend,
    make_curve_handle,
    make_figure,
    modify_scenario,
)
from figures.published_figure import PublishedFigure
from figures.style import draw_seed_means, draw_theory_line, get_curve_style
from statmech.errors import ConfigError
from theory import solve

OVERLAP_LINE_POINTS = 40


def draw_forgetting(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    r"""Draw forgetting against the overlap, one panel per start and one colour per time after the switch.

    Forgetting is :math:`F(s) = \epsilon_1(t_1 + s) - \epsilon_1(t_1)` at times s after the switch at :math:`t_1`.
    """
    starts, switch = np.ravel(theory.start.values).tolist(), _get_switch_time(theory)
    later = [float(t) for t in theory.t.values if t > switch]
    figure, axes = make_figure(3.0, 1, len(starts), squeeze=False)
    lines = _solve_at_dense_overlaps(theory)
    for ax, start in zip(axes.flat, starts, strict=True):
        runs, solved_lines = (part.sel(start=start) if "start" in part.dims else part for part in (simulation, lines))
        for index, t in enumerate(later):
            draw_theory_line(
                ax,
                solved_lines.overlap,
                _compute_forgetting(solved_lines, switch, t),
                color=get_curve_style(index)["color"],
            )
            draw_seed_means(ax, runs.overlap, _compute_forgetting(runs, switch, t), index)
        _finish_panel(ax, start)
    axes[0, 0].set_ylabel("forgetting $F(s)$")
    keys = [make_curve_handle(index, f"$s$ = {t - switch:g}") for index, t in enumerate(later)]
    return add_title_and_legend(figure, simulation, keys, "eta", "eta_v", f"switch at $t$ = {switch:g}")


forgetting = PublishedFigure(
    draw=draw_forgetting,
    axes=("overlap", "start"),
    required_variables=("R",),
    caption=(
        r"Forgetting of the first of two tasks: growth of its error within a time $s$ after the switch to the second "
        r"task, against the overlap $r$ of the tasks, for each initial condition of the student. Each task has its own "
        r"second layer."
    ),
    lines_caption=r"Lines: equations, $N\to\infty$.",
)


def _get_switch_time(theory: xr.Dataset) -> float:
    """Return the time of the switch between the tasks.

    Raises `ConfigError` unless the switch and later times are recorded along an axis of overlaps.
    """
    switch = modify_scenario(theory).config().get("switch")
    if switch not in theory.t.values or theory.t.values[-1] <= switch or "overlap" not in theory.dims:
        raise ConfigError('the figure "forgetting" requires an axis of overlaps, and t with the switch and later times')
    return float(switch)


def _solve_at_dense_overlaps(theory: xr.Dataset) -> xr.Dataset:
    """Solve theory on a dense grid of overlaps."""
    overlaps = theory.overlap.values
    return solve(
        modify_scenario(theory, overlap=np.linspace(overlaps.min(), overlaps.max(), OVERLAP_LINE_POINTS).tolist())
    )


def _compute_forgetting(results: xr.Dataset, switch: float, t: float) -> xr.DataArray:
    """Compute how much the error on the first task has grown between the switch and a later time."""
    error = results.eps_g.sel(task=1)
    return error.sel(t=t) - error.sel(t=switch)


def _finish_panel(ax: Axes, start: str) -> None:
    ax.set(xlabel="overlap $r$ of the tasks", title=f"start: {start}")
    lowest = min(np.asarray(line.get_ydata()).min() for line in ax.lines)
    if lowest >= 0:  # negative if the second task also teaches the first
        ax.set_ylim(bottom=0)
