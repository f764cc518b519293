"""Discounted correlations of conjunctions of two inputs: accuracy, number of weights, fraction of conjunctions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from figures.published.helpers.fold_means import curve
from figures.style import PAGE, styled
from statmech.data_sets import source

if TYPE_CHECKING:
    import xarray as xr

AXES = ("data", "discount")  # of the sweep, that this figure shows


@styled
def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """One colour per data set; standard errors over folds. The paper's factor is illegible in our copy; we read 1/2."""
    figure = Figure(figsize=(PAGE, 2.5))
    accuracy, weights, fraction = figure.subplots(1, 3)
    for index, data in enumerate(map(str, simulation.data.values)):
        cell = simulation.sel(data=data)
        curve(accuracy, cell.discount, 100 * cell.accuracy, index, label=source(data).title)
        curve(weights, cell.discount, cell.weights, index)
        curve(fraction, cell.discount, 100 * cell.pairs / cell.weights, index)
    accuracy.set(title="accuracy (%)")
    weights.set(title="weights", ylim=(0, None))
    fraction.set(title="conjunctions of two (%)")
    for ax in (accuracy, weights, fraction):
        ax.set(xlabel="discount")
    figure.legend(loc="outside lower center", ncols=4)
    return figure
