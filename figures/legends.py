"""The legend of an overlay: the meaning of colours, markers, lines, bars and hollow points."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from figures import curves, labels
from figures.description import LegendEntry
from figures.style import (
    BAND_EDGE_WIDTH_POINTS,
    BAND_OPACITY,
    CURVE_COLOURS,
    CURVE_DASHES,
    CURVE_MARKERS,
    JOINING_LINE_STYLE,
    THEORY_COLOUR,
)
from statmech.keys.variables import BIAS_SUFFIX, STD_SUFFIX

if TYPE_CHECKING:
    from figures.arrangement import ArrangedResults
    from statmech.results.results import Results

MAJORITY_VOTE_ERROR_VARIABLE = "eps_g_majority_vote"
BOUNDS_NOTE, HOLLOW_POINTS_NOTE = "dashed: bounds of theory", "hollow points: not all runs converged"
ALL_HOLLOW_NOTE = "at no point did all runs converge"
JOINED_POINTS_NOTE = "thin lines join points"
SIMULATION_ENTRY_TEXT = "simulation (mean, standard error)"
MEASUREMENT_ENTRY_TEXT = "measured (mean, standard error)"  # learners of real data
RUN_BAND_ENTRY_TEXT = r"theory + bias $\pm$ std of a run"
BANDS_NOTE = r"band: theory + bias $\pm$ one standard deviation of a run, to order $1/N$"
VOTE_BIAS_NOTE = "of the vote without bias, which has no equation"
UNRESOLVED_BAND_NOTE = "none where terms beyond order 1/N are not small"


def make_title_texts(parts: list[ArrangedResults]) -> list[str]:
    """Return the texts of the title: the properties common to all results."""
    texts_by_part = [
        [*part.title_texts, *labels.describe_title_values(part.results.scenario), *part.size_and_runs_texts]
        for part in parts
    ]
    common = [text for text in dict.fromkeys(texts_by_part[0]) if all(text in texts for texts in texts_by_part)]
    return [text for text in common if f"{' '.join(text.split()[::-1])}s" not in common]  # step 200, 200 steps


def make_series_entries(
    parts: list[ArrangedResults], has_variable_markers: bool = False, is_joined: bool = False
) -> list[LegendEntry]:
    """Return the legend entries of colours and markers.

    With `has_variable_markers`, markers distinguish variables, and the entries of colours are lines.
    With `is_joined`, the entries of markers have the thin line that joins points.
    """
    shared = {size for size in parts[0].size_and_runs_texts if all(size in part.size_and_runs_texts for part in parts)}
    entries = [
        entry for part in parts for entry in _make_colour_entries(part, len(parts) > 1, shared, has_variable_markers)
    ]
    marker_entries = [entry for part in parts for entry in _make_marker_entries(part, is_joined)]
    return entries + list({entry.label: entry for entry in marker_entries}.values())


def make_mark_entries(parts: list[ArrangedResults]) -> list[LegendEntry]:
    """Return the legend entries that explain points, lines and bands."""
    entries = [entry for part in parts for entry in _make_point_and_line_entries(part, len(parts) > 1)]
    return list({entry.label: entry for entry in entries}.values())


def collect_notes(parts: list[ArrangedResults]) -> list[str]:
    """Return the notes on bounds, hollow points and bands."""
    return list(dict.fromkeys(note for part in parts for note in _make_notes(part)))


def _make_colour_entries(
    part: ArrangedResults, has_several_results: bool, shared_sizes: set[str], has_variable_markers: bool
) -> Iterator[LegendEntry]:
    """Yield a legend entry per colour: a line and, unless markers show another axis or variables, a marker.

    Without theory and without a marker, the entry is an area.

    With several results, an entry includes the label of its results, and their size if it differs. Markers are filled
    if hollow points have a meaning and most points of the curve are filled.
    """
    results, layout = part.results, part.layout
    if not layout.colour_axes and not has_several_results:
        return
    line: Any = (
        "none" if curves.is_ignored_by_theory(results, layout.colour_axes) and layout.colour_axes else part.line_dashes
    )
    line = "--" if line != "none" and _has_only_bounds(results) else line
    own_sizes = [size for size in part.size_and_runs_texts if size not in shared_sizes]
    has_common_marker = len(part.curve_markers) > 1 and len({*part.curve_markers}) == 1
    positions = itertools.islice(_iterate_labelled_positions(part, layout.colour_axes), len(part.curve_colours))
    for index, (text, position) in enumerate(positions):
        has_own_marker = not (layout.marker_axes or has_variable_markers or has_common_marker)
        marker = part.get_marker(index) if has_own_marker else None
        converged = curves.get_converged_mask(curves.select_position(results, position).simulation)
        is_filled = part.fills_converged and (converged is None or converged.mean() >= 1 / 2)
        face = part.curve_colours[index] if is_filled else "white"
        marker_style: dict[str, Any] = (
            {"marker": marker, "markerfacecolor": face} if marker and results.simulation is not None else {}
        )
        label = ", ".join(item for item in (part.label, text) if item) + (
            f" ({', '.join(own_sizes)})" if own_sizes else ""
        )
        if not marker_style and results.theory is None:  # nothing in the figure is a line of this colour
            yield LegendEntry(label, {"facecolor": part.curve_colours[index], "alpha": 1, "linewidth": 0}, "band")
            continue
        line_style: Any = part.line_dashes if not marker_style else line if results.theory is not None else "none"
        yield LegendEntry(label, {"color": part.curve_colours[index], "linestyle": line_style, **marker_style})


def _make_marker_entries(part: ArrangedResults, is_joined: bool) -> Iterator[LegendEntry]:
    """Yield a legend entry per marker, with the joining line or the dashes of theory that depends on its axis."""
    results, layout = part.results, part.layout
    ignored = curves.is_ignored_by_theory(results, layout.marker_axes)
    for index, (text, position) in enumerate(
        _iterate_labelled_positions(part, layout.marker_axes) if layout.marker_axes else ()
    ):
        has_line = (not ignored or curves.has_run_bands(results.scenario)) and _has_theory(part, position)
        line: dict[str, Any] = {"linestyle": CURVE_DASHES[index % len(CURVE_DASHES)] if has_line else "none"}
        if is_joined:
            line = {"linestyle": "-", "linewidth": JOINING_LINE_STYLE["linewidth"]}
        elif ignored:
            line["linewidth"] = BAND_EDGE_WIDTH_POINTS
        marker = CURVE_MARKERS[index % len(CURVE_MARKERS)] if results.simulation is not None else "none"
        style = {"color": THEORY_COLOUR, "marker": marker, "markerfacecolor": "white", **line}
        yield LegendEntry(text, style)


def _has_theory(part: ArrangedResults, position: dict[str, int]) -> bool:
    """Return True if theory has values at a position on the marker axis."""
    theory = curves.select_position(part.results, position).theory
    names = part.results.scenario.variables
    results = [name for name, variable in names.items() if variable.role == "result"]
    return theory is not None and any(bool(theory[name].notnull().any()) for name in results if name in theory)


def _has_only_bounds(results: Results) -> bool:
    """Return True if all results of theory are bounds."""
    variables = [name for name, item in results.scenario.variables.items() if item.role == "result" and not item.bound]
    theory = results.theory
    return theory is not None and not any(name in theory and theory[name].notnull().any() for name in variables)


def _make_point_and_line_entries(part: ArrangedResults, has_several_results: bool) -> Iterator[LegendEntry]:
    """Yield legend entries for points and lines, in the colour of the curves if they share one.

    Without an axis along x, theory is a dash.
    """
    results, layout = part.results, part.layout
    colour = THEORY_COLOUR if layout.colour_axes or has_several_results else CURVE_COLOURS[0]
    if results.simulation is not None:
        style = {"color": colour, "marker": "o", "linestyle": "none", "markerfacecolor": "white"}
        text = MEASUREMENT_ENTRY_TEXT if results.scenario.on_data else SIMULATION_ENTRY_TEXT
        yield LegendEntry(text, style, "points")
    if results.theory is not None and not _has_only_bounds(results):
        dash: dict[str, Any] = {} if layout.x else {"marker": "|", "linestyle": "none", "markersize": 9}
        limit = r", $N=\infty$" if "N" in curves.get_axes_ignored_by_theory(results.scenario) else ""
        yield LegendEntry(f"theory{limit}", {"color": colour if layout.x else THEORY_COLOUR, **dash})
        if curves.has_run_bands(results.scenario):
            band_colour = colour if layout.x else THEORY_COLOUR
            band: dict[str, Any] = {"facecolor": band_colour, "alpha": 1.5 * BAND_OPACITY, "linewidth": 0}
            yield LegendEntry(RUN_BAND_ENTRY_TEXT, band, "band")


def _make_notes(part: ArrangedResults) -> Iterator[str]:
    results = part.results
    if results.theory is not None and any(variable.bound for variable in results.scenario.variables.values()):
        yield BOUNDS_NOTE
    if part.fills_converged:
        mask = curves.get_converged_mask(results.simulation)
        yield HOLLOW_POINTS_NOTE if mask is None or mask.any() else ALL_HOLLOW_NOTE
    if results.theory is not None and curves.has_run_bands(results.scenario):
        yield describe_bands(results)
    if results.complete and (reason := results.scenario.expected_deviation_reason):
        yield reason.replace("1/sqrt(N)", r"$1/\sqrt{N}$")


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


def _iterate_labelled_positions(part: ArrangedResults, axes: tuple[str, ...]) -> Iterator[tuple[str, dict[str, int]]]:
    return curves.iterate_positions(part.results.either, axes, part.label_value)
