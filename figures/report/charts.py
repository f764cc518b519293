"""Charts of all variables of a simulation and its theory, for a report.

A chart shows one variable along one axis. Colour distinguishes the learners or rules or, if there is only one, the axis
with the largest differences in theory. Markers distinguish an axis that theory does not depend on, such as N. A chart
shows one position on every other axis. There is one set of charts per position, for as many positions as fit on a page.
"""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from figures import series
from figures.interactive.grid import ChartGrid, label_of
from figures.interactive.look import LIGHT, Look
from figures.labels import abscissa, mathtext_label, plain, symbol, typeset
from figures.series import Layout, Scales
from figures.style import MARKERS
from statmech.scenarios.variables import Variable

if TYPE_CHECKING:
    from statmech.results.results import Results

MOST_CHARTS = 36
MOST_POINTS, WITHOUT_LINES = 15, 400  # per curve
SAME = 1e-9  # relative: larger differences show that theory depends on an axis
HEIGHT = 320  # pixels


@dataclass(frozen=True)
class ChartSet:
    """Charts with their titles, at one position on the axes that the reader of a page selects."""

    position: tuple[int, ...]
    charts: list[Any]
    titles: list[str]


@dataclass(frozen=True)
class Charts:
    """All charts of a page, with their legend and explanations.

    `axes` are the axes to choose from with their labels, an entry of the `legend` has a label, a colour and a marker
    (colour or marker may be empty), `meanings` explain axes and variables, `left_out` describes omitted values as HTML,
    and `runs` is True if single runs are drawn.
    """

    xlabel: str
    axes: dict[str, list[str]]
    sets: list[ChartSet]
    legend: list[tuple[str, str, str]]
    meanings: list[tuple[str, str]]
    left_out: list[str]
    runs: bool


