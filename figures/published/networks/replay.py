"""Replay: errors on two tasks after the switch to the second, for several fractions of the first, and the best one."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.published import best_control

AXES = ("protocol",)  # of the sweep, that this figure shows
NEEDS = ("protocol",)
CAPTION = (
    r"Errors on two tasks of a network that learns the first up to the switch, then the second with some examples of "
    r"the first. Their fraction is constant, or the one with the smallest mean error of both tasks at the last "
    r"time, which the last panel shows. Bars that are not seen are smaller than their points."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the error on each task, and the best fraction of the first."""
    return best_control.draw("replay", simulation, theory, "protocol", log="y")
