"""The style of every figure: widths for paper and slides, colours for the colour-blind, ticks and error bars."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib as mpl
import matplotlib.style
import numpy as np
from cycler import cycler
from matplotlib.axis import YAxis
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from statmech.activations import ACTIVATIONS
from statmech.convex.losses import LOSSES
from statmech.convex.weights import WEIGHTS
from statmech.errors import ConfigError, not_known
from statmech.learners import LEARNERS
from statmech.numerics.statistics import standard_error_of_runs
from statmech.rules import RULES
from statmech.runtime import files

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

COLUMN, PAGE = 3.375, 6.75  # inches
OUTSIDE = "outside"  # marks an arrow or a line that points to data outside the axes
AID = "aid"  # marks artists without a legend entry: guides to the eye, points that are named by their row
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe & Ito
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (6, 2, 1, 2, 1, 2)), (0, (1, 3)), (0, (8, 3)))
THEORY = "0.25"  # one grey line for points of all colours
SHADES = "viridis"  # for more ordered values than there are colours
MOST_POINTS = 15  # markers of one curve: more would hide its line
NESTED_EXCESS = 0.7  # relative excess of the largest nested marker over the smallest
JOIN: dict[str, Any] = {"color": "0.7", "linewidth": 0.6, "zorder": 1, "gid": AID}  # guides the eye between points
STAR: dict[str, Any] = {  # marks a minimum, below the points
    "marker": "*",
    "markersize": 11,
    "markeredgewidth": 0,
    "linestyle": "none",
    "zorder": 2.5,
}
SMALL = "small"  # text inside panels
BAND = 0.18  # the band shows where theory expects one run
EDGE = 0.5  # points
BEYOND = 1e4  # a divergence is drawn this many times higher than its neighbours
TICKS: dict[float, tuple[float, ...]] = {  # indexed by the maximal ratio of the limits of an axis
    5: (1, 1.5, 2, 3, 5, 7),
    20: (1, 2, 3, 5),
    200: (1, 2, 5),
}
FEWER: tuple[tuple[float, ...], ...] = ((1, 3), (1,))  # used where the labels of more ticks would overlap
LETTER, FILLED = 0.64 / 72, 0.75  # inches per point of font size; the rest is for labels and margins
FORMATS = ("png", "svg", "pdf")

STYLE: dict[Any, Any] = {
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "figure.titlesize": 9,
    "errorbar.capsize": 2,
    "figure.constrained_layout.use": True,
    "figure.dpi": 150,
    "font.size": 8,
    "legend.fontsize": 7.5,
    "legend.title_fontsize": 7.5,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "savefig.dpi": 300,
    "svg.fonttype": "none",
    "svg.hashsalt": "statmech",  # equal figures give equal bytes
    "pdf.fonttype": 42,
}


class Medium(NamedTuple):
    """Settings for paper or slides: changes of `STYLE`, the scale of sizes, and whether panels form one column."""

    settings: dict[Any, Any]
    scale: float = 1.0
    column: bool = False


MEDIA = {
    "page": Medium({}),
    "pre": Medium(  # a column of Physical Review, 8 points
        {
            "font.family": "STIXGeneral",
            "mathtext.fontset": "stix",
            "font.size": 8,
            **dict.fromkeys(("axes.titlesize", "axes.labelsize", "figure.titlesize", "legend.title_fontsize"), 8),
            **dict.fromkeys(("legend.fontsize", "xtick.labelsize", "ytick.labelsize"), 8),
            "lines.linewidth": 1.0,
            "lines.markersize": 3,
        },
        column=True,
    ),
    "talk": Medium(
        {
            "font.size": 14,
            **dict.fromkeys(("axes.titlesize", "axes.labelsize", "figure.titlesize"), 15),
            **dict.fromkeys(("legend.fontsize", "legend.title_fontsize"), 13),
            "lines.linewidth": 2.2,
            "lines.markersize": 6.5,
            "axes.linewidth": 1.2,
            "errorbar.capsize": 3.5,
        },
        scale=1.5,
    ),
}


class Wish(NamedTuple):
    """Options of the figure being drawn: its medium, and whether it has strips of residuals."""

    medium: str = "page"
    residuals: bool = False


USUAL = Wish()
WISH: ContextVar[Wish] = ContextVar("DRAWING_OPTIONS", default=USUAL)


@contextmanager
def drawn_for(medium: str | None, residuals: bool = False) -> Iterator[None]:
    """Draw the figures of this block for a medium: `page`, `pre` or `talk`.

    Parameters
    ----------
    medium
        A name in `MEDIA`; None for `page`.
    residuals
        True for a strip below each panel that shows deviations from theory in standard errors.

    Raises
    ------
    ConfigError
        For an unknown medium.

    Examples
    --------
    >>> with drawn_for("pre"):
    ...     styled(lambda: mpl.rcParams["font.family"])()
    ['STIXGeneral']
    """
    if medium is not None and medium not in MEDIA:
        raise ConfigError(f"style: {not_known(medium, 'a style of figures', MEDIA)}")
    before = WISH.set(Wish(medium or "page", residuals))
    try:
        yield
    finally:
        WISH.reset(before)


def medium() -> Medium:
    """Return the medium of the figure being drawn."""
    return MEDIA[WISH.get().medium]


def settings_of(figure: Figure) -> dict[Any, Any]:
    """Return the matplotlib settings that a figure was drawn with. The gid of the figure names its medium."""
    return STYLE | MEDIA.get(figure.get_gid() or "page", MEDIA["page"]).settings


def styled(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Wrap a drawing function so that it uses this style instead of the user's matplotlib settings.

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
    def draw_styled(*args: Any, **kwargs: Any) -> Figure:
        with mpl.rc_context(), matplotlib.style.context(["default", STYLE, medium().settings]):
            return draw(*args, **kwargs)

    return draw_styled


def label_of(name: str) -> str:
    """Return the label of a rule, a learner, an activation, a loss or a prior in figures."""
    kinds: dict[str, Any] = {**WEIGHTS, **LOSSES, **ACTIVATIONS, **LEARNERS, **RULES}
    return str(kinds[name].label)


def look_of(index: int) -> dict[str, Any]:
    """Return the colour and marker of the index-th curve, distinguishable in colour, in grey and in print."""
    marker = (index + index // len(MARKERS)) % len(MARKERS)  # another marker when colours repeat
    return {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[marker]}


def nested_size(index: int, count: int) -> dict[str, Any]:
    """Return the marker size of the index-th of several curves with overlapping points.

    The x of a point does not change. Each curve has smaller markers than the curve below it.
    """
    excess = NESTED_EXCESS * (count - 1 - index) / max(count - 1, 1)
    return {"markersize": mpl.rcParams["lines.markersize"] * (1 + excess)}


def few(count: int) -> list[int]:
    """Choose at most `MOST_POINTS` of `count` steps, geometrically spaced from the first to the last.

    >>> few(100)
    [0, 1, 2, 4, 6, 9, 12, 18, 25, 36, 50, 70, 99]
    """
    steps = np.unique(np.geomspace(1, max(count, 1), MOST_POINTS).astype(int) - 1)
    return [int(step) for step in steps if step < count]


def shades(count: int) -> list[Any]:
    """Return colours for ordered values, from dark to light, none too light for print."""
    return [mpl.colormaps[SHADES](position) for position in np.linspace(0, 0.9, count)]


def points(ax: Axes, x: Any, values: Any, index: int, **kwargs: Any) -> None:
    """Draw means of a simulation over seeds, with their standard errors."""
    style = {"linestyle": "none", "markerfacecolor": "white", **look_of(index), **kwargs}
    ax.errorbar(x, values.mean("seed"), yerr=spread(values), **style)


def theory_line(ax: Axes, x: Any, values: Any, discrete: bool = False, **look: Any) -> None:
    """Draw theory as a line, with a dash at each x if x is a single value or `discrete` (integers).

    The line leaves the frame where a value is infinite. The limits of the frame depend on the finite values only.
    """
    dash = {"marker": "_", "markersize": 7, "markeredgewidth": 1.1, "linewidth": 0.7}
    x, values = np.asarray(x), np.asarray(values, float)
    ax.plot(x, np.where(np.isinf(values), np.nan, values), **{**(dash if discrete or x.size == 1 else {}), **look})
    rising = beyond_the_frame(values)
    for index in np.flatnonzero(np.isinf(values)):
        neighbours = slice(max(index - 1, 0), index + 2)
        line = Line2D(x[neighbours], rising[neighbours], **{**look, "gid": OUTSIDE})
        ax.add_artist(line)  # unlike plot, this does not change the limits


def beyond_the_frame(values: np.ndarray) -> np.ndarray:
    """Replace infinite values by finite values far above or below their neighbours.

    >>> beyond_the_frame(np.array([1.0, 2.0, np.inf, 3.0]))
    array([1.e+00, 2.e+00, 3.e+04, 3.e+00])
    """
    replaced = values.copy()
    for index in np.flatnonzero(np.isinf(values)):
        neighbours = values[max(index - 1, 0) : index + 2]
        replaced[index] = np.sign(values[index]) * BEYOND * np.abs(neighbours[np.isfinite(neighbours)]).max(initial=1)
    return replaced


def spread(values: Any) -> Any:
    """Return the standard error of the mean over seeds, or None for a single seed."""
    return standard_error_of_runs(values) if values.sizes["seed"] > 1 else None


def mean_points(
    ax: Axes,
    x: Any,
    mean: Any,
    error: Any,
    look: int | dict[str, Any],
    filled: Any = None,
) -> None:
    """Draw means as points with bars of their standard errors.

    `look` is the colour and the marker, or the index of the curve. With a `linestyle` a thin grey line joins the points
    to guide the eye. `filled` is a mask of the points to fill. Without the mask all points are hollow.
    """
    curve_style = look_of(look) if isinstance(look, int) else look
    look = {"markerfacecolor": "white", **curve_style, "linestyle": "none"}
    if curve_style.get("linestyle", "none") != "none":
        ax.plot(x, mean, **{**JOIN, "linestyle": curve_style["linestyle"]})
    ax.errorbar(x, mean, yerr=error, **look, zorder=3)
    if filled is not None:
        positions = np.asarray(x)[filled], np.asarray(mean)[filled]
        filled_style = {**look, "markerfacecolor": curve_style["color"]}
        ax.plot(*positions, **filled_style, zorder=3)  # below the points of later curves


def run_band(ax: Axes, x: Any, low: Any, high: Any, colour: Any, dashes: Any) -> None:
    """Draw the band that theory expects one run to lie in, below all other artists, so that bands of several N nest."""
    if np.size(x) == 1:  # a band without width is a bar
        ax.plot([x[0], x[0]], [low[0], high[0]], color=colour, alpha=BAND, linewidth=7, solid_capstyle="butt", zorder=0)
        return
    ax.fill_between(x, low, high, color=colour, alpha=BAND, linewidth=0, zorder=0)
    for edge in (low, high):
        ax.plot(x, edge, color=colour, linestyle=dashes, linewidth=EDGE, alpha=0.7, zorder=1)


def log_ticks(axis: Axis) -> None:
    """Set as many legible ticks on a logarithmic axis as fit between its current limits."""
    low, high = axis.get_view_interval()
    subs = [subs for max_ratio, subs in TICKS.items() if high < max_ratio * low]
    fitting_subs = (
        candidate for candidate in (*subs, *FEWER) if isinstance(axis, YAxis) or _have_room(axis, candidate)
    )
    axis.set_major_locator(LogLocator(subs=next(fitting_subs) if subs else FEWER[-1]))
    if low > 1e-4 and high < 1e5:
        axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())


def _have_room(axis: Axis, subs: tuple[float, ...]) -> bool:
    """Return True if the labels of these ticks on a horizontal axis do not overlap, or if no sparser ticks exist."""
    low, high = axis.get_view_interval()
    spec = axis.axes.get_subplotspec()
    panel_spec = spec.get_topmost_subplotspec() if spec else None
    part = len(panel_spec.colspan) / panel_spec.get_gridspec().ncols if panel_spec else 1.0
    figure: Any = axis.axes.get_figure(root=True)
    width = FILLED * part * figure.get_figwidth() / np.log(high / low)  # inches
    ticks = [tick for tick in LogLocator(subs=subs).tick_values(low, high) if low <= tick <= high]
    letter = LETTER * FontProperties(size=mpl.rcParams["xtick.labelsize"]).get_size_in_points()
    gaps = [width * np.log(after / tick) for tick, after in pairwise(ticks)]
    label_widths = [letter * (1 + (len(f"{tick:g}") + len(f"{after:g}")) / 2) for tick, after in pairwise(ticks)]
    return subs == FEWER[-1] or all(gap > label_width for gap, label_width in zip(gaps, label_widths, strict=True))


def save(figure: Figure, stem: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write a figure, by default as PNG (300 dots per inch), SVG and PDF, each file complete or not at all.

    Parameters
    ----------
    figure
        A figure.
    stem
        The path of the files without their suffix.
    formats
        Some of `png`, `svg` and `pdf`.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    StoreError
        If a file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from matplotlib.figure import Figure
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [file.name for file in save(Figure(), Path(folder) / "empty")]
    ['empty.png', 'empty.svg', 'empty.pdf']
    """
    with _laid_out(figure):
        return files.write_beside(stem, {suffix: _content(figure, suffix) for suffix in formats})


@contextmanager
def _laid_out(figure: Figure, settings: dict[Any, Any] | None = None) -> Iterator[None]:
    """Lay a figure out once for all its files, with its settings and additional ones.

    A second layout would start from the first one and move the panels.
    """
    with mpl.rc_context({**settings_of(figure), "figure.constrained_layout.use": False, **(settings or {})}):
        engine = figure.get_layout_engine()
        if engine is not None:
            engine.execute(figure)
            if any(ax.get_aspect() != "auto" for ax in figure.axes):  # the first layout has changed their size
                engine.execute(figure)
        figure.set_layout_engine(None)  # the engine "none" would draw each file twice
        try:
            yield
        finally:
            figure.set_layout_engine(engine)


def _content(figure: Figure, suffix: str) -> bytes:
    # without dates equal figures give equal files
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix)
    file = io.BytesIO()
    figure.savefig(file, format=suffix, metadata=metadata)
    return file.getvalue()


def element(figure: Figure) -> str:
    """Return a figure as an SVG element of a page, with text as outlines, which need no fonts."""
    file = io.StringIO()
    with _laid_out(figure, {"svg.fonttype": "path"}):
        figure.savefig(file, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    text = file.getvalue()
    return text[text.index("<svg") :]
