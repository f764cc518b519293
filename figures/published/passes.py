"""Training and test error of Daume's perceptron over passes (his Figure 3.3), and the effect of the order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from figures.published.helpers.fold_means import curve
from figures.style import PAGE, styled
from statmech.classifiers import CLASSIFIERS
from statmech.data_sets import source
from statmech.scenarios.cross_validation import ORDERS

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

AXES = ("classifier", "order", "passes")  # of the sweep, that this figure shows


@styled
def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """Left: the last order, one colour per classifier; right: the first classifier, one colour per order."""
    test, training = 100 * (1 - simulation.accuracy), 100 * (1 - simulation.accuracy_training)
    figure = Figure(figsize=(PAGE, 3.0))
    left, right = figure.subplots(1, 2)
    order, first = str(simulation.order.values[-1]), str(simulation.classifier.values[0])
    for index, name in enumerate(map(str, simulation.classifier.values)):
        cell = {"classifier": name, "order": order}
        label = CLASSIFIERS[name].label
        curve(left, simulation.passes, test.sel(cell), index, label=f"{label}, test")
        open_look = {"linestyle": "--", "markerfacecolor": "white", "label": f"{label}, training"}
        curve(left, simulation.passes, training.sel(cell), index, **open_look)
    for index, name in enumerate(map(str, simulation.order.values)):
        cell = {"classifier": first, "order": name}
        curve(right, simulation.passes, test.sel(cell), index, label=ORDERS[name])
    left.set(title=f"{source(simulation.data.item()).title}, order {ORDERS[order]}")
    right.set(title=f"test error of the {CLASSIFIERS[first].label} (last weights)", yscale="log")
    right.yaxis.set_major_formatter("{x:g}")
    right.yaxis.set_minor_formatter("{x:g}")
    for ax in (left, right):
        _passes(ax)
    left.set_ylim(bottom=0)
    return figure


def _passes(ax: Axes) -> None:
    ax.set(xscale="log", xlabel="passes over the examples", ylabel="error (%)")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.legend(loc="best", fontsize=6.5)