def charts(results: Results) -> Charts:
    """Make the charts of all variables of a simulation, a theory, or both."""
    results = _at_last(series.with_any_axis(results))
    variables, constant = _variables(results)
    layout, marked = _layout(results)
    labels = {axis: _labels(results, axis) for axis in layout.rest}
    legend, meanings = _legend(results, layout, marked), _meanings(results, variables)
    results = _at_last(series.with_lines(results, layout.x))
    results, thinned = _along_x(results, layout.x)
    scales, xlabel = _scales(results, layout.x, variables), label_of(results, layout.x)
    positions = _few(
        {axis: len(axis_labels) for axis, axis_labels in labels.items()}, max(1, MOST_CHARTS // len(variables))
    )
    sets = []
    for choice, position in _positions(positions):
        grid = ChartGrid(variables, xlabel, scales, HEIGHT, look=Look(bare=True))
        _show(grid, series.sliced(results, position), layout, marked)
        names = _unlike(grid)
        titles = [typeset(variables[name].symbol) for name in names]
        sets.append(ChartSet(choice, [_scrolling(grid.charts[name].figure) for name in names], titles))
    return Charts(
        typeset(xlabel),
        {
            _named(results, axis): [labels[axis][index] for index in axis_positions]
            for axis, axis_positions in positions.items()
            if len(axis_positions) > 1
        },
        sets,
        legend,
        meanings,
        [
            *constant,
            *thinned,
            *_cut(labels, positions),
            *_without_place(results, layout.x, variables, scales, typeset(xlabel)),
        ],
        _single(results),
    )


def _unlike(grid: ChartGrid) -> list[str]:
    """Return the variables whose charts show values, without duplicates such as vote and mean for K = 1."""
    names_by_values: dict[bytes, str] = {}
    for name in grid.with_values():
        parts = [part for curve in grid.shown[name] for part in (curve.mean, curve.theory) if part is not None]
        names_by_values.setdefault(np.concatenate(parts).astype(np.float32).tobytes(), name)
    return list(names_by_values.values())


def _layout(results: Results) -> tuple[Layout, str | None]:
    """Choose the axes along x, by colour and by selection, and the axis that is distinguished by marker."""
    default, dataset = _along(results), results.either
    short_axes = [axis for axis in series.axes(dataset) if axis != default.x and 1 < dataset.sizes[axis] <= series.MOST]
    spread = {axis: _spread_along(results, axis) for axis in short_axes}
    colours = (
        [results.scenario.CHOICE]
        if results.scenario.CHOICE in short_axes
        else sorted(short_axes, key=lambda axis: -spread[axis])
    )
    if not colours or results.theory is None:
        return default, None
    colour = colours[0]
    marker_axis = next((axis for axis in short_axes if axis != colour and spread[axis] < SAME), None)
    rest = tuple(axis for axis in (*default.colours, *default.rest) if axis not in (colour, marker_axis))
    return Layout(default.x, (colour,), rest), marker_axis


def _along(results: Results) -> Layout:
    """Return the default layout, with x the usual key of this kind of scenario if it has several values."""
    default, key, dataset = series.layout(results), abscissa(results.scenario), results.either
    if key is None or key == default.x or key not in series.axes(dataset) or not series.is_numeric(dataset, key):
        return default
    rest = tuple(axis for axis in series.axes(dataset) if axis not in (key, *default.colours))
    return Layout(key, tuple(axis for axis in default.colours if axis != key), rest)


def _at_last(results: Results) -> Results:
    """Select the last recorded time (step, ...) of results that are usually drawn against another key."""
    scenario = results.scenario
    key = abscissa(scenario)
    if key not in series.axes(results.either) or key in scenario.recorded:
        return results
    return series.sliced(results, {axis: slice(-1, None) for axis in scenario.recorded if axis not in series.UNSHOWN})


def _spread_along(results: Results, axis: str) -> float:
    """Compute the largest relative difference along an axis over all variables of theory."""
    if results.theory is None or axis not in results.theory.dims:
        return 0.0
    arrays = (results.theory[name] for name in series.drawn(results.scenario) if name in results.theory)
    varying = [array for array in arrays if axis in array.dims and np.isfinite(array).any()]
    return max(
        (float((array.max(axis) - array.min(axis)).max() / (abs(array).max() or 1)) for array in varying), default=0.0
    )


def _labels(results: Results, axis: str) -> list[str]:
    """Return the labels of the positions on an axis, numbers with a symbol in plain letters."""
    label = mathtext_label(results.scenario)

    def format_label(name: str, value: Any) -> str:
        is_name = isinstance(value, str) and not symbol(results.scenario, name).startswith("$")
        return label(name, value) if is_name else plain(label(name, value))

    return series.labels(results.either, axis, format_label)


def _named(results: Results, axis: str) -> str:
    """Return the symbols of an axis in plain letters."""
    return ", ".join(plain(symbol(results.scenario, name)) for name in series.along(results.either, axis))


def _show(grid: ChartGrid, results: Results, layout: Layout, marked: str | None) -> None:
    """Show the curves of all colours, ordered by marker."""
    colours = [_labels(results, axis) for axis in layout.colours] or [[""]]
    markers = _labels(results, marked) if marked else [""]
    names = [", ".join(filter(None, (label, marker))) for marker in markers for label in colours[0][: series.MOST]]
    for name, chart in grid.charts.items():
        chart.colours = len(colours[0]) if marked else 0
        parts = [series.sliced(results, {marked: index} if marked else {}) for index in range(len(markers))]
        curves = [curve for part in parts for curve in grid.curves(name, part, layout, _single(results))]
        grid.shown[name] = [
            replace(curve, label=full_label or curve.label) for curve, full_label in zip(curves, names, strict=True)
        ]
        chart.show(grid.shown[name])


def _scales(results: Results, x: str, variables: dict[str, Variable]) -> Scales:
    """Choose logarithmic axes, with a lower threshold (`series.WIDE`) for x without zeros."""
    default = series.scales(results, x, variables)
    if _single(results) and results.simulation is not None:
        wide_names = {name for name in variables if _is_wide(results.simulation[name].values)}
        default = replace(default, log_y=default.log_y | wide_names)
    return replace(default, log_x=default.log_x or series.scales(results, x, variables, lossless=True).log_x)


def _single(results: Results) -> bool:
    """Return True if the explorer draws single runs of this kind of scenario, because means are not informative."""
    page = results.scenario.PAGE
    return page is not None and page.view.runs and results.simulation is not None


def _is_wide(values: np.ndarray) -> bool:
    """Return True if the values of single runs are positive and span decades."""
    values = values[np.isfinite(values)]
    return bool(values.size and values.min() > 0 and values.max() >= series.SPAN * values.min())


def _scrolling(figure: Any) -> Any:
    """Let a finger on a chart scroll the page."""
    figure.toolbar.active_drag = None
    return figure


def _variables(results: Results) -> tuple[dict[str, Variable], list[str]]:
    """Return the variables that are not constant, with errors and theory first, and describe the constant ones.

    Diagnostics of the computation, such as the gap to a minimum, are not shown by default.
    """
    candidates = series.with_values(results)
    selected = {name: variable for name, variable in candidates.items() if variable.role != "diagnostic"} or candidates
    parts = [part for part in (results.simulation, results.theory) if part is not None]
    values_by_name = {
        name: np.concatenate([part[name].values.ravel() for part in parts if name in part]) for name in selected
    }
    constant = {name: values[np.isfinite(values)] for name, values in values_by_name.items()}
    constant = {name: values for name, values in constant.items() if values.size > 1 and np.ptp(values) == 0}
    theory_names = [name for name in selected if results.theory is not None and name in results.theory]
    theory_names = [name for name in theory_names if np.isfinite(results.theory[name]).any()]
    ordered = dict.fromkeys(
        sorted([*theory_names, *selected], key=lambda name: (not name.startswith("eps"), name not in theory_names))
    )
    left_out = [
        f"{typeset(selected[name].symbol)} ({html.escape(selected[name].long_name)}), which is {values[0]:g} throughout"
        for name, values in constant.items()
    ]
    return {name: selected[name] for name in ordered if name not in constant} or selected, left_out


def _along_x(results: Results, x: str) -> tuple[Results, list[str]]:
    """Sort results along x, thin them to as many points as a curve needs, and describe omitted values."""
    x_values = series.values(results.either, x)
    order = np.argsort(x_values, kind="stable") if x_values.dtype.kind in "if" else np.arange(x_values.size)
    has_lines = results.lines is not None and not _single(results)
    positions = order[_spread(order.size, MOST_POINTS if has_lines else WITHOUT_LINES)]
    left_out = (
        [html.escape(f"the simulation at {order.size - positions.size} of {order.size} values of {x}")]
        if positions.size < order.size
        else []
    )
    return replace(series.sliced(replace(results, lines=None), {x: positions}), lines=results.lines), left_out


def _few(sizes: dict[str, int], most: int) -> dict[str, list[int]]:
    """Choose uniformly spread positions on each axis, with at most `most` combinations in total.

    >>> _few({"K": 5, "eta": 10}, 12)
    {'K': [0, 2, 4], 'eta': [0, 3, 6, 9]}
    """
    lengths = dict(sizes)
    while math.prod(lengths.values()) > most:
        lengths[max(lengths, key=lambda axis: lengths[axis])] -= 1
    return {axis: _spread(size, lengths[axis]).tolist() for axis, size in sizes.items()}


def _spread(size: int, most: int) -> np.ndarray:
    return np.unique(np.linspace(0, size - 1, min(size, most)).round().astype(int))


def _positions(shown: dict[str, list[int]]) -> Iterator[tuple[tuple[int, ...], dict[str, int]]]:
    """Yield, for each set of charts, the choice on the axes of the page and the position in the datasets."""
    offered = [axis for axis in shown if len(shown[axis]) > 1]
    for choice in itertools.product(*(range(len(shown[axis])) for axis in offered)):
        index = dict(zip(offered, choice, strict=True))
        yield choice, {axis: axis_positions[index.get(axis, 0)] for axis, axis_positions in shown.items()}


def _cut(labels: dict[str, list[str]], shown: dict[str, list[int]]) -> Iterator[str]:
    """Describe the values of axes that have no charts."""
    for axis, axis_labels in labels.items():
        if len(shown[axis]) < len(axis_labels):
            missing = [label for index, label in enumerate(axis_labels) if index not in shown[axis]]
            names = ", ".join([*missing[:8], *["..."] * (len(missing) > 8)])
            yield html.escape(f"{len(missing)} of {len(axis_labels)} values of {axis} ({names})")


def _without_place(
    results: Results, x: str, variables: dict[str, Variable], scales: Scales, xlabel: str
) -> Iterator[str]:
    """Describe zeros that logarithmic axes cannot show."""
    if scales.log_x and (series.values(results.either, x) <= 0).any():
        yield f"{xlabel} = 0, which a logarithmic axis cannot show"
    for name, variable in variables.items():
        if name in scales.log_y and series.has_zero_means(results, name):
            yield f"means of {typeset(variable.symbol)} that are 0, which a logarithmic axis cannot show"


def _legend(results: Results, layout: Layout, marked: str | None) -> list[tuple[str, str, str]]:
    labels = _labels(results, layout.colours[0])[: series.MOST] if layout.colours else []
    if marked is None:
        return [(label, LIGHT.hue(index), MARKERS[index]) for index, label in enumerate(labels)]
    lines = [(label, LIGHT.hue(index), "") for index, label in enumerate(labels)]
    return lines + [(label, "", MARKERS[index]) for index, label in enumerate(_labels(results, marked))]


def _meanings(results: Results, variables: dict[str, Variable]) -> list[tuple[str, str]]:
    either = results.either
    names = [name for axis in series.axes(either) for name in series.along(either, axis) if name in either.coords]
    meanings = [(typeset(symbol(results.scenario, name)), either[name].attrs["long_name"]) for name in names]
    return meanings + [(typeset(variable.symbol), variable.long_name) for variable in variables.values()]
