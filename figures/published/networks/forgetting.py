r"""Forgetting: growth of the error on a first task after the switch to a second one, against their overlap.

Forgetting is :math:`F(s) = \epsilon_1(t_1 + s) - \epsilon_1(t_1)` at times s after the switch at :math:`t_1`.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.legends import line_with_points
from figures.panels import finish, page, scenario_with
from figures.style import look_of, points, theory_line
from statmech.errors import ConfigError
from theory import solve

AXES = ("overlap", "start")  # sweep axes that this figure shows
NEEDS = ("R",)
PLACES = 40
CAPTION = (
    r"Forgetting of the first of two tasks: the growth of its error within $s$ after the switch to the second, against "
    r"the overlap $r$ of the tasks, for each start of the student; each task has its own second layer."
)
LINES = r"Lines: equations, $N\to\infty$."


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw forgetting against the overlap, a panel per start and a colour per time after the switch."""
    starts, switch = np.ravel(theory.start.values).tolist(), _switch(theory)
    later = [float(t) for t in theory.t.values if t > switch]
    figure, axes = page(3.0, 1, len(starts), squeeze=False)
    lines = _lines(theory)
    for ax, start in zip(axes.flat, starts, strict=True):
        runs, solved_lines = (part.sel(start=start) if "start" in part.dims else part for part in (simulation, lines))
        for index, t in enumerate(later):
            theory_line(ax, solved_lines.overlap, _forgotten(solved_lines, switch, t), color=look_of(index)["color"])
            points(ax, runs.overlap, _forgotten(runs, switch, t), index)
        _label(ax, start)
    axes[0, 0].set_ylabel("forgetting $F(s)$")
    keys = [line_with_points(index, f"$s$ = {t - switch:g}") for index, t in enumerate(later)]
    return finish(figure, simulation, keys, "eta", "eta_v", f"switch at $t$ = {switch:g}")


def _switch(theory: xr.Dataset) -> float:
    """Return the time of the switch.

    Raises `ConfigError` unless the switch and later times are recorded along an axis of overlaps.
    """
    switch = scenario_with(theory).config().get("switch")
    if switch not in theory.t.values or theory.t.values[-1] <= switch or "overlap" not in theory.dims:
        raise ConfigError("forgetting needs an axis of overlaps, and t with the switch and later times")
    return float(switch)


def _lines(theory: xr.Dataset) -> xr.Dataset:
    """Solve theory at many overlaps."""
    overlaps = theory.overlap.values
    return solve(scenario_with(theory, overlap=np.linspace(overlaps.min(), overlaps.max(), PLACES).tolist()))


def _forgotten(results: xr.Dataset, switch: float, t: float) -> xr.DataArray:
    """Compute the growth of the first task's error from the switch to a time."""
    error = results.eps_g.sel(task=1)
    return error.sel(t=t) - error.sel(t=switch)


def _label(ax: Axes, start: str) -> None:
    ax.set(xlabel="overlap $r$ of the tasks", title=f"start: {start}")
    lowest = min(np.asarray(line.get_ydata()).min() for line in ax.lines)
    if lowest >= 0:  # a first task may still be learnt from the second
        ax.set_ylim(bottom=0)
