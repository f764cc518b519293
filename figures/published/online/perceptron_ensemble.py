"""Figure 2 of Miyoshi, Hara & Okada: number of students and effect of the ensemble in perceptron learning.

The gain lies between the other two; the weight mean gains more than the vote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from figures.published.online.ensemble_panels import RULE_CAPTION, draw_rule

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

AXES = ("rule", "K")  # of the sweep, that this figure shows
CAPTION = RULE_CAPTION


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """The error of K students over that of one, at the last recorded time."""
    return draw_rule(simulation, theory, "perceptron")
