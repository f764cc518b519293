"""The legend below an overlay: what colours, markers, lines, bars and hollow points mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from matplotlib.collections import LineCollection
from matplotlib.container import ErrorbarContainer
from matplotlib.lines import Line2D

from figures import labels, series
from figures.series import Layout
from figures.style import COLOURS, DASHES, MARKERS, THEORY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from statmech.results.results import Results

Entry = tuple[Any, str]
BOUNDS, HOLLOW = "dashed: bounds of theory", "hollow points: not all runs converged"
BARS = "simulation, mean and standard error"
MOST_COLUMNS = 5


def below(figure: Figure, results: Results, layout: Layout) -> None:
    """Draw the legend of an overlay with this layout."""
    entries = [*_colours(results, layout), *_markers(results, layout), *_parts(results, layout)]
    notes = list(_notes(results))
    look: dict[str, Any] = {"title": "; ".join(notes), "title_fontsize": 7.5}
    longest = max(len(text) for _, text in entries)
    columns = max(1, min(MOST_COLUMNS, 110 // (longest + 6)))
    figure.legend(*zip(*entries, strict=True), loc="outside lower center", ncols=columns, **look)


def points_with_bars(marker: str = "o", colour: str = THEORY) -> ErrorbarContainer:
    """A legend handle of points with error bars."""
    look: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": "none", "markerfacecolor": "white"}
    bars = LineCollection([], colors=colour, linewidths=1.2)
    return ErrorbarContainer((Line2D([], [], **look), (), (bars,)), has_yerr=True)


def _colours(results: Results, layout: Layout) -> Iterator[Entry]:
    """One entry per colour: its line and, if markers do not mean another axis, its marker."""
    hues = series.colours_of(results.either, layout.colours)
    if not layout.colours:
        return
    line: Any = "none" if series.ignored_by_theory(results, layout.colours) else "-"
    for index, (text, _) in enumerate(_positions(results, layout.colours)):
        marker = None if layout.markers else MARKERS[index % len(MARKERS)]
        look: dict[str, Any] = (
            {"marker": marker, "markerfacecolor": "white"} if marker and results.simulation is not None else {}
        )
        shown: Any = line if results.theory is not None else "none"
        yield Line2D([], [], color=hues[index], linestyle="-" if not look else shown, **look), text


def _markers(results: Results, layout: Layout) -> Iterator[Entry]:
    """One entry per marker and, if the theory depends on its axis, its dashes."""
    ignored = series.ignored_by_theory(results, layout.markers)
    for index, (text, _) in enumerate(_positions(results, layout.markers) if layout.markers else ()):
        dashes: Any = "none" if ignored or results.theory is None else DASHES[index % len(DASHES)]
        marker = MARKERS[index % len(MARKERS)] if results.simulation is not None else "none"
        yield Line2D([], [], color=THEORY, marker=marker, linestyle=dashes, markerfacecolor="white"), text


def _parts(results: Results, layout: Layout) -> Iterator[Entry]:
    """What points and lines are: in the colour of the figure if it has but one, with a dash for theory along names."""
    colour = THEORY if layout.colours else COLOURS[0]
    if results.simulation is not None:
        yield points_with_bars(colour=colour), BARS
    if results.theory is not None:
        dash: dict[str, Any] = {} if layout.x else {"marker": "|", "linestyle": "none", "markersize": 9}
        limit = r", $N=\infty$" if "N" in results.scenario.theory_ignores else ""
        yield Line2D([], [], color=colour if layout.x else THEORY, **dash), f"theory{limit}"


def _notes(results: Results) -> Iterator[str]:
    if results.theory is not None and any(it.bound for it in results.scenario.variables.values()):
        yield BOUNDS
    if results.simulation is not None and "converged" in results.simulation:
        yield HOLLOW


def _positions(results: Results, axes: tuple[str, ...]) -> Iterator[tuple[str, dict[str, int]]]:
    return series.positions(results.either, axes, labels.mathtext_label(results.scenario))
