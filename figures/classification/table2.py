"""Table 2 of Jackson & Craven: number of weights per classifier, with the paper's values."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.classification import table_panels
from figures.classification.table_panels import MARKERS_CAPTION

AXES = ("data", "classifier")  # sweep axes that this figure shows
CAPTION = (
    "Mean number of weights (thresholds not counted) of each classifier on three domains; trees have no weights. "
    f"{MARKERS_CAPTION}"
)
POINTS_CAPTION = table_panels.POINTS_CAPTION


def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """Draw the number of weights of each classifier that has weights."""
    weighted = simulation.nonzero_weights.notnull().any(["data", "seed", "fold"])
    weighted_classifiers = simulation.isel(classifier=weighted.values) if weighted.any() else simulation
    figure = table_panels.draw_panel_per_data_set(weighted_classifiers, table_panels.draw_weight_count_panel)
    table_panels.add_weight_count_legend(figure, weighted_classifiers)
    return figure
