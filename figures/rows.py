"""Figures of results without a numeric axis: a row per parameter combination, a column per variable."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from figures import arrangement, labels, legends, series
from figures.arrangement import ArrangedResults
from figures.grid_of_panels import make_panel_grid
from figures.series import Layout
from figures.style import BAND_OPACITY, CURVE_COLOURS, PAGE_WIDTH, THEORY_COLOUR
from statmech.results.corrections import find_unresolved_std_mask, predict_mean_and_std
from statmech.scenarios.composition import Composition

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from statmech.results.results import Results

MAX_COMBINATION_ROWS = 40
MAX_VARIABLE_COLUMNS = 4
ROW_HEIGHT, ROWS_HEAD_HEIGHT = 0.22, 0.9  # inches


def draw_combination_rows(results: Results, composition: Composition) -> Figure:
    """Draw means over runs with their standard errors as points, and theory as dashes."""
    axes = tuple(series.get_chart_axes(results.either))
    all_combinations = series.iterate_positions(results.either, axes, labels.make_mathtext_labeller(results.scenario))
    combinations = list(itertools.islice(all_combinations, MAX_COMBINATION_ROWS))
    variables = arrangement.select_variables(results, composition)
    figure, panels = make_panel_grid(
        len(variables), MAX_VARIABLE_COLUMNS, ROWS_HEAD_HEIGHT + ROW_HEIGHT * len(combinations), PAGE_WIDTH
    )
    for ax, (name, variable) in zip(panels, variables.items(), strict=True):
        for row, (_, position) in enumerate(combinations):
            _draw_value(ax, series.select_position(results, position), name, row)
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
        mean, error = series.compute_mean_and_error(results.simulation[name])
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
