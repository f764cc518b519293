"""Margin-based learners under the stopping boundary: error and features against the threshold theta of the margin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from figures.series import mean_and_error
from figures.style import PAGE, log_ticks, look_of, styled
from statmech.classifiers import CLASSIFIERS

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

AXES = ("classifier", "theta", "budget")  # of the sweep, that this figure shows
CAPTION = (
    r"Learners that learn the examples whose margin is at most $\theta$, by the perceptron's update and by the "
    r"passive-aggressive one (PA-I), with all features (open markers, dashed) and with the stopping boundary (filled "
    r"markers, solid), against $\theta$. Left: error on held-out examples. Middle: features evaluated per prediction. "
    r"Right: features evaluated per example and pass in learning."
)
NAMES = {"attentive": "perceptron", "passive_aggressive": "passive-aggressive"}
PANELS = {
    "accuracy": "held-out errors (%)",
    "features": "features per prediction",
    "features_learning": "features in learning",
}


@styled
def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """Three panels: error, features of a prediction, features in learning."""
    figure = Figure(figsize=(PAGE, 2.7))
    axes = figure.subplots(1, len(PANELS))
    for ax, (name, label) in zip(axes, PANELS.items(), strict=True):
        for index, classifier in enumerate(map(str, simulation.classifier.values)):
            for budget in sorted(simulation.budget.values, reverse=True):
                _line(ax, simulation.sel(classifier=classifier, budget=budget)[name], index)
        ax.set(xscale="log", xlabel=r"threshold $\theta$", ylabel=label, ylim=(0, None))
        log_ticks(ax.xaxis)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _line(ax: Axes, cells: Any, index: int) -> None:
    full = int(cells.budget) > 0
    name = str(cells.classifier.values)
    mean, error = mean_and_error(100 * (1 - cells) if cells.name == "accuracy" else cells)
    look = {
        **look_of(index),
        "linewidth": 1.0,
        "markersize": 5 - 1.7 * index,
        "elinewidth": 0.7,
        "capsize": 1.5,
        **({"linestyle": "--", "markerfacecolor": "white"} if full else {}),
    }
    which = f"{NAMES.get(name, CLASSIFIERS[name].label)}, {'all features' if full else 'stopping boundary'}"
    ax.errorbar(cells.theta, mean, yerr=error, label=which, **look)
