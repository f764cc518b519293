"""Errors along an axis on which one value may be a control at its optimum, beside the control itself."""

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


def draw(
    name: str, simulation: xr.Dataset, theory: xr.Dataset, axis: str, symbol: str, *, log: str = "", **stated: Any
) -> Figure:
    """Draw a panel of the error, one for each task if there are several, and one of the control, if there is one.

    Parameters
    ----------
    name
        Of the figure, in messages.
    simulation, theory
        Results along t and an axis on which one value may be the optimum.
    axis, symbol
        That axis, and the symbol of the control.
    log
        Which axes are logarithmic; that of the control is so if "x" is.
    stated
        Passed to `panel`.
    """
    best = _optimal(name, theory, axis)
    tasks = theory.sizes.get("task", 1)
    figure, axes = page(3.0, 1, tasks + (best is not None), squeeze=False)
    errors, last = axes.flat[:tasks], axes.flat[-1]
    results = along(simulation, theory, "t")
    split = "task" if tasks > 1 else ""
    keys = panel(errors, results, "t", "eps_g", axis, split=split, log=log, dashes=True, **stated)
    if best is not None:
        _control(last, results.lines if results.lines is not None else theory, axis, best)
        last.set(xlabel=labels.axis_label(results.scenario, ["t"]), ylabel=symbol)
        logarithmic(last, log if "x" in log else "")
        guide(last, y=float(theory.best_constant.isel({axis: best})), text="best\nconstant")
    return finish(figure, results, keys)


def _optimal(name: str, theory: xr.Dataset, axis: str) -> int | None:
    """The position of the optimum on the axis; None if there is none."""
    if axis not in theory.dims or "t" not in theory.dims:
        raise ConfigError(f"{name} needs axes of t and of {axis}")
    if "control" not in theory:
        return None
    known = np.isfinite(theory.best_constant.values.ravel())
    if known.size != theory.sizes[axis] or known.sum() != 1:
        raise ConfigError(f"{name} shows one optimum, on the axis {axis}")
    return int(np.argmax(known))


def _control(ax: Axes, lines: xr.Dataset, axis: str, best: int) -> None:
    """The control, as steps where it is constant on segments."""
    control = lines.control.isel({axis: best})
    values = control.values.ravel()
    stepped = np.unique(values).size < values.size / 2
    ax.plot(control.t, values, color=look_of(best)["color"], drawstyle="steps-post" if stepped else "default")
