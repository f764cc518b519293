"""Discounted correlations of pair conjunctions: fraction of pairs, accuracy and number of weights."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.classification.table_panels import FOLD_MEAN_STYLE
from figures.panels import add_title_and_legend, draw_panel, make_figure
from statmech.inputs.data_sets import find_data_source
from statmech.results.results import as_results

AXES = ("data", "discount")  # sweep axes that this figure shows
SUPPORTED_VALUES = {"classifier": ("boosting",)}
CAPTION = (
    "Boosted sparse perceptrons whose search multiplies the correlations of conjunctions of two by a discount d: (a) "
    "fraction of the weights that belong to conjunctions of two, (b) accuracy on held-out folds, (c) number of "
    "weights. The factor in section 3.3 of Jackson & Craven is illegible in our copy; we read 1/2. Promoters stand in "
    "for the paper's data."
)


def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """Draw fraction of pairs, accuracy and number of weights against the discount."""
    runs = simulation.assign(
        percent=100 * simulation.accuracy, share=100 * simulation.pairs / simulation.nonzero_weights
    )
    results, (figure, axes) = as_results(runs), make_figure(2.8, 1, 3, width_ratios=(1.6, 1, 1))
    for ax, name in zip(axes, ("share", "percent", "nonzero_weights"), strict=True):
        keys = draw_panel(ax, results, "discount", name, "data", nested=True, **FOLD_MEAN_STYLE, markerfacecolor=None)
        ax.set(xlabel="discount $d$", xticks=[0, 0.25, 0.5, 0.75, 1])
        ax.xaxis.set_major_formatter("{x:g}")
    axes[0].set(ylabel="conjunctions of two (%)", ylim=(-4, 104))
    axes[1].set_ylabel("accuracy (%)")
    axes[2].set(ylabel="weights", ylim=(0, None))
    for key in keys:
        key.set_label(find_data_source(str(key.get_label())).title_with_stand_in_mark)
    return add_title_and_legend(figure, results, keys, "classifier")
