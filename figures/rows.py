"""Rows for results without a numeric axis: a column of points per variable, a row per parameter combination."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from figures import arrangement, labels, legends, series
from figures.arrangement import Part
from figures.grid_of_panels import panels_of
from figures.series import Layout
from figures.style import BAND, COLOURS, PAGE, THEORY
from statmech.results.corrections import predicted, unresolved
from statmech.scenarios.composition import Composition

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from statmech.results.results import Results

MOST_ROWS = 40
MOST_COLUMNS = 4
ROW, HEAD = 0.22, 0.9  # inches


def draw(results: Results, wish: Composition) -> Figure:
    """Draw means over runs with their standard errors as points, and theory as dashes."""
    axes = tuple(series.axes(results.either))
    all_combinations = series.positions(results.either, axes, labels.mathtext_label(results.scenario))
    combinations = list(itertools.islice(all_combinations, MOST_ROWS))
    variables = arrangement.variables(results, wish)
    figure, panels = panels_of(len(variables), MOST_COLUMNS, HEAD + ROW * len(combinations), PAGE)
    for ax, (name, variable) in zip(panels, variables.items(), strict=True):
        for row, (_, position) in enumerate(combinations):
            _point(ax, series.sliced(results, position), name, row)
        ax.set(xlabel=variable.symbol, ylim=(len(combinations) - 0.5, -0.5))
        ax.set_yticks(range(len(combinations)), [label for label, _ in combinations])
        ax.tick_params(axis="y", length=0, labelleft=(spec := ax.get_subplotspec()) is not None and spec.is_first_col())
        ax.grid(axis="y", color="0.9", linewidth=0.6)
    count = int(np.prod([results.either.sizes[axis] for axis in axes]))
    fewer = f"the first {MOST_ROWS} of {count} parameter combinations" if count > MOST_ROWS else ""
    part = Part(results, Layout("", (), ()), stated=(fewer,) if fewer else ())
    legends.title(figure, [part])
    legends.below(figure, [part])
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
