"""Descriptions of figures that overlay simulation and theory, for one or several results of any kind of scenario.

Panels: each variable has a panel, against one axis or another variable (`figures.arrangement`). The first of the other
axes is distinguished by colour, the next by marker and dashes, and each combination of the rest has panels. An axis
that theory does not depend on (N) is distinguished by marker, over a single line. Theory with corrections of order 1/N
adds a band of one run for each N. The section `figure` of a config may name the panels, with guides and marks.

Measured points: a CSV file may add points, such as measurements, to a simulation (`read_points`).
"""

from __future__ import annotations

import itertools
import json
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from figures import arrangement, curves, derived_data, guides, labels, legends, theory_lines
from figures.arrangement import ArrangedResults
from figures.curves import Curve
from figures.description import (
    CurveStyle,
    DrawnCurve,
    DrawnLine,
    DrawnMark,
    FigureDescription,
    LegendEntry,
    PanelDescription,
)
from figures.style import CURVE_COLOURS, CURVE_DASHES, THEORY_COLOUR, get_curve_style, get_nested_marker_scale
from statmech.errors import ConfigError, format_unknown_name, quote_value
from statmech.keys.figure_key import Composition
from statmech.keys.variables import Variable
from statmech.runtime.files import read_csv_rows

if TYPE_CHECKING:
    import xarray as xr

    from statmech.results.results import Results

MAX_COLUMNS_OF_TABLE, MAX_ROWS_OF_TABLE = 3, 4  # a table of panels fits on a page
COINCIDENCE_TOL = 1e-4  # fraction of the range of a panel
MAX_INTEGER_THEORY_MARKERS = 16  # theory at more integers is drawn as a line
MEASURED_POINT_STYLE: dict[str, Any] = {
    "color": "0",
    "marker": "D",
    "linestyle": "none",
    "markersize": 4,
}  # points from a CSV file
FITTED_LINE_STYLE: dict[str, Any] = {"linewidth": 3.5, "alpha": 0.3, "solid_capstyle": "butt", "zorder": 1}


