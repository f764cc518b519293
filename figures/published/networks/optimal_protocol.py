"""Optimal replay and learning rate: errors on two tasks.

The figure compares the best fraction of replay at a constant learning rate with both controls at their joint optimum.
"""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.published import control_panels

AXES = ("eta",)  # sweep axes that this figure shows
REQUIRED_VARIABLES = ("protocol",)
CAPTION = (
    "(a), (b) Errors on two tasks of a network that learns the first task up to the switch, then both tasks. Either "
    "the fraction of the first task is optimal at a constant learning rate, or fraction and learning rate are optimal "
    "together, for the smallest mean error at the last time. (c), (d) These controls. Error bars smaller than the "
    "markers are not visible."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the error on each task, the learning rate and the fraction of the first task."""
    return control_panels.draw("optimal_protocol", simulation, theory, "eta", log="y")
