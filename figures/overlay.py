"""The overlay of simulation and theory, for every kind of scenario or for several results in one figure.

Each variable has a panel, against one axis or another variable (`figures.arrangement`). The first of the other axes is
distinguished by colour, the next by marker and dashes, and each combination of the rest has panels. An axis that
theory does not depend on (N) is distinguished by marker, over a single line. Theory with corrections of order 1/N adds
a band of one run for each N. A study on data, or a sweep over names alone, has rows instead (`figures.rows`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from figures import arrangement, exponents, labels, legends, measured_points, panels, rows, series
from figures.arrangement import Part
from figures.finishing import finished
from figures.grid_of_panels import panels_of
from figures.panels import Look
from figures.style import COLUMN, DASHES, PAGE, THEORY, styled
from statmech.errors import ConfigError
from statmech.results.results import Results
from statmech.scenarios.composition import Composition

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from statmech.scenarios.variables import Variable

MOST_COLUMNS, HEIGHT, STACKED = 3, 2.0, 1.7  # heights in inches
FEWER = {4: 2}  # by the number of panels
ALONE, WIDTH = 2.7, 5.6  # inches
HEAD = 0.9  # inches for title and legend
DISCRETE = 40  # theory has a marker at each of at most this number of integers
POINTS: dict[str, Any] = {"color": "0", "marker": "D", "linestyle": "none", "markersize": 4}  # points from a CSV file
EVERYTHING = Composition()


@styled
def draw(results: Results | Mapping[str, Results], wish: Composition = EVERYTHING) -> Figure:
    """Draw means over runs with their standard errors as points, and theory as lines.

    Parameters
    ----------
    results
        Simulation and theory, or a mapping from labels to results.
    wish
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
    if problems := arrangement.problems_of({label: item.scenario for label, item in results_by_label.items()}, wish):
        raise ConfigError("\n".join(problems))
    parts = arrangement.arranged(results_by_label, wish)
    figure = _panels(parts, wish) if parts else rows.draw(next(iter(results_by_label.values())), wish)
    return finished(figure, next(iter(results_by_label.values())), headed=len(results_by_label) == 1)


def _panels(parts: list[Part], wish: Composition) -> Figure:
    """Draw one panel for each variable and each combination of the axes that have panels."""
    variables = arrangement.common_variables(parts, wish)
    points = measured_points.read(wish.points) if wish.points else None
    logs = {name: _log(parts, name, variables, wish) for name in variables}
    contents = _contents(parts, variables)
    is_single = len(contents) == 1
    stacked = panels.stacks(len(contents))
    max_columns, width = (
        (1, COLUMN) if stacked else (FEWER.get(len(contents), MOST_COLUMNS), WIDTH if is_single else PAGE)
    )
    height = STACKED if stacked and not is_single else HEIGHT
    figure, axes = panels_of(len(contents), max_columns, height, width, ALONE - HEIGHT if is_single else HEAD)
    keys: list[Any] = []
    for ax, (name, title, content) in zip(axes, contents, strict=True):
        for part, results in content:
            for style, selection, label in _combinations(part, results, bool(variables[name].bound)):
                _draw(ax, part, selection, name, style, logs[name], _filled(parts, part, selection))
                keys += _fit(ax, part, selection, name, style, label, title) if wish.fit else []
        if points is not None:
            ax.errorbar(points.x, points.y, points.error, **POINTS, zorder=6)
        panels.logarithmic(ax, logs[name])
        _label(ax, parts, variables[name], title, wish)
    if stacked:
        panels.outer(axes)
    if wish.fit and not keys:
        requirement = f"{exponents.LEAST} positive points in the upper half of the range of x"
        raise ConfigError(f"figure.fit: no curve has {requirement}, which a fit requires")
    if points is not None:
        keys.append(legends.points_with_bars(points.name, **POINTS | {"markerfacecolor": "0"}))
    legends.title(figure, parts)
    (legends.beside if is_single and not stacked else legends.below)(figure, parts, keys)
    return figure