def describe_figure(results_by_label: Mapping[str, Results], composition: Composition) -> FigureDescription:
    """Describe the figure that shows means over runs with standard errors as points, and theory as lines.

    Parameters
    ----------
    results_by_label
        Simulation and theory, by label; one label may be "".
    composition
        The section `figure`: the variables, axes, guides and marks.

    Raises
    ------
    ConfigError
        For variables or axes that these results lack, for points that cannot be read, and for results without an axis
        of numbers.

    >>> from statmech import Scenario, run
    >>> swept = run(Scenario(rule=["hebb", "adatron"], eta=[0.5, 1, 2], N=20, t=5, seeds=2))
    >>> figure = describe_figure({"": swept}, Composition(y="eps_g"))
    >>> [(panel.xlabel, [curve.label for curve in panel.curves]) for panel in figure.panels]
    [('$\\\\eta$', ['Hebbian', 'AdaTron'])]
    """
    from theory.solutions import cache_theory_lines  # lazy import: importing figures must stay fast

    scenarios = {label: results.scenario for label, results in results_by_label.items()}
    drawn_composition = _omit_empty_panels(results_by_label, composition)
    checked_composition = drawn_composition if arrangement.is_shipped_figure(composition) else composition
    if problems := arrangement.find_composition_problems(scenarios, checked_composition):
        raise ConfigError("\n".join(problems))
    contents = drawn_composition.list_contents()
    with cache_theory_lines():  # panels along the same axis share their lines
        parts_by_content = [arrangement.arrange_results(results_by_label, content) for content in contents]
    fills = composition.theory and any(part.fills_converged for parts in parts_by_content for part in parts)
    parts_by_content = [[replace(part, fills_converged=fills) for part in parts] for parts in parts_by_content]
    parts_by_content = arrangement.continue_colours(parts_by_content, contents)
    common_texts = legends.make_title_texts([part for parts in parts_by_content for part in parts])
    panels: list[PanelDescription] = []
    entries: list[LegendEntry] = []
    counts: list[int] = []
    for content, parts in zip(contents, parts_by_content, strict=True):
        described, more_entries = _describe_panels(parts, content)
        own_texts = [text for text in legends.make_title_texts(parts) if text not in common_texts]
        panels += [_add_to_title(panel, own_texts) for panel in described]
        entries += more_entries
        counts.append(len(described))
    if not panels:
        raise ConfigError("no variable of these results has values at the recorded times: give one time t, or none")
    first_parts = parts_by_content[0]
    series_entries = [
        entry
        for content, parts in zip(contents, parts_by_content, strict=True)
        for entry in legends.make_series_entries(parts, isinstance(content.y, dict), content.join)
    ]
    is_own = len(first_parts) == 1 and not arrangement.is_shipped_figure(composition)
    row_length = counts[0] if len({*counts}) == 1 < len(contents) else 0
    num_variables = len({panel.name for panel in panels})
    if len(contents) == 1 and is_own and not composition.columns and num_variables <= MAX_ROWS_OF_TABLE:
        row_length = len(panels) // num_variables if len(panels) <= MAX_COLUMNS_OF_TABLE * num_variables else 0
    rows = [panels[start : start + row_length] for start in range(0, len(panels), row_length or 1)]
    titles = {tuple(panel.title for panel in row) for row in rows}
    is_table = row_length > 1 and len(rows) > 1 and len(titles) == 1
    if composition.fit and not any(line.style.get("alpha") for panel in panels for line in panel.lines):
        requirement = f"{derived_data.MIN_FIT_POINTS} positive points in the upper half of the range of x"
        raise ConfigError(f"figure.fit: no curve has {requirement}, as required for a fit")
    joined_notes = [legends.JOINED_POINTS_NOTE] if any(content.join for content in contents) else []
    coincidences = _note_coincident_lines(panels, first_parts[0]) if is_own else []
    notes = (*filter(None, [composition.note]), *joined_notes, *legends.collect_notes(first_parts), *coincidences)
    guides_and_marks = [(content.guides, content.marks) for content in contents]
    guide_entries = [entry for pair in guides_and_marks for entry in guides.make_guide_entries(*pair)]
    curve_entries, mark_entries = [*series_entries, *entries], legends.make_mark_entries(first_parts)
    if any(isinstance(content.y, dict) for content in contents):  # several colours in one panel
        grey = {"color": THEORY_COLOUR}
        mark_entries = [
            replace(item, style=item.style | grey) if item.kind != "band" else item for item in mark_entries
        ]
    if guide_entries and not curve_entries:  # points and lines have the colour of the only curve
        curve_entries, mark_entries = mark_entries, []
    description = FigureDescription(
        tuple(panels),
        tuple(common_texts),
        tuple({entry.label: entry for entry in (*curve_entries, *guide_entries)}.values()),
        tuple(mark_entries),
        notes,
        row_length if is_table else 0,
        composition.share,
        composition.width,
        composition.columns,
    )
    renamed = _rename_texts(description, composition.rename)
    scenarios_of_parts = [part.results.scenario for parts in parts_by_content for part in parts]
    return replace(renamed, definitions=_define_symbols(renamed, scenarios_of_parts))


def _note_coincident_lines(panels: Sequence[PanelDescription], part: ArrangedResults) -> list[str]:
    """Return a note on the panels where the axis of the markers, or else of the colours, makes no difference."""
    coincident, layout = [], part.layout
    for letter, panel in zip(string.ascii_lowercase, panels, strict=False):
        groups: dict[Any, list[Any]] = {}
        for drawn_curve in filter(_has_theory_line, panel.curves):
            hue = drawn_curve.style.points["color"] if layout.marker_axes else ""
            groups.setdefault(hue, []).append(drawn_curve.curve.theory)
        ranges = [
            np.ptp(lines, axis=0) for lines in groups.values() if len({line.size for line in lines}) == 1 < len(lines)
        ]
        if groups and len(ranges) == len(groups):
            values = np.concatenate([line for lines in groups.values() for line in lines])
            if np.nanmax(ranges) <= COINCIDENCE_TOL * (np.nanmax(values) - np.nanmin(values)):
                coincident.append(f"({letter})")
    if not coincident:
        return []
    axes, where = layout.marker_axes or layout.colour_axes, f" in {', '.join(coincident)}" if len(panels) > 1 else ""
    keys = [key for axis in axes for key in curves.get_axis_coordinates(part.results.either, axis)]
    symbols = " and ".join(labels.get_symbol(part.results.scenario, key) for key in keys)
    return [f"lines of all {symbols} coincide{where}"]


