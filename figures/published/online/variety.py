"""Figure 4 of Miyoshi, Hara & Okada: the relation of R and q.

The lower q is at a given R, the more the students differ at equal knowledge, and the larger the gain of an ensemble.
AdaTron has the lowest q. No ensemble of equal students in the limit lies below q = R^2, where they would have only the
teacher in common. For q >= R an infinite ensemble gains little or nothing.
"""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.labels import size_of
from figures.panels import dense, page
from figures.published.online.ensemble_panels import variety_panel
from figures.style import COLUMN

AXES = ("rule",)  # sweep axes that this figure shows
CAPTION = (
    r"Similarity $q$ of two students against their similarity $R$ to the teacher, during learning: the lower "
    r"$q$ at a given $R$, the larger the gain of an ensemble. Dotted: $q=R^2$."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw R against q for every rule of the sweep."""
    figure, ax = page(2.9, width=COLUMN)
    variety_panel(ax, simulation, dense(theory, "t"))
    ax.set_title(size_of(simulation))
    ax.legend(loc="upper left")
    return figure
