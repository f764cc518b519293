"""Figures that overlay simulation and theory, for one or several results of any kind of scenario.

Panels: each variable has a panel, against one axis or another variable (`figures.arrangement`). The first of the other
axes is distinguished by colour, the next by marker and dashes, and each combination of the rest has panels. An axis
that theory does not depend on (N) is distinguished by marker, over a single line. Theory with corrections of order 1/N
adds a band of one run for each N.

Rows: results without a numeric axis, such as a study on data or a sweep over names alone, have a row per parameter
combination and a column per variable.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from figures import arrangement, curves, derived_data, labels, legends, measured_points, panels
from figures.arrangement import ArrangedResults
from figures.curves import Layout
from figures.panels import CurveStyle, finish_figure, make_panel_grid
from figures.style import (
    BAND_OPACITY,
    COLUMN_WIDTH,
    CURVE_COLOURS,
    CURVE_DASHES,
    PAGE_WIDTH,
    THEORY_COLOUR,
    apply_style,
)
from statmech.errors import ConfigError
from statmech.keys.figure_key import Composition
from statmech.results.comparison import find_unresolved_std_mask, predict_mean_and_std
from statmech.results.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from statmech.keys.variables import Variable


MAX_COMBINATION_ROWS = 40
MAX_VARIABLE_COLUMNS = 4
ROW_HEIGHT, ROWS_HEAD_HEIGHT = 0.22, 0.9  # inches


def draw_combination_rows(results: Results, composition: Composition) -> Figure:
    """Draw means over runs with their standard errors as points, and theory as dashes."""
    axes = tuple(curves.get_chart_axes(results.either))
    all_combinations = curves.iterate_positions(results.either, axes, labels.make_mathtext_labeller(results.scenario))
    combinations = list(itertools.islice(all_combinations, MAX_COMBINATION_ROWS))
    variables = arrangement.select_variables(results, composition)
    figure, panels = make_panel_grid(
        len(variables), MAX_VARIABLE_COLUMNS, ROWS_HEAD_HEIGHT + ROW_HEIGHT * len(combinations), PAGE_WIDTH
    )
    for ax, (name, variable) in zip(panels, variables.items(), strict=True):
        for row, (_, position) in enumerate(combinations):
            _draw_value(ax, curves.select_position(results, position), name, row)
        ax.set(xlabel=variable.symbol, ylim=(len(combinations) - 0.5, -0.5))
        ax.set_yticks(range(len(combinations)), [label for label, _ in combinations])
        ax.tick_params(axis="y", length=0, labelleft=(spec := ax.get_subplotspec()) is not None and spec.is_first_col())
        ax.grid(axis="y", color="0.9", linewidth=0.6)
    count = int(np.prod([results.either.sizes[axis] for axis in axes]))
    fewer = (
        f"the first {MAX_COMBINATION_ROWS} of {count} parameter combinations" if count > MAX_COMBINATION_ROWS else ""
    )
    part = ArrangedResults(results, Layout("", (), ()), title_texts=(fewer,) if fewer else ())
    legends.draw_title(figure, [part])
    legends.draw_lower_legend(figure, [part])
    return figure


def _draw_value(ax: Axes, results: Results, name: str, row: int) -> None:
    """Draw one value: the mean as a point with its standard error, theory as a dash."""
    if results.simulation is not None and name in results.simulation:
        mean, error = curves.compute_mean_and_error(results.simulation[name])
        ax.errorbar(
            [mean], [row], xerr=[error], linestyle="none", color=CURVE_COLOURS[0], marker="o", markerfacecolor="white"
        )
    if results.theory is not None and name in results.theory:
        mean, std = predict_mean_and_std(results.theory, name)
        if std is not None and not find_unresolved_std_mask(results.theory, name).any():
            ends = [float((mean + side * std).mean()) for side in (-1, 1)]
            ax.plot(
                ends, [row, row], color=THEORY_COLOUR, alpha=BAND_OPACITY, linewidth=7, solid_capstyle="butt", zorder=0
            )
        ax.plot([results.theory[name].mean()], [row], "|", color=THEORY_COLOUR, markersize=9)


MAX_PANEL_COLUMNS, PANEL_HEIGHT, STACKED_PANEL_HEIGHT = 3, 2.0, 1.7  # heights in inches
MAX_COLUMNS_BY_PANEL_COUNT = {4: 2}  # four panels form a square
SINGLE_PANEL_HEIGHT, SINGLE_PANEL_WIDTH = 2.7, 5.6  # inches
TITLE_AND_LEGEND_HEIGHT = 0.9  # inches for title and legend
MAX_INTEGER_THEORY_MARKERS = 40  # theory at more integers is drawn as a line
MEASURED_POINT_STYLE: dict[str, Any] = {
    "color": "0",
    "marker": "D",
    "linestyle": "none",
    "markersize": 4,
}  # points from a CSV file
DEFAULT_COMPOSITION = Composition()


@apply_style
def draw(results: Results | Mapping[str, Results], composition: Composition = DEFAULT_COMPOSITION) -> Figure:
    """Draw means over runs with their standard errors as points, and theory as lines.

    Parameters
    ----------
    results
        Simulation and theory, or a mapping from labels to results.
    composition
        The variables and axes to draw.

    Raises
    ------
    ConfigError
        For variables or axes that these results lack, and for points that cannot be read.

    >>> from statmech import Scenario, run
    >>> swept = run(Scenario(rule=["hebb", "adatron"], eta=[0.5, 1, 2], N=20, t=5, seeds=2))
    >>> draw(swept).axes[1].get_xlabel()
    '$\\\\eta$'
    """
    results_by_label = {"": results} if isinstance(results, Results) else results
    if problems := arrangement.find_composition_problems(
        {label: item.scenario for label, item in results_by_label.items()}, composition
    ):
        raise ConfigError("\n".join(problems))
    parts = arrangement.arrange_results(results_by_label, composition)
    figure = (
        _draw_panels(parts, composition)
        if parts
        else draw_combination_rows(next(iter(results_by_label.values())), composition)
    )
    return finish_figure(figure, next(iter(results_by_label.values())), with_heading=len(results_by_label) == 1)


def _draw_panels(parts: list[ArrangedResults], composition: Composition) -> Figure:
    """Draw one panel for each variable and each combination of the axes that have panels."""
    variables = arrangement.select_common_variables(parts, composition)
    points = measured_points.read_points(composition.points) if composition.points else None
    logs = {name: _choose_log_axes(parts, name, variables, composition) for name in variables}
    contents = _get_panel_contents(parts, variables)
    is_single = len(contents) == 1
    stacked = panels.is_drawn_as_column(len(contents))
    max_columns, width = (
        (1, COLUMN_WIDTH)
        if stacked
        else (
            MAX_COLUMNS_BY_PANEL_COUNT.get(len(contents), MAX_PANEL_COLUMNS),
            SINGLE_PANEL_WIDTH if is_single else PAGE_WIDTH,
        )
    )
    height = STACKED_PANEL_HEIGHT if stacked and not is_single else PANEL_HEIGHT
    figure, axes = make_panel_grid(
        len(contents),
        max_columns,
        height,
        width,
        SINGLE_PANEL_HEIGHT - PANEL_HEIGHT if is_single else TITLE_AND_LEGEND_HEIGHT,
    )
    keys: list[Any] = []
    for ax, (name, title, content) in zip(axes, contents, strict=True):
        for part, results in content:
            for style, selection, label in _get_styled_combinations(part, results, bool(variables[name].bound)):
                _draw_variable(ax, part, selection, name, style, logs[name], _get_filled_mask(parts, part, selection))
                keys += _draw_power_law(ax, part, selection, name, style, label, title) if composition.fit else []
        if points is not None:
            ax.errorbar(points.x, points.y, points.error, **MEASURED_POINT_STYLE, zorder=6)
        panels.set_log_axes(ax, logs[name])
        _label_panel_axes(ax, parts, variables[name], title, composition)
    if stacked:
        panels.keep_outer_labels(axes)
    if composition.fit and not keys:
        requirement = f"{derived_data.MIN_FIT_POINTS} positive points in the upper half of the range of x"
        raise ConfigError(f"figure.fit: no curve has {requirement}, as required for a fit")
    if points is not None:
        keys.append(legends.make_points_handle(points.name, **MEASURED_POINT_STYLE | {"markerfacecolor": "0"}))
    legends.draw_title(figure, parts)
    (legends.draw_right_legend if is_single and not stacked else legends.draw_lower_legend)(figure, parts, keys)
    return figure


def _get_panel_contents(
    parts: list[ArrangedResults], variables: dict[str, Variable]
) -> list[tuple[str, str, list[tuple[ArrangedResults, Results]]]]:
    """Return the variable, the title and the results of each panel.

    Results without panel axes are shown in every panel.
    """
    panel_titles = [[*part.iterate_panels()] for part in parts]
    titles = dict.fromkeys(title for part_titles in panel_titles for title, _ in part_titles if title) or {"": None}
    contents = []
    for name in variables:  # variables without values are omitted, such as q for K = 1
        for title in titles:
            content = [
                (part, results)
                for part, part_titles in zip(parts, panel_titles, strict=True)
                for own_title, results in part_titles
                if own_title in ("", title) and name in curves.get_variables_with_values(results, variables)
            ]
            contents += [(name, title, content)] if content else []
    return contents


def _get_styled_combinations(
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


def _draw_variable(
    ax: Axes,
    part: ArrangedResults,
    selection: Results,
    name: str,
    style: CurveStyle,
    log: str,
    filled_mask: np.ndarray | None,
) -> None:
    """Draw a variable against an axis or against another variable."""
    curve = curves.make_curve(name, "", selection.simulation, selection.theory, selection.lines, x=part.x)
    if part.x_variable:
        x_curve = curves.make_curve(
            part.x_variable, "", selection.simulation, selection.theory, selection.lines, x=part.x
        )
        curve, error = _make_plane_curve(curve, x_curve)
        if error is not None and curve.mean is not None:
            ax.errorbar(curve.x, curve.mean, xerr=error, color=style.points["color"], linestyle="none", zorder=3)
    has_names = (
        not part.x_variable
        and selection.either.sizes.get(part.x, 1) > 1
        and not curves.has_several_numbers(selection.either, part.x)
    )
    if has_names:  # no line, because nothing lies between two names
        style = style._replace(line=style.line and {**style.line, "linestyle": "none"})
        curve = replace(curve, x=np.arange(curve.x.size), theory_x=np.arange(curve.x.size))
        ax.set_xticks(curve.x, _get_position_labels(selection, part.x))
    panels.draw_curve(
        ax,
        curve,
        style,
        log,
        filled_mask,
        discrete=has_names or (not part.x_variable and _is_discrete_axis(selection, part.x)),
    )
    if (
        not part.x_variable
        and (only_x := curves.get_axis_values(selection.either, part.x)).size == 1
        and len(ax.lines)
        and "x" not in log
    ):
        ax.set_xticks(only_x)


def _get_position_labels(results: Results, axis: str) -> list[str]:
    return curves.label_positions(results.either, axis, labels.make_mathtext_labeller(results.scenario))


def _make_plane_curve(curve: curves.Curve, x_curve: curves.Curve) -> tuple[curves.Curve, np.ndarray | None]:
    """Return a curve against the values of another curve, and the error bars along x."""
    no_values = np.full(curve.x.shape, np.nan)
    is_solved = curve.theory is not None and x_curve.theory is not None and curve.theory.shape == x_curve.theory.shape
    line = {"theory_x": x_curve.theory, "theory": curve.theory} if is_solved else {"theory_x": None, "theory": None}
    return replace(curve, x=no_values if x_curve.mean is None else x_curve.mean, band=None, **line), x_curve.error


def _get_filled_mask(parts: list[ArrangedResults], part: ArrangedResults, selection: Results) -> np.ndarray | None:
    """Return a mask of the points to fill: all runs converged, or no convergence was recorded."""
    if not any(legends.has_unconverged_runs(part.results) for part in parts):
        return None
    converged = panels.get_converged_mask(selection.simulation)
    return (
        converged
        if converged is not None or selection.simulation is None
        else np.ones(curves.get_axis_values(selection.either, part.x).size, bool)
    )


def _draw_power_law(
    ax: Axes, part: ArrangedResults, selection: Results, name: str, style: CurveStyle, label: str, title: str
) -> list[Any]:
    """Draw a power law fitted to simulation (or else to theory), and return its legend handles."""
    curve = curves.make_curve(name, "", None, selection.theory, selection.lines, x=part.x)
    theory_points = None if curve.theory is None or curve.theory_x is None else (curve.theory_x, curve.theory[None])
    x = curves.get_axis_values(selection.either, part.x)
    runs = selection.simulation[name] if selection.simulation is not None and name in selection.simulation else None
    if runs is not None:
        runs = (
            runs.mean([dim for dim in curves.DIMS_AVERAGED_IN_FIGURES if dim in runs.dims])
            .transpose("seed", ...)
            .values
        )
    fitted = (
        derived_data.fit_exponent(x, runs)
        if runs is not None
        else theory_points and derived_data.fit_exponent(*theory_points)
    )
    if not fitted:
        return []
    line_style = {"color": style.points["color"], "linewidth": 3.5, "alpha": 0.3, "solid_capstyle": "butt"}
    ax.plot(fitted.x, fitted.y, **line_style, zorder=1)
    y_symbol, x_symbol = (
        selection.scenario.variables[name].symbol.strip("$"),
        labels.get_symbol(selection.scenario, part.x).strip("$"),
    )
    full_label = ", ".join(item for item in (label, title) if item)
    expected = (
        derived_data.fit_exponent(*theory_points, min_x=fitted.x[0]) if runs is not None and theory_points else None
    )
    formula = rf"${y_symbol}\propto {x_symbol}^{{\,{fitted.text_with_error}}}$" + (
        f", theory ${expected.text_with_error}$" if expected else ""
    )
    return [legends.make_line_handle(f"{full_label}: {formula}" if full_label else formula, **line_style)]


def _choose_log_axes(
    parts: list[ArrangedResults], name: str, variables: dict[str, Variable], composition: Composition
) -> str:
    """Return the logarithmic axes of a panel: axes whose values span decades, or both axes for a fit."""
    if any(part.x_variable for part in parts):
        return ""
    if composition.fit:
        return "xy"
    entries = []
    for part in parts:
        part_variables = curves.get_variables_with_values(part.results, variables)
        if curves.has_several_numbers(part.results.either, part.x) and name in part_variables:
            entries.append((curves.choose_scales(part.results, part.x, part_variables, lossless=True), part))
    log_x = bool(entries) and all(scales.log_x for scales, _ in entries)
    log_y = any(name in scales.log_y for scales, _ in entries)
    log_y &= not any(curves.has_nonpositive_means(part.results, name) for _, part in entries)
    return "x" * log_x + "y" * log_y


def _label_panel_axes(
    ax: Axes, parts: list[ArrangedResults], variable: Variable, title: str, composition: Composition
) -> None:
    part = parts[0]
    all_variables = {**part.results.scenario.variables, **part.results.scenario.theory_only_variables}
    ax.set(
        ylabel=f"{variable.symbol} / {all_variables[composition.over].symbol}" if composition.over else variable.symbol,
        title=title,
    )
    x_keys = curves.get_axis_coordinates(part.results.either, part.x)
    ax.set_xlabel(
        all_variables[part.x_variable].symbol if part.x_variable else labels.axis_label(part.results.scenario, x_keys)
    )


def _is_discrete_axis(results: Results, x: str) -> bool:
    """Return True if x takes a few integer values and theory exists only there."""
    key = curves.get_axis_coordinates(results.either, x)[0]
    dense = results.lines if results.lines is not None else results.either
    is_integer = x in results.scenario.shape and results.scenario.describe(key).type is int
    return is_integer and x in dense.dims and dense.sizes[x] <= MAX_INTEGER_THEORY_MARKERS
