"""Figures of concepts that sparse perceptrons learn: bars of conjunctions, letters of sequences, and codons."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from figures.labels import describe_size_and_runs
from figures.panels import draw_legend_below, make_figure, set_heading
from figures.published_figure import PublishedFigure
from figures.style import CURVE_COLOURS, NO_LEGEND_GID, PAGE_WIDTH, SMALL_FONT_SIZE, apply_style
from simulate.classification.conjunctions import ConceptTerm
from statmech.errors import ConfigError
from statmech.inputs.data_sets import DataSource, find_data_source

MAX_BARS, LINE_LETTERS = 25, 44  # bars, and letters per line of a condition
CONDITION_LINE_HEIGHT = 0.155  # inches


class ConceptBar(NamedTuple):
    """A bar: the text of its conjunction, its signed weight, its colour and the meaning of the colour."""

    condition: str
    weight: float
    colour: str
    label: str


@apply_style
def draw_concept_bars(concept: Any, max_bars: int = MAX_BARS) -> Figure:
    """Draw the weighted conjunctions of a `SparsePerceptron`, or of pairs (text, signed weight), as bars.

    Bars are sorted by class and weight, the heaviest on top. At most the `max_bars` heaviest bars are drawn.

    Parameters
    ----------
    concept
        A fitted `SparsePerceptron`, or pairs of a text and a signed weight.
    max_bars
        Largest number of conjunctions to draw.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> ax = draw_concept_bars([("fever = high", 2.0), ("age > 60 and x_1 = $5", -1.5)]).axes[0]
    >>> [float(bar.get_width()) for bar in ax.patches]
    [2.0, -1.5]
    """
    bars, title = _make_bars(concept)
    if not bars:
        raise ValueError("the concept has no conjunctions, so there are no bars to draw")
    indices = sorted(sorted(range(len(bars)), key=lambda index: -abs(bars[index].weight))[:max_bars])
    lines = [_wrap_condition(bars[index].condition) for index in indices]
    figure = Figure(figsize=(PAGE_WIDTH, 1.0 + CONDITION_LINE_HEIGHT * sum(len(text) + 0.5 for text in lines)))
    ax = figure.subplots()
    _draw_bars(ax, [bars[index] for index in indices], lines)
    if len(indices) < len(bars):
        ax.set_title(f"the heaviest {len(indices)} of {len(bars)} conjunctions")
    kinds = {bars[index].label: bars[index].colour for index in indices}
    patches = [Patch(color=colour, label=label) for label, colour in kinds.items()]
    legend = figure.legend(handles=patches, loc="outside lower center", ncols=min(len(patches), 4), title=title)
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure


def _draw_bars(ax: Axes, bars: list[ConceptBar], lines: list[list[str]]) -> None:
    """Draw horizontal bars from top to bottom, each as high as its text and labelled by its weight."""
    top, centres = 0.0, []
    for bar, text in zip(bars, lines, strict=True):
        height = len(text) + 0.5
        centres.append(top + height / 2)
        top += height
        ax.barh(centres[-1], bar.weight, height=1.0, color=bar.colour)
        weight = f"{bar.weight:.3g}".replace("-", "\N{MINUS SIGN}")
        side: dict[str, Any] = (
            {"ha": "left", "xytext": (2, 0)} if bar.weight >= 0 else {"ha": "right", "xytext": (-2, 0)}
        )
        ax.annotate(
            weight, (bar.weight, centres[-1]), textcoords="offset points", va="center", fontsize=SMALL_FONT_SIZE, **side
        )
    ax.set_yticks(centres, ["\n".join(text) for text in lines])
    for tick in ax.get_yticklabels():
        tick.set_parse_math(False)
    ax.set(ylim=(top, 0), xlabel="weight")
    ax.tick_params(axis="y", length=0)
    ax.margins(x=0.12)
    ax.axvline(0, color="0.3", linewidth=0.8)


def _wrap_condition(condition: str) -> list[str]:
    """Wrap a condition at `LINE_LETTERS` letters, if possible before an `and`.

    >>> _wrap_condition("religious-groups-in-schools = n and export-act-south-africa = y and crime = n")
    ['religious-groups-in-schools = n', 'and export-act-south-africa = y', 'and crime = n']
    """
    lines = [""]
    for part in condition.replace(" and ", "\0and ").split("\0"):
        longer = f"{lines[-1]} {part}".strip()
        lines[-1:] = [longer] if len(longer) <= LINE_LETTERS or not lines[-1] else [lines[-1], part]
    return [part for line in lines for part in textwrap.wrap(line, LINE_LETTERS, break_on_hyphens=False) or [""]]


def _make_bars(concept: Any) -> tuple[list[ConceptBar], str]:
    """Convert a concept to bars, and return them with the title of the legend."""
    terms = getattr(concept, "terms_", None)
    if terms is None:
        return _bars_from_pairs(concept), ""
    classes = list(map(str, concept.classes_))
    is_binary = len(classes) == 2
    bars = []
    for term in sorted(terms, key=lambda term: classes.index(term.positive)):
        choice = term.positive if term.sense > 0 or not is_binary else term.negative
        bars.append(
            ConceptBar(
                term.condition if term.names else "threshold (always true)",
                term.sense * term.weight,
                CURVE_COLOURS[classes.index(choice) % len(CURVE_COLOURS)],
                choice,
            )
        )
    return (bars, "where true, it votes for" if is_binary else "where true, it votes for (right) or against (left)")


def _bars_from_pairs(pairs: Sequence[tuple[str, float]]) -> list[ConceptBar]:
    styles = {
        True: (CURVE_COLOURS[1], "votes for it where true"),
        False: (CURVE_COLOURS[0], "votes against it where true"),
    }
    heaviest = sorted(pairs, key=lambda pair: -abs(pair[1]))
    return [ConceptBar(text, weight, *styles[weight >= 0]) for text, weight in heaviest]


NAME_HYPHEN_PATTERN = re.compile(r"(?<=[a-z])-(?=[a-z])")  # matches a hyphen within a name


def draw_votes_concept(simulation: xr.Dataset, theory: None) -> Figure:
    """Draw the concept learnt from the study's data set, with the names of the attributes."""
    concepts = json.loads(simulation.attrs["concepts"])
    if not concepts:
        raise ConfigError('the figure "votes_concept" requires the classifier boosting, which learns a concept')
    name, learnt = next(iter(concepts.items()))
    terms = [
        ConceptTerm(**{**term, "names": [NAME_HYPHEN_PATTERN.sub(" ", condition) for condition in term["names"]]})
        for term in learnt["terms"]
    ]
    figure = draw_concept_bars(SimpleNamespace(terms_=terms, classes_=learnt["classes"]))
    figure.suptitle(f"{find_data_source(name).title_with_stand_in_mark}: learnt from all examples")
    return figure