def _define_symbols(description: FigureDescription, scenarios: Sequence[Any]) -> tuple[str, ...]:
    """Define the symbols in the texts of a figure, except those that its notes define."""
    entries = (*description.curve_entries, *description.mark_entries)
    lines = [line.text for panel in description.panels for line in panel.lines]
    texts = [*description.title_texts, *(entry.label for entry in entries), *description.notes, *lines]
    texts += [panel.title for panel in description.panels]
    axis_labels = [label for panel in description.panels for label in (panel.xlabel, panel.ylabel)]
    definitions = [text for scenario in scenarios for text in labels.define_drawn_symbols(scenario, texts, axis_labels)]
    by_symbol = {text.partition(":")[0]: text for text in reversed(definitions)}
    noted = " ".join(description.notes)
    return tuple(text for symbol, text in by_symbol.items() if f"{symbol}:" not in noted)[::-1]


def _omit_empty_panels(results_by_label: Mapping[str, Results], composition: Composition) -> Composition:
    """Return the figure without the panels of variables that no results have, unless all are missing."""
    contents = zip(composition.panels, composition.list_contents(), strict=False)
    panels = tuple(panel for panel, content in contents if _has_values(results_by_label, content))
    return composition.model_copy(update={"panels": panels or composition.panels})


def _has_values(results_by_label: Mapping[str, Results], content: Composition) -> bool:
    """Return True if a panel has values, or if a formula computes its variable.

    A panel with an optimal control, for example, is omitted if the results have no optimum.
    """
    datasets = [part for results in results_by_label.values() for part in (results.simulation, results.theory)]
    return not content.y or any(
        name in content.derive
        or any(part is not None and name in part and bool(part[name].notnull().any()) for part in datasets)
        for name in content.y
    )


def _add_to_title(panel: PanelDescription, texts: list[str]) -> PanelDescription:
    """Add the values that only some panels of a figure have in common to the title of a panel."""
    return replace(panel, title=", ".join(filter(None, (panel.title, *texts))))


def _rename_texts(description: FigureDescription, other_texts: Mapping[str, str]) -> FigureDescription:
    """Replace titles, labels of axes and legend entries, or their parts between commas, by other texts."""

    def rename(text: str) -> str:
        parts = ", ".join(filter(None, (other_texts.get(part, part) for part in text.split(", "))))
        return other_texts.get(text, parts) if text else ""

    panels = [
        replace(
            panel,
            title=rename(panel.title),
            xlabel=rename(panel.xlabel),
            ylabel=rename(panel.ylabel),
            curves=tuple(replace(curve, label=rename(curve.label)) for curve in panel.curves),
        )
        for panel in description.panels
    ]
    entries = [replace(entry, label=rename(entry.label)) for entry in description.curve_entries]
    title_texts = tuple(filter(None, map(rename, description.title_texts)))
    return replace(description, panels=tuple(panels), title_texts=title_texts, curve_entries=tuple(entries))


def _describe_panels(
    parts: list[ArrangedResults], content: Composition
) -> tuple[list[PanelDescription], list[LegendEntry]]:
    """Describe the panels of some variables: one for each variable and combination of the axes that have panels.

    Variables with labels share their panels. The legend entries name fitted lines, points from a file, and variables.
    """
    variables = arrangement.select_common_variables(parts, content)
    groups = [[*variables]] if isinstance(content.y, dict) else [[name] for name in variables]
    points = read_points(content.points) if content.points else None
    panels, entries = [], _make_variable_entries(parts, content, variables)
    for names in groups:
        log = _choose_log_axes(parts, names, variables, content)
        for title, selections in _get_panel_contents(parts, names, variables):
            drawn_variables = {name: variables[name] for name in names}
            panel, fit_entries = describe_panel(selections, drawn_variables, content, log, title)
            if points is not None:
                style = CurveStyle(MEASURED_POINT_STYLE | {"markerfacecolor": "0"}, None, {})
                measured = Curve(points.name, points.x, points.y, points.error)
                panel = replace(panel, curves=(*panel.curves, DrawnCurve(measured, style, points.name)))
            panels.append(panel)
            entries += fit_entries
    if points is not None:
        entries.append(LegendEntry(points.name, MEASURED_POINT_STYLE | {"markerfacecolor": "0"}, "points"))
    return panels, entries


