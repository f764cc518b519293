"""Descriptions of figures that overlay simulation and theory, for one or several results of any kind of scenario.

Panels: each variable has a panel, against one axis or another variable (`figures.arrangement`). The first of the other
axes is distinguished by colour, the next by marker and dashes, and each combination of the rest has panels. An axis
that theory does not depend on (N) is distinguished by marker, over a single line. Theory with corrections of order 1/N
adds a band of one run for each N. The section `figure` of a config may name the panels, with guides and marks.

Measured points: a CSV file may add points, such as measurements, to a simulation (`read_points`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
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
from figures.style import (
    CURVE_COLOURS,
    CURVE_DASHES,
    THEORY_COLOUR,
    get_curve_style,
    get_nested_marker_scale,
)
from statmech.errors import ConfigError, format_unknown_name, quote_value
from statmech.keys.figure_key import Composition
from statmech.keys.variables import Variable
from statmech.runtime.files import read_csv_rows

if TYPE_CHECKING:
    from statmech.results.results import Results

MAX_INTEGER_THEORY_MARKERS = 40  # theory at more integers is drawn as a line
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
    if problems := arrangement.find_composition_problems(scenarios, composition):
        raise ConfigError("\n".join(problems))
    all_contents = composition.list_contents()
    contents = [content for content in all_contents if _has_values(results_by_label, content)] or all_contents
    with cache_theory_lines():  # panels along the same axis share their lines
        parts_by_content = [arrangement.arrange_results(results_by_label, content) for content in contents]
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
    first_parts = parts_by_content[0]
    series_entries = [entry for parts in parts_by_content for entry in legends.make_series_entries(parts)]
    titles = {
        tuple(panel.title for panel in panels[start : start + counts[0]]) for start in range(0, len(panels), counts[0])
    }
    is_table = len(contents) > 1 and len({*counts}) == 1 and counts[0] > 1 and len(titles) == 1
    if composition.fit and not any(line.style.get("alpha") for panel in panels for line in panel.lines):
        requirement = f"{derived_data.MIN_FIT_POINTS} positive points in the upper half of the range of x"
        raise ConfigError(f"figure.fit: no curve has {requirement}, as required for a fit")
    notes = (*([composition.note] if composition.note else []), *legends.collect_notes(first_parts))
    guides_and_marks = [(content.guides, content.marks) for content in contents]
    guide_entries = [entry for pair in guides_and_marks for entry in guides.make_guide_entries(*pair)]
    return FigureDescription(
        tuple(_remove_repeated_titles(panels, counts[0]) if is_table else panels),
        tuple(common_texts),
        tuple({entry.label: entry for entry in (*series_entries, *entries, *guide_entries)}.values()),
        tuple(legends.make_mark_entries(first_parts)),
        notes,
        counts[0] if is_table else 0,
        composition.share,
        composition.width,
        composition.columns,
    )


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


def _remove_repeated_titles(panels: list[PanelDescription], num_columns: int) -> list[PanelDescription]:
    """Keep the titles of the first row in a table of panels."""
    return [panel if index < num_columns else replace(panel, title="") for index, panel in enumerate(panels)]


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
            curve_selections = [
                item
                for part, results in selections
                for item in _describe_curves(part, results, names, variables, content)
            ]
            lines, marks = _make_lines_and_marks(selections, curve_selections, content, log)
            for part, selection, name, curve in curve_selections if content.fit else ():
                fitted = _fit_power_law(part, selection, name, curve, title)
                lines += [fitted[0]] if fitted else []
                entries += [fitted[1]] if fitted else []
            curves_of_panel = [_finish_line(part, curve, content, log) for part, *_, curve in curve_selections]
            for part, results in selections:
                curves_of_panel += guides.make_guide_points(content.guides, results, part.x)
            if points is not None:
                style = CurveStyle(MEASURED_POINT_STYLE | {"markerfacecolor": "0"}, None, {})
                measured = Curve(points.name, points.x, points.y, points.error)
                curves_of_panel.append(DrawnCurve(measured, style, points.name))
            panels.append(
                PanelDescription(
                    ", ".join(names),
                    _make_x_label(parts[0]),
                    _make_y_label(parts[0], [variables[name] for name in names], content),
                    content.titles.get(title, title),
                    log,
                    tuple(curves_of_panel),
                    tuple(lines),
                    tuple(marks),
                    {str(axis): ends for axis, ends in content.limits.items()},
                    _choose_x_ticks(selections, log),
                )
            )
    if points is not None:
        entries.append(LegendEntry(points.name, MEASURED_POINT_STYLE | {"markerfacecolor": "0"}, "points"))
    return panels, entries


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


def _finish_line(part: ArrangedResults, drawn_curve: DrawnCurve, content: Composition, log: str) -> DrawnCurve:
    """Round a coarse line of theory, and cut the curve at the limits of the vertical axis that a config states."""
    curve, style = drawn_curve.curve, drawn_curve.style.line or {}
    if not (part.x_variable or drawn_curve.has_single_theory_values or "drawstyle" in style):
        curve = theory_lines.round_line(curve, log)
    if "y" in content.limits:
        ends = zip(content.limits["y"], (-np.inf, np.inf), strict=True)
        curve = theory_lines.clip_curve(curve, *(limit if end is None else end for end, limit in ends))
    return replace(drawn_curve, curve=curve)


Selection = tuple[ArrangedResults, "Results", str, DrawnCurve]


def _describe_curves(
    part: ArrangedResults, results: Results, names: list[str], variables: dict[str, Variable], content: Composition
) -> Iterator[Selection]:
    """Describe the curves of some variables in one panel, each with its results and the name of its variable."""
    has_labels = isinstance(content.y, dict)
    styled = [*_iterate_styled_positions(part, results, bound=bool(variables[names[0]].bound))]
    count = len(styled) * len(names)
    for index, name in enumerate(names):
        for position, (style, selection, label) in enumerate(styled):
            if has_labels:
                hue = style.points["color"] if part.layout.colour_axes else CURVE_COLOURS[index % len(CURVE_COLOURS)]
                style, label = _style_variable(style, index, hue), ", ".join(filter(None, (content.y[name], label)))
            curve = _describe_curve(part, selection, name, style, label)
            if content.nested:
                curve = replace(curve, marker_scale=get_nested_marker_scale(position + index * len(styled), count))
            if content.join:
                curve = replace(curve, style=replace(curve.style, points={**curve.style.points, "linestyle": "-"}))
            if content.single_runs and selection.simulation is not None and name in selection.simulation:
                runs = curves.get_single_runs(selection.simulation[name])
                curve = replace(curve, curve=replace(curve.curve, runs=runs))
            yield part, selection, name, curve


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
        dashes = CURVE_DASHES[index % len(CURVE_DASHES)] if parts[0].results.theory is not None else "none"
        style = {**get_curve_style(index), "markerfacecolor": "white", "linestyle": dashes}
        grey = {"color": THEORY_COLOUR} if parts[0].layout.colour_axes else {}
        entries.append(LegendEntry(content.y[name], style | grey))
    return entries


def _iterate_styled_positions(
    part: ArrangedResults, results: Results, bound: bool
) -> Iterator[tuple[CurveStyle, Results, str]]:
    """Yield each combination of colours and markers with its style and its label.

    Bounds of theory are dashed. Axes that theory does not depend on share one line.
    """
    layout, hues = part.layout, part.curve_colours
    label = labels.make_mathtext_labeller(results.scenario)
    colours, markers = (
        [*curves.iterate_positions(results.either, axes, label)] for axes in (layout.colour_axes, layout.marker_axes)
    )
    has_single_line = layout.colour_axes and curves.is_ignored_by_theory(results, layout.colour_axes)
    for (colour_index, (colour_label, colour_position)), (
        marker_index,
        (marker_label, marker_position),
    ) in itertools.product(enumerate(colours), enumerate(markers)):
        dashes = CURVE_DASHES[marker_index % len(CURVE_DASHES)] if layout.marker_axes else part.line_dashes
        line: dict[str, Any] | None = {"color": hues[colour_index], "linestyle": dashes}
        if curves.is_ignored_by_theory(results, layout.marker_axes):
            line = {"color": hues[colour_index], "linestyle": part.line_dashes} if marker_index == 0 else None
        if has_single_line:
            line = {"color": hues[0] if part.label else THEORY_COLOUR} if colour_index == marker_index == 0 else None
        line = line | {"linestyle": "--"} if line and bound else line
        points = {
            "color": hues[colour_index],
            "marker": part.get_marker(marker_index if layout.marker_axes else colour_index),
        }
        full_label = ", ".join(item for item in (part.label, colour_label, marker_label) if item)
        band = {"colour": hues[colour_index], "dashes": CURVE_DASHES[marker_index % len(CURVE_DASHES)]}
        yield (
            CurveStyle(points, line, band),
            curves.select_position(results, {**colour_position, **marker_position}),
            full_label,
        )


def _describe_curve(part: ArrangedResults, selection: Results, name: str, style: CurveStyle, label: str) -> DrawnCurve:
    """Describe the curve of a variable against an axis or against another variable."""
    curve, x_error = _make_curve(part, selection, name), None
    if part.x_variable:
        curve, x_error = _make_plane_curve(curve, _make_curve(part, selection, part.x_variable))
    has_names = _has_names_along_x(part, selection)
    if has_names:  # no line, because nothing lies between two names
        style = replace(style, line=style.line and {**style.line, "linestyle": "none"})
        curve = replace(curve, x=np.arange(curve.x.size), theory_x=np.arange(curve.x.size))
    is_control = part.describe_variable(name).role == "control"
    if is_control and style.line and curve.theory is not None and derived_data.is_step_function(curve.theory):
        style = replace(style, line={**style.line, "drawstyle": "steps-post"})
    is_discrete = has_names or (not part.x_variable and _is_discrete_axis(selection, part.x))
    return DrawnCurve(curve, style, label, _get_filled_mask(part, selection), is_discrete, x_error)


def _make_curve(part: ArrangedResults, selection: Results, name: str) -> Curve:
    return curves.make_curve(name, "", selection.simulation, selection.theory, selection.lines, x=part.x)


def _has_names_along_x(part: ArrangedResults, selection: Results) -> bool:
    return not part.x_variable and curves.get_axis_values(selection.either, part.x).dtype.kind not in "iuf"


def _choose_x_ticks(
    selections: list[tuple[ArrangedResults, Results]], log: str
) -> tuple[np.ndarray, list[str] | None] | None:
    """Return the ticks for names along x or for a single value of x, or None for other axes."""
    for part, results in selections:
        if _has_names_along_x(part, results):
            names = curves.label_positions(results.either, part.x, labels.make_mathtext_labeller(results.scenario))
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
    selections: list[tuple[ArrangedResults, Results]], curve_selections: list[Selection], content: Composition, log: str
) -> tuple[list[DrawnLine], list[DrawnMark]]:
    """Make the guides of a panel, and the marks of its curves."""
    lines: list[DrawnLine] = []
    marks: list[DrawnMark] = []
    for part, results in selections:
        colours = {axis: part.curve_colours for axis in part.layout.colour_axes[:1]}
        lines += guides.make_guide_lines(content.guides, results, part.x, part.x_variable, colours)
    for _, selection, _, curve in curve_selections:
        marks += guides.make_marks(content.marks, selection, curve.curve, curve.style.points["color"], log)
    return lines, marks


def _fit_power_law(
    part: ArrangedResults, selection: Results, name: str, drawn_curve: DrawnCurve, title: str
) -> tuple[DrawnLine, LegendEntry] | None:
    """Fit a power law to simulation, or else to theory, and return its line and its legend entry."""
    curve = curves.make_curve(name, "", None, selection.theory, selection.lines, x=part.x)
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
    y_symbol, x_symbol = (
        part.describe_variable(name).symbol.strip("$"),
        labels.get_symbol(selection.scenario, part.x).strip("$"),
    )
    expected = (
        derived_data.fit_exponent(*theory_points, min_x=fitted.x[0]) if runs is not None and theory_points else None
    )
    formula = rf"${y_symbol}\propto {x_symbol}^{{\,{fitted.text_with_error}}}$" + (
        f", theory ${expected.text_with_error}$" if expected else ""
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
    entries = []
    for part in parts:
        part_variables = curves.get_variables_with_values(part.results, variables)
        if curves.has_several_numbers(part.results.either, part.x) and {*names} & {*part_variables}:
            entries.append((curves.choose_scales(part.results, part.x, part_variables, lossless=True), part))
    log_x = bool(entries) and all(scales.log_x for scales, _ in entries)
    log_y = any({*names} & scales.log_y for scales, _ in entries)
    log_y &= not any(curves.has_nonpositive_means(part.results, name) for _, part in entries for name in names)
    return "x" * log_x + "y" * log_y


def _make_x_label(part: ArrangedResults) -> str:
    if part.x_variable:
        return part.describe_variable(part.x_variable).symbol
    return labels.axis_label(part.results.scenario, curves.get_axis_coordinates(part.results.either, part.x))


def _make_y_label(part: ArrangedResults, variables: list[Variable], content: Composition) -> str:
    if content.label:
        return content.label
    symbol = variables[0].symbol
    return f"{symbol} / {part.describe_variable(content.over).symbol}" if content.over else symbol


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
