"""Tables 1 and 2 of Jackson & Craven as a figure: accuracy and number of weights, with the paper's values."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.classification import table_panels
from figures.classification.table_panels import MARKERS_CAPTION, SIGNIFICANCE_CAPTION
from figures.panels import make_figure

AXES = ("data", "classifier")  # sweep axes that this figure shows
CAPTION = (
    f"Accuracy on held-out folds and number of weights of each classifier. {MARKERS_CAPTION} "
    f"{SIGNIFICANCE_CAPTION} Trees have no weights."
)


def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """Draw accuracy and number of weights, one row per data set and one colour per classifier."""
    sets = [str(name) for name in simulation.data.values]
    figure, axes = make_figure(
        table_panels.compute_figure_height(simulation, len(sets)), len(sets), 2, sharey=True, squeeze=False
    )
    for (accuracy, weights), data in zip(axes, sets, strict=True):
        table_panels.draw_accuracy_panel(accuracy, simulation, data)
        table_panels.draw_weight_count_panel(weights, simulation, data)
    table_panels.add_accuracy_legend(figure, simulation)
    return figure
