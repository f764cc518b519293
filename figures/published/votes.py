"""Tables 1 and 2 of Jackson & Craven as a picture: accuracy and number of weights, with the paper's values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from figures.series import mean_and_error
from figures.style import PAGE, look_of, styled
from statmech.classifiers import CLASSIFIERS
from statmech.data_sets import source
from statmech.results import published_values as paper

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

AXES = ("data", "classifier")  # of the sweep, that this figure shows


@styled
def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """A row per classifier: points with standard errors over folds; open diamonds: the paper."""
    names = [str(name) for name in simulation.classifier.values]
    figure = Figure(figsize=(PAGE, 1.1 + 0.32 * len(names)))
    accuracy, weights = figure.subplots(1, 2, sharey=True)
    sets = [str(name) for name in simulation.data.values]
    for index, data in enumerate(sets):
        cell = simulation.sel(data=data)
        _measured(accuracy, 100 * cell.accuracy, index, sets, source(data).title)
        _measured(weights, cell.weights, index, sets, None)
        _published(accuracy, paper.ACCURACY, names, data, index, sets)
        _published(weights, paper.WEIGHTS, names, data, index, sets)
    accuracy.set(xlabel="accuracy (%)", yticks=range(len(names)))
    accuracy.set_yticklabels([CLASSIFIERS[name].label for name in names])
    accuracy.invert_yaxis()
    weights.set(xlabel="weights", xscale="log")
    for ax in (accuracy, weights):
        ax.grid(axis="y", color="0.9", linewidth=0.6)
        ax.tick_params(axis="y", length=0)
    handles, labels = accuracy.get_legend_handles_labels()
    if any(data in paper.ACCURACY for data in sets):
        handles.append(accuracy.plot([], [], "D", color="0.3", markerfacecolor="white", markersize=5)[0])
        labels.append("paper (two where our scan is ambiguous)")
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def _rows(count: int, index: int, sets: list[str]) -> list[float]:
    """The heights of a data set's points, shifted if there are several data sets."""
    return [row + 0.22 * (index - (len(sets) - 1) / 2) for row in range(count)]


def _measured(ax: Axes, values: Any, index: int, sets: list[str], label: str | None) -> None:
    mean, error = mean_and_error(values)
    rows = _rows(values.sizes["classifier"], index, sets)
    look = {**look_of(index), "linestyle": "none", "label": label, "zorder": 3}
    ax.errorbar(mean, rows, xerr=error, **look)


def _published(ax: Axes, values: Any, names: list[str], data: str, index: int, sets: list[str]) -> None:
    for name, row in zip(names, _rows(len(names), index, sets), strict=True):
        for value in values.get(data, {}).get(name, ()):
            ax.plot(value, row, "D", color=look_of(index)["color"], markersize=5.5, markerfacecolor="none", zorder=2)
