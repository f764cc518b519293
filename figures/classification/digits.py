"""The Attentive Perceptron on real digits: error against features evaluated, compared with a fixed budget."""

from __future__ import annotations

from typing import Any

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from figures.curves import compute_mean_and_error
from figures.panels import make_figure
from figures.style import JOINING_LINE_STYLE, SMALL_FONT_SIZE, get_curve_style, set_log_ticks
from statmech.inputs.data_sets import find_data_source

AXES = ("data", "chosen", "error_rate_budget")  # sweep axes that this figure shows
SUPPORTED_VALUES = {"classifier": ("attentive",)}
REQUIRED_VARIABLES = ("budget",)
CAPTION = (
    r"Error on held-out examples against the number of features evaluated per example, one panel per data set. Colours "
    r"and markers: order in which the Attentive Perceptron evaluates features; the target rate $\epsilon_d$ of "
    r"decision errors decreases from the labelled value to the right. Filled markers: features evaluated in "
    r"prediction; open markers: in learning, per example and pass, at the same errors. Black crosses: a perceptron "
    r"that learns and predicts with a fixed number of features, drawn at random. Thin grey lines guide the eye."
)
FEATURE_ORDER_LABELS = {"random": "random order", "weight": r"largest $|w_j|$ first", "fixed": "order of the columns"}


def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """Draw the error against the features evaluated in prediction and in learning, one column per data set."""
    sets = [str(name) for name in simulation.data.values]
    figure, _ = make_figure(3.4, 1, len(sets), sharey=True)
    for ax, data in zip(figure.axes, sets, strict=True):
        cells = simulation.sel(data=data)
        for index, order in enumerate(map(str, simulation.chosen.values)):
            attentive = cells.sel(chosen=order).isel(error_rate_budget=simulation.budget.values == 0)
            _draw_errors_against_features(
                ax, attentive, "features_evaluated", index, f"{FEATURE_ORDER_LABELS[order]}, in prediction"
            )
            learning = f"{FEATURE_ORDER_LABELS[order]}, in learning"
            _draw_errors_against_features(ax, attentive, "features_learning", index, learning, markerfacecolor="white")
        hard = cells.sel(chosen=str(simulation.chosen.values[0])).isel(error_rate_budget=simulation.budget.values > 0)
        if hard.sizes["error_rate_budget"]:
            _draw_errors_against_features(ax, hard, "features_evaluated", 6, "fixed number of features")
        ax.set(xlabel="features evaluated per example", xscale="log", yscale="log")
        ax.set_title(find_data_source(data).title, loc="left")
        ax.xaxis.set_major_locator(FixedLocator([50, 100, 200, 400, 784]))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_locator(NullLocator())
    for ax in figure.axes:
        set_log_ticks(ax.yaxis)
    figure.axes[0].set_ylabel("held-out errors (%)")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _draw_errors_against_features(
    ax: Axes, cells: Any, features_variable: str, index: int, label: str, **style: Any
) -> None:
    """Draw errors against features, and label the leftmost prediction point with its target error rate.

    Features evaluated in learning are drawn against the same prediction errors, without error bars.
    """
    (error, spread), (x, _) = (
        compute_mean_and_error(100 * (1 - cells.accuracy)),
        compute_mean_and_error(cells[features_variable]),
    )
    is_prediction = features_variable == "features_evaluated"
    style = {**get_curve_style(index), "linestyle": "none", "elinewidth": 0.7, "capsize": 1.5, **style}
    ax.plot(x, error, **JOINING_LINE_STYLE)
    ax.errorbar(x, error, yerr=spread if is_prediction else None, label=label, zorder=3, **style)
    if is_prediction and bool((cells.budget == 0).all()):
        position, text = (float(x[-1]), float(error[-1] + spread[-1])), rf"$\epsilon_d={cells.error_rate.values[-1]:g}$"
        ax.annotate(text, position, (0, 3), textcoords="offset points", ha="center", fontsize=SMALL_FONT_SIZE)