def describe_panel(
    selections: Sequence[tuple[ArrangedResults, Results]],
    variables: dict[str, Variable],
    content: Composition,
    log: str,
    title: str = "",
    rounds_lines: bool = True,
) -> tuple[PanelDescription, list[LegendEntry]]:
    """Describe one panel.

    Parameters
    ----------
    selections
        The parts of the figure, each with the results that the panel shows.
    variables
        The variables of the panel, by name.
    content
        The keys of the panel.
    log
        The logarithmic axes.
    title
        The values of the axes that have panels.
    rounds_lines
        Whether lines of theory through few points are rounded.

    Returns
    -------
    panel : PanelDescription
        The panel.
    fit_entries : list of LegendEntry
        Legend entries of fitted lines.
    """
    curve_selections = [item for selected in selections for item in _describe_curves(*selected, variables, content)]
    lines, marks = _make_lines_and_marks(selections, curve_selections, content, log)
    fits = [_fit_power_law(*item, title) for item in curve_selections] if content.fit else []
    fitted = [item for item in fits if item]
    guide_points = [
        point for part, results in selections for point in guides.make_guide_points(content.guides, results, part.x)
    ]
    first_part, first_variable = selections[0][0], next(iter(variables.values()))
    panel = PanelDescription(
        ", ".join(variables),
        _make_x_label(first_part),
        _make_y_label(first_part, first_variable, content),
        title or content.rename.get("", ""),
        log,
        (
            *(_finish_line(part, curve, content, log, rounds_lines) for part, *_, curve in curve_selections),
            *guide_points,
        ),
        (*lines, *(line for line, _ in fitted)),
        tuple(marks),
        {str(axis): ends for axis, ends in content.limits.items()},
        _choose_x_ticks(selections, log),
        bool(first_variable.bound),
    )
    return panel, [entry for _, entry in fitted]


def _get_panel_contents(
    parts: list[ArrangedResults], names: list[str], variables: dict[str, Variable]
) -> list[tuple[str, list[tuple[ArrangedResults, Results]]]]:
    """Return the title and the results of each panel of some variables.

    Results without panel axes are shown in every panel. Variables without values are omitted, such as q for K = 1.
    """
    panel_titles = [[*part.iterate_panels()] for part in parts]
    titles = dict.fromkeys(title for part_titles in panel_titles for title, _ in part_titles if title) or {"": None}
    contents = []
    for title in titles:
        content = [
            (part, results)
            for part, part_titles in zip(parts, panel_titles, strict=True)
            for own_title, results in part_titles
            if own_title in ("", title) and {*names} & {*curves.get_variables_with_values(results, variables)}
        ]
        contents += [(title, content)] if content else []
    return contents


def _clip_x(drawn_curve: DrawnCurve, content: Composition) -> DrawnCurve:
    """Leave out the points and the line of a curve beyond the limits of the horizontal axis that a config states."""
    if "x" not in content.limits:
        return drawn_curve
    low, high = content.limits["x"]
    curve = drawn_curve.curve

    def clip(x: np.ndarray) -> np.ndarray:
        is_inside = (x >= (-np.inf if low is None else low)) & (x <= (np.inf if high is None else high))
        return np.where(is_inside, x, np.nan)

    theory_x = None if curve.theory_x is None else clip(curve.theory_x)
    return replace(drawn_curve, curve=replace(curve, x=clip(curve.x), theory_x=theory_x))


def _finish_line(
    part: ArrangedResults, drawn_curve: DrawnCurve, content: Composition, log: str, rounds: bool
) -> DrawnCurve:
    """Round a coarse line of theory, and cut the curve at the limits of the axes that a config states."""
    curve, style = drawn_curve.curve, drawn_curve.style.line or {}
    if rounds and not (part.x_variable or drawn_curve.has_single_theory_values or "drawstyle" in style):
        curve = theory_lines.round_line(curve, log, part.x)
    if "y" in content.limits:
        ends = zip(content.limits["y"], (-np.inf, np.inf), strict=True)
        curve = theory_lines.clip_curve(curve, *(limit if end is None else end for end, limit in ends))
    return _clip_x(replace(drawn_curve, curve=curve), content)


