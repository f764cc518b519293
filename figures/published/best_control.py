"""Errors along an axis that includes optimal controls, and these controls."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures import labels
from figures.panels import along, finish, guide, logarithmic, page, panel
from figures.style import look_of
from statmech.errors import ConfigError

MOST = 3
SYMBOLS = {"eta": r"$\eta$", "task_share": "fraction of task 1"}  # axis labels of controls


def draw(
    name: str,
    simulation: xr.Dataset,
    theory: xr.Dataset,
    axis: str,
    *,
    log: str = "",
    further: Any = (),
) -> Figure:
    """Draw the error in a panel per task, and a panel per control.

    Parameters
    ----------
    name
        Name of the figure in messages.
    simulation, theory
        Results along t and a second axis with some optimal values.
    axis
        The second axis.
    log
        The logarithmic axes. The time axis of a control is logarithmic if "x" is included.
    further
        Additional handles of the legend.
    """
    if axis not in theory.dims or "t" not in theory.dims:
        raise ConfigError(f"{name} needs axes of t and of {axis}")
    controls = theory.controlled.values.tolist() if "control" in theory else []
    tasks = theory.sizes.get("task", 1)
    panels = tasks + len(controls)
    rows = -(-panels // MOST)
    figure, axes = page(2.6 * rows + 0.4, rows, -(-panels // rows), squeeze=False)
    results = along(simulation, theory, "t")
    split = "task" if tasks > 1 else ""
    keys = panel(axes.flat[:tasks], results, "t", "eps_g", axis, split=split, log=log, dashes=tasks > 1)
    lines = results.lines if results.lines is not None else theory
    for ax, control in zip(axes.flat[tasks:], controls, strict=True):
        optimum_indices = _controls(ax, lines.sel(controlled=control), axis)
        ax.set(xlabel=labels.axis_label(results.scenario, ["t"]), ylabel=SYMBOLS[control])
        logarithmic(ax, log if "x" in log else "")
        if len(optimum_indices) == 1:
            best = theory.best_constant.sel(controlled=control).isel({axis: optimum_indices[0]})
            guide(ax, y=float(best), text="best\nconstant")
    return finish(figure, results, [*keys, *further], "rule", "network")


def _controls(ax: Axes, lines: xr.Dataset, axis: str) -> list[int]:
    """Draw the control of each optimal value on the axis, and return the indices of these values.

    A control that is constant on segments is drawn as steps.
    """
    optimum_indices = [
        index for index in range(lines.sizes[axis]) if np.isfinite(lines.control.isel({axis: index})).all()
    ]
    for index in optimum_indices:
        values = lines.control.isel({axis: index}).values.ravel()
        stepped = np.unique(values).size < values.size / 2
        ax.plot(lines.t, values, color=look_of(index)["color"], drawstyle="steps-post" if stepped else "default")
    return optimum_indices