def _contents(parts: list[Part], variables: dict[str, Variable]) -> list[tuple[str, str, list[tuple[Part, Results]]]]:
    """Return the variable, the title and the results of each panel.

    Results without panel axes are shown in every panel.
    """
    panel_titles = [[*part.titles()] for part in parts]
    titles = dict.fromkeys(title for part_titles in panel_titles for title, _ in part_titles if title) or {"": None}
    contents = []
    for name in variables:  # q has no value for K = 1
        for title in titles:
            content = [
                (part, results)
                for part, part_titles in zip(parts, panel_titles, strict=True)
                for own_title, results in part_titles
                if own_title in ("", title) and name in series.with_values(results, variables)
            ]
            contents += [(name, title, content)] if content else []
    return contents


def _combinations(part: Part, results: Results, bound: bool) -> Iterator[tuple[Look, Results, str]]:
    """Yield each combination of colours and markers with its style and its label.

    Bounds of theory are dashed. Axes that theory does not depend on share one line.
    """
    layout, hues = part.layout, part.hues
    label = labels.mathtext_label(results.scenario)
    colours, markers = ([*series.positions(results.either, axes, label)] for axes in (layout.colours, layout.markers))
    has_single_line = layout.colours and series.ignored_by_theory(results, layout.colours)
    for (colour_index, (colour_label, colour_position)), (
        marker_index,
        (marker_label, marker_position),
    ) in itertools.product(enumerate(colours), enumerate(markers)):
        dashes = DASHES[marker_index % len(DASHES)] if layout.markers else part.dashes
        line: dict[str, Any] | None = {"color": hues[colour_index], "linestyle": dashes}
        if series.ignored_by_theory(results, layout.markers):
            line = {"color": hues[colour_index], "linestyle": part.dashes} if marker_index == 0 else None
        if has_single_line:
            line = {"color": hues[0] if part.label else THEORY} if colour_index == marker_index == 0 else None
        line = line | {"linestyle": "--"} if line and bound else line
        points = {"color": hues[colour_index], "marker": part.marker(marker_index if layout.markers else colour_index)}
        full_label = ", ".join(item for item in (part.label, colour_label, marker_label) if item)
        band = {"colour": hues[colour_index], "dashes": DASHES[marker_index % len(DASHES)]}
        yield Look(points, line, band), series.sliced(results, {**colour_position, **marker_position}), full_label


def _draw(ax: Axes, part: Part, one: Results, name: str, look: Look, log: str, filled: np.ndarray | None) -> None:
    """Draw a variable against an axis or against another variable."""
    curve = series.curve(name, "", one.simulation, one.theory, one.lines, x=part.x)
    if part.plane:
        x_curve = series.curve(part.plane, "", one.simulation, one.theory, one.lines, x=part.x)
        curve, error = _in_plane(curve, x_curve)
        if error is not None and curve.mean is not None:
            ax.errorbar(curve.x, curve.mean, xerr=error, color=look.points["color"], linestyle="none", zorder=3)
    has_names = not part.plane and one.either.sizes.get(part.x, 1) > 1 and not series.is_numeric(one.either, part.x)
    if has_names:  # nothing lies between two names
        look = look._replace(line=look.line and {**look.line, "linestyle": "none"})
        curve = replace(curve, x=np.arange(curve.x.size), theory_x=np.arange(curve.x.size))
        ax.set_xticks(curve.x, _names(one, part.x))
    panels.draw(ax, curve, look, log, filled, discrete=has_names or (not part.plane and _is_discrete(one, part.x)))
    if not part.plane and (only_x := series.values(one.either, part.x)).size == 1 and len(ax.lines) and "x" not in log:
        ax.set_xticks(only_x)


def _names(results: Results, axis: str) -> list[str]:
    return series.labels(results.either, axis, labels.mathtext_label(results.scenario))


