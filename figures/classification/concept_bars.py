"""A bar chart of the concept learnt by a sparse perceptron: the weight of each conjunction.

A true conjunction votes for one class, a false one for the other. Colour and side of a bar show the class that a true
conjunction votes for. With more than two classes, each class has its own perceptron (one against the rest) and its own
colour.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from figures.style import CURVE_COLOURS, PAGE_WIDTH, SMALL_FONT_SIZE, apply_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_BARS, LINE_LETTERS = 25, 44  # bars, and letters per line of a condition
CONDITION_LINE_HEIGHT = 0.155  # inches


class ConceptBar(NamedTuple):
    """A bar: the text of its conjunction, its signed weight, its colour and the meaning of the colour."""

    condition: str
    weight: float
    colour: str
    label: str


@apply_style
def draw(concept: Any, max_bars: int = MAX_BARS) -> Figure:
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
    >>> ax = draw([("fever = high", 2.0), ("age > 60 and x_1 = $5", -1.5)]).axes[0]
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
                term.condition,
                term.sense * term.weight,
                CURVE_COLOURS[classes.index(choice) % len(CURVE_COLOURS)],
                choice,
            )
        )
    return (
        bars,
        "where true, it votes for" if is_binary else "where true, it votes for (right) or against (left)",
    )


def _bars_from_pairs(pairs: Sequence[tuple[str, float]]) -> list[ConceptBar]:
    styles = {
        True: (CURVE_COLOURS[1], "votes for it where true"),
        False: (CURVE_COLOURS[0], "votes against it where true"),
    }
    heaviest = sorted(pairs, key=lambda pair: -abs(pair[1]))
    return [ConceptBar(text, weight, *styles[weight >= 0]) for text, weight in heaviest]
