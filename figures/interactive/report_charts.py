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

from figures import curves as series
from figures.curves import Layout, Scales
from figures.interactive.chart_grid import ChartGrid, get_axis_label
from figures.interactive.chart_style import LIGHT_THEME, ChartTheme
from figures.labels import get_symbol, get_usual_abscissa_key, html_from_latex, make_mathtext_labeller, plain_from_latex
from figures.style import CURVE_MARKERS
from statmech.keys.variables import Variable

if TYPE_CHECKING:
    from statmech.results.results import Results

MAX_PAGE_CHARTS = 36
MAX_POINTS_WITH_LINE, MAX_POINTS_WITHOUT_LINE = 15, 400  # per curve
AXIS_IGNORED_BY_THEORY_TOL = 1e-9  # relative: larger differences show that theory depends on an axis
REPORT_CHART_HEIGHT = 320  # pixels


@dataclass(frozen=True)
class ChartSet:
    """Charts and their titles for one of the combinations of values that a reader can select."""

    position: tuple[int, ...]
    charts: list[Any]
    titles: list[str]


@dataclass(frozen=True)
class ReportCharts:
    """All charts of a page, with their legend and explanations.

    `axes` are the axes to choose from with their labels, an entry of the `legend` has a label, a colour and a marker
    (colour or marker may be empty), `explanations` explain axes and variables, `omitted_values` describes omitted
    values as HTML, and `runs` is True if single runs are drawn.
    """

    xlabel: str
    axes: dict[str, list[str]]
    sets: list[ChartSet]
    legend: list[tuple[str, str, str]]
    explanations: list[tuple[str, str]]
    omitted_values: list[str]
    runs: bool


