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
from matplotlib.colors import to_hex
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from figures.contrast import LINE_CONTRAST, make_legible
from statmech.convex.losses import LOSSES
from statmech.convex.weight_distributions import WEIGHT_DISTRIBUTIONS
from statmech.errors import ConfigError, format_unknown_name
from statmech.numerics.statistics import compute_run_standard_error
from statmech.runtime import files
from statmech.students.activations import ACTIVATIONS
from statmech.students.learners import LEARNERS
from statmech.students.rules import RULES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

COLUMN_WIDTH, PAGE_WIDTH = 3.375, 6.75  # inches
DATA_OUTSIDE_AXES_GID = "outside"  # marks an arrow or a line that points to data outside the axes
NO_LEGEND_GID = "aid"  # marks artists without a legend entry: guides to the eye, points that are named by their row
CURVE_COLOURS = (  # Okabe & Ito, but ochre and violet instead of orange and sky blue, which are too light on white
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#806000", "#9166DD", "#000000"),
)
CURVE_MARKERS = ("o", "s", "^", "D", "v", "<", ">")  # hollow ones stay visibly hollow when small
CURVE_DASHES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (6, 2, 1, 2, 1, 2)), (0, (1, 3)), (0, (8, 3)))
THEORY_COLOUR = "0.25"  # one grey line for points of all colours
SHADES_COLORMAP, GREY_COLORMAP = "viridis", "Greys_r"  # for more ordered values than there are colours
MAX_GREY = 0.48  # a lighter grey would have too little contrast to a white page
MAX_MARKERS_PER_CURVE = 15  # more markers would hide the line of a curve
MAX_DRAWN_MARKERS = 20  # per curve with joined points, or with points at the peaks of theory
NESTED_MARKER_SIZE_EXCESS = 0.7  # the largest nested marker exceeds the smallest by this fraction
# guides the eye between points
JOINING_LINE_STYLE: dict[str, Any] = {"color": "0.55", "linewidth": 0.6, "zorder": 1, "gid": NO_LEGEND_GID}
MINIMUM_STAR_STYLE: dict[str, Any] = {  # marks a minimum, drawn beneath the points
    "marker": "*",
    "markersize": 11,
    "markeredgewidth": 0,
    "linestyle": "none",
    "zorder": 2.5,
}
MARKER_ZORDER = 3.1  # Matplotlib draws the markers of error bars 0.1 above the bars
SMALL_FONT_SIZE = "small"  # text inside panels
BAND_OPACITY = 0.18  # for the band that theory predicts for a single run
BAND_EDGE_WIDTH_POINTS = 0.5  # points
DIVERGENCE_FACTOR = 1e4  # a divergence is drawn this many times higher than its neighbours
# multiples of powers of ten, by maximal ratio of limits
LOG_TICK_MULTIPLES_BY_RATIO: dict[float, tuple[float, ...]] = {
    5: (1, 1.5, 2, 3, 5, 7),
    20: (1, 2, 3, 5),
    200: (1, 2, 5),
}
SPARSE_LOG_TICK_MULTIPLES: tuple[tuple[float, ...], ...] = ((1, 3), (1,))  # if the labels of denser ticks would overlap
LETTER_WIDTH = 0.64 / 72  # inches per point of font size
PANEL_WIDTH_FRACTION = 0.75  # all panels, relative to the figure
FIGURE_FORMATS = ("png", "svg", "pdf")

STYLE_SETTINGS: dict[Any, Any] = {
    "axes.prop_cycle": cycler(color=CURVE_COLOURS),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "figure.titlesize": 9,
    "errorbar.capsize": 1.5,  # caps stay within the markers
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
    "svg.hashsalt": "statmech",  # makes files of equal figures identical
    "pdf.fonttype": 42,
}


class Medium(NamedTuple):
    """Style settings of a medium: a page, a journal column, or slides.

    They are changes of `STYLE_SETTINGS`, the scale of sizes, and whether panels form one column.
    """

    style_changes: dict[Any, Any]
    size_factor: float = 1.0
    is_one_column: bool = False


FIGURE_MEDIA = {
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
        is_one_column=True,
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
        size_factor=1.5,
    ),
    "phone": Medium({}, is_one_column=True),  # drawn for reports
}
OFFERED_MEDIA = ("page", "pre", "talk")


