"""Figures of Jackson & Craven's tables, and of the discount in their boosted sparse perceptrons.

Panels show the columns of a table. Each classifier has a row with the measured value above the paper's values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures.labels import describe_size_and_runs
from figures.panels import draw_legend_below, make_figure, make_line_handle, set_heading
from figures.published_figure import PublishedFigure
from figures.style import CURVE_COLOURS, NO_LEGEND_GID, set_log_ticks
from statmech.classification import study_tables as paper
from statmech.classification.classifiers import CLASSIFIERS
from statmech.classification.study_tables import PairedTest, iterate_paired_tests
from statmech.inputs.data_sets import find_data_source

MARKERS_CAPTION = (
    "Circles: measured by cross-validation. Open diamonds: values of Jackson & Craven, two where the scan of the paper "
    "allows two readings. Data sets marked as stand-ins replace the data of the paper."
)
FOLD_POINTS_CAPTION = (
    "Points: means over folds (ten, or the folds supplied with the data) and shuffles; bars: standard errors over "
    "folds."
)
SIGNIFICANCE_CAPTION = (
    "Stars (plus signs): significantly less (more) accurate than boosting, by a paired two-tailed t-test over folds at "
    "p <= 0.05; a fraction gives the number of shuffles with this result."
)
SIGNIFICANCE_LABEL, SHUFFLES_LABEL = r"$p\leq0.05$", " ($k/n$: in $k$ of $n$ shuffles)"
MARKER_ROW_OFFSET = 0.17  # measured values above the middle of a row, published values below
ROW_HEIGHT_INCHES = 0.3
GREY_MARKER_STYLE: dict[str, Any] = {"color": "0.3", "linestyle": "none"}
MEASURED_STYLE: dict[str, Any] = {"color": CURVE_COLOURS[0], "linestyle": "none", "marker": "o"}
PUBLISHED_STYLE: dict[str, Any] = {
    "color": CURVE_COLOURS[1],
    "linestyle": "none",
    "marker": "D",
    "markerfacecolor": "white",
    "markersize": 4,
}
SMALL_GREY_TEXT: dict[str, Any] = {"fontsize": 7, "color": "0.2"}
LESS_ACCURATE_SYMBOL = "\N{ASTERISK OPERATOR}"


def draw_accuracy_panel(ax: Axes, study: xr.Dataset, data: str) -> None:
    """Draw accuracies in per cent, with a star if boosting is significantly better."""
    for row, (name, test) in enumerate(_run_tests_against_boosting(study, data).items()):
        _draw_measured_value(
            ax, row, 100 * test.means["accuracy"], 100 * test.error, _format_significance(test, study.sizes["seed"])
        )
        star = LESS_ACCURATE_SYMBOL if name in paper.CLASSIFIERS_WORSE_THAN_BOOSTING.get(data, ()) else ""
        _draw_published_values(ax, row, paper.PUBLISHED_ACCURACY.get(data, {}).get(name, ()), star)
    _label_rows(ax, study)
    ax.set(xlabel="accuracy (%)", title=find_data_source(data).title_with_stand_in_mark)
    ax.margins(x=0.24)


def draw_weight_count_panel(ax: Axes, study: xr.Dataset, data: str) -> None:
    """Draw the number of weights of each classifier on a logarithmic axis."""
    for row, (name, test) in enumerate(_run_tests_against_boosting(study, data).items()):
        if test.means["nonzero_weights"] > 0:
            _draw_measured_value(ax, row, test.means["nonzero_weights"], test.errors["nonzero_weights"])
        elif test.means["accuracy"] > 0:  # NaN without runs
            ax.text(0.02, row, "no weights", transform=ax.get_yaxis_transform(), va="center", **SMALL_GREY_TEXT)
        _draw_published_values(ax, row, paper.PUBLISHED_WEIGHT_COUNTS.get(data, {}).get(name, ()))
    _label_rows(ax, study)
    ax.set(xlabel="number of weights", title=find_data_source(data).title_with_stand_in_mark, xscale="log")
    ax.margins(x=0.1)
    set_log_ticks(ax.xaxis)


def add_accuracy_legend(figure: Figure, study: xr.Dataset) -> None:
    """Add a legend for the markers of accuracy panels, and for the signs that they show."""
    marker_style: dict[str, Any] = GREY_MARKER_STYLE | {"markersize": 6}
    signs = "".join(text.get_text() for ax in figure.axes for text in ax.texts)
    stars = [
        make_line_handle(f"{comparison} accurate than boosting", marker=rf"${mark}$", **marker_style)
        for sign, mark, comparison in ((LESS_ACCURATE_SYMBOL, r"\ast", "less"), ("+", "+", "more"))
        if sign in signs
    ]
    handles = [*_make_marker_handles(study, paper.PUBLISHED_ACCURACY), *stars]
    note = f"signs: {SIGNIFICANCE_LABEL}{SHUFFLES_LABEL if '/' in signs else ''}" if stars else ""
    draw_legend_below(figure, handles, columns=3 if len(handles) == 3 else 2, note=note)


def add_weight_count_legend(figure: Figure, study: xr.Dataset) -> None:
    """Add a legend for the markers of weight-count panels."""
    handles = _make_marker_handles(study, paper.PUBLISHED_WEIGHT_COUNTS)
    draw_legend_below(figure, handles, columns=3, note="trees have no weights")


def _make_marker_handles(study: xr.Dataset, published_values: dict[str, dict[str, tuple[float, ...]]]) -> list[Line2D]:
    """Return the legend handles for measured and published values."""
    published = [
        published_values.get(str(data), {}).get(str(name), ())
        for data in study.data.values
        for name in study.classifier.values
    ]
    handles = [make_line_handle("measured, \N{PLUS-MINUS SIGN} standard error over folds", **MEASURED_STYLE)]
    if any(published):
        two = " (pairs: two readings)" if any(len(values) > 1 for values in published) else ""
        handles.append(make_line_handle(f"Jackson & Craven{two}", **PUBLISHED_STYLE))
    return handles


def draw_panel_per_data_set(study: xr.Dataset, draw_data_set_panel: Callable[[Axes, xr.Dataset, str], None]) -> Figure:
    """Draw one panel per data set, with one row and one colour per classifier."""
    sets = [str(name) for name in study.data.values]
    figure, _ = make_figure(compute_figure_height(study), 1, len(sets), sharey=True)
    for ax, data in zip(figure.axes, sets, strict=True):
        draw_data_set_panel(ax, study, data)
    set_heading(figure, [_describe_folds_and_shuffles(study)])
    return figure


def _describe_folds_and_shuffles(study: xr.Dataset) -> str:
    """Describe the number of runs, and name data sets that are given with fewer folds than the others."""
    has_runs = study.accuracy.notnull().any(["classifier", "seed"])
    counts = {str(data): int(has_runs.sel(data=data).sum()) for data in study.data.values}
    fewer = [f"{data}: {count}" for data, count in counts.items() if 0 < count < study.sizes["fold"]]
    return describe_size_and_runs(study).replace(" folds", f" folds ({', '.join(fewer)})" if fewer else " folds", 1)


def compute_figure_height(study: xr.Dataset, panel_rows: int = 1) -> float:
    """Return the height in inches of a figure with rows of panels and a legend."""
    return panel_rows * (0.75 + ROW_HEIGHT_INCHES * study.sizes["classifier"]) + 0.45


def _run_tests_against_boosting(study: xr.Dataset, data: str) -> dict[str, PairedTest]:
    """Compare each classifier with boosting on one data set, and return the tests by name."""
    tests = iterate_paired_tests(study.sel(data=[data]))
    return {str(test.cell["classifier"]): test for test in tests}


def _format_significance(test: PairedTest, num_shuffles: int) -> str:
    """Return the star or plus sign that marks a significant difference.

    A fraction follows if the difference is significant only in some shuffles.
    """
    pairs = ((LESS_ACCURATE_SYMBOL, test.worse_shuffles), ("+", test.better_shuffles))
    return " ".join(
        f"{mark}" if count == num_shuffles else f"{mark}{count}/{num_shuffles}" for mark, count in pairs if count
    )


def _draw_measured_value(ax: Axes, row: int, mean: float, error: float, annotation: str = "") -> None:
    ax.errorbar(mean, row - MARKER_ROW_OFFSET, xerr=error, zorder=3, gid=NO_LEGEND_GID, **MEASURED_STYLE)
    _annotate_point(ax, mean + (error if error == error else 0), row - MARKER_ROW_OFFSET, annotation)


def _draw_published_values(ax: Axes, row: int, values: tuple[float, ...], annotation: str = "") -> None:
    if not values:
        return
    ax.plot(sorted(values), [row + MARKER_ROW_OFFSET] * len(values), zorder=2, gid=NO_LEGEND_GID, **PUBLISHED_STYLE)
    _annotate_point(ax, max(values), row + MARKER_ROW_OFFSET, annotation)


def _annotate_point(ax: Axes, x: float, y: float, annotation: str) -> None:
    ax.annotate(annotation, (x, y), (4, 0), textcoords="offset points", va="center_baseline", **SMALL_GREY_TEXT)


def _label_rows(ax: Axes, study: xr.Dataset) -> None:
    names = [str(name) for name in study.classifier.values]
    ax.set_yticks(range(len(names)), [CLASSIFIERS[name].label for name in names])
    for row in range(len(names) - 1):
        ax.axhline(row + 0.5, color="0.9", linewidth=0.6, zorder=0)
    ax.set_ylim(len(names) - 0.45, -0.55)
    ax.tick_params(axis="y", length=0)


def draw_table1(simulation: xr.Dataset, theory: None) -> Figure:
    """Draw the accuracy of each classifier, one panel per data set."""
    figure = draw_panel_per_data_set(simulation, draw_accuracy_panel)
    add_accuracy_legend(figure, simulation)
    return figure


table1 = PublishedFigure(
    draw=draw_table1,
    axes=("data", "classifier"),
    caption=f"Accuracy of each classifier on held-out folds of three domains. {MARKERS_CAPTION} {SIGNIFICANCE_CAPTION}",
    points_caption=FOLD_POINTS_CAPTION,
)


def draw_table2(simulation: xr.Dataset, theory: None) -> Figure:
    """Draw the number of weights of each classifier that has weights."""
    weighted = simulation.nonzero_weights.notnull().any(["data", "seed", "fold"])
    weighted_classifiers = simulation.isel(classifier=weighted.values) if weighted.any() else simulation
    figure = draw_panel_per_data_set(weighted_classifiers, draw_weight_count_panel)
    add_weight_count_legend(figure, weighted_classifiers)
    return figure


table2 = PublishedFigure(
    draw=draw_table2,
    axes=("data", "classifier"),
    caption=(
        "Mean number of weights (thresholds not counted) of each classifier on three domains; trees have no weights. "
        f"{MARKERS_CAPTION}"
    ),
    points_caption=FOLD_POINTS_CAPTION,
)


def draw_votes(simulation: xr.Dataset, theory: None) -> Figure:
    """Draw accuracy and number of weights, one row per data set and one colour per classifier."""
    sets = [str(name) for name in simulation.data.values]
    figure, axes = make_figure(compute_figure_height(simulation, len(sets)), len(sets), 2, sharey=True, squeeze=False)
    for (accuracy, weights), data in zip(axes, sets, strict=True):
        draw_accuracy_panel(accuracy, simulation, data)
        draw_weight_count_panel(weights, simulation, data)
    if len(sets) == 1:
        for ax in axes.flat:
            ax.set_title("")
        set_heading(figure, [find_data_source(sets[0]).title_with_stand_in_mark, describe_size_and_runs(simulation)])
    add_accuracy_legend(figure, simulation)
    return figure


votes = PublishedFigure(
    draw=draw_votes,
    axes=("data", "classifier"),
    caption=(
        f"Accuracy on held-out folds and number of weights of each classifier. {MARKERS_CAPTION} "
        f"{SIGNIFICANCE_CAPTION} Trees have no weights."
    ),
)
