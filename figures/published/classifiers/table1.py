"""Table 1 of Jackson & Craven: accuracy of all classifiers on all three domains, beside the paper's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from figures.published.classifiers.papers_tables import BESIDE, STARS, accuracy_legend, accuracy_panel, height
from figures.style import PAGE, styled

if TYPE_CHECKING:
    import xarray as xr

AXES = ("data", "classifier")  # of the sweep, that this figure shows
CAPTION = f"Accuracy on held-out folds of each classifier on three domains. {BESIDE} {STARS}"
POINTS = "Points: means over folds (ten, or those given with the data) and shuffles; bars: standard errors over folds."


@styled
def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """A panel per data set, a row and colour per classifier."""
    sets = [str(name) for name in simulation.data.values]
    figure = Figure(figsize=(PAGE, height(simulation)))
    for ax, data in zip(figure.subplots(1, len(sets), sharey=True, squeeze=False)[0], sets, strict=True):
        accuracy_panel(ax, simulation, data)
    accuracy_legend(figure, simulation)
    return figure
