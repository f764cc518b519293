r"""The noise floor: eps_g at late times against the number K of student units, and eps_g against time.

With K = M or M + 1 units the error becomes stationary (`theory.noise_floor`). To first order in the learning rate it is
:math:`\eta\sigma^2(K - M + M/\sqrt3)/(2\pi)`. With more units noise slowly makes the surplus units different, and the
error falls below the unstable state with equal surplus units.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures import arrangement
from figures.legends import make_line_handle
from figures.panels import add_title_and_legend, draw_guide, make_figure, modify_scenario, set_log_axes
from figures.style import CURVE_MARKERS, THEORY_COLOUR, draw_seed_means, get_curve_style, make_shades
from statmech.stores.dataset import scenario_from_dataset
from theory import noise_floor, solve

UNIT_COUNT_KEYS = ("M", "K")
AXES = ("_".join(UNIT_COUNT_KEYS),)  # sweep axes that this figure shows
TIME_LINE_POINTS = 60
CAPTION = (
    r"Networks that learn from noisy labels. (a) $\epsilon_g$ at the last recorded time against the number $K$ of "
    r"student units, for teachers of $M$ units; dashes: equations at this time; crosses: the stationary state with "
    r"equal surplus units, stable only for $K\leq M+1$; dotted: the error of this state to first order in the learning "
    r"rate. (b) $\epsilon_g$ against $t$ for the smallest $M$; dashed: the same stationary state."
)
LINES_CAPTION = r"Lines: equations, $N\to\infty$."
EQUAL_SURPLUS_UNITS_STYLE: dict[str, Any] = {"linestyle": (0, (4, 2)), "linewidth": 0.9}
DRAWN_ERROR_SCALE = 1e4  # errors are drawn in units of 1e-4


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the last error against K for each M, and the error against time for the smallest M."""
    arrangement.check_parallel_axes("noise_floor", theory, UNIT_COUNT_KEYS)
    floors = np.ravel(noise_floor(scenario_from_dataset(theory), stable=False))
    units = sorted(set(theory.M.values.tolist()))
    figure, (late, time_course) = make_figure(3.6, 1, 2)
    for index, M in enumerate(units):
        columns = np.flatnonzero(theory.M.values == M)
        _draw_final_errors(
            late,
            simulation.isel({AXES[0]: columns}),
            theory.isel({AXES[0]: columns}),
            floors[columns],
            index,
        )
    columns = np.flatnonzero(theory.M.values == units[0])
    times = [
        _draw_error_against_time(
            time_course,
            simulation.isel({AXES[0]: column}),
            floors[column],
            {"color": shade, "marker": CURVE_MARKERS[order]},
        )
        for order, (column, shade) in enumerate(zip(columns, make_shades(len(columns)), strict=True))
    ]
    _label_axes(late, time_course, simulation, units[0])
    marks = [
        make_line_handle(f"$M$ = {M}", linestyle="none", **_get_unit_count_point_style(index))
        for index, M in enumerate(units)
    ]
    return add_title_and_legend(figure, simulation, [*marks, *FLOOR_LEGEND_HANDLES, *times], "eta", "noise", columns=4)


def _get_unit_count_point_style(teacher_index: int) -> dict[str, Any]:
    """Return the marker style of one M: hollow for the smallest M, full otherwise."""
    return {**get_curve_style(teacher_index), "markerfacecolor": "white" if teacher_index == 0 else None}


def _draw_final_errors(ax: Axes, runs: xr.Dataset, theory: xr.Dataset, floors: np.ndarray, index: int) -> None:
    """Draw eps_g of one M at the last time, from runs, equations and the stationary state."""
    K, M, style = runs.K.values, int(runs.M[0]), _get_unit_count_point_style(index)
    ax.plot(K, DRAWN_ERROR_SCALE * floors, "x", color=THEORY_COLOUR, markersize=4, markeredgewidth=0.9, zorder=2)
    dash: dict[str, Any] = {"linestyle": "none", "marker": "_", "markersize": 11, "markeredgewidth": 1.1}
    ax.plot(K, DRAWN_ERROR_SCALE * theory.eps_g.isel(t=-1).values, color=style["color"], **dash)
    draw_seed_means(ax, K, DRAWN_ERROR_SCALE * runs.eps_g.isel(t=-1).transpose(..., "seed"), index, **style)
    rate = runs.eta.item() * runs.noise.item() ** 2 / (2 * np.pi)
    ax.plot(
        K,
        DRAWN_ERROR_SCALE * rate * (K - M + M / np.sqrt(3)),
        linestyle=":",
        linewidth=0.9,
        color=THEORY_COLOUR,
        zorder=0,
    )


def _draw_error_against_time(ax: Axes, runs: xr.Dataset, floor: float, style: dict[str, Any]) -> Any:
    """Draw eps_g of one K against time, and return its legend handle."""
    t = runs.t.values[runs.t.values > 0]
    times = np.geomspace(t[0], t[-1], TIME_LINE_POINTS).tolist()
    line = solve(modify_scenario(runs, M=int(runs.M), K=int(runs.K), t=times, zip=None))
    ax.plot(line.t, DRAWN_ERROR_SCALE * line.eps_g, color=style["color"])
    draw_guide(ax, y=DRAWN_ERROR_SCALE * floor, color=style["color"], **EQUAL_SURPLUS_UNITS_STYLE)
    draw_seed_means(ax, t, DRAWN_ERROR_SCALE * runs.eps_g.sel(t=t), 0, **style)
    return make_line_handle(f"$K$ = {int(runs.K)}", markerfacecolor="white", **style)


def _label_axes(late: Axes, time_course: Axes, simulation: xr.Dataset, M: int) -> None:
    late.set(xlabel="student units $K$", ylabel=r"$\epsilon_g$ ($10^{-4}$)", ylim=(0, None))
    late.set_title(f"$t$ = {float(simulation.t[-1]):g}")
    late.set_xticks(sorted(set(simulation.K.values.tolist())))
    time_course.set(xlabel="$t$ (steps / $N$)", ylabel=r"$\epsilon_g$ ($10^{-4}$)", title=f"$M$ = {M}")
    set_log_axes(time_course, "xy")


FLOOR_LEGEND_HANDLES = (
    make_line_handle("equal surplus units", marker="x", markersize=4, **EQUAL_SURPLUS_UNITS_STYLE),
    make_line_handle(r"first order in $\eta$", linestyle=":", linewidth=0.9),
)
