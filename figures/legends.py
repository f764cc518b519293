"""The legend of an overlay: the meaning of colours, markers, lines, bars and hollow points."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.collections import LineCollection
from matplotlib.container import ErrorbarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from figures import curves, labels
from figures.panels import RUN_CONVERGED_VARIABLE, draw_legend_below, get_relative_letters_per_line
from figures.style import (
    BAND_EDGE_WIDTH_POINTS,
    BAND_OPACITY,
    CURVE_COLOURS,
    CURVE_DASHES,
    CURVE_MARKERS,
    THEORY_COLOUR,
    get_curve_style,
)
from statmech.keys.variables import BIAS_SUFFIX, STD_SUFFIX

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from figures.arrangement import ArrangedResults
    from statmech.results.results import Results

LegendEntry = tuple[Any, str]
MAJORITY_VOTE_ERROR_VARIABLE = "eps_g_majority_vote"
BOUNDS_NOTE, HOLLOW_POINTS_NOTE = "dashed: bounds of theory", "hollow points: not all runs converged"
SIMULATION_ENTRY_TEXT = "simulation (mean, standard error)"
RUN_BAND_ENTRY_TEXT = r"theory + bias $\pm$ std of a run"
BANDS_NOTE = r"band: theory + bias $\pm$ one standard deviation of a run, to order $1/N$"
VOTE_BIAS_NOTE = "of the vote without bias, which has no equation"
UNRESOLVED_BAND_NOTE = "none where terms beyond order 1/N are not small"
HANDLE_NOUNS = {ErrorbarContainer: "points", Line2D: "lines"}  # bands have a note of their own
MAX_OVERLAY_TEXT_LINE_LETTERS = 125  # per line


def draw_right_legend(figure: Figure, parts: list[ArrangedResults], extra_handles: Sequence[Any] = ()) -> None:
    """Draw the legend of a single panel, to its right."""
    key = [(handle, text.replace(" (", "\n(")) for handle, text in _make_mark_entries(parts)]
    entries = [*_make_series_entries(parts, extra_handles), *key]
    notes = textwrap.fill("; ".join(_collect_notes(parts)), MAX_OVERLAY_TEXT_LINE_LETTERS // 3)
    figure.legend(*zip(*entries, strict=True), loc="outside right upper", title=notes or None)


def draw_lower_legend(figure: Figure, parts: list[ArrangedResults], extra_handles: Sequence[Any] = ()) -> None:
    """Draw the legend below several panels, with additional labelled handles.

    A line above the entries of curves explains points and lines.
    """
    entries, key = _make_series_entries(parts, extra_handles), _make_mark_entries(parts)
    notes = _collect_notes(parts)
    if entries:
        notes = [
            *(f"{HANDLE_NOUNS[type(handle)]}: {text}" for handle, text in key if type(handle) in HANDLE_NOUNS),
            *notes,
        ]
    else:
        entries = key
    for handle, text in entries:
        handle.set_label(text)
    note = "; ".join(
        textwrap.fill(note, int(MAX_OVERLAY_TEXT_LINE_LETTERS * get_relative_letters_per_line(figure)))
        for note in notes
    )
    draw_legend_below(figure, [handle for handle, _ in entries], note=note)


def draw_title(figure: Figure, parts: list[ArrangedResults]) -> None:
    """Write the properties common to all results above the panels."""
    texts_by_part = [
        [*part.title_texts, *labels.describe_title_values(part.results.scenario), *part.size_and_runs_texts]
        for part in parts
    ]
    shared_texts = [text for text in dict.fromkeys(texts_by_part[0]) if all(text in texts for texts in texts_by_part)]
    if not shared_texts:
        return
    if len(figure.axes) == 1:  # the legend may be to the right of the panel
        figure.axes[0].set_title(_wrap_lines(shared_texts, MAX_OVERLAY_TEXT_LINE_LETTERS // 2))
    else:
        figure.suptitle(
            _wrap_lines(shared_texts, int(MAX_OVERLAY_TEXT_LINE_LETTERS * get_relative_letters_per_line(figure)))
        )


def _wrap_lines(texts: list[str], max_letters: int) -> str:
    """Join texts by commas, wrapped to lines of limited length without a break within a text."""
    unbroken = [text.replace(" ", "\N{NO-BREAK SPACE}") for text in texts]
    return textwrap.fill(", ".join(unbroken), max_letters).replace("\N{NO-BREAK SPACE}", " ")


def _make_series_entries(parts: list[ArrangedResults], extra_handles: Sequence[Any]) -> list[LegendEntry]:
    """Return the legend entries of colours, markers and additional handles."""
    shared = {size for size in parts[0].size_and_runs_texts if all(size in part.size_and_runs_texts for part in parts)}
    full = any(has_unconverged_runs(part.results) for part in parts)
    entries = [entry for part in parts for entry in _make_colour_entries(part, len(parts) > 1, shared, full)]
    entries += {text: (handle, text) for part in parts for handle, text in _make_marker_entries(part)}.values()
    return entries + [(handle, str(handle.get_label())) for handle in extra_handles]


def _make_mark_entries(parts: list[ArrangedResults]) -> list[LegendEntry]:
    """Return the legend entries that explain points, lines and bands."""
    several = len(parts) > 1
    return [
        *{
            text: (handle, text) for part in parts for handle, text in _make_point_and_line_entries(part, several)
        }.values()
    ]


def _collect_notes(parts: list[ArrangedResults]) -> list[str]:
    return list(dict.fromkeys(note for part in parts for note in _make_result_notes(part.results)))


def make_points_handle(label: str = "", **style: Any) -> ErrorbarContainer:
    """Return a legend handle of points with error bars."""
    style = {"color": THEORY_COLOUR, "marker": "o", "linestyle": "none", "markerfacecolor": "white", **style}
    bars = LineCollection([], colors=style["color"], linewidths=1.2)
    return ErrorbarContainer((Line2D([], [], **style), (), (bars,)), has_yerr=True, label=label)


def make_line_handle(label: str, **style: Any) -> Line2D:
    """Return a legend handle of a line or a marker, in grey unless it has a colour."""
    return Line2D([], [], **{"color": THEORY_COLOUR, "label": label, **style})


def make_curve_handle(index: int, text: str, **style: Any) -> Line2D:
    """Return a legend handle of the index-th curve: its line, and the marker of its points."""
    return Line2D([], [], **{**get_curve_style(index), "markerfacecolor": "white", "label": text, **style})


def _make_colour_entries(
    part: ArrangedResults, has_several_results: bool, shared_sizes: set[str], fill_markers: bool
) -> Iterator[LegendEntry]:
    """Yield a legend entry per colour: a line and, unless markers show another axis, a marker.

    With several results, an entry includes the label of its results, and their size if it differs. Markers are filled
    if hollow points have a meaning.
    """
    results, layout = part.results, part.layout
    if not layout.colour_axes and not has_several_results:
        return
    line: Any = (
        "none" if curves.is_ignored_by_theory(results, layout.colour_axes) and layout.colour_axes else part.line_dashes
    )
    own_sizes = [size for size in part.size_and_runs_texts if size not in shared_sizes]
    for index, (text, _) in enumerate(_iterate_labelled_positions(results, layout.colour_axes)):
        marker = None if layout.marker_axes else part.get_marker(index)
        face = part.curve_colours[index] if fill_markers else "white"
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
                color=part.curve_colours[index],
                linestyle=part.line_dashes if not marker_style else line_style,
                **marker_style,
            ),
            label,
        )


def _make_marker_entries(part: ArrangedResults) -> Iterator[LegendEntry]:
    """Yield a legend entry per marker, with dashes if theory depends on the marker axis."""
    results, layout = part.results, part.layout
    ignored = curves.is_ignored_by_theory(results, layout.marker_axes)
    for index, (text, _) in enumerate(
        _iterate_labelled_positions(results, layout.marker_axes) if layout.marker_axes else ()
    ):
        has_line = results.theory is not None and (not ignored or curves.has_run_bands(results.scenario))
        dashes: Any = CURVE_DASHES[index % len(CURVE_DASHES)] if has_line else "none"
        marker = CURVE_MARKERS[index % len(CURVE_MARKERS)] if results.simulation is not None else "none"
        width: dict[str, Any] = (
            {"linewidth": BAND_EDGE_WIDTH_POINTS} if ignored else {}
        )  # the line is the edge of a band
        yield (
            Line2D([], [], color=THEORY_COLOUR, marker=marker, linestyle=dashes, markerfacecolor="white", **width),
            text,
        )


def _make_point_and_line_entries(part: ArrangedResults, has_several_results: bool) -> Iterator[LegendEntry]:
    """Yield legend entries for points and lines, in the colour of the curves if they share one.

    Without an axis along x, theory is a dash.
    """
    results, layout = part.results, part.layout
    colour = THEORY_COLOUR if layout.colour_axes or has_several_results else CURVE_COLOURS[0]
    if results.simulation is not None:
        yield make_points_handle(color=colour), SIMULATION_ENTRY_TEXT
    if results.theory is not None:
        dash: dict[str, Any] = {} if layout.x else {"marker": "|", "linestyle": "none", "markersize": 9}
        limit = r", $N=\infty$" if "N" in curves.get_axes_ignored_by_theory(results.scenario) else ""
        yield Line2D([], [], color=colour if layout.x else THEORY_COLOUR, **dash), f"theory{limit}"
        if curves.has_run_bands(results.scenario):
            yield (
                Patch(facecolor=colour if layout.x else THEORY_COLOUR, alpha=1.5 * BAND_OPACITY, linewidth=0),
                RUN_BAND_ENTRY_TEXT,
            )


def has_unconverged_runs(results: Results) -> bool:
    """Return True if any run of these results failed to converge."""
    return (
        results.simulation is not None
        and RUN_CONVERGED_VARIABLE in results.simulation
        and not results.simulation[RUN_CONVERGED_VARIABLE].all()
    )


def _make_result_notes(results: Results) -> Iterator[str]:
    if results.theory is not None and any(variable.bound for variable in results.scenario.variables.values()):
        yield BOUNDS_NOTE
    if has_unconverged_runs(results):
        yield HOLLOW_POINTS_NOTE
    if results.theory is not None and curves.has_run_bands(results.scenario):
        yield describe_bands(results)


def describe_bands(results: Results) -> str:
    """Describe the bands of theory, and where a band or its bias is missing."""
    theory = results.theory
    lacks_vote_bias = (
        theory is not None
        and MAJORITY_VOTE_ERROR_VARIABLE + STD_SUFFIX in theory
        and MAJORITY_VOTE_ERROR_VARIABLE + BIAS_SUFFIX not in theory
    )
    notes = {
        BANDS_NOTE: True,
        VOTE_BIAS_NOTE: lacks_vote_bias,
        UNRESOLVED_BAND_NOTE: curves.has_unresolved_bands(results),
    }
    return "; ".join(sentence for sentence, holds in notes.items() if holds)


def _iterate_labelled_positions(results: Results, axes: tuple[str, ...]) -> Iterator[tuple[str, dict[str, int]]]:
    return curves.iterate_positions(results.either, axes, labels.make_mathtext_labeller(results.scenario))