Selection = tuple[ArrangedResults, "Results", str, DrawnCurve]


def _describe_curves(
    part: ArrangedResults, results: Results, variables: dict[str, Variable], content: Composition
) -> Iterator[Selection]:
    """Describe the curves of some variables in one panel, each with its results and the name of its variable."""
    has_labels = isinstance(content.y, dict)
    styled = [*_iterate_styled_positions(part, results, bound=bool(next(iter(variables.values())).bound))]
    count = len(styled) * len(variables)
    has_names = _has_names_along_x(part, results)
    is_discrete = has_names or (not part.x_variable and _is_discrete_axis(results, part.x))
    for index, (name, variable) in enumerate(variables.items()):
        for position, (style, selection, *line_and_point_labels) in enumerate(styled):
            if has_labels:
                hue = style.points["color"] if part.layout.colour_axes else CURVE_COLOURS[index % len(CURVE_COLOURS)]
                style = _style_variable(style, index, hue)
                line_and_point_labels = [
                    ", ".join(filter(None, (content.y[name], label))) for label in line_and_point_labels
                ]
            curve = _describe_curve(part, selection, name, variable, style, content.single_runs, has_names)
            line_label, label = line_and_point_labels
            curve = replace(curve, line_label=line_label, label=label, has_single_theory_values=is_discrete)
            if content.nested:
                curve = replace(curve, marker_scale=get_nested_marker_scale(position + index * len(styled), count))
            if content.join and (variable.bound or not _has_theory_line(curve)):
                curve = replace(curve, style=replace(curve.style, points={**curve.style.points, "linestyle": "-"}))
            yield part, selection, name, curve


def _has_theory_line(drawn_curve: DrawnCurve) -> bool:
    return drawn_curve.curve.theory is not None and bool(np.isfinite(drawn_curve.curve.theory).any())


def _style_variable(style: CurveStyle, index: int, hue: Any) -> CurveStyle:
    """Return the style of the index-th of several variables in one panel, in this colour."""
    dashes = CURVE_DASHES[index % len(CURVE_DASHES)]
    line = None if style.line is None else {"color": hue, "linestyle": dashes}
    return CurveStyle({**get_curve_style(index), "color": hue}, line, {"colour": hue, "dashes": dashes})


def _make_variable_entries(
    parts: list[ArrangedResults], content: Composition, variables: dict[str, Variable]
) -> list[LegendEntry]:
    """Return a legend entry for each of several variables with labels."""
    if not isinstance(content.y, dict):
        return []
    entries = []
    for index, name in enumerate(variables):
        theory = parts[0].results.theory
        dashes = CURVE_DASHES[index % len(CURVE_DASHES)] if theory is not None and name in theory else "none"
        style = {**get_curve_style(index), "markerfacecolor": "white", "linestyle": dashes}
        grey = {"color": THEORY_COLOUR} if parts[0].layout.colour_axes else {}
        entries.append(LegendEntry(content.y[name], style | grey))
    return entries


def _iterate_styled_positions(
    part: ArrangedResults, results: Results, bound: bool
) -> Iterator[tuple[CurveStyle, Results, str, str]]:
    """Yield each combination of colours and markers with its style, the label of its line and its own label.

    Bounds of theory are dashed. Axes that theory does not depend on share one line. Combinations beyond the colours of
    the part are omitted.
    """
    layout, hues = part.layout, part.curve_colours
    colours, markers = (
        [*curves.iterate_positions(results.either, axes, part.label_value)]
        for axes in (layout.colour_axes, layout.marker_axes)
    )
    has_single_line = layout.colour_axes and curves.is_ignored_by_theory(results, layout.colour_axes)
    has_common_lines = curves.is_ignored_by_theory(results, layout.marker_axes)
    for (colour_index, (colour_label, colour_position)), (
        marker_index,
        (marker_label, marker_position),
    ) in itertools.product(enumerate(colours[: len(hues)]), enumerate(markers)):
        dashes = CURVE_DASHES[marker_index % len(CURVE_DASHES)] if layout.marker_axes else part.line_dashes
        line: dict[str, Any] | None = {"color": hues[colour_index], "linestyle": dashes}
        if has_common_lines:
            line = {"color": hues[colour_index], "linestyle": part.line_dashes} if marker_index == 0 else None
        if has_single_line:
            line = {"color": hues[0] if part.label else THEORY_COLOUR} if colour_index == marker_index == 0 else None
        line = line | {"linestyle": "--"} if line and bound else line
        points = {
            "color": hues[colour_index],
            "marker": part.get_marker(marker_index if layout.marker_axes else colour_index),
        }
        label_parts = (part.label, "" if has_single_line else colour_label, "" if has_common_lines else marker_label)
        line_label, full_label = (
            ", ".join(filter(None, parts)) for parts in (label_parts, (part.label, colour_label, marker_label))
        )
        band = {"colour": hues[colour_index], "dashes": CURVE_DASHES[marker_index % len(CURVE_DASHES)]}
        yield (
            CurveStyle(points, line, band),
            curves.select_position(results, {**colour_position, **marker_position}),
            line_label,
            full_label,
        )


