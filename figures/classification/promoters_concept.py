"""Concept that boosting learns from sequences, drawn as letters at their positions and weights."""

from __future__ import annotations

import json
from typing import Any

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.panels import make_figure, set_heading
from figures.style import CURVE_COLOURS, NO_LEGEND_GID, SMALL_FONT_SIZE
from simulate.classification.conjunctions import ConceptTerm
from statmech.errors import ConfigError
from statmech.inputs.data_sets import DataSource, find_data_source

AXES = ()  # sweep axes that this figure shows
SUPPORTED_VALUES = {"classifier": ("boosting",)}
NUM_POSITION_TICKS = 12  # approximate
CAPTION = (
    "The sparse perceptron learnt from all examples. Each letter is a condition 'this base at this position', at the "
    "height of its weight. A letter above 0 votes for the class named at the top if its condition is true, and against "
    "this class otherwise; letters below 0 vote the opposite way. Joined letters form a conjunction of two. Shaded: "
    "regions of contact with the polymerase, according to the domain theory supplied with the data."
)
POINTS_CAPTION = ""


def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """Draw the concept that boosting learnt from the study's sequences."""
    name, learnt_concept = _find_sequence_concept(json.loads(simulation.attrs["concepts"]))
    (figure, ax), data_source = make_figure(3.0), find_data_source(name)
    terms = [ConceptTerm(**term) for term in learnt_concept["terms"]]
    indices = {position: index for index, position in enumerate(data_source.attributes)}
    heights = [term.sense * term.weight for term in terms if term.names]
    for term in terms:
        _draw_conjunction_letters(ax, term, indices)
    _shade_contact_regions(ax, data_source, indices)
    _format_axes(ax, data_source, heights, learnt_concept["classes"])
    always = [f"threshold {term.sense * term.weight:+.2f}" for term in terms if not term.names]
    set_heading(figure, [f"{data_source.title_with_stand_in_mark}: learnt from all examples", *always])
    return figure


def _find_sequence_concept(concepts: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the first data set of sequences with two classes, and its concept.

    Raises `ConfigError` if there is no such data set.
    """
    for name, learnt in concepts.items():
        if find_data_source(name).sequence and len(learnt["classes"]) == 2:
            return name, learnt
    raise ConfigError('the figure "promoters_concept" requires the classifier boosting on sequences of two classes')


def _draw_conjunction_letters(ax: Axes, term: ConceptTerm, position_indices: dict[str, int]) -> None:
    """Draw the letters of a conjunction on stems, and join two letters by a line."""
    height = term.sense * term.weight
    pairs = [condition.split(" = ") for condition in term.names]
    ax.plot([position_indices[position] for position, _ in pairs], [height] * len(pairs), color="0.3", linewidth=0.8)
    for position, letter in pairs:
        ax.plot([position_indices[position]] * 2, [0, height], color="0.7", linewidth=0.8, zorder=1)
        colour = CURVE_COLOURS["acgt".find(letter) % len(CURVE_COLOURS)]
        ax.plot(position_indices[position], height, "o", color=colour, markersize=2.5, gid=NO_LEGEND_GID)
        up = height > 0
        text_options: dict[str, Any] = {"color": colour, "fontsize": 9, "fontweight": "bold", "ha": "center"}
        text_options |= {"xytext": (0, 3 if up else -3), "textcoords": "offset points", "va": "bottom" if up else "top"}
        ax.annotate(letter.upper(), (position_indices[position], height), **text_options)


def _shade_contact_regions(ax: Axes, data_source: DataSource, position_indices: dict[str, int]) -> None:
    """Shade the known sequence regions, and write their names at the bottom."""
    for name, (first, last) in data_source.regions.items():
        left, right = position_indices[first] - 0.5, position_indices[last] + 0.5
        ax.axvspan(left, right, color="0.92", linewidth=0, zorder=0)
        text_options: dict[str, Any] = {
            "xycoords": ax.get_xaxis_transform(),
            "ha": "center",
            "va": "bottom",
            "fontsize": 7,
        }
        ax.annotate(name.replace("-", "\N{MINUS SIGN}"), ((left + right) / 2, 0), **text_options)


def _format_axes(ax: Axes, data_source: DataSource, heights: list[float], classes: list[str]) -> None:
    positions = data_source.attributes
    tick_step = max(1, round(len(positions) / NUM_POSITION_TICKS / 5) * 5)
    tick_indices = [index for index, position in enumerate(positions) if int(position.lstrip("p")) % tick_step == 0]
    labels = [positions[index].replace("-", "\N{MINUS SIGN}").lstrip("p") for index in tick_indices]
    ax.set_xticks(tick_indices, labels)
    top = 1.25 * max(0.0, *heights)
    ax.set(xlim=(-1, len(positions)), ylim=(1.55 * min(0.0, *heights), top), xlabel="position", ylabel="weight")
    ax.axhline(0, color="0.3", linewidth=0.8)
    for text, y, side in ((f"where true: {classes[1]}", 0.98, "top"), (f"where true: {classes[0]}", 0.08, "bottom")):
        ax.text(0.99, y, text, transform=ax.transAxes, ha="right", va=side, fontsize=SMALL_FONT_SIZE, color="0.3")
