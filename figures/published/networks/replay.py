"""Replay: errors on two tasks after the switch to the second, for several fractions of replay and the best one."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.published import best_control

AXES = ("protocol",)  # sweep axes that this figure shows
NEEDS = ("protocol",)
CAPTION = (
    r"Errors on two tasks of a network that learns the first up to the switch, then the second with some examples of "
    r"the first. Their fraction is constant, or optimal: the mean error of both tasks at the last time is then "
    r"smallest. The last panel shows the optimal fraction. Error bars smaller than the markers are not visible."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the error on each task, and the optimal fraction of the first task."""
    return best_control.draw("replay", simulation, theory, "protocol", log="y")