votes_concept = PublishedFigure(
    draw=draw_votes_concept,
    supported_values={"classifier": ("boosting",)},
    caption=(
        "The sparse perceptron learnt from all examples: one bar per conjunction, with a length equal to the weight. A "
        "true conjunction votes for the class of its colour (to the right for one class, to the left for the other), "
        "and a false conjunction votes against this class."
    ),
    points_caption="",
)


NUM_POSITION_TICKS = 12  # approximate


def draw_promoters_concept(simulation: xr.Dataset, theory: None) -> Figure:
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


promoters_concept = PublishedFigure(
    draw=draw_promoters_concept,
    supported_values={"classifier": ("boosting",)},
    caption=(
        "The sparse perceptron learnt from all examples. Each letter is a condition 'this base at this position', at "
        "the height of its weight. A letter above 0 votes for the class named at the top if its condition is true, and "
        "against this class otherwise; letters below 0 vote the opposite way. Joined letters form a conjunction of "
        "two. Shaded: regions of contact with the polymerase, according to the domain theory supplied with the data."
    ),
    points_caption="",
)


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
    xlabel = "position (transcription starts at +1)" if data_source.regions else "position"
    ax.set(xlim=(-1, len(positions)), ylim=(1.55 * min(0.0, *heights), top), xlabel=xlabel, ylabel="weight")
    ax.axhline(0, color="0.3", linewidth=0.8)
    for text, y, side in ((f"where true: {classes[1]}", 0.98, "top"), (f"where true: {classes[0]}", 0.08, "bottom")):
        ax.text(0.99, y, text, transform=ax.transAxes, ha="right", va=side, fontsize=SMALL_FONT_SIZE, color="0.3")