def _in_plane(curve: series.Curve, across: series.Curve) -> tuple[series.Curve, np.ndarray | None]:
    """Return a curve against the values of another curve, and the error bars along x."""
    no_values = np.full(curve.x.shape, np.nan)
    is_solved = curve.theory is not None and across.theory is not None and curve.theory.shape == across.theory.shape
    line = {"theory_x": across.theory, "theory": curve.theory} if is_solved else {"theory_x": None, "theory": None}
    return replace(curve, x=no_values if across.mean is None else across.mean, band=None, **line), across.error


def _filled(parts: list[Part], part: Part, one: Results) -> np.ndarray | None:
    """Return a mask of filled points, where all runs converged: all points in results without such a flag."""
    if not any(legends.has_flag(part.results) for part in parts):
        return None
    converged = panels.converged(one.simulation)
    return (
        converged
        if converged is not None or one.simulation is None
        else np.ones(series.values(one.either, part.x).size, bool)
    )


def _fit(ax: Axes, part: Part, one: Results, name: str, look: Look, label: str, title: str) -> list[Any]:
    """Draw a power law fitted to the points or, without a simulation, to theory, and return its legend handles."""
    curve = series.curve(name, "", None, one.theory, one.lines, x=part.x)
    theory_points = None if curve.theory is None or curve.theory_x is None else (curve.theory_x, curve.theory[None])
    x = series.values(one.either, part.x)
    runs = one.simulation[name] if one.simulation is not None and name in one.simulation else None
    if runs is not None:
        runs = runs.mean([dim for dim in series.AVERAGED if dim in runs.dims]).transpose("seed", ...).values
    fitted = exponents.exponent(x, runs) if runs is not None else theory_points and exponents.exponent(*theory_points)
    if not fitted:
        return []
    line_style = {"color": look.points["color"], "linewidth": 3.5, "alpha": 0.3, "solid_capstyle": "butt"}
    ax.plot(fitted.x, fitted.y, **line_style, zorder=1)
    y_symbol, x_symbol = one.scenario.variables[name].symbol.strip("$"), labels.symbol(one.scenario, part.x).strip("$")
    full_label = ", ".join(item for item in (label, title) if item)
    expected = exponents.exponent(*theory_points, start=fitted.x[0]) if runs is not None and theory_points else None
    formula = rf"${y_symbol}\propto {x_symbol}^{{\,{fitted.text}}}$" + (
        f", theory ${expected.text}$" if expected else ""
    )
    return [legends.entry(f"{full_label}: {formula}" if full_label else formula, **line_style)]


def _log(parts: list[Part], name: str, variables: dict[str, Variable], wish: Composition) -> str:
    """Return the logarithmic axes of a panel: axes whose values span decades, or both axes for a fit."""
    if any(part.plane for part in parts):
        return ""
    if wish.fit:
        return "xy"
    entries = []
    for part in parts:
        part_variables = series.with_values(part.results, variables)
        if series.is_numeric(part.results.either, part.x) and name in part_variables:
            entries.append((series.scales(part.results, part.x, part_variables, lossless=True), part))
    log_x = bool(entries) and all(scales.log_x for scales, _ in entries)
    log_y = any(name in scales.log_y for scales, _ in entries)
    log_y &= not any(series.has_zero_means(part.results, name) for _, part in entries)
    return "x" * log_x + "y" * log_y


def _label(ax: Axes, parts: list[Part], variable: Variable, title: str, wish: Composition) -> None:
    part = parts[0]
    all_variables = {**part.results.scenario.variables, **part.results.scenario.theory_only}
    ax.set(
        ylabel=f"{variable.symbol} / {all_variables[wish.over].symbol}" if wish.over else variable.symbol, title=title
    )
    x_keys = series.along(part.results.either, part.x)
    ax.set_xlabel(all_variables[part.plane].symbol if part.plane else labels.axis_label(part.results.scenario, x_keys))


def _is_discrete(results: Results, x: str) -> bool:
    """Return True if x is a few integers, so that theory has no values between them."""
    key = series.along(results.either, x)[0]
    dense = results.lines if results.lines is not None else results.either
    is_integer = x in results.scenario.shape and results.scenario.describe(key).type is int
    return is_integer and x in dense.dims and dense.sizes[x] <= DISCRETE
