"""Replay: errors on two tasks after the switch to the second, for several fractions of replay and the best one."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.published import control_panels

AXES = ("protocol",)  # sweep axes that this figure shows
REQUIRED_VARIABLES = ("protocol",)
CAPTION = (
    "Errors on two tasks of a network that learns the first task up to the switch, then the second task with some "
    "examples of the first. The fraction of these examples is constant or, in the last panel, chosen to minimise the "
    "mean error of both tasks at the final time. Error bars smaller than the markers are not visible."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the error on each task, and the optimal fraction of the first task."""
    return control_panels.draw("replay", simulation, theory, "protocol", log="y")
