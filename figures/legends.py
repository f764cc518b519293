"""The legend of an overlay: the meaning of colours, markers, lines, bars and hollow points."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.collections import LineCollection
from matplotlib.container import ErrorbarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from figures import labels, series, stated_keys
from figures.panels import CONVERGED, legend_below, room
from figures.style import BAND, COLOURS, DASHES, EDGE, MARKERS, THEORY, look_of
from statmech.scenarios.variables import BIAS, STD

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from figures.arrangement import Part
    from statmech.results.results import Results

Entry = tuple[Any, str]
VOTE = "eps_g_majority_vote"
BOUNDS, HOLLOW = "dashed: bounds of theory", "hollow points: not all runs converged"
BARS = "simulation (mean, standard error)"
RUN = r"theory + bias $\pm$ std of a run"
BANDS = r"band: theory + bias $\pm$ one standard deviation of a run, to order $1/N$"
WITHOUT_BIAS = "of the vote without bias, which has no equation"
UNRESOLVED = "none where terms beyond order 1/N are not small"
NOUNS = {ErrorbarContainer: "points", Line2D: "lines"}  # bands have a note of their own
MOST_LETTERS = 125  # per line


def beside(figure: Figure, parts: list[Part], further: Sequence[Any] = ()) -> None:
    """Draw the legend of a single panel, to its right."""
    key = [(handle, text.replace(" (", "\n(")) for handle, text in _key(parts)]
    entries = [*_series(parts, further), *key]
    notes = textwrap.fill("; ".join(_all_notes(parts)), MOST_LETTERS // 3)
    figure.legend(*zip(*entries, strict=True), loc="outside right upper", title=notes or None)


def below(figure: Figure, parts: list[Part], further: Sequence[Any] = ()) -> None:
    """Draw the legend below several panels, with additional labelled handles.

    A line above the entries of curves explains points and lines.
    """
    entries, key = _series(parts, further), _key(parts)
    notes = _all_notes(parts)
    if entries:
        notes = [*(f"{NOUNS[type(handle)]}: {text}" for handle, text in key if type(handle) in NOUNS), *notes]
    else:
        entries = key
    for handle, text in entries:
        handle.set_label(text)
    note = "; ".join(textwrap.fill(note, int(MOST_LETTERS * room(figure))) for note in notes)
    legend_below(figure, [handle for handle, _ in entries], note=note)


def title(figure: Figure, parts: list[Part]) -> None:
    """Write the common properties of all results above the panels: single values, the size and the number of runs."""
    texts_by_part = [[*part.stated, *stated_keys.single(part.results.scenario), *part.sizes] for part in parts]
    shared_texts = [text for text in dict.fromkeys(texts_by_part[0]) if all(text in texts for texts in texts_by_part)]
    if not shared_texts:
        return
    if len(figure.axes) == 1:  # the legend may be to the right of the panel
        figure.axes[0].set_title(_lines(shared_texts, MOST_LETTERS // 2))
    else:
        figure.suptitle(_lines(shared_texts, int(MOST_LETTERS * room(figure))))


def _lines(words: list[str], most: int) -> str:
    """Join texts by commas, wrapped to lines of limited length without a break within a text."""
    unbroken = [text.replace(" ", "\N{NO-BREAK SPACE}") for text in words]
    return textwrap.fill(", ".join(unbroken), most).replace("\N{NO-BREAK SPACE}", " ")


def _series(parts: list[Part], further: Sequence[Any]) -> list[Entry]:
    """Return the legend entries of colours, markers and additional handles."""
    shared = {size for size in parts[0].sizes if all(size in part.sizes for part in parts)}
    full = any(has_flag(part.results) for part in parts)
    entries = [entry for part in parts for entry in _colours(part, len(parts) > 1, shared, full)]
    entries += {text: (handle, text) for part in parts for handle, text in _markers(part)}.values()
    return entries + [(handle, str(handle.get_label())) for handle in further]


def _key(parts: list[Part]) -> list[Entry]:
    """Return the legend entries that explain points, lines and bands."""
    several = len(parts) > 1
    return [*{text: (handle, text) for part in parts for handle, text in _parts(part, several)}.values()]


def _all_notes(parts: list[Part]) -> list[str]:
    return list(dict.fromkeys(note for part in parts for note in _notes(part.results)))


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


def _colours(part: Part, several: bool, shared: set[str], full: bool) -> Iterator[Entry]:
    """Yield one entry per colour, with its line and, unless markers distinguish another axis, its marker.

    With several results, an entry includes the label of its results, and their size if it differs. Markers are filled
    if hollow points have a meaning.
    """
    results, layout = part.results, part.layout
    if not layout.colours and not several:
        return
    line: Any = "none" if series.ignored_by_theory(results, layout.colours) and layout.colours else part.dashes
    own_sizes = [size for size in part.sizes if size not in shared]
    for index, (text, _) in enumerate(_positions(results, layout.colours)):
        marker = None if layout.markers else part.marker(index)
        face = part.hues[index] if full else "white"
        marker_style: dict[str, Any] = (
            {"marker": marker, "markerfacecolor": face} if marker and results.simulation is not None else {}
        )
        line_style: Any = line if results.theory is not None else "none"
        label = ", ".join(item for item in (part.label, text) if item) + (
            f" ({', '.join(own_sizes)})" if own_sizes else ""
        )
        yield (
            Line2D(
                [],
                [],
                color=part.hues[index],
                linestyle=part.dashes if not marker_style else line_style,
                **marker_style,
            ),
            label,
        )


def _markers(part: Part) -> Iterator[Entry]:
    """Yield one entry per marker, with dashes if theory depends on the axis of the markers."""
    results, layout = part.results, part.layout
    ignored = series.ignored_by_theory(results, layout.markers)
    for index, (text, _) in enumerate(_positions(results, layout.markers) if layout.markers else ()):
        has_line = results.theory is not None and (not ignored or series.has_bands(results.scenario))
        dashes: Any = DASHES[index % len(DASHES)] if has_line else "none"
        marker = MARKERS[index % len(MARKERS)] if results.simulation is not None else "none"
        width: dict[str, Any] = {"linewidth": EDGE} if ignored else {}  # the line is the edge of a band
        yield Line2D([], [], color=THEORY, marker=marker, linestyle=dashes, markerfacecolor="white", **width), text


def _parts(part: Part, several: bool) -> Iterator[Entry]:
    """Yield entries of points and lines, in the colour of the figure if there is only one.

    Without an axis along x, theory is a dash.
    """
    results, layout = part.results, part.layout
    colour = THEORY if layout.colours or several else COLOURS[0]
    if results.simulation is not None:
        yield points_with_bars(color=colour), BARS
    if results.theory is not None:
        dash: dict[str, Any] = {} if layout.x else {"marker": "|", "linestyle": "none", "markersize": 9}
        limit = r", $N=\infty$" if "N" in series.ignored_in_the_limit(results.scenario) else ""
        yield Line2D([], [], color=colour if layout.x else THEORY, **dash), f"theory{limit}"
        if series.has_bands(results.scenario):
            yield Patch(facecolor=colour if layout.x else THEORY, alpha=1.5 * BAND, linewidth=0), RUN


def has_flag(results: Results) -> bool:
    """Return True if some run of these results failed to converge."""
    return (
        results.simulation is not None and CONVERGED in results.simulation and not results.simulation[CONVERGED].all()
    )


def _notes(results: Results) -> Iterator[str]:
    if results.theory is not None and any(variable.bound for variable in results.scenario.variables.values()):
        yield BOUNDS
    if has_flag(results):
        yield HOLLOW
    if results.theory is not None and series.has_bands(results.scenario):
        yield band_of(results)


def band_of(results: Results) -> str:
    """Describe the bands of theory, the vote whose band lacks the bias, and points without a band."""
    theory = results.theory
    lacks_vote_bias = theory is not None and VOTE + STD in theory and VOTE + BIAS not in theory
    notes = {BANDS: True, WITHOUT_BIAS: lacks_vote_bias, UNRESOLVED: series.lacks_bands(results)}
    return "; ".join(sentence for sentence, holds in notes.items() if holds)


def _positions(results: Results, axes: tuple[str, ...]) -> Iterator[tuple[str, dict[str, int]]]:
    return series.positions(results.either, axes, labels.mathtext_label(results.scenario))
