"""Automatic checks for faults of a figure that a referee would notice at first sight."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.text import Text

from figures import labels
from figures.style import (
    COLUMN_WIDTH,
    CURVE_MARKERS,
    DATA_OUTSIDE_AXES_GID,
    FIGURE_MEDIA,
    MAX_DRAWN_MARKERS,
    NO_LEGEND_GID,
    PAGE_WIDTH,
    get_matplotlib_settings,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

    from statmech.results.results import Results

MIN_FONT_SIZE_POINTS = 6.0  # font size in a figure as wide as a column
MAX_ZIGZAG_TURN_RADIANS = 0.12  # smooth lines do not turn further to one side and back
MIN_POINTS_FOR_SMOOTHNESS_CHECK = 30  # a line with fewer points need not be smooth
MAX_TEXT_OVERLAP_PIXELS = 1.0
MIN_TICK_LABEL_GAP_PIXELS = 3.0  # closer tick labels would read as one number
# a title with only the number of runs
RUN_COUNT_TITLE_PATTERN = re.compile(r"(?:[\d,]+ (?:seeds?|folds|shuffles?)(?:, )?)+")
NAMED_TICK_PATTERN = re.compile(r"[^\W\d_]{2}")  # matches tick labels that are names, not numbers
MAX_POINT_OUTSIDE_AXES_PIXELS = 1.5  # a point may lie this far outside its axes
MAX_GREY_DIFFERENCE = 0.12  # largest difference of the RGB channels (0 to 1) of a grey
_EMPTY_POINTS = np.zeros((0, 2))


def find_figure_faults(figure: Figure, results: Results | None = None) -> list[str]:
    """Return the faults of a figure, one sentence each.

    Faults of data are points outside the axes or below a legend, colours without a legend, crowded markers, and jagged
    lines. Faults of text are small text, raw TeX, text beyond the canvas or over other text, labels of ticks that
    touch, and a title without content. With results, points whose x is not a value of its key are faults as well.

    Artists with the gid "aid" need no legend. Axes with an artist of gid "outside" may have points outside.

    Parameters
    ----------
    figure
        Any matplotlib figure, at its printed size.
    results
        The results that it shows.

    Returns
    -------
    The faults. The list is empty for a figure without faults.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> figure = Figure(figsize=(PAGE_WIDTH, 2), layout="constrained")
    >>> ax = figure.add_subplot()
    >>> _ = ax.plot([0, 1], [0, 2], color="C1")
    >>> _ = ax.set_ylim(0, 1)
    >>> find_figure_faults(figure)
    ['axes 1: 1 of 2 points lie outside', 'axes 1: a line of colour #ff7f0e is in no legend']
    """
    with mpl.rc_context(get_matplotlib_settings(figure)):
        figure.draw_without_rendering()
    data_faults = [
        *_find_points_outside(figure),
        *_find_data_under_legends(figure),
        *_find_unexplained_colours(figure),
        *_find_crowded_markers(figure),
        *_find_jagged_lines(figure),
    ]
    if results is not None:
        data_faults += _find_points_off_key_values(figure, results)
    text_faults = [
        *_find_small_text(figure),
        *_find_raw_tex(figure),
        *_find_misplaced_text(figure),
        *_find_touching_tick_labels(figure),
        *_find_uninformative_titles(figure),
    ]
    return [*_check_width(figure), *data_faults, *text_faults]


def _check_width(figure: Figure) -> Iterator[str]:
    width = figure.get_size_inches()[0] / FIGURE_MEDIA[figure.get_gid() or "page"].size_factor
    if not (COLUMN_WIDTH <= round(width, 6) <= PAGE_WIDTH):
        yield f"a width of {width:g} inches is not between a column and a page"


def _enumerate_axes(figure: Figure) -> Iterator[tuple[int, Axes]]:
    return ((number, ax) for number, ax in enumerate(figure.axes, 1) if ax.axison)


def _get_pixel_points(ax: Axes, artist: Any) -> np.ndarray:
    """Return the points of an artist in pixels, without points that a logarithmic axis cannot show."""
    if isinstance(artist, Line2D):
        data, transform = np.asarray(artist.get_xydata(), float), artist.get_transform()
    elif isinstance(artist, LineCollection):
        data = np.concatenate([_EMPTY_POINTS, *(np.reshape(piece, (-1, 2)) for piece in artist.get_segments())])
        transform = artist.get_transform()
    else:
        data, transform = np.reshape(np.asarray(artist.get_offsets(), float), (-1, 2)), artist.get_offset_transform()
    is_shown = np.isfinite(data).all(axis=1)
    if transform == ax.transData:
        is_shown &= ~(
            ((ax.get_xscale() == "log") & (data[:, 0] <= 0)) | ((ax.get_yscale() == "log") & (data[:, 1] <= 0))
        )
    return np.asarray(transform.transform(data[is_shown]))


def _get_data_artists(ax: Axes) -> Iterator[Any]:
    """Yield the lines, error bars and points that show data."""
    artists: list[Any] = [*ax.lines, *ax.collections]
    for artist in artists:
        is_data = isinstance(artist, Line2D | LineCollection) or (
            len(artist.get_offsets()) and artist.get_offset_transform() == ax.transData
        )
        if artist.get_visible() and is_data:
            yield artist


def _find_points_outside(figure: Figure) -> Iterator[str]:
    """Report points and ends of error bars outside their axes."""
    for number, ax in _enumerate_axes(figure):
        if any(artist.get_gid() == DATA_OUTSIDE_AXES_GID for artist in [*ax.texts, *ax.lines, *ax.patches]):
            continue
        box = ax.get_window_extent()
        points = np.concatenate([_EMPTY_POINTS, *(_get_pixel_points(ax, artist) for artist in _get_data_artists(ax))])
        low = np.asarray(box.min) - MAX_POINT_OUTSIDE_AXES_PIXELS
        high = np.asarray(box.max) + MAX_POINT_OUTSIDE_AXES_PIXELS
        inside = ((points >= low) & (points <= high)).all(axis=1)
        if not inside.all():
            yield f"axes {number}: {np.count_nonzero(~inside)} of {inside.size} points lie outside"


def _find_points_off_key_values(figure: Figure, results: Results) -> Iterator[str]:
    """Report points whose x is not a value of the key on the horizontal axis."""
    data, scenario = results.either, results.scenario
    names = [
        str(name) for name in data.coords if name in scenario.describe_all_keys() and data[name].dtype.kind in "iuf"
    ]
    for number, ax in _enumerate_axes(figure):
        parts = re.split(r"[ ,/]+", ax.get_xlabel().partition(" (")[0])
        ends = {parts[0], parts[-1], *(part for part in parts if part.startswith("$"))}
        matching_names = [name for name in names if labels.get_symbol(scenario, name) in ends]
        values = [data[name].values.ravel() for name in matching_names]
        points = [line for line in ax.lines if line.get_marker() in CURVE_MARKERS and line.get_gid() != NO_LEGEND_GID]
        for x in np.unique([x for line in points for x in np.asarray(line.get_xdata(), float) if np.isfinite(x)]):
            if values and not np.isclose(x, np.concatenate(values)).any():
                yield f"axes {number}: a point at {x:g}, which is no value along {ax.get_xlabel()}"


def _get_legends(figure: Figure) -> list[Legend]:
    return [*figure.legends, *(legend for ax in figure.axes if (legend := ax.get_legend()) is not None)]


def _find_data_under_legends(figure: Figure) -> Iterator[str]:
    """Report points and lines that a legend covers."""
    for legend in _get_legends(figure):
        box = legend.get_window_extent()
        for number, ax in _enumerate_axes(figure):
            if any(
                _overlaps_box(_get_pixel_points(ax, artist), box, isinstance(artist, Line2D))
                for artist in _get_data_artists(ax)
            ):
                yield f"axes {number}: a legend covers data"


def _overlaps_box(points: np.ndarray, box: Any, is_joined: bool) -> bool:
    if is_joined and 1 < len(points) < 1000:  # a segment may cross the legend between its ends
        steps = np.linspace(0, 1, 20)[:, None, None]
        points = (points[:-1] * (1 - steps) + points[1:] * steps).reshape(-1, 2)
    return bool(((points > box.min) & (points < box.max)).all(axis=1).any())


def _find_unexplained_colours(figure: Figure) -> Iterator[str]:
    """Report colours of lines and points that no legend, label or title explains."""
    legend_colours = {
        _get_artist_rgb(handle) for legend in _get_legends(figure) for handle in _get_legend_handles(legend)
    }
    # coloured text explains a curve of the same colour
    legend_colours |= {_round_rgb(text.get_color()) for text in figure.findobj(Text) if text.get_text()}
    for number, ax in _enumerate_axes(figure):
        lines_by_colour = {
            _round_rgb(line.get_color()): line
            for line in ax.lines
            if line.get_visible() and line.get_gid() != NO_LEGEND_GID and len(_get_pixel_points(ax, line))
        }
        for colour, line in lines_by_colour.items():
            if colour not in legend_colours and max(colour) - min(colour) >= MAX_GREY_DIFFERENCE:
                yield f"axes {number}: a line of colour {mpl.colors.to_hex(line.get_color())} is in no legend"


def _get_legend_handles(legend: Legend) -> Iterator[Any]:
    for handle in legend.findobj(
        lambda artist: isinstance(artist, Line2D | LineCollection) or hasattr(artist, "get_facecolor")
    ):
        if handle is not legend.get_frame():
            yield handle


def _get_artist_rgb(artist: Any) -> tuple[float, float, float]:
    colour = artist.get_color() if hasattr(artist, "get_color") else artist.get_facecolor()
    rows = np.atleast_2d(np.asarray(colour, object)) if not isinstance(colour, str) else None
    return _round_rgb(colour if rows is None else tuple(map(float, rows[0])) if rows.size else "white")


def _round_rgb(colour: Any) -> tuple[float, float, float]:
    red, green, blue = (round(float(channel), 3) for channel in to_rgb(colour))
    return red, green, blue


def _find_small_text(figure: Figure) -> Iterator[str]:
    small_texts = {
        text.get_text()
        for text in figure.findobj(Text)
        if text.get_text() and text.get_visible() and float(text.get_fontsize()) < MIN_FONT_SIZE_POINTS
    }
    if small_texts:
        yield f"text below {MIN_FONT_SIZE_POINTS:g} points: {', '.join(sorted(small_texts)[:3])}"


def _find_crowded_markers(figure: Figure) -> Iterator[str]:
    """Report curves with more markers than a reader can distinguish."""
    for number, ax in _enumerate_axes(figure):
        for line in ax.lines:
            has_markers = str(line.get_marker()) not in ("None", "", " ") and line.get_gid() != NO_LEGEND_GID
            points = (
                _get_pixel_points(ax, line)
                if has_markers and line.get_markevery() is None and line.get_visible()
                else _EMPTY_POINTS
            )
            count, steps = len(points), np.diff(points[:, 0])
            scattered = steps.min(initial=0) < 0 < steps.max(initial=0)  # in a plane of two variables, x is not sorted
            has_dashes = str(line.get_marker()) in ("_", "|")  # caps of error bars, and dashes of theory
            if count > MAX_DRAWN_MARKERS and not (scattered or has_dashes):
                yield f"axes {number}: {count} markers of one curve"


def _find_jagged_lines(figure: Figure) -> Iterator[str]:
    """Report dense solid lines without markers that turn to one side and back within three points."""
    for number, ax in _enumerate_axes(figure):
        for line in ax.lines:
            is_solid = (
                str(line.get_marker()) in ("None", "")
                and line.get_linestyle() == "-"
                and line.get_drawstyle() == "default"
            )
            x = np.asarray(line.get_xdata(), float)
            # values at integers may alternate
            is_smooth = is_solid and x.size >= MIN_POINTS_FOR_SMOOTHNESS_CHECK and not np.array_equal(x, np.round(x))
            if (
                is_smooth
                and line.get_gid() not in (NO_LEGEND_GID, DATA_OUTSIDE_AXES_GID)
                and any(map(_has_zigzag, _split_at_gaps(line)))
            ):
                yield f"axes {number}: a line of colour {mpl.colors.to_hex(line.get_color())} is jagged"


def _split_at_gaps(line: Line2D) -> list[np.ndarray]:
    """Split the points of a line, in pixels, at its gaps."""
    points = np.asarray(line.get_transform().transform(np.asarray(line.get_xydata(), float)))
    is_gap = ~np.isfinite(points).all(axis=1)
    return [piece[np.isfinite(piece).all(axis=1)] for piece in np.split(points, np.flatnonzero(is_gap))]


def _has_zigzag(points: np.ndarray) -> bool:
    steps = np.diff(points, axis=0)
    steps = steps[np.hypot(*steps.T) > 1]  # shorter steps are not visible
    turns = np.diff(np.unwrap(np.arctan2(steps[:, 1], steps[:, 0])))
    return bool(
        (np.minimum(abs(turns[:-1]), abs(turns[1:])) > MAX_ZIGZAG_TURN_RADIANS)[turns[:-1] * turns[1:] < 0].any()
    )


def _get_visible_texts(figure: Figure) -> list[Text]:
    return [text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible()]


def _find_raw_tex(figure: Figure) -> Iterator[str]:
    """Report text with raw TeX: an unpaired dollar sign, or commands outside of dollar signs."""
    for text in _get_visible_texts(figure):
        for line in text.get_text().split("\n"):
            parts = line.replace(r"\$", "").split("$")
            if len(parts) % 2 == 0 or any("\\" in part for part in parts[::2]):
                yield f"raw TeX: {line}"


def _find_misplaced_text(figure: Figure) -> Iterator[str]:
    """Report text that leaves the canvas or overlaps other text."""
    boxed_texts = [(text, box) for text in _get_drawn_texts(figure) if (box := text.get_window_extent()).width > 0]
    width, height = figure.bbox.size
    for text, box in boxed_texts:
        if (
            box.x0 < -MAX_TEXT_OVERLAP_PIXELS
            or box.y0 < -MAX_TEXT_OVERLAP_PIXELS
            or box.x1 > width + MAX_TEXT_OVERLAP_PIXELS
            or box.y1 > height + MAX_TEXT_OVERLAP_PIXELS
        ):
            yield f"text beyond the canvas: {text.get_text()}"
    boxes = np.array(
        [
            (
                box.x0 + MAX_TEXT_OVERLAP_PIXELS,
                box.y0 + MAX_TEXT_OVERLAP_PIXELS,
                box.x1 - MAX_TEXT_OVERLAP_PIXELS,
                box.y1 - MAX_TEXT_OVERLAP_PIXELS,
            )
            for _, box in boxed_texts
        ]
    ).reshape(-1, 4)
    low, high = boxes[:, None, :2], boxes[:, None, 2:]
    overlaps = np.triu((np.maximum(low, low.swapaxes(0, 1)) < np.minimum(high, high.swapaxes(0, 1))).all(axis=2), 1)
    for first, second in np.argwhere(overlaps):
        yield f"text over text: {boxed_texts[first][0].get_text()} and {boxed_texts[second][0].get_text()}"


def _get_axis_pair(ax: Any) -> list[Any]:
    return [ax.xaxis, ax.yaxis]


def _find_touching_tick_labels(figure: Figure) -> Iterator[str]:
    """Report neighbouring tick labels without a gap."""
    drawn_ids = {id(text) for text in _get_drawn_texts(figure)}
    for number, ax in _enumerate_axes(figure):
        for side, axis in enumerate(_get_axis_pair(ax)):
            visible_labels = [label for label in axis.get_ticklabels(which="both") if id(label) in drawn_ids]
            boxes = sorted((label.get_window_extent() for label in visible_labels), key=lambda box: box.min[side])
            if any(
                after.min[side] - box.max[side] < MIN_TICK_LABEL_GAP_PIXELS * (side == 0)
                for box, after in pairwise(boxes)
            ):
                yield f"axes {number}: labels of {axis.axis_name} ticks touch"


def _find_uninformative_titles(figure: Figure) -> Iterator[str]:
    """Report a title with only the number of runs, unless other labels name the content."""
    titles = [figure.get_suptitle(), *(ax.get_title() + ax.get_title(loc="left")[len("(a) ") :] for ax in figure.axes)]
    nonempty = [title for title in titles if title]
    ticks = [
        label.get_text()
        for _, ax in _enumerate_axes(figure)
        for axis in _get_axis_pair(ax)
        for label in axis.get_ticklabels()
    ]
    has_named_ticks = any(NAMED_TICK_PATTERN.match(tick) for tick in ticks)
    if nonempty and not has_named_ticks and all(RUN_COUNT_TITLE_PATTERN.fullmatch(title) for title in nonempty):
        yield f"a title that names nothing: {nonempty[0]}"


def _get_drawn_texts(figure: Figure) -> Iterator[Text]:
    """Return the texts that are drawn, without labels of ticks outside the axis limits."""
    ticks: dict[int, bool] = {}
    for ax in [*figure.axes, *(strip for panel in figure.axes for strip in panel.child_axes)]:
        for axis in _get_axis_pair(ax) if ax.axison and ax.get_visible() else ():
            active_ticks = {id(tick) for tick in axis._update_ticks()} if axis.get_visible() else set()
            for tick in [*axis.majorTicks, *axis.minorTicks]:
                ticks |= {id(label): id(tick) in active_ticks for label in (tick.label1, tick.label2)}
    hidden_texts = {
        id(text) for ax in figure.axes if not ax.axison for text in (*ax.xaxis.findobj(Text), *ax.yaxis.findobj(Text))
    }
    return (text for text in _get_visible_texts(figure) if ticks.get(id(text), True) and id(text) not in hidden_texts)
