"""Discounted correlations of conjunctions of two inputs: accuracy, number of weights, fraction of conjunctions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from figures.published.classifiers.fold_means import curve
from figures.style import PAGE, styled
from statmech.data_sets import source

if TYPE_CHECKING:
    import xarray as xr

AXES = ("data", "discount")  # of the sweep, that this figure shows
CAPTION = (
    "Boosted sparse perceptrons whose search multiplies the correlations of conjunctions of two by a discount d: "
    "accuracy on held-out folds, number of weights, and the part of them that are conjunctions of two. The factor in "
    "section 3.3 of Jackson & Craven is illegible in our copy; we read 1/2. Promoters stand in for the paper's data."
)


@styled
def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """One colour per data set; standard errors over folds."""
    figure = Figure(figsize=(PAGE, 2.5))
    accuracy, weights, fraction = figure.subplots(1, 3)
    for index, data in enumerate(map(str, simulation.data.values)):
        cell = simulation.sel(data=data)
        curve(accuracy, cell.discount, 100 * cell.accuracy, index, label=source(data).heading)
        curve(weights, cell.discount, cell.weights, index)
        curve(fraction, cell.discount, 100 * cell.pairs / cell.weights, index)
    accuracy.set(ylabel="accuracy (%)")
    weights.set(ylabel="weights", ylim=(0, None))
    fraction.set(ylabel="conjunctions of two (%)", ylim=(-4, 104))
    for ax in (accuracy, weights, fraction):
        ax.set(xlabel="discount $d$", xticks=[0, 0.25, 0.5, 0.75, 1])
        ax.xaxis.set_major_formatter("{x:g}")
    figure.legend(loc="outside lower center", ncols=4)
    return figure
