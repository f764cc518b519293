"""The overlay of simulation and theory, for every kind of scenario: each variable against one axis.

The abscissa is the one that its kind is usually drawn against (t, alpha, ...) if it has several values, otherwise the
longest axis of numbers. Of the other axes the first is distinguished by colour, the next by marker and dashes, and each
combination of the rest has panels; an axis that the theory does not depend on (N) is a marker, over one line. Theory
with corrections of order 1/N adds a band for each N, in which it expects one run. A study on data, or a sweep over
names alone, has one row per parameter combination instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from figures import labels, legends, panels, series
from figures.panels import Look
from figures.series import Layout
from figures.style import BAND, COLOURS, DASHES, MARKERS, PAGE, THEORY, styled
from statmech.results.corrections import predicted, unresolved

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from statmech.results.results import Results

MOST_ROWS = 40  # parameter combinations drawn as rows
COLUMNS = {1: 1, 2: 2, 4: 2}  # of so many panels, otherwise:
MOST_COLUMNS, HEIGHT = 3, 2.0  # inches per panel
WIDTHS = {1: 4.5}  # inches, of a figure with so many columns, otherwise a page
ROW, HEAD = 0.22, 0.9  # inches per row, and for axis and legend
DISCRETE = 40  # whole numbers along x, up to which theory has a marker at each


@styled
def draw(results: Results) -> Figure:
    """Draw means over runs with their standard errors as points, and theory as lines.

    >>> from statmech import Scenario, run
    >>> swept = run(Scenario(rule=["hebb", "adatron"], eta=[0.5, 1, 2], N=20, t=5, seeds=2))
    >>> draw(swept).axes[3].get_xlabel()
    '$\\\\eta$'
    """
    x = abscissa(results)
    if x is None:
        return _rows(results)
    return _panels(series.with_axis(results, x), x)


def abscissa(results: Results) -> str | None:
    """Return the axis, or the single value, that results are drawn against; None if they have rows instead."""
    data, usual = results.either, labels.abscissa(results.scenario)
    numeric = [axis for axis in series.axes(data) if series.is_numeric(data, axis)]
    if results.scenario.on_data or (usual is None and not numeric):
        return None
    own = next((axis for axis in series.axes(data) if usual in series.along(data, axis)), usual)
    return own if own in numeric or not numeric else series.longest(numeric, data)


def _panels(results: Results, x: str) -> Figure:
    """Draw a panel per variable with values and combination of the axes in panels."""
    layout = series.layout_along(results, x)
    fixed = [text for axis in layout.rest for text in _labels(results, axis)]
    results = series.with_lines(results, x)
    results = series.sliced(results, dict.fromkeys(layout.rest, 0))
    variables = series.with_values(results)
    scales = series.scales(results, x, variables, lossless=True)
    label = labels.mathtext_label(results.scenario)
    positions = series.positions(results.either, layout.panels, label)
    parts = [(title, series.sliced(results, position)) for title, position in positions]
    known = [series.with_values(part) for _, part in parts]  # q has none where K = 1
    shown = [(name, *part) for name in variables for part, own in zip(parts, known, strict=True) if name in own]
    figure, axes = _grid(len(shown))
    discrete = _is_discrete(results, x)
    for ax, (name, title, part) in zip(axes, shown, strict=True):
        variable, log = variables[name], "x" * scales.log_x + "y" * (name in scales.log_y)
        for look, one in _combinations(part, layout, bool(variable.bound)):
            curve = series.curve(name, "", one.simulation, one.theory, one.lines, x=x)
            panels.draw(ax, curve, look, log, panels.converged(one.simulation), discrete=discrete)
        if (only := series.values(results.either, x)).size == 1:
            ax.set_xticks(only)
        panels.logarithmic(ax, log)
        ax.set(ylabel=variable.symbol, title=title)
        ax.set_xlabel(labels.axis_label(results.scenario, series.along(results.either, x)))
    legends.below(figure, results, layout)
    _title(figure, fixed, results)
    return figure


def _combinations(results: Results, layout: Layout, bound: bool) -> Iterator[tuple[Look, Results]]:
    """Yield each combination of the axes in colour and in markers, with its look; bounds of theory are dashed."""
    colours, markers = (list(series.positions(results.either, axes)) for axes in (layout.colours, layout.markers))
    hues = series.colours_of(results.either, layout.colours)
    for (one, (_, colour)), (other, (_, marker)) in itertools.product(enumerate(colours), enumerate(markers)):
        line: dict[str, Any] | None = {"color": hues[one], "linestyle": DASHES[other % len(DASHES)]}
        if series.ignored_by_theory(results, layout.markers):
            line = {"color": hues[one]} if other == 0 else None
        if layout.colours and series.ignored_by_theory(results, layout.colours):
            line = {"color": THEORY} if one == other == 0 else None
        line = line | {"linestyle": "--"} if line and bound else line
        mark = MARKERS[(other if layout.markers else one) % len(MARKERS)]
        band = {"colour": hues[one], "dashes": DASHES[other % len(DASHES)]}
        yield Look({"color": hues[one], "marker": mark}, line, band), series.sliced(results, {**colour, **marker})


def _is_discrete(results: Results, x: str) -> bool:
    """True if x holds few whole numbers, so that theory has no values between them."""
    key = series.along(results.either, x)[0]
    dense = results.lines if results.lines is not None else results.either
    whole = x in results.scenario.shape and results.scenario.describe(key).type is int
    return whole and x in dense.dims and dense.sizes[x] <= DISCRETE


def _grid(panels: int) -> tuple[Figure, list[Axes]]:
    """Make a figure with so many panels, the last row filled from the left."""
    columns = COLUMNS.get(panels, MOST_COLUMNS)
    rows = -(-panels // columns)
    figure = Figure(figsize=(WIDTHS.get(columns, PAGE), HEAD + HEIGHT * rows))
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for ax in axes[panels:]:
        ax.set_axis_off()
    return figure, axes[:panels]


def _labels(results: Results, axis: str) -> list[str]:
    return series.labels(results.either, axis, labels.mathtext_label(results.scenario))


def _title(figure: Figure, fixed: list[str], results: Results) -> None:
    """Above all panels: the axes of a single value, the size, and the number of runs."""
    if words := [word for word in (*fixed, labels.size_of(results.either)) if word]:
        figure.suptitle(", ".join(words), fontsize=8)


def _rows(results: Results) -> Figure:
    """Draw a column of points per variable, a row per parameter combination."""
    axes = tuple(series.axes(results.either))
    every = series.positions(results.either, axes, labels.mathtext_label(results.scenario))
    combinations = list(itertools.islice(every, MOST_ROWS))
    variables = series.with_values(results)
    columns = min(len(variables), 4)
    lines = -(-len(variables) // columns)
    figure = Figure(figsize=(PAGE, lines * (HEAD + ROW * len(combinations))))
    panels = list(figure.subplots(lines, columns, sharey=True, squeeze=False).flat)
    for ax, (name, variable) in zip(panels, variables.items(), strict=False):
        for row, (_, position) in enumerate(combinations):
            _point(ax, series.sliced(results, position), name, row)
        ax.set(xlabel=variable.symbol)
        ax.grid(axis="y", color="0.9", linewidth=0.6)
    for ax in panels:
        ax.set_yticks(range(len(combinations)), [label for label, _ in combinations])
        ax.tick_params(axis="y", length=0)
    for ax in panels[len(variables) :]:
        ax.set_axis_off()
    panels[0].set_ylim(len(combinations) - 0.5, -0.5)
    count = int(np.prod([results.either.sizes[axis] for axis in axes]))
    _title(figure, [f"the first {MOST_ROWS} of {count} parameter combinations"] if count > MOST_ROWS else [], results)
    legends.below(figure, results, Layout("", (), ()))
    return figure


def _point(ax: Axes, results: Results, name: str, row: int) -> None:
    """Draw one value: the mean as a point with its standard error, theory as a dash."""
    if results.simulation is not None and name in results.simulation:
        mean, error = series.mean_and_error(results.simulation[name])
        ax.errorbar(
            [mean], [row], xerr=[error], linestyle="none", color=COLOURS[0], marker="o", markerfacecolor="white"
        )
    if results.theory is not None and name in results.theory:
        mean, std = predicted(results.theory, name)
        if std is not None and not unresolved(results.theory, name).any():
            ends = [float((mean + side * std).mean()) for side in (-1, 1)]
            ax.plot(ends, [row, row], color=THEORY, alpha=BAND, linewidth=7, solid_capstyle="butt", zorder=0)
        ax.plot([results.theory[name].mean()], [row], "|", color=THEORY, markersize=9)
