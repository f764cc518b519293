"""Figure 3 of Miyoshi, Hara & Okada: number of students and effect of the ensemble in AdaTron learning.

The gain is the largest: AdaTron students stay different longest.
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
    return draw_rule(simulation, theory, "adatron")
