"""Errors under constant and optimal controls, and the optimal controls themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures import labels
from figures.panels import (
    add_title_and_legend,
    draw_guide,
    draw_panel,
    make_figure,
    select_with_dense_theory,
    set_log_axes,
)
from figures.style import get_curve_style
from statmech.errors import ConfigError

MAX_PANELS_PER_ROW = 3
CONTROL_AXIS_LABELS = {"eta": r"$\eta$", "task_share": "fraction of task 1"}  # axis labels of controls


def draw(
    figure_name: str,
    simulation: xr.Dataset,
    theory: xr.Dataset,
    control_axis: str,
    *,
    log: str = "",
    extra_handles: Any = (),
) -> Figure:
    """Draw one panel with the error for each task, and one panel for each control.

    Parameters
    ----------
    figure_name
        Name of the figure in messages.
    simulation, theory
        Results along t and a second axis with some optimal values.
    control_axis
        The second axis.
    log
        The logarithmic axes. The time axis of a control is logarithmic if "x" is included.
    extra_handles
        Additional legend handles.
    """
    if control_axis not in theory.dims or "t" not in theory.dims:
        raise ConfigError(f'the figure "{figure_name}" requires the axes t and {control_axis}')
    controls = theory.controlled.values.tolist() if "control" in theory else []
    tasks = theory.sizes.get("task", 1)
    panels = tasks + len(controls)
    rows = -(-panels // MAX_PANELS_PER_ROW)
    figure, axes = make_figure(2.6 * rows + 0.4, rows, -(-panels // rows), squeeze=False)
    results = select_with_dense_theory(simulation, theory, "t")
    split = "task" if tasks > 1 else ""
    keys = draw_panel(axes.flat[:tasks], results, "t", "eps_g", control_axis, split=split, log=log, dashes=tasks > 1)
    lines = results.lines if results.lines is not None else theory
    for ax, control in zip(axes.flat[tasks:], controls, strict=True):
        optimum_indices = _draw_optimal_controls(ax, lines.sel(controlled=control), control_axis)
        ax.set(xlabel=labels.axis_label(results.scenario, ["t"]), ylabel=CONTROL_AXIS_LABELS[control])
        set_log_axes(ax, log if "x" in log else "")
        if len(optimum_indices) == 1:
            best = theory.best_constant.sel(controlled=control).isel({control_axis: optimum_indices[0]})
            draw_guide(ax, y=float(best), text="best\nconstant")
    return add_title_and_legend(figure, results, [*keys, *extra_handles], "rule", "network")


def _draw_optimal_controls(ax: Axes, lines: xr.Dataset, control_axis: str) -> list[int]:
    """Draw every optimal control along the axis, and return the indices of the optimal values.

    A control that is constant on segments is drawn as steps.
    """
    optimum_indices = [
        index
        for index in range(lines.sizes[control_axis])
        if np.isfinite(lines.control.isel({control_axis: index})).all()
    ]
    for index in optimum_indices:
        values = lines.control.isel({control_axis: index}).values.ravel()
        stepped = np.unique(values).size < values.size / 2
        ax.plot(
            lines.t, values, color=get_curve_style(index)["color"], drawstyle="steps-post" if stepped else "default"
        )
    return optimum_indices
