"""The overlay of simulation and theory, for every kind of scenario: each variable against one axis.

The abscissa is the one that its kind is usually drawn against (t, alpha, ...) if it has several values, otherwise the
longest axis of numbers; the other axes are combined, one colour per parameter combination. A study on data, or a sweep
over names alone, has one row per combination instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from figures import labels, series
from figures.series import Layout
from figures.style import COLOURS, PAGE, log_ticks, look_of, points_or_band, styled
from statmech.scenarios.variables import Variable

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

    from statmech.results.results import Results

MOST, MOST_ROWS = len(COLOURS), 40  # parameter combinations drawn in colours, and as rows
COLUMNS = {1: 1, 2: 2, 4: 2}  # of so many panels, otherwise:
MOST_COLUMNS, HEIGHT = 3, 2.1  # inches per panel
ROW, HEAD = 0.22, 0.8  # inches per row, and for the axis below rows
CONVERGED = "converged"  # the flag of runs that reached their goal, in kinds of scenarios that have one
BOUNDS, HOLLOW = "dashed: bounds of theory", "hollow points: not all runs converged"


@styled
def draw(results: Results) -> Figure:
    """Points: means over runs with their standard errors; lines: theory. The first parameter combinations of a sweep.

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
    """The axis, or the single value, that results are drawn against; None if they have rows instead."""
    data, usual = results.either, labels.abscissa(results.scenario)
    numeric = [axis for axis in series.axes(data) if series.is_numeric(data, axis)]
    if results.scenario.on_data or (usual is None and not numeric):
        return None
    own = next((axis for axis in series.axes(data) if usual in series.along(data, axis)), usual)
    return own if own in numeric or not numeric else series.longest(numeric, data)


@dataclass(frozen=True)
class Combination:
    """One parameter combination of a sweep: its label, its part of simulation and theory, its place among all."""

    label: str
    simulation: xr.Dataset | None
    theory: xr.Dataset | None
    index: int

    def draw(self, ax: Axes, name: str, x: str, bound: bool) -> None:
        """One variable along x: theory as a line, dashed if it is a bound, and the simulation as points."""
        curve = series.curve(name, self.label, self.simulation, self.theory, x)
        look = {"color": look_of(self.index)["color"], **({"linestyle": "--", "marker": "_"} if bound else {})}
        if curve.theory is not None:
            ax.plot(curve.x, curve.theory, label=curve.label if curve.mean is None else None, **look)
        if curve.mean is not None:
            points_or_band(ax, curve.x, curve.mean, curve.error, self.index, self.converged, curve.label)

    @property
    def converged(self) -> np.ndarray | None:
        """True, along x, where all runs converged; None if there is no such flag."""
        if self.simulation is None or CONVERGED not in self.simulation:
            return None
        flags = self.simulation[CONVERGED]
        return np.atleast_1d(flags.all([dim for dim in ("seed", *series.AVERAGED) if dim in flags.dims]).values)


def _combinations(results: Results, axes: tuple[str, ...], most: int) -> Iterator[Combination]:
    """The first parameter combinations on these axes."""
    every = series.positions(results.either, axes, labels.mathtext_label(results.scenario))
    for index, (label, position) in enumerate(itertools.islice(every, most)):
        part = series.sliced(results, position)
        yield Combination(label, part.simulation, part.theory, index)


def _panels(results: Results, x: str) -> Figure:
    """A panel per variable, a colour per parameter combination."""
    layout, fixed = _layout(results, x), []
    for axis in layout.rest:
        fixed += series.labels(results.either, axis, labels.mathtext_label(results.scenario))
    results = series.sliced(results, dict.fromkeys(layout.rest, 0))
    variables = series.with_values(results)
    scales = series.scales(results, x, variables, lossless=True)
    figure, panels = _grid(len(variables))
    for combination in _combinations(results, layout.colours, MOST):
        for ax, (name, variable) in zip(panels, variables.items(), strict=True):
            combination.draw(ax, name, x, bool(variable.bound))
    for ax, (name, variable) in zip(panels, variables.items(), strict=True):
        _scale(ax, series.values(results.either, x), scales.log_x, name in scales.log_y)
        ax.set(title=variable.symbol)
    for ax in panels[-_columns(len(panels)) :]:
        ax.set_xlabel(labels.axis_label(results.scenario, series.along(results.either, x)))
    _legend(figure, panels[0], variables, results)
    _title(figure, fixed, results, layout.colours, MOST)
    return figure


