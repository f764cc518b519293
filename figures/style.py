"""How every figure looks: column widths of a paper, colours told apart by the colour-blind, bars for errors."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import matplotlib.style
from cycler import cycler

from statmech import files
from statmech.learners import LEARNERS
from statmech.rules import RULES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN, PAGE = 3.375, 6.75  # inches
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe & Ito
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
FORMATS = ("png", "svg", "pdf")

STYLE: dict[Any, Any] = {
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "errorbar.capsize": 2,
    "figure.constrained_layout.use": True,
    "figure.dpi": 150,
    "font.size": 8,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "savefig.dpi": 300,
    "svg.fonttype": "none",
    "svg.hashsalt": "statmech",  # the same figure, the same bytes
    "pdf.fonttype": 42,
}


def styled(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Draw in this style, whatever the reader's own settings are."""

    @wraps(draw)
    def drawn(*args: Any, **kwargs: Any) -> Figure:
        with mpl.rc_context(), matplotlib.style.context(["default", STYLE]):
            return draw(*args, **kwargs)

    return drawn


def label_of(name: str) -> str:
    """What a figure calls a rule or a learner."""
    return (RULES[name] if name in RULES else LEARNERS[name]).label


def look_of(index: int) -> dict[str, Any]:
    """Colour and marker of the index-th curve: told apart in colour, in grey and in print."""
    return {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)]}


def points(ax: Axes, x: Any, values: Any, index: int, **kwargs: Any) -> None:
    """Simulation: means over seeds with their standard errors."""
    look = {"linestyle": "none", "markerfacecolor": "white", **look_of(index), **kwargs}
    ax.errorbar(x, values.mean("seed"), yerr=spread(values), **look)


def spread(values: Any) -> Any:
    """The standard error of the mean over seeds; none for a single seed."""
    return values.std("seed", ddof=1) / values.count("seed") ** 0.5 if values.sizes["seed"] > 1 else None


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure as PNG (300 dots an inch), SVG and PDF beside each other, each file whole or not at all.

    Returns the files. Raises `StoreError` if one cannot be written.
    """
    drawn = {stem.with_name(f"{stem.name}.{suffix}"): _content(figure, suffix) for suffix in FORMATS}
    for file, content in drawn.items():
        files.write(file, content)
    return list(drawn)


def _content(figure: Figure, suffix: str) -> bytes:
    # a date in a file makes two equal figures differ
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix)
    file = io.BytesIO()
    with mpl.rc_context(STYLE):
        figure.savefig(file, format=suffix, metadata=metadata)
    return file.getvalue()


def element(figure: Figure) -> str:
    """A figure as an SVG element of a page, its words as outlines: a reader need not have our fonts."""
    file = io.StringIO()
    with mpl.rc_context({**STYLE, "svg.fonttype": "path"}):
        figure.savefig(file, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    text = file.getvalue()
    return text[text.index("<svg") :]
