"""Table 1 of Jackson & Craven: accuracy of all classifiers on three domains, with the paper's values."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.classification import table_panels
from figures.classification.table_panels import MARKERS_CAPTION, SIGNIFICANCE_CAPTION

AXES = ("data", "classifier")  # sweep axes that this figure shows
CAPTION = f"Accuracy of each classifier on held-out folds of three domains. {MARKERS_CAPTION} {SIGNIFICANCE_CAPTION}"
POINTS_CAPTION = table_panels.POINTS_CAPTION


def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """Draw the accuracy of each classifier, one panel per data set."""
    figure = table_panels.draw_panel_per_data_set(simulation, table_panels.draw_accuracy_panel)
    table_panels.add_accuracy_legend(figure, simulation)
    return figure
