"""Table 2 of Jackson & Craven: number of weights per classifier, with the paper's values."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.published.classifiers import papers_tables
from figures.published.classifiers.papers_tables import MARKERS_CAPTION

SWEEP_AXES = ("data", "classifier")  # sweep axes that this figure shows
CAPTION = (
    "Mean number of weights (thresholds not counted) of each classifier on three domains; trees have no weights. "
    f"{MARKERS_CAPTION}"
)
POINTS_CAPTION = papers_tables.POINTS_CAPTION


def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """Draw the number of weights of each classifier that has weights."""
    weighted = simulation.nonzero_weights.notnull().any(["data", "seed", "fold"])
    weighted_classifiers = simulation.isel(classifier=weighted.values) if weighted.any() else simulation
    figure = papers_tables.draw_panel_per_data_set(weighted_classifiers, papers_tables.draw_weight_count_panel)
    papers_tables.add_weight_count_legend(figure, weighted_classifiers)
    return figure