def _describe_curve(
    part: ArrangedResults,
    selection: Results,
    name: str,
    variable: Variable,
    style: CurveStyle,
    single_runs: bool,
    has_names: bool,
) -> DrawnCurve:
    """Describe the curve of a variable against an axis or against another variable."""
    levels = variable.reference_variables if part.in_browser else ()
    if variable.bound and not part.in_browser:  # between the values of x, a bound on an integer has steps
        selection = replace(selection, lines=None)
    has_band = curves.has_run_bands(part.results.scenario)
    curve, x_error = curves.make_curve(selection, name, part.x, "", levels, single_runs, has_band), None
    if part.x_variable:
        curve, x_error = _make_plane_curve(curve, curves.make_curve(selection, part.x_variable, part.x, has_band=False))
    if has_names:  # no line, because nothing lies between two names
        style = replace(style, line=style.line and {**style.line, "linestyle": "none"})
        curve = replace(curve, x=np.arange(curve.x.size), theory_x=np.arange(curve.x.size))
    if (
        variable.role == "control"
        and style.line
        and curve.theory is not None
        and derived_data.is_step_function(curve.theory)
    ):
        style = replace(style, line={**style.line, "drawstyle": "steps-post"})
        curve = _move_jumps_to_segment_edges(curve, part.results.theory)
    return DrawnCurve(curve, style, filled_mask=_get_filled_mask(part, selection), x_error=x_error)


def _move_jumps_to_segment_edges(curve: Curve, theory: xr.Dataset | None) -> Curve:
    """Move the jumps of a control from the points of the line to the ends of its segments."""
    searches = json.loads(theory.attrs.get("best_controls", "[]")) if theory is not None else []
    controls = [control for search in searches if search for control in search["controls"].values()]
    edges = np.unique([edge for control in controls for edge in control["edges"]])
    if not edges.size or curve.theory_x is None or curve.theory is None:
        return curve
    return replace(curve, theory_x=derived_data.move_jumps_to_edges(curve.theory_x, curve.theory, edges))


def _has_names_along_x(part: ArrangedResults, selection: Results) -> bool:
    return not part.x_variable and curves.get_axis_values(selection.either, part.x).dtype.kind not in "iuf"


def _choose_x_ticks(
    selections: Sequence[tuple[ArrangedResults, Results]], log: str
) -> tuple[np.ndarray, list[str] | None] | None:
    """Return the ticks for names along x or for a single value of x, or None for other axes."""
    for part, results in selections:
        if _has_names_along_x(part, results):
            names = curves.label_positions(results.either, part.x, part.label_value)
            return np.arange(len(names)), names
        x = curves.get_axis_values(results.either, part.x)
        if not part.x_variable and x.size == 1 and "x" not in log:
            return x, None
    return None


def _make_plane_curve(curve: Curve, x_curve: Curve) -> tuple[Curve, np.ndarray | None]:
    """Return a curve against the values of another curve, and the error bars along x."""
    no_values = np.full(curve.x.shape, np.nan)
    is_solved = curve.theory is not None and x_curve.theory is not None and curve.theory.shape == x_curve.theory.shape
    line = {"theory_x": x_curve.theory, "theory": curve.theory} if is_solved else {"theory_x": None, "theory": None}
    return replace(curve, x=no_values if x_curve.mean is None else x_curve.mean, band=None, **line), x_curve.error


