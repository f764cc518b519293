"""The best learning rate and replay together: errors on two tasks, with the best fraction of the first at a constant
rate, and with both at their optimum."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.published import best_control

AXES = ("eta",)  # of the sweep, that this figure shows
NEEDS = ("protocol",)
CAPTION = (
    r"(a), (b) Errors on two tasks of a network that learns the first up to the switch, then both: with the best "
    r"fraction of the first at a constant learning rate, and with the learning rate and the fraction that are best "
    r"together, for the smallest mean error at the last time. (c), (d) These controls. Bars that are not seen are "
    r"smaller than their points."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the error on each task, the learning rate and the fraction of the first."""
    return best_control.draw("optimal_protocol", simulation, theory, "eta", log="y")