class DrawingOptions(NamedTuple):
    """Options of the figure being drawn: its medium, and whether it has strips of residuals."""

    medium: str = "page"
    has_residual_strips: bool = False


DEFAULT_DRAWING_OPTIONS = DrawingOptions()
DRAWING_OPTIONS: ContextVar[DrawingOptions] = ContextVar("DRAWING_OPTIONS", default=DEFAULT_DRAWING_OPTIONS)


@contextmanager
def use_medium(medium: str | None, residuals: bool = False) -> Iterator[None]:
    """Use the style of a medium, such as `page` or `talk`, for the figures drawn in a `with` block.

    Parameters
    ----------
    medium
        A name in `FIGURE_MEDIA`; None for `page`.
    residuals
        True for a strip below each panel that shows deviations from theory in standard errors.

    Raises
    ------
    ConfigError
        For an unknown medium.

    Examples
    --------
    >>> with use_medium("pre"):
    ...     apply_style(lambda: mpl.rcParams["font.family"])()
    ['STIXGeneral']
    """
    if medium is not None and medium not in FIGURE_MEDIA:
        raise ConfigError(f"style: {format_unknown_name(medium, 'a style of figures', OFFERED_MEDIA)}")
    before = DRAWING_OPTIONS.set(DrawingOptions(medium or "page", residuals))
    try:
        yield
    finally:
        DRAWING_OPTIONS.reset(before)


def get_medium() -> Medium:
    """Return the medium of the figure being drawn."""
    return FIGURE_MEDIA[DRAWING_OPTIONS.get().medium]


def get_matplotlib_settings(figure: Figure) -> dict[Any, Any]:
    """Return the matplotlib settings for the medium of a figure, which the figure's gid names."""
    return STYLE_SETTINGS | FIGURE_MEDIA.get(figure.get_gid() or "page", FIGURE_MEDIA["page"]).style_changes