def _layout(results: Results, x: str) -> Layout:
    """All axes but x in colour, those of one value left out."""
    others = [axis for axis in series.axes(results.either) if axis != x]
    colours = tuple(axis for axis in others if results.either.sizes[axis] > 1)
    return Layout(x, colours, tuple(axis for axis in others if axis not in colours))


def _grid(panels: int) -> tuple[Figure, list[Axes]]:
    """A figure one page wide with so many panels, the last row filled from the left."""
    columns = _columns(panels)
    rows = -(-panels // columns)
    figure = Figure(figsize=(PAGE, HEAD + HEIGHT * rows))
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for ax in axes[panels:]:
        ax.set_axis_off()
    return figure, axes[:panels]


def _columns(panels: int) -> int:
    return COLUMNS.get(panels, MOST_COLUMNS)


def _scale(ax: Axes, x: np.ndarray, log_x: bool, log_y: bool) -> None:
    if x.size == 1:
        ax.set_xticks(x)
    if log_x:
        ax.set_xscale("log")
        log_ticks(ax.xaxis)
    if log_y:
        ax.set_yscale("log")
        log_ticks(ax.yaxis)


def _legend(figure: Figure, ax: Axes, variables: dict[str, Variable], results: Results) -> None:
    """The parameter combinations, and what dashed lines and hollow points mean."""
    bounds = results.theory is not None and any(variable.bound for variable in variables.values())
    hollow = results.simulation is not None and CONVERGED in results.simulation
    notes = [note for note, needed in ((BOUNDS, bounds), (HOLLOW, hollow)) if needed]
    handles, texts = ax.get_legend_handles_labels()
    if texts or notes:
        look: dict[str, Any] = {"title": "; ".join(notes), "title_fontsize": 7.5}
        figure.legend(handles, texts, loc="outside lower center", ncols=4 if len(texts) > 3 else 3, **look)


def _title(figure: Figure, fixed: list[str], results: Results, axes: tuple[str, ...], most: int) -> None:
    """Above all panels: the axes of a single value, and how many parameter combinations are left out."""
    count = int(np.prod([results.either.sizes[axis] for axis in axes]))
    left_out = [f"the first {most} of {count} parameter combinations"] if count > most else []
    if fixed or left_out:
        figure.suptitle(", ".join([*fixed, *left_out]), fontsize=8)


def _rows(results: Results) -> Figure:
    """A column of points per variable, a row per parameter combination."""
    axes = tuple(series.axes(results.either))
    combinations = list(_combinations(results, axes, MOST_ROWS))
    variables = series.with_values(results)
    columns = min(len(variables), 4)
    lines = -(-len(variables) // columns)
    figure = Figure(figsize=(PAGE, lines * (HEAD + ROW * len(combinations))))
    panels = list(figure.subplots(lines, columns, sharey=True, squeeze=False).flat)
    for ax, (name, variable) in zip(panels, variables.items(), strict=False):
        for combination in combinations:
            _point(ax, combination, name)
        ax.set(xlabel=variable.symbol)
        ax.grid(axis="y", color="0.9", linewidth=0.6)
    for ax in panels:
        ax.set_yticks(range(len(combinations)), [combination.label for combination in combinations])
        ax.tick_params(axis="y", length=0)
    for ax in panels[len(variables) :]:
        ax.set_axis_off()
    panels[0].set_ylim(len(combinations) - 0.5, -0.5)
    _title(figure, [], results, axes, MOST_ROWS)
    return figure


def _point(ax: Axes, combination: Combination, name: str) -> None:
    """One value: the mean as a point with its standard error, theory as a dash."""
    if combination.simulation is not None and name in combination.simulation:
        mean, error = series.mean_and_error(combination.simulation[name])
        ax.errorbar([mean], [combination.index], xerr=[error], linestyle="none", **look_of(0))
    if combination.theory is not None and name in combination.theory:
        ax.plot([combination.theory[name].mean()], [combination.index], "|", color="0.3", markersize=9)
