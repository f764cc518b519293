"""Training and test errors of Daume's perceptron against passes (his Figure 3.3), and the effect of example order."""

from __future__ import annotations

from typing import Any

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures import labels
from figures.classification.table_panels import draw_fold_means, has_independent_seed_samples
from figures.legends import make_line_handle
from figures.panels import draw_legend_below, make_figure, set_heading, set_log_axes
from figures.style import nested_marker_size
from statmech.classification.classifiers import CLASSIFIERS, EXAMPLE_ORDER_MEANINGS
from statmech.inputs.data_sets import find_data_source

AXES = ("data", "classifier", "order", "passes")  # sweep axes that this figure shows
PREFERRED_EXAMPLE_ORDER = "every"  # preferred order for comparing classifiers
CAPTION = (
    "Training and test errors of the perceptron against the number of passes over the examples: with its last weights, "
    "with the mean of its weights over all visits (averaged), and with the vote of all these weights (voted), as in "
    "Figure 3.3 of Daume's chapter. Right: test error for different orders of the examples. Learning ends after a pass "
    "without a mistake."
)
TEST_ERROR_MARKER_STYLE: dict[str, Any] = {"marker": "o", "linestyle": "none"}
TRAINING_ERROR_MARKER_STYLE: dict[str, Any] = TEST_ERROR_MARKER_STYLE | {"markerfacecolor": "white"}
POINTS_CAPTION = (
    "Points: means over data sets, each with its own folds; bars: standard errors over data sets, or over folds for a "
    "fixed data set."
)


def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """Draw one row per data set: all classifiers for one order, and the first classifier for every order."""
    sets = [str(name) for name in simulation.data.values]
    figure, axes = make_figure(1.1 + 2.4 * len(sets), len(sets), 2, squeeze=False)
    for (left, right), name in zip(axes, sets, strict=True):
        cells = simulation.sel(data=name)
        independent_examples = has_independent_seed_samples(simulation, name)
        default_order = _draw_errors_by_classifier(left, cells, independent_examples)
        _draw_errors_by_order(right, cells, default_order, independent_examples)
        title_prefix = f"{find_data_source(name).title}: " if len(sets) > 1 else ""
        left.set_title(f"{title_prefix}{EXAMPLE_ORDER_MEANINGS[default_order]}")
        right.set_title(f"{title_prefix}{_get_first_classifier_label(cells)}")
        left.set_ylabel("error (%)")
        right.set_ylabel("test error (%)")
        for ax in (left, right):
            ax.set_xlabel("passes over the examples")
            set_log_axes(ax, "x")
        left.set_ylim(bottom=0)
    left, right = axes[0]
    classifier_keys, orders = (ax.get_legend_handles_labels()[0] for ax in (left, right))
    marks = [
        make_line_handle("test error", **TEST_ERROR_MARKER_STYLE),
        make_line_handle("training error", **TRAINING_ERROR_MARKER_STYLE),
    ]
    set_heading(
        figure,
        [*([find_data_source(sets[0]).title] if len(sets) == 1 else []), labels.describe_size_and_runs(simulation)],
    )
    draw_legend_below(figure, _pad_legend_columns(classifier_keys, marks, orders), columns=3)
    return figure


def _pad_legend_columns(*handle_columns: list[Any]) -> list[Any]:
    """Pad lists of legend handles with empty handles, so that each list fills a column."""
    num_rows = max(map(len, handle_columns))
    return [
        key
        for column in handle_columns
        for key in (*column, *[make_line_handle(" ", linestyle="none")] * (num_rows - len(column)))
    ]


def _draw_errors_by_classifier(ax: Axes, cells: xr.Dataset, independent_examples: bool) -> str:
    """Draw test and training errors of every classifier, and return the order of the examples.

    Each classifier has a colour. Lines of training errors are dashed.
    """
    orders = [str(order) for order in cells.order.values]
    default_order = PREFERRED_EXAMPLE_ORDER if PREFERRED_EXAMPLE_ORDER in orders else orders[-1]
    for name in ("accuracy", "accuracy_training"):
        is_test = name == "accuracy"
        style: dict[str, Any] = {} if is_test else {"linestyle": "--", "markerfacecolor": "white"}
        for index, classifier in enumerate(map(str, cells.classifier.values)):
            error = 100 * (1 - cells[name].sel(classifier=classifier, order=default_order))
            label = CLASSIFIERS[classifier].label if is_test else None
            draw_fold_means(ax, cells.passes, error, index, independent_examples, label=label, **style)
    return default_order


def _draw_errors_by_order(ax: Axes, cells: xr.Dataset, default_order: str, independent_examples: bool) -> None:
    """Draw test errors of the first classifier for every order of the examples.

    The order of the left panel keeps its colour.
    """
    error = 100 * (1 - cells.accuracy.isel(classifier=0))
    further = iter(range(cells.sizes["classifier"], cells.sizes["classifier"] + cells.sizes["order"]))
    for position, order in enumerate(map(str, cells.order.values)):
        index, size = 0 if order == default_order else next(further), nested_marker_size(position, cells.sizes["order"])
        label = f"order: {EXAMPLE_ORDER_MEANINGS[order]}"
        draw_fold_means(ax, cells.passes, error.sel(order=order), index, independent_examples, label=label, **size)


def _get_first_classifier_label(cells: xr.Dataset) -> str:
    return CLASSIFIERS[str(cells.classifier.values[0])].label
