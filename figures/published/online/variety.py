"""Figure 4 of Miyoshi, Hara & Okada: the relation between R and q.

The lower q is at a given R, the more the students differ at equal knowledge, and the larger the gain of an ensemble.
AdaTron has the lowest q. No ensemble of equal students in the limit lies below q = R^2, where they would have only the
teacher in common. For q >= R an infinite ensemble gains little or nothing.
"""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.labels import describe_size_and_runs
from figures.panels import make_figure, solve_dense_theory
from figures.published.online.ensemble_panels import draw_q_against_R
from figures.style import COLUMN_WIDTH

AXES = ("rule",)  # sweep axes that this figure shows
CAPTION = (
    r"Similarity $q$ of two students against their similarity $R$ to the teacher, during learning: the lower "
    r"$q$ at a given $R$, the larger the gain of an ensemble. Dotted: $q=R^2$."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw q against R for every rule of the sweep."""
    figure, ax = make_figure(2.9, width=COLUMN_WIDTH)
    draw_q_against_R(ax, simulation, solve_dense_theory(theory, "t"))
    ax.set_title(describe_size_and_runs(simulation))
    ax.legend(loc="upper left")
    return figure
