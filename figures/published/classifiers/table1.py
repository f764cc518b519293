"""Table 1 of Jackson & Craven: accuracy of all classifiers on three domains, with the paper's values."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.published.classifiers import papers_tables
from figures.published.classifiers.papers_tables import MARKERS_CAPTION, SIGNIFICANCE_CAPTION

SWEEP_AXES = ("data", "classifier")  # sweep axes that this figure shows
CAPTION = f"Accuracy of each classifier on held-out folds of three domains. {MARKERS_CAPTION} {SIGNIFICANCE_CAPTION}"
POINTS_CAPTION = papers_tables.POINTS_CAPTION


def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """Draw the accuracy of each classifier, one panel per data set."""
    figure = papers_tables.draw_panel_per_data_set(simulation, papers_tables.draw_accuracy_panel)
    papers_tables.add_accuracy_legend(figure, simulation)
    return figure
