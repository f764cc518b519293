"""Table 2 of Jackson & Craven: number of weights of all classifiers on all three domains, beside the paper's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from figures.published.classifiers.papers_tables import BESIDE, height, weights_legend, weights_panel
from figures.style import PAGE, styled

if TYPE_CHECKING:
    import xarray as xr

AXES = ("data", "classifier")  # of the sweep, that this figure shows
CAPTION = f"Mean number of weights, without thresholds, of each classifier on three domains. {BESIDE}"
POINTS = "Points: means over folds (ten, or those given with the data) and shuffles; bars: standard errors over folds."


@styled
def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """A panel per data set, a row and colour per classifier that has weights."""
    weighted = simulation.weights.notnull().any(["data", "seed", "fold"])
    shown = simulation.isel(classifier=weighted.values) if weighted.any() else simulation
    sets = [str(name) for name in shown.data.values]
    figure = Figure(figsize=(PAGE, height(shown)))
    for ax, data in zip(figure.subplots(1, len(sets), sharey=True, squeeze=False)[0], sets, strict=True):
        weights_panel(ax, shown, data)
    weights_legend(figure, shown)
    return figure