def _get_filled_mask(part: ArrangedResults, selection: Results) -> np.ndarray | None:
    """Return a mask of the points to fill: all runs converged, or no convergence was recorded."""
    if not part.fills_converged:
        return None
    converged = curves.get_converged_mask(selection.simulation)
    return (
        converged
        if converged is not None or selection.simulation is None
        else np.ones(curves.get_axis_values(selection.either, part.x).size, bool)
    )


def _make_lines_and_marks(
    selections: Sequence[tuple[ArrangedResults, Results]],
    curve_selections: list[Selection],
    content: Composition,
    log: str,
) -> tuple[list[DrawnLine], list[DrawnMark]]:
    """Make the guides of a panel, and the marks of its curves."""
    lines: list[DrawnLine] = []
    marks: list[DrawnMark] = []
    for part, results in selections:
        colours = {axis: part.curve_colours for axis in part.layout.colour_axes[:1]}
        guide_lines = guides.make_guide_lines(content.guides, results, part.x, part.x_variable, colours)
        lines += [_round_guide(line, log) for line in guide_lines]
    for _, selection, _, curve in curve_selections:
        marks += guides.make_marks(content.marks, selection, curve.curve, curve.style.points["color"], log)
    return lines, marks


def _round_guide(line: DrawnLine, log: str) -> DrawnLine:
    """Round a guide along the values of a variable like a line of theory."""
    if line.x is None or line.y is None:
        return line
    rounded = theory_lines.round_line(Curve("", line.x, theory_x=line.x, theory=line.y), log)
    return replace(line, x=rounded.theory_x, y=rounded.theory)


def _fit_power_law(
    part: ArrangedResults, selection: Results, name: str, drawn_curve: DrawnCurve, title: str
) -> tuple[DrawnLine, LegendEntry] | None:
    """Fit a power law to simulation, or else to theory, and return its line and its legend entry."""
    curve = curves.make_curve(selection, name, part.x)
    theory_points = None if curve.theory is None or curve.theory_x is None else (curve.theory_x, curve.theory[None])
    x = curves.get_axis_values(selection.either, part.x)
    runs = selection.simulation[name] if selection.simulation is not None and name in selection.simulation else None
    if runs is not None:
        runs = derived_data.average_over_students(runs).transpose("seed", ...).values
    fitted = (
        derived_data.fit_exponent(x, runs)
        if runs is not None
        else theory_points and derived_data.fit_exponent(*theory_points)
    )
    if not fitted:
        return None
    y_symbol = part.describe_variable(name).symbol.strip("$")
    x_symbol = labels.get_symbol(selection.scenario, part.x).strip("$")
    expected = (
        derived_data.fit_exponent(*theory_points, min_x=fitted.x[0]) if runs is not None and theory_points else None
    )
    formula = rf"${y_symbol}\propto {x_symbol}^{{\,{fitted.text_with_error}}}$" + (
        f", theory ${expected.value:.{fitted.digits}f}$" if expected else ""
    )
    full_label = ", ".join(item for item in (drawn_curve.label, title) if item)
    style = {"color": drawn_curve.style.points["color"], **FITTED_LINE_STYLE}
    return (
        DrawnLine(style, fitted.x, fitted.y),
        LegendEntry(f"{full_label}: {formula}" if full_label else formula, style),
    )


def _choose_log_axes(
    parts: list[ArrangedResults], names: list[str], variables: dict[str, Variable], content: Composition
) -> str:
    """Return the logarithmic axes of a panel: those of the config, or axes whose values span decades."""
    if content.log:
        return content.log.replace("none", "")
    if any(part.x_variable for part in parts):
        return ""
    if content.fit:
        return "xy"
    log_x, log_y, can_be_log = [], False, True
    for part in parts:
        with_values = curves.get_variables_with_values(part.results, {name: variables[name] for name in names})
        if with_values and curves.has_several_numbers(part.results.either, part.x):
            log_x.append(curves.needs_log_x(curves.get_axis_values(part.results.either, part.x)))
            log_y |= any(curves.needs_log_y(part.results, name, variable) for name, variable in with_values.items())
            can_be_log &= not any(curves.has_nonpositive_means(part.results, name) for name in names)
    return "x" * (bool(log_x) and all(log_x)) + "y" * (log_y and can_be_log)