def apply_style(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Wrap a drawing function so that it uses this style instead of the user's matplotlib settings.

    Parameters
    ----------
    draw
        A function that returns a figure.

    Returns
    -------
    callable
        The same function under the settings `STYLE_SETTINGS`.

    Examples
    --------
    >>> apply_style(lambda: mpl.rcParams["axes.titlesize"])()
    9.0
    """

    @wraps(draw)
    def draw_styled(*args: Any, **kwargs: Any) -> Figure:
        with mpl.rc_context(), matplotlib.style.context(["default", STYLE_SETTINGS, get_medium().style_changes]):
            return draw(*args, **kwargs)

    return draw_styled


def get_kind_label(name: str) -> str:
    """Return the label of a rule, a learner, an activation, a loss or a prior in figures."""
    kinds: dict[str, Any] = {**WEIGHT_DISTRIBUTIONS, **LOSSES, **ACTIVATIONS, **LEARNERS, **RULES}
    return str(kinds[name].label)


def get_curve_style(index: int) -> dict[str, Any]:
    """Return the colour and marker of the index-th curve, distinguishable in colour, in grey and in print."""
    marker = (index + index // len(CURVE_MARKERS)) % len(CURVE_MARKERS)  # the markers shift when colours repeat
    return {"color": CURVE_COLOURS[index % len(CURVE_COLOURS)], "marker": CURVE_MARKERS[marker]}


def get_nested_marker_scale(index: int, count: int) -> float:
    """Return the scale of the index-th of several curves with overlapping points.

    The x of a point does not change. Each curve has smaller markers than the curve below it.
    """
    return 1 + NESTED_MARKER_SIZE_EXCESS * (count - 1 - index) / max(count - 1, 1)


def nested_marker_size(index: int, count: int) -> dict[str, Any]:
    """Return the marker size of the index-th of several curves with overlapping points."""
    return {"markersize": mpl.rcParams["lines.markersize"] * get_nested_marker_scale(index, count)}


def choose_drawn_steps(num_steps: int) -> list[int]:
    """Choose at most `MAX_MARKERS_PER_CURVE` of `num_steps` steps, geometrically spaced from the first to the last.

    >>> choose_drawn_steps(100)
    [0, 1, 2, 4, 6, 9, 12, 18, 25, 36, 50, 70, 99]
    """
    steps = np.unique(np.geomspace(1, max(num_steps, 1), MAX_MARKERS_PER_CURVE).astype(int) - 1)
    return [int(step) for step in steps if step < num_steps]


def make_shades(num_colours: int, grey: bool = False) -> list[Any]:
    """Return colours or greys for ordered values, from dark to light, none too light on a white page."""
    colormap = mpl.colormaps[GREY_COLORMAP if grey else SHADES_COLORMAP]
    colours = (to_hex(colormap(position)) for position in np.linspace(0, MAX_GREY if grey else 0.95, num_colours))
    return [make_legible(colour, "#ffffff", LINE_CONTRAST) for colour in colours]


def draw_seed_means(ax: Axes, x: Any, values: Any, index: int, **kwargs: Any) -> None:
    """Draw means of a simulation over seeds, with their standard errors."""
    style = {"linestyle": "none", "markerfacecolor": "white", **get_curve_style(index), **kwargs}
    ax.errorbar(x, values.mean("seed"), yerr=standard_error_over_seeds(values), **style)


def draw_theory_line(ax: Axes, x: Any, values: Any, **style: Any) -> None:
    """Draw theory as a line or, for a single x, as a dash.

    The line leaves the frame where a value is infinite. The limits of the frame depend on the finite values only.
    """
    dash = {"marker": "_", "markersize": 7, "markeredgewidth": 1.1}
    x, values = np.asarray(x), np.asarray(values, float)
    ax.plot(x, np.where(np.isinf(values), np.nan, values), **{**(dash if x.size == 1 else {}), **style})
    rising = replace_infinities(values)
    for index in np.flatnonzero(np.isinf(values)):
        neighbours = slice(max(index - 1, 0), index + 2)
        line = Line2D(x[neighbours], rising[neighbours], **{**style, "gid": DATA_OUTSIDE_AXES_GID})
        ax.add_artist(line)  # unlike plot, this does not change the limits


def replace_infinities(values: np.ndarray) -> np.ndarray:
    """Replace infinite values by finite values far above or below their neighbours.

    >>> replace_infinities(np.array([1.0, 2.0, np.inf, 3.0]))
    array([1.e+00, 2.e+00, 3.e+04, 3.e+00])
    """
    replaced = values.copy()
    for index in np.flatnonzero(np.isinf(values)):
        neighbours = values[max(index - 1, 0) : index + 2]
        replaced[index] = (
            np.sign(values[index]) * DIVERGENCE_FACTOR * np.abs(neighbours[np.isfinite(neighbours)]).max(initial=1)
        )
    return replaced


def standard_error_over_seeds(values: Any) -> Any:
    """Return the standard error of the mean over seeds, or None for a single seed."""
    return compute_run_standard_error(values) if values.sizes["seed"] > 1 else None


def draw_mean_points(
    ax: Axes, x: Any, mean: Any, error: Any, style: int | dict[str, Any], filled_mask: Any = None
) -> None:
    """Draw means as points with bars of their standard errors.

    `style` is the colour and the marker, or the index of the curve. `filled_mask` is a mask of the points to fill.
    Without the mask all points are hollow.
    """
    curve_style = get_curve_style(style) if isinstance(style, int) else style
    style = {"markerfacecolor": "white", **curve_style, "linestyle": "none"}
    ax.errorbar(x, mean, yerr=error, **style, zorder=3)
    if filled_mask is not None:
        positions = np.asarray(x)[filled_mask], np.asarray(mean)[filled_mask]
        filled_style = {**style, "markerfacecolor": curve_style["color"]}
        ax.plot(*positions, **filled_style, zorder=MARKER_ZORDER)  # below the points of later curves


def draw_run_band(ax: Axes, x: Any, low: Any, high: Any, colour: Any, dashes: Any) -> None:
    """Draw the band that theory predicts for a single run, beneath all other artists."""
    if np.size(x) == 1:  # at a single x, the band is a bar
        ax.plot(
            [x[0], x[0]],
            [low[0], high[0]],
            color=colour,
            alpha=BAND_OPACITY,
            linewidth=7,
            solid_capstyle="butt",
            zorder=0,
        )
        return
    ax.fill_between(x, low, high, color=colour, alpha=BAND_OPACITY, linewidth=0, zorder=0)
    for edge in (low, high):
        ax.plot(x, edge, color=colour, linestyle=dashes, linewidth=BAND_EDGE_WIDTH_POINTS, alpha=0.7, zorder=1)


def set_log_ticks(axis: Axis) -> None:
    """Set as many legible ticks on a logarithmic axis as fit between its current limits."""
    low, high = axis.get_view_interval()
    subs = [subs for max_ratio, subs in LOG_TICK_MULTIPLES_BY_RATIO.items() if high < max_ratio * low]
    fitting_subs = (
        candidate
        for candidate in (*subs, *SPARSE_LOG_TICK_MULTIPLES)
        if isinstance(axis, YAxis) or _has_room_for_ticks(axis, candidate)
    )
    axis.set_major_locator(LogLocator(subs=next(fitting_subs) if subs else SPARSE_LOG_TICK_MULTIPLES[-1]))
    if low > 1e-4 and high < 1e5:
        axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())


def _has_room_for_ticks(axis: Axis, multiples: tuple[float, ...]) -> bool:
    """Return True if the labels of these ticks on a horizontal axis do not overlap, or if no sparser ticks exist."""
    low, high = axis.get_view_interval()
    spec = axis.axes.get_subplotspec()
    panel_spec = spec.get_topmost_subplotspec() if spec else None
    part = len(panel_spec.colspan) / panel_spec.get_gridspec().ncols if panel_spec else 1.0
    figure: Any = axis.axes.get_figure(root=True)
    width = PANEL_WIDTH_FRACTION * part * figure.get_figwidth() / np.log(high / low)  # inches
    ticks = [tick for tick in LogLocator(subs=multiples).tick_values(low, high) if low <= tick <= high]
    letter = LETTER_WIDTH * FontProperties(size=mpl.rcParams["xtick.labelsize"]).get_size_in_points()
    gaps = [width * np.log(after / tick) for tick, after in pairwise(ticks)]
    label_widths = [letter * (1 + (len(f"{tick:g}") + len(f"{after:g}")) / 2) for tick, after in pairwise(ticks)]
    return multiples == SPARSE_LOG_TICK_MULTIPLES[-1] or all(
        gap > label_width for gap, label_width in zip(gaps, label_widths, strict=True)
    )


def save_figure(figure: Figure, stem: Path, formats: Sequence[str] = FIGURE_FORMATS) -> list[Path]:
    """Write a figure to files, by default as PNG (300 dots per inch), SVG and PDF.

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
        The files, none of them incomplete.

    Raises
    ------
    StoreError
        If a file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from matplotlib.figure import Figure
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [file.name for file in save_figure(Figure(), Path(folder) / "empty")]
    ['empty.png', 'empty.svg', 'empty.pdf']
    """
    with _lay_out_once(figure):
        return files.write_with_suffixes(stem, {suffix: _encode_figure(figure, suffix) for suffix in formats})


@contextmanager
def _lay_out_once(figure: Figure, settings: dict[Any, Any] | None = None) -> Iterator[None]:
    """Lay out a figure once for all its files.

    A second layout would start from the first one and move the panels.
    """
    with mpl.rc_context(
        {**get_matplotlib_settings(figure), "figure.constrained_layout.use": False, **(settings or {})}
    ):
        engine = figure.get_layout_engine()
        if engine is not None:
            engine.execute(figure)
            if any(ax.get_aspect() != "auto" for ax in figure.axes):  # the first layout changed their size
                engine.execute(figure)
        figure.set_layout_engine(None)  # the engine "none" would draw each file twice
        try:
            yield
        finally:
            figure.set_layout_engine(engine)


def _encode_figure(figure: Figure, suffix: str) -> bytes:
    # files of equal figures must be identical, so they contain no date
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix)
    file = io.BytesIO()
    figure.savefig(file, format=suffix, metadata=metadata)
    return file.getvalue()


def make_svg_element(figure: Figure) -> str:
    """Return a figure as an SVG element with text as outlines, which need no fonts."""
    file = io.StringIO()
    with _lay_out_once(figure, {"svg.fonttype": "path"}):
        figure.savefig(file, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    text = file.getvalue()
    return text[text.index("<svg") :]
