"""The legend below an overlay: what colours, markers, lines, bars and hollow points mean."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from matplotlib.collections import LineCollection
from matplotlib.container import ErrorbarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from figures import labels, series
from figures.series import Layout
from figures.style import BAND, COLOURS, DASHES, EDGE, MARKERS, THEORY, look_of
from statmech.scenarios.variables import BIAS, STD

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from statmech.results.results import Results

Entry = tuple[Any, str]
VOTE = "eps_g_majority_vote"
BOUNDS, HOLLOW = "dashed: bounds of theory", "hollow points: not all runs converged"
BARS = "simulation, mean and standard error"
RUN = r"theory + bias $\pm$ std of a run"
BANDS = r"band: theory + bias $\pm$ one standard deviation of a run, to order $1/N$"
WITHOUT_BIAS = "of the vote without bias, which has no equation"
UNRESOLVED = "none where terms beyond order 1/N are not small"
MOST_COLUMNS, MOST_LETTERS = 5, 125  # in a row


def below(figure: Figure, results: Results, layout: Layout) -> None:
    """Draw the legend of an overlay with this layout."""
    entries = [*_colours(results, layout), *_markers(results, layout), *_parts(results, layout)]
    notes = list(_notes(results))
    look: dict[str, Any] = {"title": textwrap.fill("; ".join(notes), MOST_LETTERS), "title_fontsize": 7.5}
    longest = max(len(text) for _, text in entries)
    columns = max(1, min(MOST_COLUMNS, 110 // (longest + 6)))
    figure.legend(*zip(*entries, strict=True), loc="outside lower center", ncols=columns, **look)


def points_with_bars(label: str = "", **look: Any) -> ErrorbarContainer:
    """Return a legend handle of points with error bars."""
    look = {"color": THEORY, "marker": "o", "linestyle": "none", "markerfacecolor": "white", **look}
    bars = LineCollection([], colors=look["color"], linewidths=1.2)
    return ErrorbarContainer((Line2D([], [], **look), (), (bars,)), has_yerr=True, label=label)


def entry(label: str, **look: Any) -> Line2D:
    """Return a legend handle of a line or a marker, in grey unless it has a colour."""
    return Line2D([], [], **{"color": THEORY, "label": label, **look})


def line_with_points(index: int, text: str, **look: Any) -> Line2D:
    """Return a legend handle of the index-th curve: its line, and the marker of its points."""
    return Line2D([], [], **{**look_of(index), "markerfacecolor": "white", "label": text, **look})


def _colours(results: Results, layout: Layout) -> Iterator[Entry]:
    """Yield one entry per colour: its line and, if markers do not mean another axis, its marker."""
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
    """Yield one entry per marker and, if the theory depends on its axis, its dashes."""
    ignored = series.ignored_by_theory(results, layout.markers)
    for index, (text, _) in enumerate(_positions(results, layout.markers) if layout.markers else ()):
        lined = results.theory is not None and (not ignored or series.has_bands(results.scenario))
        dashes: Any = DASHES[index % len(DASHES)] if lined else "none"
        marker = MARKERS[index % len(MARKERS)] if results.simulation is not None else "none"
        width: dict[str, Any] = {"linewidth": EDGE} if ignored else {}  # then it is the edge of a band
        yield Line2D([], [], color=THEORY, marker=marker, linestyle=dashes, markerfacecolor="white", **width), text


def _parts(results: Results, layout: Layout) -> Iterator[Entry]:
    """Yield entries of points and lines, in the figure's colour if it has only one; theory along names is a dash."""
    colour = THEORY if layout.colours else COLOURS[0]
    if results.simulation is not None:
        yield points_with_bars(color=colour), BARS
    if results.theory is not None:
        dash: dict[str, Any] = {} if layout.x else {"marker": "|", "linestyle": "none", "markersize": 9}
        limit = r", $N=\infty$" if "N" in series.ignored_in_the_limit(results.scenario) else ""
        yield Line2D([], [], color=colour if layout.x else THEORY, **dash), f"theory{limit}"
        if series.has_bands(results.scenario):
            yield Patch(facecolor=colour if layout.x else THEORY, alpha=1.5 * BAND, linewidth=0), RUN


def _notes(results: Results) -> Iterator[str]:
    if results.theory is not None and any(it.bound for it in results.scenario.variables.values()):
        yield BOUNDS
    if results.simulation is not None and "converged" in results.simulation:
        yield HOLLOW
    if results.theory is not None and series.has_bands(results.scenario):
        yield band_of(results)


def band_of(results: Results) -> str:
    """Name the bands, the one that has no bias, and the places without one."""
    known = results.theory
    vote = known is not None and VOTE + STD in known and VOTE + BIAS not in known
    words = {BANDS: True, WITHOUT_BIAS: vote, UNRESOLVED: series.lacks_bands(results)}
    return "; ".join(sentence for sentence, holds in words.items() if holds)


def _positions(results: Results, axes: tuple[str, ...]) -> Iterator[tuple[str, dict[str, int]]]:
    return series.positions(results.either, axes, labels.mathtext_label(results.scenario))
