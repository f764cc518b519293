"""Tables 1 and 2 of Jackson & Craven as a picture: accuracy and number of weights, with the paper's values."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.published.classifiers.papers_tables import (
    BESIDE,
    STARS,
    accuracy_legend,
    accuracy_panel,
    height,
    weights_panel,
)
from figures.style import PAGE

AXES = ("data", "classifier")  # of the sweep, that this figure shows
CAPTION = (
    f"Accuracy on held-out folds and number of weights of each classifier. {BESIDE} {STARS} Trees have no weights."
)


def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """A row of panels per data set, one colour per classifier."""
    sets = [str(name) for name in simulation.data.values]
    figure = Figure(figsize=(PAGE, height(simulation, len(sets))))
    for (accuracy, weights), data in zip(figure.subplots(len(sets), 2, sharey=True, squeeze=False), sets, strict=True):
        accuracy_panel(accuracy, simulation, data)
        weights_panel(weights, simulation, data)
    accuracy_legend(figure, simulation)
    return figure
