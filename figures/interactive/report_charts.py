"""Charts of all variables of a simulation and its theory, for a report.

The charts are the panels of the figure that shows all variables (`figures.overlay`). Variables that the figure of the
results leaves out come last, and the page folds their charts. If a figure has panels for several
values of an axis, there is one set of charts per value, for as many values as fit on a page.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from figures import curves as series
from figures.description import FigureDescription, PanelDescription
from figures.interactive.axes_and_theme import ChartTheme
from figures.interactive.chart import Chart
from figures.interactive.swatches import make_swatch
from figures.labels import DEFINITION_END_PATTERN, get_symbol, get_usual_abscissa_key, html_from_latex, plain_from_latex
from figures.overlay import describe_figure
from statmech.keys.figure_key import Composition
from statmech.keys.variables import Variable

if TYPE_CHECKING:
    from statmech.results.results import Results

MAX_PAGE_CHARTS = 36
REPORT_CHART_HEIGHT = 320  # pixels


@dataclass(frozen=True)
class LabelledChart:
    """A chart, the labels of its axes as HTML, and whether it is folded."""

    ylabel: str
    xlabel: str
    figure: Any
    is_folded: bool


@dataclass(frozen=True)
class ReportCharts:
    """All charts of a page, with their legend and explanations.

    `sets` has the charts for each of the `choices`. An entry of the `legend` has a label and a picture as SVG,
    `explanations` explain axes and variables, `omitted_values` describes omitted values as HTML, and `runs` is True if
    single runs are drawn.
    """

    choices: list[str]
    sets: list[list[LabelledChart]]
    legend: list[tuple[str, str]]
    explanations: list[tuple[str, str]]
    omitted_values: list[str]
    runs: bool


def charts(results: Results, figure: str | Composition = "") -> ReportCharts:
    """Make the charts of all variables of a simulation, a theory, or both.

    Variables that the `figure` of the results leaves out are folded. The charts have the abscissa of the figure, and
    are split along the same axes.
    """
    results = series.ensure_chart_axis(results)
    content = figure.list_contents()[0] if isinstance(figure, Composition) else Composition()
    x, sizes = _choose_x(results, content.x), results.either.sizes
    results = _select_last_time(results, x)
    times = {axis: results.either[axis].item(-1) for axis, size in results.either.sizes.items() if size < sizes[axis]}
    symbols = {axis: html_from_latex(get_symbol(results.scenario, str(axis))) for axis in times}
    last = [f"{symbols[axis]} before {time:g}" for axis, time in times.items()]
    variables, constant = _separate_constants(results)
    drawn_names = _list_drawn_variables(results, variables, figure)
    variables = {name: variables[name] for name in sorted(variables, key=lambda name: name not in drawn_names)}
    runs = results.scenario.SHOWS_SINGLE_RUNS and results.simulation is not None
    split = tuple(axis for axis in content.split if axis in results.either.dims and axis != x)
    description = describe_figure({"": results}, Composition(x=x, y=tuple(variables), split=split, single_runs=runs))
    thinned = [f"all but {html_from_latex(text)}" for text in description.title_texts if " values of " in text]
    sets, omitted_titles = _choose_sets(description, max(1, MAX_PAGE_CHARTS // len(variables)))
    return ReportCharts(
        [plain_from_latex(title) for title in sets],
        [
            [_make_labelled_chart(panel, panel.name not in drawn_names) for panel in _select_distinct_panels(panels)]
            for panels in sets.values()
        ],
        [(plain_from_latex(entry.label), make_swatch(entry)) for entry in description.curve_entries],
        _get_explanations(results, variables),
        [*constant, *last, *thinned, *omitted_titles, *_describe_hidden_zeros(description)],
        runs,
    )


def _list_drawn_variables(results: Results, variables: dict[str, Variable], figure: str | Composition) -> set[str]:
    """Return the names of the variables in a figure.

    A figure with code or formulas of its own also has the main variables.
    """
    contents = figure.list_contents() if isinstance(figure, Composition) else []
    names = {name for content in contents for name in content.y}
    return names if names and names <= {*variables} else names | {*series.select_main_variables(results)}


def _choose_x(results: Results, figure_x: str | None) -> str | None:
    """Return the abscissa of the figure if it is an axis of numbers, or the axis of names if there are no numbers."""
    axes = series.get_chart_axes(results.either)
    if figure_x in axes and series.has_several_numbers(results.either, figure_x):
        return figure_x
    has_numbers = any(series.has_several_numbers(results.either, axis) for axis in axes)
    usual_key = get_usual_abscissa_key(results.scenario)
    return None if has_numbers or (usual_key is not None and not results.scenario.on_data) else axes[-1]


def _choose_sets(description: FigureDescription, max_sets: int) -> tuple[dict[str, list[PanelDescription]], list[str]]:
    """Group the panels by their titles, and describe the titles that do not fit on the page."""
    groups: dict[str, list[PanelDescription]] = {}
    for panel in description.panels:
        groups.setdefault(panel.title, []).append(panel)
    titles = [[*groups][index] for index in _choose_spread_indices(len(groups), max_sets)]
    missing = [plain_from_latex(title) for title in groups if title not in titles]
    names = ", ".join([*missing[:8], *["..."] * (len(missing) > 8)])
    omitted = [html.escape(f"{len(missing)} of {len(groups)} sets of charts ({names})")] if missing else []
    return {title: groups[title] for title in titles}, omitted


def _select_distinct_panels(panels: list[PanelDescription]) -> list[PanelDescription]:
    """Return the panels with values, without duplicates such as vote and mean for K = 1."""
    panels_by_values: dict[bytes, PanelDescription] = {}
    for panel in panels:
        curves = [drawn_curve.curve for drawn_curve in panel.curves if not drawn_curve.curve.is_empty]
        parts = [part for curve in curves for part in (curve.mean, curve.theory) if part is not None]
        if parts:
            panels_by_values.setdefault(np.concatenate(parts).astype(np.float32).tobytes(), panel)
    return list(panels_by_values.values())


def _make_labelled_chart(panel: PanelDescription, is_folded: bool) -> LabelledChart:
    figure = _enable_page_scrolling(Chart(panel, REPORT_CHART_HEIGHT, ChartTheme(bare=True)).figure)
    return LabelledChart(html_from_latex(panel.ylabel), html_from_latex(panel.xlabel), figure, is_folded)


def _select_last_time(results: Results, x: str | None = None) -> Results:
    """Select the last recorded time (step, ...) of results that are drawn against another key, x or the usual one."""
    scenario = results.scenario
    key = x or get_usual_abscissa_key(scenario)
    if key not in series.get_chart_axes(results.either) or key in scenario.recorded_coordinates:
        return results
    return series.select_position(
        results,
        {axis: slice(-1, None) for axis in scenario.recorded_coordinates if axis not in series.DIMS_HIDDEN_IN_FIGURES},
    )


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


def _choose_spread_indices(size: int, max_count: int) -> np.ndarray:
    return np.unique(np.linspace(0, size - 1, min(size, max_count)).round().astype(int))


def _describe_hidden_zeros(description: FigureDescription) -> Iterator[str]:
    """Describe zeros that logarithmic axes cannot show."""
    for panel in {panel.name: panel for panel in description.panels}.values():
        means = [drawn_curve.curve.mean for drawn_curve in panel.curves if drawn_curve.curve.mean is not None]
        if "y" in panel.log and any((mean <= 0).any() for mean in means):
            yield f"means of {html_from_latex(panel.ylabel)} that are 0, which a logarithmic axis cannot show"
    first = description.panels[0]
    if "x" in first.log and any((drawn_curve.curve.x <= 0).any() for drawn_curve in first.curves):
        yield f"{html_from_latex(first.xlabel)} = 0, which a logarithmic axis cannot show"


def _get_explanations(results: Results, variables: dict[str, Variable]) -> list[tuple[str, str]]:
    either = results.either
    names = [
        name
        for axis in series.get_chart_axes(either)
        for name in series.get_axis_coordinates(either, axis)
        if name in either.coords
    ]
    definitions = {name: DEFINITION_END_PATTERN.split(either[name].attrs["long_name"])[0] for name in names}
    meanings = [
        (html_from_latex(get_symbol(results.scenario, name)), definition)
        for name, definition in definitions.items()
        if definition != name
    ]
    return meanings + [(html_from_latex(variable.symbol), variable.long_name) for variable in variables.values()]