def charts(results: Results) -> ReportCharts:
    """Make the charts of all variables of a simulation, a theory, or both."""
    results = _select_last_time(series.ensure_chart_axis(results))
    variables, constant = _separate_constants(results)
    layout, marked = _choose_layout(results)
    labels = {axis: _label_positions(results, axis) for axis in layout.single_position_axes}
    legend, meanings = _make_legend(results, layout, marked), _get_explanations(results, variables)
    results = _select_last_time(series.add_dense_lines(results, layout.x))
    results, thinned = _sort_and_thin(results, layout.x)
    scales, xlabel = _choose_scales(results, layout.x, variables), get_axis_label(results, layout.x)
    positions = _choose_positions(
        {axis: len(axis_labels) for axis, axis_labels in labels.items()}, max(1, MAX_PAGE_CHARTS // len(variables))
    )
    sets = []
    for choice, position in _iterate_positions(positions):
        grid = ChartGrid(variables, xlabel, scales, REPORT_CHART_HEIGHT, theme=ChartTheme(bare=True))
        _show_curves(grid, series.select_position(results, position), layout, marked)
        names = _select_distinct_charts(grid)
        titles = [html_from_latex(variables[name].symbol) for name in names]
        sets.append(ChartSet(choice, [_enable_page_scrolling(grid.charts[name].figure) for name in names], titles))
    return ReportCharts(
        html_from_latex(xlabel),
        {
            _get_axis_name(results, axis): [labels[axis][index] for index in axis_positions]
            for axis, axis_positions in positions.items()
            if len(axis_positions) > 1
        },
        sets,
        legend,
        meanings,
        [
            *constant,
            *thinned,
            *_describe_missing_charts(labels, positions),
            *_describe_hidden_zeros(results, layout.x, variables, scales, html_from_latex(xlabel)),
        ],
        _has_single_runs(results),
    )


def _select_distinct_charts(grid: ChartGrid) -> list[str]:
    """Return the variables whose charts show values, without duplicates such as vote and mean for K = 1."""
    names_by_values: dict[bytes, str] = {}
    for name in grid.list_nonempty_charts():
        parts = [part for curve in grid.shown[name] for part in (curve.mean, curve.theory) if part is not None]
        names_by_values.setdefault(np.concatenate(parts).astype(np.float32).tobytes(), name)
    return list(names_by_values.values())


def _choose_layout(results: Results) -> tuple[Layout, str | None]:
    """Choose the layout of the charts, and the axis that markers distinguish."""
    default, dataset = _choose_usual_layout(results), results.either
    short_axes = [
        axis
        for axis in series.get_chart_axes(dataset)
        if axis != default.x and 1 < dataset.sizes[axis] <= series.MAX_CURVES_PER_CHART
    ]
    spread = {axis: _compute_theory_spread(results, axis) for axis in short_axes}
    colours = (
        [results.scenario.CHOICE]
        if results.scenario.CHOICE in short_axes
        else sorted(short_axes, key=lambda axis: -spread[axis])
    )
    if not colours or results.theory is None:
        return default, None
    colour = colours[0]
    marker_axis = next(
        (axis for axis in short_axes if axis != colour and spread[axis] < AXIS_IGNORED_BY_THEORY_TOL), None
    )
    rest = tuple(
        axis for axis in (*default.colour_axes, *default.single_position_axes) if axis not in (colour, marker_axis)
    )
    return Layout(default.x, (colour,), rest), marker_axis


def _choose_usual_layout(results: Results) -> Layout:
    """Return the default layout, with the scenario's usual key along x if it has several values."""
    default, key, dataset = (
        series.choose_default_layout(results),
        get_usual_abscissa_key(results.scenario),
        results.either,
    )
    if (
        key is None
        or key == default.x
        or key not in series.get_chart_axes(dataset)
        or not series.has_several_numbers(dataset, key)
    ):
        return default
    rest = tuple(axis for axis in series.get_chart_axes(dataset) if axis not in (key, *default.colour_axes))
    return Layout(key, tuple(axis for axis in default.colour_axes if axis != key), rest)


def _select_last_time(results: Results) -> Results:
    """Select the last recorded time (step, ...) of results that are usually drawn against another key."""
    scenario = results.scenario
    key = get_usual_abscissa_key(scenario)
    if key not in series.get_chart_axes(results.either) or key in scenario.recorded_coordinates:
        return results
    return series.select_position(
        results,
        {axis: slice(-1, None) for axis in scenario.recorded_coordinates if axis not in series.DIMS_HIDDEN_IN_FIGURES},
    )


def _compute_theory_spread(results: Results, axis: str) -> float:
    """Compute the largest relative difference along an axis over all variables of theory."""
    if results.theory is None or axis not in results.theory.dims:
        return 0.0
    arrays = (results.theory[name] for name in series.get_chart_variables(results.scenario) if name in results.theory)
    varying = [array for array in arrays if axis in array.dims and np.isfinite(array).any()]
    return max(
        (float((array.max(axis) - array.min(axis)).max() / (abs(array).max() or 1)) for array in varying), default=0.0
    )


def _label_positions(results: Results, axis: str) -> list[str]:
    """Return the labels of the positions on an axis, with symbols in plain letters."""
    label = make_mathtext_labeller(results.scenario)

    def format_label(name: str, value: Any) -> str:
        is_name = isinstance(value, str) and not get_symbol(results.scenario, name).startswith("$")
        return label(name, value) if is_name else plain_from_latex(label(name, value))

    return series.label_positions(results.either, axis, format_label)


def _get_axis_name(results: Results, axis: str) -> str:
    """Return the symbols of an axis in plain letters."""
    return ", ".join(
        plain_from_latex(get_symbol(results.scenario, name))
        for name in series.get_axis_coordinates(results.either, axis)
    )


def _show_curves(grid: ChartGrid, results: Results, layout: Layout, marker_axis: str | None) -> None:
    """Show the curves of all colours, ordered by marker."""
    colours = [_label_positions(results, axis) for axis in layout.colour_axes] or [[""]]
    markers = _label_positions(results, marker_axis) if marker_axis else [""]
    names = [
        ", ".join(filter(None, (label, marker)))
        for marker in markers
        for label in colours[0][: series.MAX_CURVES_PER_CHART]
    ]
    for name, chart in grid.charts.items():
        chart.colours = len(colours[0]) if marker_axis else 0
        parts = [
            series.select_position(results, {marker_axis: index} if marker_axis else {})
            for index in range(len(markers))
        ]
        curves = [curve for part in parts for curve in grid.make_curves(name, part, layout, _has_single_runs(results))]
        grid.shown[name] = [
            replace(curve, label=full_label or curve.label) for curve, full_label in zip(curves, names, strict=True)
        ]
        chart.show(grid.shown[name])


def _choose_scales(results: Results, x: str, variables: dict[str, Variable]) -> Scales:
    """Choose logarithmic axes, with a lower threshold (`series.LOSSLESS_LOG_MIN_RATIO`) for x without zeros."""
    default = series.choose_scales(results, x, variables)
    if _has_single_runs(results) and results.simulation is not None:
        wide_names = {name for name in variables if _spans_decades(results.simulation[name].values)}
        default = replace(default, log_y=default.log_y | wide_names)
    return replace(default, log_x=default.log_x or series.choose_scales(results, x, variables, lossless=True).log_x)


def _has_single_runs(results: Results) -> bool:
    """Return True if single runs are drawn because their means are not informative."""
    return results.scenario.SHOWS_SINGLE_RUNS and results.simulation is not None


def _spans_decades(values: np.ndarray) -> bool:
    """Return True if the values of single runs are positive and span decades."""
    values = values[np.isfinite(values)]
    return bool(values.size and values.min() > 0 and values.max() >= series.LOG_MIN_RATIO * values.min())


def _enable_page_scrolling(figure: Any) -> Any:
    """Let touch gestures on a chart scroll the page."""
    figure.toolbar.active_drag = None
    return figure


def _separate_constants(results: Results) -> tuple[dict[str, Variable], list[str]]:
    """Separate constant variables from all others, and describe the constant variables.

    Diagnostics of the computation, such as the gap to a minimum, are not shown by default.
    """
    candidates = series.get_variables_with_values(results)
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
        f"{html_from_latex(selected[name].symbol)} ({html.escape(selected[name].long_name)}), "
        f"which is {values[0]:g} throughout"
        for name, values in constant.items()
    ]
    return {name: selected[name] for name in ordered if name not in constant} or selected, left_out