CODON_LENGTH = 3  # letters per codon
CODON_FRAME_COLOUR, EMPTY_PAIR_COLOUR = CURVE_COLOURS[1], "0.8"


def draw_codons(simulation: xr.Dataset, theory: None) -> Figure:
    """Draw the mean weights of pairs in shades of grey, one panel per discount."""
    if "pair_weights" not in simulation:
        raise ConfigError('the figure "codons" requires `positions: true`, which records where conjunctions lie')
    figure, axes = make_figure(3.9, 1, simulation.sizes["discount"], sharey=True, squeeze=False)
    panels = list(axes.flat)
    mean = simulation.pair_weights.mean(["seed", "fold"])
    norm = PowerNorm(0.5, vmin=0, vmax=float(mean.max()) or 1.0)
    for ax, discount in zip(panels, simulation.discount.values, strict=True):
        image = _draw_pair_weights(ax, mean.sel(discount=discount), norm)
        _outline_codons(ax, simulation.sizes["position"])
        ax.set(xlabel="position of the first base", title=_format_discount_title(simulation.sel(discount=discount)))
    panels[0].set_ylabel("position of the second base")
    figure.colorbar(image, ax=panels, label="mean sum of weights $|w|$ (square-root scale)", shrink=0.9, pad=0.02)
    set_heading(
        figure,
        [find_data_source(str(simulation.data.item())).title_with_stand_in_mark, describe_size_and_runs(simulation)],
    )
    keys = [
        Patch(fill=False, edgecolor=CODON_FRAME_COLOUR, label="both bases in one codon"),
        Patch(fill=False, edgecolor=EMPTY_PAIR_COLOUR, label="pair of positions"),
    ]
    note = "$d$: factor on the correlation of conjunctions of two bases; $w$: their weights; %: of these conjunctions"
    draw_legend_below(figure, keys, note=note)
    return figure


codons = PublishedFigure(
    draw=draw_codons,
    axes=("discount",),
    supported_values={"classifier": ("boosting",)},
    caption=(
        "Sum of the weights of conjunctions of two bases at each pair of positions, averaged over folds, for each "
        "discount d (Jackson & Craven, section 4). Examples are windows of five codons, outlined. "
        "Percentages: fraction of the conjunctions within one codon, which is 14 % for all pairs of positions. The "
        "windows stand in for the paper's data."
    ),
    points_caption="",
)


def _draw_pair_weights(ax: Axes, mean_weights: Any, norm: PowerNorm) -> Any:
    """Draw the weights of all pairs of positions as an image.

    The first position is on the x axis, and the second, later position on the y axis.
    """
    edges = np.append(mean_weights.position.values - 0.5, mean_weights.position.values[-1] + 0.5)
    is_later = mean_weights.position.values[:, None] < mean_weights.partner.values
    values = np.ma.masked_where(~is_later, mean_weights.values).T
    image = ax.pcolor(edges, edges, values, cmap="Greys", norm=norm, edgecolors=EMPTY_PAIR_COLOUR, linewidth=0.3)
    ticks = mean_weights.position.values[:: 2 if len(edges) < 20 else 10]
    ax.set(aspect="equal", xticks=ticks, yticks=ticks)
    return image


def _outline_codons(ax: Axes, num_positions: int) -> None:
    """Draw a frame around the pairs within each codon."""
    for first in range(1, num_positions - CODON_LENGTH + 2, CODON_LENGTH):
        low, high = first - 0.5, first + CODON_LENGTH - 0.5
        stairs = np.repeat(np.arange(low, high), 2)  # pairs are above the diagonal
        ax.plot(
            [low, *stairs[1:], low, low],
            [low + 1, *stairs[2:], high, high, low + 1],
            color=CODON_FRAME_COLOUR,
            linewidth=1.0,
            clip_on=False,
            gid=NO_LEGEND_GID,
        )


def _format_discount_title(cell: xr.Dataset) -> str:
    pairs, codon_pairs = float(cell.pairs.sum()), float(cell.codon_pairs.sum())
    percent_text = f", {100 * codon_pairs / pairs:.0f} % in one codon" if pairs and np.isfinite(codon_pairs) else ""
    return f"$d$ = {float(cell.discount):g}{percent_text}"
