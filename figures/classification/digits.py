"""Figures of the Attentive Perceptron on digits: errors, margin thresholds, and the pixels that it evaluates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, NullLocator

from figures.curves import compute_mean_and_error
from figures.labels import describe_size_and_runs
from figures.panels import draw_legend_below, make_figure, set_heading
from figures.published_figure import PublishedFigure
from figures.style import CURVE_COLOURS, JOINING_LINE_STYLE, PAGE_WIDTH, SMALL_FONT_SIZE, get_curve_style, set_log_ticks
from simulate.classification.cross_validation import fit_fold, make_folds
from simulate.classification.estimators.attentive import PartialSums
from statmech.classification.cross_validation import Study, StudyCell
from statmech.errors import ConfigError
from statmech.inputs.data_sets import find_data_source
from statmech.stores.dataset import scenario_from_dataset

FEATURE_ORDER_LABELS = {"random": "random order", "weight": r"largest $|w_j|$ first", "fixed": "order of the columns"}

FEATURE_COUNTS_BY_PHASE = {"prediction": "features_evaluated", "learning": "features_learning"}
TARGET_LABEL_ROOM = 0.85  # factor on the left limit, for the labels of target rates
TARGET_RATE_NOTE = r"$\epsilon_d$: target rate of decision errors"
JOINED_NOTE = "bars: standard errors over folds; thin lines join points"


def draw_digits(simulation: xr.Dataset, theory: None) -> Figure:
    """Draw the error against the features evaluated, in prediction (left) and in learning, one row per data set."""
    sets = [str(name) for name in simulation.data.values]
    figure, axes = make_figure(0.8 + 2.2 * len(sets), len(sets), 2, sharex=True, sharey=True, squeeze=False)
    for row, data in zip(axes, sets, strict=True):
        for ax, (phase, features) in zip(row, FEATURE_COUNTS_BY_PHASE.items(), strict=True):
            _draw_data_set(ax, simulation.sel(data=data), features)
            ax.set_title(f"{find_data_source(data).title}, {phase}", loc="left")
        row[0].set_ylabel("held-out errors (%)")
    axes[0, 0].set(xscale="log", yscale="log")
    axes[0, 0].xaxis.set_major_locator(FixedLocator([50, 100, 200, 400, 784]))
    axes[0, 0].xaxis.set_major_formatter("{x:g}")
    axes[0, 0].xaxis.set_minor_locator(NullLocator())
    axes[0, 0].set_xlim(left=TARGET_LABEL_ROOM * axes[0, 0].get_xlim()[0])
    set_log_ticks(axes[0, 0].yaxis)
    for ax in axes[-1]:
        ax.set_xlabel("features evaluated per example")
    rates = ", ".join(f"{rate:g}" for rate in simulation.error_rate.values[simulation.budget.values == 0][::-1])
    note = f"{JOINED_NOTE}; {TARGET_RATE_NOTE}, {rates} from left to right"
    draw_legend_below(figure, axes[0, 0].get_legend_handles_labels()[0], columns=3, note=note)
    return figure


def _draw_data_set(ax: Axes, cells: xr.Dataset, features_variable: str) -> None:
    """Draw the errors of each feature order, and of fixed numbers of features."""
    is_fixed = cells.budget.values > 0
    for index, order in enumerate(map(str, cells.chosen.values)):
        attentive = cells.sel(chosen=order).isel(error_rate_budget=~is_fixed)
        _draw_errors_against_features(ax, attentive, features_variable, index, FEATURE_ORDER_LABELS[order])
    fixed = cells.sel(chosen=str(cells.chosen.values[0])).isel(error_rate_budget=is_fixed)
    if fixed.sizes["error_rate_budget"]:
        _draw_errors_against_features(ax, fixed, features_variable, 6, "fixed number of features")


digits = PublishedFigure(
    draw=draw_digits,
    axes=("data", "chosen", "error_rate_budget"),
    supported_values={"classifier": ("attentive",)},
    required_variables=("budget",),
    caption=(
        r"Error on held-out examples against the number of features evaluated per example, (left) in prediction and "
        r"(right) in learning, per example and pass. Colours and markers: order in which the Attentive Perceptron "
        r"evaluates features; the target rate $\epsilon_d$ of decision errors decreases from the labelled value to the "
        r"right. Black triangles: a perceptron that learns and predicts with a fixed number of features, drawn at "
        r"random. Thin lines join points."
    ),
)


def _draw_errors_against_features(ax: Axes, cells: Any, features_variable: str, index: int, label: str) -> None:
    """Draw errors against features, and label the leftmost point with its target error rate."""
    (error, spread), (x, _) = (
        compute_mean_and_error(100 * (1 - cells.accuracy)),
        compute_mean_and_error(cells[features_variable]),
    )
    style = {**get_curve_style(index), "linestyle": "none", "elinewidth": 0.7, "capsize": 1.5}
    ax.plot(x, error, **JOINING_LINE_STYLE)
    ax.errorbar(x, error, yerr=spread, label=label, zorder=3, **style)
    if bool((cells.budget == 0).all()):
        text_style: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "va": "center"}
        text = rf"$\epsilon_d={cells.error_rate.values[-1]:g}$"
        ax.annotate(text, (float(x[-1]), float(error[-1])), (-5, 0), fontsize=SMALL_FONT_SIZE, **text_style)


DRAWN_EXAMPLES_PER_CLASS = 2  # separately for easy and for hard examples
# two classes; horizontal and vertical steps between images
IMAGE_COLUMNS = 2 * DRAWN_EXAMPLES_PER_CLASS
IMAGE_SPACING = (1.12, 1.3)
DIGITS_ATTENTION_NOTE = (
    "easy: stopped early; hard: never stopped; digits at the levels: class decided there; below the digits: number of "
    "pixels evaluated; on grey: not evaluated"
)
NUM_FEATURE_COUNT_BINS = 16
PIXEL_ORDER_LABELS = {"random": "random order", "weight": r"largest $|w_j|$ first", "fixed": "row by row"}
EXAMPLE_LINE_STYLES: dict[str, dict[str, Any]] = {
    "easy": {"color": CURVE_COLOURS[0], "marker": "o"},
    "hard": {"color": CURVE_COLOURS[1], "marker": "s"},
}


class HeldOutFold(NamedTuple):
    """Held-out examples of a fold, with partial sums, classes, and flags for misclassification."""

    X: np.ndarray
    evaluated_sums: PartialSums
    true_classes: np.ndarray
    is_misclassified: np.ndarray


def draw_digits_attention(simulation: xr.Dataset, theory: None) -> Figure:
    """Draw partial sums, images and a histogram, one row for each data set and feature order.

    A stored study contains the mean number of features of each fold, but not of each example. The figure therefore
    relearns the folds, which reproduces the same students, and checks their means against the stored means.
    """
    study: Study = scenario_from_dataset(simulation)
    cells = [cell for cell in study.cells() if _is_cell_drawn(simulation, cell)]
    figure = Figure(figsize=(PAGE_WIDTH, 0.6 + 2.2 * len(cells)))
    grid = figure.add_gridspec(len(cells), 3, width_ratios=(1, 1.5, 0.75))
    for row, cell in enumerate(cells):
        parts = [part for seed in range(study.seeds) for part in _relearn_folds(study, cell, seed, simulation)]
        examples = _select_easy_and_hard_rows(parts[0])
        axes = [figure.add_subplot(grid[row, column]) for column in range(3)]
        _draw_partial_sums(axes[0], parts[0], examples, cell)
        _draw_images(axes[1], parts[0], examples)
        _draw_feature_count_histogram(axes[2], parts)
    handles = [pair for ax in axes[::2] for pair in zip(*ax.get_legend_handles_labels(), strict=True)]
    keys, texts = zip(*handles, strict=True)
    set_heading(figure, [rf"$\epsilon_d$ = {cells[0].classifier.error_rate:g}", describe_size_and_runs(simulation)])
    note = f"{DIGITS_ATTENTION_NOTE}; {TARGET_RATE_NOTE}"
    figure.legend(keys, texts, loc="outside lower center", ncols=4, title=note)
    return figure


digits_attention = PublishedFigure(
    draw=draw_digits_attention,
    axes=("data", "chosen"),
    caption=(
        r"The Attentive Perceptron on held-out digits, one row per pixel order. Left: partial sums $S_i$ of four easy "
        r"examples (in each class, the two whose number of evaluated pixels is nearest to the lower quartile) and of "
        r"four hard examples (in each class, the two with the most evaluated pixels and the smallest $|S_n|$). "
        r"Evaluation stops at the markers, where $|S_i|$ reaches $\tau$ (dashed, labelled with the predicted class); "
        r"dotted lines continue with the other pixels. Middle: the same digits with unevaluated pixels in grey, and "
        r"the number of evaluated pixels below. Right: distribution of the number of evaluated pixels over all "
        r"held-out examples (grey) and over misclassified examples (black)."
    ),
    points_caption="",
)


def _is_cell_drawn(simulation: xr.Dataset, cell: StudyCell) -> bool:
    return cell.data in simulation.data.values and _get_feature_order(cell) in simulation.chosen.values


def _get_feature_order(cell: StudyCell) -> str:
    """Return the feature order of the classifier in a cell.

    Raises `ConfigError` for a classifier without a feature order.
    """
    if not hasattr(cell.classifier, "chosen"):
        raise ConfigError('the figure "digits_attention" requires the classifier attentive or passive_aggressive')
    return str(cell.classifier.chosen)


def _relearn_folds(study: Study, cell: StudyCell, seed: int, simulation: xr.Dataset) -> list[HeldOutFold]:
    """Relearn every cross-validation fold of one shuffle.

    Raises `ConfigError` if a mean number of features differs from its stored value.
    """
    stored = simulation.features_evaluated.sel(data=cell.data, chosen=_get_feature_order(cell)).isel(seed=seed)
    parts = []
    for fold in make_folds(study, cell, seed):
        model, X, y = fit_fold(study, fold)
        X, y = X[fold.test_rows], y[fold.test_rows]
        parts.append(HeldOutFold(X, model.partial_sums(X)[0], y, model.predict(X) != y))
        relearnt_features, stored_features = parts[-1].evaluated_sums.features.mean(), float(stored[len(parts) - 1])
        if not np.isclose(relearnt_features, stored_features):
            raise ConfigError(
                f"relearning {cell.data} evaluates {relearnt_features:g} features, but {stored_features:g} are stored"
            )
    return parts


def _select_easy_and_hard_rows(fold: HeldOutFold) -> dict[str, np.ndarray]:
    """Select easy and hard examples by row index, `DRAWN_EXAMPLES_PER_CLASS` of each per class."""
    last, features = np.abs(fold.evaluated_sums.sums[:, -1]), fold.evaluated_sums.features
    rows_by_name: dict[str, list[np.ndarray]] = {"easy": [], "hard": []}
    for label in np.unique(fold.true_classes):
        rows = np.flatnonzero(fold.true_classes == label)
        quartile_distances = np.abs(features[rows] - np.quantile(features[rows], 0.25))
        rows_by_name["easy"].append(rows[np.argsort(quartile_distances, kind="stable")[:DRAWN_EXAMPLES_PER_CLASS]])
        rows_by_name["hard"].append(rows[np.lexsort((last[rows], -features[rows]))[:DRAWN_EXAMPLES_PER_CLASS]])
    return {name: np.concatenate(rows) for name, rows in rows_by_name.items()}


def _draw_partial_sums(ax: Axes, fold: HeldOutFold, examples: dict[str, np.ndarray], cell: StudyCell) -> None:
    """Draw partial sums, as solid lines until evaluation stops and as dotted lines afterwards."""
    partial_sums = fold.evaluated_sums
    for name, rows in examples.items():
        for row in rows:
            label = name if row == rows[0] else None
            end = int(np.searchsorted(partial_sums.check_positions, partial_sums.features[row])) + 1
            counts, sums = np.append(0, partial_sums.check_positions), np.append(0.0, partial_sums.sums[row])
            line_style: dict[str, Any] = {**EXAMPLE_LINE_STYLES[name], "linewidth": 0.9}
            ax.plot(
                counts[: end + 1], sums[: end + 1], **line_style, markevery=[end], markerfacecolor="white", label=label
            )
            dotted_label = "if not stopped" if name == "easy" and label else None
            ax.plot(
                counts[end:],
                sums[end:],
                color=EXAMPLE_LINE_STYLES[name]["color"],
                linewidth=0.7,
                linestyle=":",
                label=dotted_label,
            )
    signs = (-1, 1) if np.isfinite(partial_sums.level) else ()  # with too few probes nothing stops
    for sign, decided_class in zip(signs, np.unique(fold.true_classes), strict=False):
        label = r"stopping level $\pm\tau$" if sign > 0 else None
        ax.axhline(sign * partial_sums.level, color="k", linewidth=0.9, linestyle="--", label=label)
        ax.text(1.01, sign * partial_sums.level, decided_class, transform=ax.get_yaxis_transform(), va="center")
    ax.set(xlabel="pixels evaluated, $i$", ylabel="partial sum $S_i$", xticks=[0, 200, 400, 600, 784])
    ax.set_title(f"{find_data_source(cell.data).title}, {PIXEL_ORDER_LABELS[_get_feature_order(cell)]}", loc="left")


def _draw_images(ax: Axes, fold: HeldOutFold, examples: dict[str, np.ndarray]) -> None:
    """Draw the examples as images of width 1, with easy examples above hard ones."""
    for line, (name, rows) in enumerate(examples.items()):
        low = -IMAGE_SPACING[1] * line
        for column, row in enumerate(rows):
            left = IMAGE_SPACING[0] * column
            extent = (left, left + 1, low, low + 1)
            image_options: dict[str, Any] = {"cmap": "gray", "vmin": 0, "vmax": 1, "interpolation": "nearest"}
            ax.imshow(_render_evaluated_pixels(fold, row), extent=extent, clip_on=False, **image_options)
            frame: dict[str, Any] = {"fill": False, "linewidth": 1.2, "clip_on": False}
            ax.add_patch(Rectangle((left, low), 1, 1, color=EXAMPLE_LINE_STYLES[name]["color"], **frame))
            ax.text(
                left + 0.5,
                low - 0.04,
                f"{fold.evaluated_sums.features[row]}",
                ha="center",
                va="top",
                fontsize=SMALL_FONT_SIZE,
            )
        ax.text(-0.06, low + 0.5, name, rotation=90, ha="right", va="center")
    ax.set(xlim=(-0.25, IMAGE_SPACING[0] * IMAGE_COLUMNS), ylim=(0.8 - IMAGE_SPACING[1] - 1, 1.05))
    ax.set_axis_off()


def _render_evaluated_pixels(fold: HeldOutFold, example_index: int) -> np.ndarray:
    """Render an example as an image, with unevaluated pixels pale on grey."""
    side = round(np.sqrt(fold.X.shape[1]))
    if side**2 != fold.X.shape[1]:
        raise ConfigError('the figure "digits_attention" requires image data, such as digits-3-8')
    evaluated = np.zeros(side**2, bool)
    evaluated[fold.evaluated_sums.order[: fold.evaluated_sums.features[example_index]]] = True
    ink = fold.X[example_index] / max(fold.X[example_index].max(), 1e-300)
    return np.where(evaluated, 1 - ink, 0.78 - 0.22 * ink).reshape(side, side)


def _draw_feature_count_histogram(ax: Axes, folds: list[HeldOutFold]) -> None:
    """Draw the distribution of evaluated features over all and over misclassified held-out examples."""
    features = np.concatenate([part.evaluated_sums.features for part in folds])
    wrong = np.concatenate([part.is_misclassified for part in folds])
    edges = np.linspace(0, folds[0].X.shape[1], NUM_FEATURE_COUNT_BINS + 1).tolist()
    percent_per_example = 100 / len(features)
    for values, colour, label in ((features, "0.75", "all examples"), (features[wrong], "k", "misclassified")):
        ax.hist(values, edges, weights=np.full(len(values), percent_per_example), color=colour, label=label)
    ax.axvline(features.mean(), color="k", linewidth=0.9, linestyle="-.", label="mean number")
    ax.set(xlabel="pixels evaluated", ylabel="held-out examples (%)", xticks=[0, 400, 784])