def _make_x_label(part: ArrangedResults) -> str:
    if part.x_variable:
        return part.describe_variable(part.x_variable).symbol
    scenario, names = part.results.scenario, curves.get_axis_coordinates(part.results.either, part.x)
    label = labels.axis_label(scenario, names)
    has_menu_symbol = len(names) > 1 or labels.unicode_from_latex(labels.get_symbol(scenario, names[0]))
    return label if has_menu_symbol or not part.in_browser else f"{labels.format_key_name(names[0])} {label}"


def _make_y_label(part: ArrangedResults, variable: Variable, content: Composition) -> str:
    if content.label:
        return content.label
    return f"{variable.symbol} / {part.describe_variable(content.over).symbol}" if content.over else variable.symbol


def _is_discrete_axis(results: Results, x: str) -> bool:
    """Return True if x takes a few integer values and theory exists only there."""
    key = curves.get_axis_coordinates(results.either, x)[0]
    dense = results.lines if results.lines is not None else results.either
    is_integer = x in results.scenario.shape and results.scenario.describe(key).type is int
    return is_integer and x in dense.dims and dense.sizes[x] <= MAX_INTEGER_THEORY_MARKERS


CSV_COLUMNS, REQUIRED_COLUMNS = ("x", "y", "error"), ("x", "y")
MAX_CSV_BYTES = 1_000_000


@dataclass(frozen=True)
class MeasuredPoints:
    """Points (n,) with their errors, if known, and the name of their file."""

    name: str
    x: np.ndarray
    y: np.ndarray
    error: np.ndarray | None = None


def read_points(path: str | Path) -> MeasuredPoints:
    """Read points from a CSV file with a header line.

    Parameters
    ----------
    path
        A file with the columns `x`, `y` and optionally `error`, in any order.

    Returns
    -------
    MeasuredPoints
        In the order of the file.

    Raises
    ------
    ConfigError
        For a file that cannot be read, lacks a column, or has a value that is not a number.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "mine.csv"
    ...     _ = file.write_text("x,y,error\\n1,0.3,0.01\\n2,0.2,0.01\\n")
    ...     read_points(file)
    MeasuredPoints(name='mine', x=array([1., 2.]), y=array([0.3, 0.2]), error=array([0.01, 0.01]))
    """
    path = Path(path)
    try:
        rows = [[cell.strip() for cell in row] for row in read_csv_rows(path, MAX_CSV_BYTES) if any(row)]
    except OSError as failure:
        raise ConfigError(f"figure.points: {path}: cannot be read: {failure.strerror}") from None
    names = rows[0] if rows else []
    _check_columns(path, names)
    table = [_parse_row(path, number, names, row) for number, row in enumerate(rows[1:], 2)]
    if not table:
        raise ConfigError(f"figure.points: {path}: has no points below the header line")
    columns = dict(zip(names, np.array(table).T, strict=True))
    if "error" in columns and (columns["error"] < 0).any():
        raise ConfigError(f"figure.points: {path}: an error is negative")
    return MeasuredPoints(path.stem, columns["x"], columns["y"], columns.get("error"))


def _check_columns(path: Path, names: list[str]) -> None:
    for name in names:
        if name not in CSV_COLUMNS:
            raise ConfigError(f"figure.points: {path}: {format_unknown_name(name, 'a column of points', CSV_COLUMNS)}")
    missing = [name for name in REQUIRED_COLUMNS if name not in names]
    if missing or len({*names}) < len(names):
        problem = f"has no column {' and '.join(missing)}" if missing else "has a column twice"
        raise ConfigError(f"figure.points: {path}: {problem}. Its first line names the columns: x,y,error or x,y.")


def _parse_row(path: Path, line_number: int, names: list[str], row: list[str]) -> list[float]:
    """Parse one row into finite numbers."""
    where = f"figure.points: {path}:{line_number}"
    if len(row) != len(names):
        raise ConfigError(f"{where}: the row must have {len(names)} values like the header, not {len(row)}")
    values = []
    for name, cell in zip(names, row, strict=True):
        try:
            value = float(cell)
        except ValueError:
            value = np.nan
        if not np.isfinite(value):
            raise ConfigError(f"{where}: {name} must be a finite number, not {quote_value(cell)}")
        values.append(value)
    return values
