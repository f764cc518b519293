"""The look of every figure: column widths of a paper, colours that the colour-blind can distinguish, error bars."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import matplotlib.style
import numpy as np
from cycler import cycler
from matplotlib.ticker import LogLocator, NullLocator

from statmech.activations import ACTIVATIONS
from statmech.convex.losses import LOSSES
from statmech.convex.weights import WEIGHTS
from statmech.learners import LEARNERS
from statmech.numerics.statistics import standard_error_of_runs
from statmech.rules import RULES
from statmech.runtime import files

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

COLUMN, PAGE = 3.375, 6.75  # inches
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe & Ito
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (6, 2, 1, 2, 1, 2)), (0, (1, 3)), (0, (8, 3)))
THEORY = "0.25"  # of one line for points of all colours
SHADES = "viridis"  # of ordered values, more than there are colours
MANY = 30  # more points than these would hide each other
BAND = 0.18  # opacity of the band in which theory expects one run
EDGE = 0.5  # width of its edges
TICKS: dict[float, tuple[float, ...]] = {  # of a logarithmic axis, by the ratio of its limits
    5: (1, 1.5, 2, 3, 5, 7),
    20: (1, 2, 3, 5),
    200: (1, 2, 5),
}
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
    """Draw in this style, whatever matplotlib settings the reader has.

    Parameters
    ----------
    draw
        A function that returns a figure.

    Returns
    -------
    callable
        The same function under the settings `STYLE`.

    Examples
    --------
    >>> styled(lambda: mpl.rcParams["axes.titlesize"])()
    9.0
    """

    @wraps(draw)
    def drawn(*args: Any, **kwargs: Any) -> Figure:
        with mpl.rc_context(), matplotlib.style.context(["default", STYLE]):
            return draw(*args, **kwargs)

    return drawn


def label_of(name: str) -> str:
    """Return the label of a rule, a learner, an activation, a loss or a prior in figures."""
    known: dict[str, Any] = {**WEIGHTS, **LOSSES, **ACTIVATIONS, **LEARNERS, **RULES}
    return str(known[name].label)


def look_of(index: int) -> dict[str, Any]:
    """Colour and marker of the index-th curve, distinguishable in colour, in grey and in print."""
    return {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)]}


def shades(count: int) -> list[Any]:
    """Colours of so many ordered values, from dark to light, none too light for print."""
    return [mpl.colormaps[SHADES](place) for place in np.linspace(0, 0.9, count)]


def points(ax: Axes, x: Any, values: Any, index: int, **kwargs: Any) -> None:
    """Simulation: means over seeds with their standard errors."""
    look = {"linestyle": "none", "markerfacecolor": "white", **look_of(index), **kwargs}
    ax.errorbar(x, values.mean("seed"), yerr=spread(values), **look)


def theory_line(ax: Axes, x: Any, values: Any, discrete: bool = False, **look: Any) -> None:
    """Draw theory as a line, with a dash at each x if there is one only, or whole numbers only (`discrete`)."""
    dash = {"marker": "_", "markersize": 7, "markeredgewidth": 1.1, "linewidth": 0.7}
    ax.plot(x, values, **{**(dash if discrete or np.size(x) == 1 else {}), **look})


def spread(values: Any) -> Any:
    """Return the standard error of the mean over seeds; None for a single seed."""
    return standard_error_of_runs(values) if values.sizes["seed"] > 1 else None


def points_or_band(
    ax: Axes,
    x: Any,
    mean: Any,
    error: Any,
    look: int | dict[str, Any],
    filled: Any = None,
    label: str | None = None,
    bars: bool = False,
) -> None:
    """Draw means with standard errors as points with bars; many points are small, in a band instead of bars.

    `bars` asks for bars however many points there are, where bands mean something else.

    `look` is colour and marker, or the index of the curve. `filled` says which points are filled; the others, and by
    default all, are hollow.
    """
    own = look_of(look) if isinstance(look, int) else look
    look = {"linestyle": "none", "markerfacecolor": "white", **own}
    if len(x) <= MANY:
        ax.errorbar(x, mean, yerr=error, **look, label=label, zorder=3)
    else:
        look |= {"markersize": 2.2, "markeredgewidth": 0.5}
        shown = {"yerr": error, "elinewidth": 0.5, "capsize": 0} if bars else {}
        ax.errorbar(x, mean, **shown, **look, label=label, zorder=3)
        if not bars:
            band(ax, x, mean, error, own)
    if filled is not None:
        ax.plot(
            np.asarray(x)[filled],
            np.asarray(mean)[filled],
            **{**look, "linestyle": "none", "markerfacecolor": own["color"]},
            zorder=4,
        )


def band(ax: Axes, x: Any, mean: Any, error: Any, look: int | dict[str, Any]) -> None:
    """Standard errors about means."""
    if error is not None:
        colour = (look_of(look) if isinstance(look, int) else look)["color"]
        ax.fill_between(x, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)


def run_band(ax: Axes, x: Any, low: Any, high: Any, colour: Any, dashes: Any) -> None:
    """Draw the band in which theory expects one run, below all else: bands of several N show one within the other."""
    if np.size(x) == 1:  # a band without width is a bar
        ax.plot([x[0], x[0]], [low[0], high[0]], color=colour, alpha=BAND, linewidth=7, solid_capstyle="butt", zorder=0)
        return
    ax.fill_between(x, low, high, color=colour, alpha=BAND, linewidth=0, zorder=0)
    for edge in (low, high):
        ax.plot(x, edge, color=colour, linestyle=dashes, linewidth=EDGE, alpha=0.7, zorder=1)


def log_ticks(axis: Axis) -> None:
    """Set ticks that can be read on a logarithmic axis, once its limits are known: the more, the shorter it is."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=next((subs for most, subs in TICKS.items() if high < most * low), (1.0,))))
    if low > 1e-4 and high < 1e5:
        axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())


def save(figure: Figure, stem: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write a figure, by default as PNG (300 dots per inch), SVG and PDF, each file complete or not at all.

    Parameters
    ----------
    figure
        A figure.
    stem
        The path of the files, without a suffix.
    formats
        Some of `png`, `svg` and `pdf`.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    StoreError
        If one cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from matplotlib.figure import Figure
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [file.name for file in save(Figure(), Path(folder) / "empty")]
    ['empty.png', 'empty.svg', 'empty.pdf']
    """
    return files.write_beside(stem, {suffix: _content(figure, suffix) for suffix in formats})


def _content(figure: Figure, suffix: str) -> bytes:
    # a date in a file makes two equal figures differ
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix)
    for (
        ax
    ) in figure.axes:  # the layout of a file does not begin from that of the file before, which moves its last bits
        if spec := ax.get_subplotspec():
            ax.set_subplotspec(spec)
    file = io.BytesIO()
    with mpl.rc_context(STYLE):
        figure.savefig(file, format=suffix, metadata=metadata)
    return file.getvalue()


def element(figure: Figure) -> str:
    """Return a figure as an SVG element of a page, its text as outlines, which need no fonts."""
    file = io.StringIO()
    with mpl.rc_context({**STYLE, "svg.fonttype": "path"}):
        figure.savefig(file, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    text = file.getvalue()
    return text[text.index("<svg") :]