def _sort_and_thin(results: Results, x: str) -> tuple[Results, list[str]]:
    """Sort and thin the points of results along x, and describe the omitted values."""
    x_values = series.get_axis_values(results.either, x)
    order = np.argsort(x_values, kind="stable") if x_values.dtype.kind in "if" else np.arange(x_values.size)
    has_lines = results.lines is not None and not _has_single_runs(results)
    positions = order[
        _choose_spread_indices(order.size, MAX_POINTS_WITH_LINE if has_lines else MAX_POINTS_WITHOUT_LINE)
    ]
    left_out = (
        [html.escape(f"the simulation at {order.size - positions.size} of {order.size} values of {x}")]
        if positions.size < order.size
        else []
    )
    return replace(series.select_position(replace(results, lines=None), {x: positions}), lines=results.lines), left_out


def _choose_positions(sizes: dict[str, int], max_combinations: int) -> dict[str, list[int]]:
    """Choose uniformly spread positions on each axis, with at most `max_combinations` combinations in total.

    >>> _choose_positions({"K": 5, "eta": 10}, 12)
    {'K': [0, 2, 4], 'eta': [0, 3, 6, 9]}
    """
    lengths = dict(sizes)
    while math.prod(lengths.values()) > max_combinations:
        lengths[max(lengths, key=lambda axis: lengths[axis])] -= 1
    return {axis: _choose_spread_indices(size, lengths[axis]).tolist() for axis, size in sizes.items()}


def _choose_spread_indices(size: int, max_count: int) -> np.ndarray:
    return np.unique(np.linspace(0, size - 1, min(size, max_count)).round().astype(int))


def _iterate_positions(positions_by_axis: dict[str, list[int]]) -> Iterator[tuple[tuple[int, ...], dict[str, int]]]:
    """Yield the reader's selection and the position in the datasets for each set of charts."""
    offered = [axis for axis in positions_by_axis if len(positions_by_axis[axis]) > 1]
    for choice in itertools.product(*(range(len(positions_by_axis[axis])) for axis in offered)):
        index = dict(zip(offered, choice, strict=True))
        yield choice, {axis: axis_positions[index.get(axis, 0)] for axis, axis_positions in positions_by_axis.items()}


def _describe_missing_charts(labels: dict[str, list[str]], positions_by_axis: dict[str, list[int]]) -> Iterator[str]:
    """Describe the values of axes that have no charts."""
    for axis, axis_labels in labels.items():
        if len(positions_by_axis[axis]) < len(axis_labels):
            missing = [label for index, label in enumerate(axis_labels) if index not in positions_by_axis[axis]]
            names = ", ".join([*missing[:8], *["..."] * (len(missing) > 8)])
            yield html.escape(f"{len(missing)} of {len(axis_labels)} values of {axis} ({names})")


def _describe_hidden_zeros(
    results: Results, x: str, variables: dict[str, Variable], scales: Scales, xlabel: str
) -> Iterator[str]:
    """Describe zeros that logarithmic axes cannot show."""
    if scales.log_x and (series.get_axis_values(results.either, x) <= 0).any():
        yield f"{xlabel} = 0, which a logarithmic axis cannot show"
    for name, variable in variables.items():
        if name in scales.log_y and series.has_nonpositive_means(results, name):
            yield f"means of {html_from_latex(variable.symbol)} that are 0, which a logarithmic axis cannot show"


def _make_legend(results: Results, layout: Layout, marker_axis: str | None) -> list[tuple[str, str, str]]:
    labels = (
        _label_positions(results, layout.colour_axes[0])[: series.MAX_CURVES_PER_CHART] if layout.colour_axes else []
    )
    if marker_axis is None:
        return [
            (label, LIGHT_THEME.get_curve_colour(index), CURVE_MARKERS[index]) for index, label in enumerate(labels)
        ]
    lines = [(label, LIGHT_THEME.get_curve_colour(index), "") for index, label in enumerate(labels)]
    return lines + [
        (label, "", CURVE_MARKERS[index]) for index, label in enumerate(_label_positions(results, marker_axis))
    ]


def _get_explanations(results: Results, variables: dict[str, Variable]) -> list[tuple[str, str]]:
    either = results.either
    names = [
        name
        for axis in series.get_chart_axes(either)
        for name in series.get_axis_coordinates(either, axis)
        if name in either.coords
    ]
    meanings = [
        (html_from_latex(get_symbol(results.scenario, name)), either[name].attrs["long_name"]) for name in names
    ]
    return meanings + [(html_from_latex(variable.symbol), variable.long_name) for variable in variables.values()]
