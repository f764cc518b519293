"""Panels for the columns of Tables 1 and 2 of Jackson & Craven.

Each classifier has a row with the measured value above the paper's values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures.legends import entry
from figures.panels import legend_below, page
from figures.style import AID, COLOURS, log_ticks
from statmech.classifiers import CLASSIFIERS
from statmech.data_sets import source
from statmech.results import published_values as paper
from statmech.results.paired_tests import PairedTest, paired_tests

BESIDE = (
    "Circles: measured by cross-validation. Open diamonds: Jackson & Craven; two where the scan of the paper leaves "
    "open which of them it is. Data sets marked as stand-ins are not those of the paper."
)
POINTS = "Points: means over folds (ten, or those given with the data) and shuffles; bars: standard errors over folds."
STARS = (
    "Stars and plus signs: significantly less and more accurate than boosting, by a paired two-tailed t-test over "
    "folds at p <= 0.05; a fraction says in how many shuffles."
)
LEVEL = r"$p\leq0.05$ ($k/n$: in $k$ of $n$ shuffles)"
LIFT = 0.17  # measured values lie above the middle of a row, the paper's below
ROW = 0.3
GREY: dict[str, Any] = {"color": "0.3", "linestyle": "none"}
LESS = "\N{ASTERISK OPERATOR}"


def accuracy_panel(ax: Axes, study: xr.Dataset, data: str) -> None:
    """Draw accuracies in per cent, with a star if boosting is significantly better."""
    for row, (name, test) in enumerate(_tests(study, data).items()):
        _measured(ax, row, name, 100 * test.means["accuracy"], 100 * test.error, _marks(test, study.sizes["seed"]))
        star = LESS if name in paper.LESS_ACCURATE.get(data, ()) else ""
        _published(ax, row, name, paper.ACCURACY.get(data, {}).get(name, ()), star)
    _rows(ax, study)
    ax.set(xlabel="accuracy (%)", title=source(data).heading)
    ax.margins(x=0.24)


def weights_panel(ax: Axes, study: xr.Dataset, data: str) -> None:
    """Draw the number of weights of each classifier on a logarithmic axis."""
    for row, (name, test) in enumerate(_tests(study, data).items()):
        if test.means["nonzero_weights"] > 0:
            _measured(ax, row, name, test.means["nonzero_weights"], test.errors["nonzero_weights"])
        _published(ax, row, name, paper.WEIGHTS.get(data, {}).get(name, ()))
    _rows(ax, study)
    ax.set(xlabel="weights", title=source(data).heading, xscale="log")
    ax.margins(x=0.1)
    log_ticks(ax.xaxis)


def accuracy_legend(figure: Figure, study: xr.Dataset) -> None:
    """Add a legend of the markers in panels of accuracy."""
    marker_style: dict[str, Any] = GREY | {"markersize": 6}
    stars = [
        entry(f"{comparison} accurate than boosting, {LEVEL}", marker=rf"${mark}$", **marker_style)
        for mark, comparison in ((r"\ast", "less"), ("+", "more"))
    ]
    legend_below(figure, [*_markers(study, paper.ACCURACY), *stars], columns=2)


def weights_legend(figure: Figure, study: xr.Dataset) -> None:
    """Add a legend of the markers in panels of the number of weights."""
    legend_below(figure, _markers(study, paper.WEIGHTS), columns=3)


def _markers(study: xr.Dataset, values: dict[str, dict[str, tuple[float, ...]]]) -> list[Line2D]:
    """Return legend handles of measured and published values."""
    published = [
        values.get(str(data), {}).get(str(name), ()) for data in study.data.values for name in study.classifier.values
    ]
    diamond: dict[str, Any] = GREY | {"marker": "D", "markerfacecolor": "white"}
    handles = [entry("measured, \N{PLUS-MINUS SIGN} standard error over folds", marker="o", **GREY)]
    if any(published):
        handles.append(entry("paper", **diamond))
    return handles


def draw_columns(study: xr.Dataset, panel: Callable[[Axes, xr.Dataset, str], None]) -> Figure:
    """Draw a panel per data set, with a row and a colour per classifier."""
    sets = [str(name) for name in study.data.values]
    figure, _ = page(height(study), 1, len(sets), sharey=True)
    for ax, data in zip(figure.axes, sets, strict=True):
        panel(ax, study, data)
    return figure


def height(study: xr.Dataset, rows: int = 1) -> float:
    """Return the height in inches for rows of panels and a legend."""
    return rows * (0.75 + ROW * study.sizes["classifier"]) + 0.45


def _tests(study: xr.Dataset, data: str) -> dict[str, PairedTest]:
    """Compare each classifier with boosting on one data set, and return the tests by name."""
    tests = paired_tests(study.sel(data=[data]))
    return {str(test.cell["classifier"]): test for test in tests}


def _marks(test: PairedTest, shuffles: int) -> str:
    """Return a star or plus for a significant difference.

    A fraction follows if the difference is not significant in all shuffles.
    """
    pairs = ((LESS, test.worse), ("+", test.better))
    return " ".join(f"{mark}" if count == shuffles else f"{mark}{count}/{shuffles}" for mark, count in pairs if count)


def _colour(name: str) -> str:
    return COLOURS[list(CLASSIFIERS).index(name) % len(COLOURS)]


def _measured(ax: Axes, row: int, name: str, mean: float, error: float, mark: str = "") -> None:
    colour = _colour(name)
    marker_style: dict[str, Any] = {
        "marker": "o",
        "color": colour,
        "linestyle": "none",
        "gid": AID,
    }  # no legend entry, as the row names the classifier
    ax.errorbar(mean, row - LIFT, xerr=error, zorder=3, **marker_style)
    _annotate(ax, mean + (error if error == error else 0), row - LIFT, mark)


def _published(ax: Axes, row: int, name: str, values: tuple[float, ...], mark: str = "") -> None:
    if not values:
        return
    colour, rows = _colour(name), [row + LIFT] * len(values)
    marker_style: dict[str, Any] = {"color": colour, "markerfacecolor": "white", "markersize": 4, "gid": AID}
    ax.plot(sorted(values), rows, "D", zorder=2, **marker_style)
    _annotate(ax, max(values), row + LIFT, mark)


def _annotate(ax: Axes, x: float, y: float, mark: str) -> None:
    text_options: dict[str, Any] = {
        "textcoords": "offset points",
        "va": "center_baseline",
        "fontsize": 7,
        "color": "0.2",
    }
    ax.annotate(mark, (x, y), (4, 0), **text_options)


def _rows(ax: Axes, study: xr.Dataset) -> None:
    names = [str(name) for name in study.classifier.values]
    ax.set_yticks(range(len(names)), [CLASSIFIERS[name].label for name in names])
    for row in range(len(names) - 1):
        ax.axhline(row + 0.5, color="0.9", linewidth=0.6, zorder=0)
    ax.set_ylim(len(names) - 0.45, -0.55)
    ax.tick_params(axis="y", length=0)
