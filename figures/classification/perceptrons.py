"""Figures of perceptrons and other classifiers: errors after each pass, and decision boundaries in the plane."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures.panels import draw_legend_below, make_figure, make_line_handle
from figures.published_figure import PublishedFigure
from figures.style import CURVE_COLOURS
from simulate.classification.cross_validation import compute_plane_corners, get_plane_weights, make_plane_grid
from statmech.classification.classifiers import CLASSIFIERS
from statmech.errors import ConfigError
from statmech.inputs.data_sets import DataSetContent, find_data_source, load_data_set
from statmech.stores.dataset import scenario_from_dataset

MAX_INDEPENDENT_SAMPLE_FRACTION = 0.1  # samples of at most this fraction of a data set hardly overlap


CLASS_MARKER_STYLES: tuple[dict[str, Any], ...] = (  # distinguishable in greyscale
    {"color": CURVE_COLOURS[0], "marker": "o", "markerfacecolor": "white"},
    {"color": CURVE_COLOURS[1], "marker": "s"},
)
BOUNDARY_LINE_STYLE: dict[str, Any] = {"color": "0.1", "linewidth": 1.0}
BOUNDARIES_NOTE = "percentages: accuracy on held-out folds; shaded: predicted class \N{MINUS SIGN}"
ARROW_LENGTH_FRACTION, ARROW_LABEL_POSITION = 0.17, 1.35  # fractions of plane and arrow


class LinearBoundary(NamedTuple):
    """Linear decision boundary w.x + b = 0 with its margin.

    The margin is the distance to the nearest point, or NaN if a point is misclassified.
    """

    w: np.ndarray
    b: float
    margin: float


def draw_boundaries(simulation: xr.Dataset, theory: None) -> Figure:
    """Draw decision regions, one row per data set and one column per classifier.

    The region of the second class is shaded.
    """
    if "decision" not in simulation:
        raise ConfigError('the figure "boundaries" requires `plane: true`, which records decisions on a plane')
    sets, names = ([str(value) for value in simulation[axis].values] for axis in ("data", "classifier"))
    figure, axes = make_figure(0.6 + 1.95 * len(sets), len(sets), len(names), squeeze=False)
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    for row, data in zip(axes, sets, strict=True):
        for ax, name in zip(row, names, strict=True):
            cell = simulation.sel(data=data, classifier=name)
            decision, points = cell.decision.isel(seed=0).values, load_data_set(data)
            _draw_decision_regions(
                ax, points, decision, _relearn_linear_boundary(simulation, data, name, points, decision)
            )
            title = f"({next(letters)}) {CLASSIFIERS[name].label}, {100 * float(cell.accuracy.mean()):.3g} %"
            ax.set_title(title, loc="left", fontsize="medium")
        row[0].set_ylabel(f"{find_data_source(data).title}\n$x_2$")
    for ax in axes[-1]:
        ax.set_xlabel("$x_1$")
    draw_legend_below(figure, _make_legend_handles(load_data_set(sets[0]).y), note=BOUNDARIES_NOTE)
    return figure


boundaries = PublishedFigure(
    draw=draw_boundaries,
    axes=("data", "classifier"),
    caption=(
        "Decision boundaries of classifiers that learnt all points shown; shading marks the region of the second "
        "class. Arrow: a linear classifier's weight vector, normal to the boundary, towards the class + (the "
        "boundary is computed from the weights). Dashed: lines at the distance of the nearest point (the margin), "
        "drawn if no point is misclassified. Percentages: accuracy on held-out folds."
    ),
    points_caption="",
    lines_caption="",
)


def _relearn_linear_boundary(
    simulation: xr.Dataset, data: str, name: str, points: DataSetContent, decision: np.ndarray
) -> LinearBoundary | None:
    """Refit a linear classifier, and return the boundary that reproduces the recorded decisions.

    Returns None for other classifiers.
    """
    study = scenario_from_dataset(simulation)
    for cell in study.cells():
        if (cell.data, cell.name) == (data, name):
            weights = get_plane_weights(study, cell, int(simulation.seed.values[0]), decision)
            if weights is not None:
                return LinearBoundary(*weights, _compute_margin(*weights, points))
    return None


def _compute_margin(w: np.ndarray, b: float, points: DataSetContent) -> float:
    distance = np.where(points.y == np.unique(points.y)[-1], 1, -1) * (points.X @ w + b) / np.linalg.norm(w)
    return float(distance.min()) if distance.min() > 0 else np.nan


def _draw_decision_regions(
    ax: Axes, points: DataSetContent, decision: np.ndarray, boundary: LinearBoundary | None
) -> None:
    """Draw the region of the second class, its boundary, and the points."""
    low, high = compute_plane_corners(points.X)
    plane_options: dict[str, Any] = {"extent": (low[0], high[0], low[1], high[1])}
    side = decision - 0.5
    if boundary is not None:
        side = (make_plane_grid(points.X) @ boundary.w + boundary.b).reshape(decision.shape) / np.linalg.norm(
            boundary.w
        )
        sign = 1 if _choose_positive_class(points.y) == np.unique(points.y)[-1] else -1
        _draw_weight_arrow(ax, points.X, boundary._replace(w=sign * boundary.w, b=sign * boundary.b))
        if np.isfinite(boundary.margin):
            margins = [-boundary.margin, boundary.margin]
            ax.contour(side, levels=margins, colors="0.1", linewidths=0.8, linestyles="--", **plane_options)
    ax.contourf(side, levels=[0, np.inf], colors=[CURVE_COLOURS[1]], alpha=0.18, **plane_options)
    ax.contour(
        side,
        levels=[0],
        colors=BOUNDARY_LINE_STYLE["color"],
        linewidths=BOUNDARY_LINE_STYLE["linewidth"],
        **plane_options,
    )
    for value, style in zip(np.unique(points.y), CLASS_MARKER_STYLES, strict=False):
        ax.plot(*points.X[points.y == value].T, linestyle="none", markersize=2.4, markeredgewidth=0.6, **style)
    ax.set(aspect="equal", xlim=(low[0], high[0]), ylim=(low[1], high[1]))


def _choose_positive_class(y: np.ndarray) -> Any:
    """Return the class towards which weights point: "+", or the last class in sorted order."""
    return "+" if "+" in y else np.unique(y)[-1]


def _draw_weight_arrow(ax: Axes, X: np.ndarray, boundary: LinearBoundary) -> None:
    """Draw the direction of w as an arrow that starts at the boundary, far from the points."""
    arrow = _place_weight_arrow(X, boundary)
    if arrow is None:
        return
    start, step = arrow
    arrow_options = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0, "mutation_scale": 9, **BOUNDARY_LINE_STYLE}
    end, label_point = start + step, start + ARROW_LABEL_POSITION * step
    ax.annotate("", (end[0], end[1]), (start[0], start[1]), arrowprops=arrow_options, zorder=4)
    ax.text(label_point[0], label_point[1], r"$\mathbf{w}$", ha="center", va="center", zorder=5)


def _place_weight_arrow(X: np.ndarray, boundary: LinearBoundary) -> tuple[np.ndarray, np.ndarray] | None:
    """Find the start and the displacement of an arrow along w, far from all points.

    Returns None if there is no room for the arrow.
    """
    low, high = compute_plane_corners(X)
    unit = boundary.w / np.linalg.norm(boundary.w)
    foot = X.mean(axis=0) - (X.mean(axis=0) @ boundary.w + boundary.b) / np.linalg.norm(boundary.w) * unit
    step = ARROW_LENGTH_FRACTION * np.max(high - low) * unit
    offsets = np.linspace(-1, 1, 201)[:, None] * np.linalg.norm(high - low) * np.array([-unit[1], unit[0]])
    covered = (foot + offsets)[:, None] + np.array([0.0, 0.5, 1.0, ARROW_LABEL_POSITION])[:, None] * step
    distances = np.linalg.norm(covered[:, :, None] - X, axis=-1).min(axis=(1, 2))
    margin = 0.03 * (high - low)
    inside = ((covered > low + margin) & (covered < high - margin)).all(axis=(1, 2))
    best = int(np.argmax(np.where(inside, distances, -1)))
    return ((foot + offsets)[best], step) if inside[best] else None


def _make_legend_handles(y: np.ndarray) -> list[Line2D]:
    """Return the legend handles for classes, boundary, margin and weights."""
    names = [f"class {value}".replace("-", "\N{MINUS SIGN}") for value in np.unique(y)]
    return [
        *(
            make_line_handle(name, linestyle="none", **style)
            for name, style in zip(names, CLASS_MARKER_STYLES, strict=False)
        ),
        make_line_handle("boundary", **BOUNDARY_LINE_STYLE),
        make_line_handle("margin, if separated", **BOUNDARY_LINE_STYLE | {"linestyle": "--", "linewidth": 0.8}),
        make_line_handle(
            rf"$\mathbf{{w}}$, to class {_choose_positive_class(y)}", marker=">", markevery=[1], **BOUNDARY_LINE_STYLE
        ),
    ]
