"""Rows of data of an interactive chart, from the curves, guides and marks of a described panel.

Between solved values a line is interpolated smoothly, in the linear or logarithmic coordinates of the chart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from scipy.interpolate import PchipInterpolator

from figures import curves as series
from figures.curves import Curve
from figures.description import CurveStyle, DrawnCurve, DrawnLine, DrawnMark, PanelDescription
from figures.interactive.axes_and_theme import PAGE_COLOUR, ChartTheme, get_curve_colour
from figures.labels import plain_from_latex
from figures.style import THEORY_COLOUR, replace_infinities

MIN_SPLINE_POINTS, MAX_SPLINE_POINTS = 5, 100  # fewer points do not fix a smooth line, more do not need one
BOKEH_MARKERS = {
    "o": "circle",
    "s": "square",
    "^": "triangle",
    "D": "diamond",
    "v": "inverted_triangle",
    "<": "triangle",  # turned
    ">": "triangle",  # turned
    "x": "x",
    "*": "star",
    "|": "dash",  # turned
}
MARKER_ANGLES = {"|": math.pi / 2, "<": math.pi / 2, ">": -math.pi / 2}
BOKEH_DASHES = {"-": "solid", "--": "9 5", ":": "2 4", "-.": "9 4 2 4", "none": "solid"}  # lengths in pixels
LEVEL_LINE_STYLES = (":", "--", "-.")  # one per reference level of a chart
LINE_WIDTH, LEVEL_LINE_WIDTH = 2.0, 1.3
COVERED_LINE_TOL, COVERED_PART_DASH = 1e-4, "12 12"  # relative distance, pixels
MAX_INTEGER_MARKS_PER_LINE = 30  # more marks would hide the line
PIXELS_PER_POINT = 96 / 72
DEFAULT_MARK_POINTS = 6.0
LINE_COLUMNS = ("x", "y", "color", "label", "dash", "width")
POINT_COLUMNS = ("x", "y", "low", "high", "left", "right", "error", "fill", "color", "marker", "angle", "label")
GUIDE_COLUMNS = ("x", "y", "color", "dash", "width", "alpha")
MARK_COLUMNS = ("x", "y", "color", "marker", "size", "angle")
Rows = dict[str, list[Any]]


def interpolate_smoothly(x: np.ndarray, y: np.ndarray, log_x: bool, log_y: bool) -> tuple[np.ndarray, np.ndarray]:
    """Interpolate a line smoothly through these values.

    The interpolant is monotone between neighbouring values, in the coordinates of the chart: a line has no extremum
    that the values do not have.

    >>> x, y = interpolate_smoothly(np.arange(6.0), np.array([0.3, 0.2, 0.1, 0.0, 0.0, 0.0]), False, False)
    >>> np.interp([0, 1, 2, 4], x, y), y.min()
    (array([0.3, 0.2, 0.1, 0. ]), np.float64(0.0))
    """
    if not MIN_SPLINE_POINTS <= x.size <= MAX_SPLINE_POINTS or (np.diff(x) <= 0).any():
        return x, y
    u, v = np.log(x) if log_x else x, np.log(y) if log_y else y
    u_fine = np.union1d(u, np.linspace(u[0], u[-1], 2 * MAX_SPLINE_POINTS))
    v_fine, is_solved = PchipInterpolator(u, v)(u_fine), np.isin(u_fine, u)
    fine_x, fine_y = np.exp(u_fine) if log_x else u_fine, np.exp(v_fine) if log_y else v_fine
    fine_x[is_solved], fine_y[is_solved] = x, y  # solved values must stay exact
    return fine_x, fine_y


def get_dash(linestyle: Any) -> str:
    """Return a dash pattern of matplotlib as `solid` or as lengths in pixels, for Bokeh.

    >>> get_dash("--"), get_dash((0, (6, 2, 1, 2)))
    ('9 5', '12 4 2 4')
    """
    if isinstance(linestyle, str):
        return BOKEH_DASHES[linestyle]
    return " ".join(f"{LINE_WIDTH * length:g}" for length in linestyle[1])


def collect_levels(curves: Sequence[DrawnCurve]) -> list[DrawnCurve]:
    """Return the reference levels as curves, in grey if several curves share a level.

    A level has a label at its end if some of several curves share it: the index of its symbol, and their common values.
    """
    groups: dict[tuple[str, str, bytes], tuple[np.ndarray, list[DrawnCurve]]] = {}
    for drawn_curve in curves:
        for (symbol, y), linestyle in zip(drawn_curve.curve.reference_levels, cycle(LEVEL_LINE_STYLES), strict=False):
            groups.setdefault((symbol, linestyle, y.tobytes()), (y, []))[1].append(drawn_curve)
    levels = []
    for (symbol, linestyle, _), (y, group) in groups.items():
        colour = THEORY_COLOUR if len(group) > 1 else group[0].style.points["color"]
        texts = filter(None, (symbol.rpartition("_")[2], get_common_label(group)))
        line_label = ", ".join(texts) if 1 < len(group) < len(curves) else ""
        level = Curve("", np.zeros(0), theory_x=group[0].curve.theory_x, theory=y)
        style = CurveStyle({"color": colour}, {"color": colour, "linestyle": linestyle}, {})
        levels.append(DrawnCurve(level, style, symbol, line_label))
    return levels


def get_common_label(curves: Sequence[DrawnCurve]) -> str:
    """Return the common parts of the labels of several curves."""
    label_parts = [curve.line_label.split(", ") for curve in curves]
    return ", ".join(part for part in label_parts[0] if all(part in parts for parts in label_parts))


class ChartRows:
    """The rows of data of one chart, whose columns have the names of Bokeh's glyphs.

    `panel` defines the axes, and `theme` the sizes and colours.
    """

    def __init__(self, panel: PanelDescription, theme: ChartTheme):
        self.theme, self.names = theme, [plain_from_latex(name) for name in panel.x_names]
        self.log_x, self.log_y = "x" in panel.log and not self.names, "y" in panel.log
        self.has_integer_x = panel.has_single_theory_values

    def make_run_rows(self, curves: Sequence[DrawnCurve]) -> Rows:
        """Return one row per single run, or a guide through the points of a curve without theory."""
        data = _make_columns("x", "y", "color")
        for drawn_curve in () if self.names else curves:
            curve = drawn_curve.curve
            for run in curve.runs if curve.runs is not None else self._get_guides(drawn_curve, len(curves)):
                _add_row(data, *self._get_visible_points(curve.x, run), self._get_point_colour(drawn_curve))
        return data

    def _get_guides(self, drawn_curve: DrawnCurve, num_curves: int) -> Sequence[np.ndarray]:
        """Return a guide through the means of a curve without theory, if there are several curves."""
        curve = drawn_curve.curve
        lacks_line = drawn_curve.style.line is not None and (
            curve.theory is None or np.isfinite(curve.theory).sum() < 2
        )
        return [curve.mean] if lacks_line and curve.mean is not None and num_curves > 1 and not self.theme.bare else []

    def make_theory_rows(self, curves: Sequence[DrawnCurve], dash: str = "") -> Rows:
        """Return rows of theory: one per line and reference level, or one per name along x.

        All lines have the `dash`, or each its own by default. A level that several curves share is grey.
        """
        data, drawn_lines = _make_columns(*LINE_COLUMNS), []
        for drawn_curve in curves:
            curve, style = drawn_curve.curve, drawn_curve.style.line
            if curve.theory is None or curve.theory_x is None or style is None:
                continue
            colour = get_curve_colour(style["color"])
            label = plain_from_latex(drawn_curve.line_label)
            if self.names:
                for x, y in zip(*self._get_visible_points(curve.theory_x, curve.theory), strict=True):
                    _add_row(data, x, y, colour, label, "solid", LINE_WIDTH)
                continue
            own_dash, is_stepped = dash or get_dash(style.get("linestyle", "-")), "drawstyle" in style
            drawn_lines.append((curve.theory_x, curve.theory, colour, label, is_stepped))
            for x, y in self._split_line(curve.theory_x, curve.theory, is_stepped):
                _add_row(data, x, y, colour, label, own_dash, LINE_WIDTH * self.theme.size)
        if not dash:
            self._add_covered_parts(data, drawn_lines)
        for level in () if self.names else collect_levels(curves):
            colour, width = get_curve_colour(level.style.points["color"]), LEVEL_LINE_WIDTH * self.theme.size
            dash, label = get_dash((level.style.line or {})["linestyle"]), plain_from_latex(level.label)
            for x, y in self._split_line(np.asarray(level.curve.theory_x), np.asarray(level.curve.theory), False):
                _add_row(data, x, y, colour, label, dash, width)
        return data

    def _add_covered_parts(self, data: Rows, lines: Sequence[tuple[np.ndarray, np.ndarray, str, str, bool]]) -> None:
        """Add the covered parts of lines again, dashed and on top, so that both colours are visible."""
        for index, (x, y, colour, label, is_stepped) in enumerate(lines):
            later_lines = [line for line in lines[index + 1 :] if line[2] != colour and np.array_equal(line[0], x)]
            is_covered = np.any([np.isclose(y, line[1], COVERED_LINE_TOL, 0) for line in later_lines], axis=0)
            for part_x, part_y in self._split_line(x, np.where(is_covered, y, np.nan), is_stepped):
                if len(part_x) > 1:
                    _add_row(data, part_x, part_y, colour, label, COVERED_PART_DASH, LINE_WIDTH * self.theme.size)

    def _split_line(self, x: np.ndarray, y: np.ndarray, is_stepped: bool) -> list[tuple[list[Any], list[Any]]]:
        """Split a theory curve at jumps and missing values.

        The line rises far above the chart where theory diverges.
        """
        y = replace_infinities(y)
        is_smooth = not (is_stepped or self.has_integer_x or (np.diff(x) <= 0).any())
        x, y = _make_steps(x, y) if is_stepped else (x, y)
        pieces = [(x[piece], y[piece]) for piece in _find_true_slices(self.get_visible_mask(x, y))]
        if is_smooth:
            pieces = [interpolate_smoothly(*piece, self.log_x, self.log_y) for piece in pieces]
        return [(piece_x.tolist(), piece_y.tolist()) for piece_x, piece_y in pieces] or [([], [])]

    def make_band_rows(self, curves: Sequence[DrawnCurve]) -> Rows:
        """Return rows of bands: one closed outline per piece without gaps, or one row per name along x."""
        data = _make_columns("x", *(("low", "high") if self.names else ("y",)), "color", "dash")
        for drawn_curve in curves:
            curve = drawn_curve.curve
            if curve.band is None or curve.theory is None or curve.theory_x is None:
                continue
            low, high = curve.band
            low = series.clip_band_for_log(low, curve.theory) if self.log_y else low
            good = self.get_visible_mask(curve.theory_x, high) & np.isfinite(low)
            colour, dash = self._get_point_colour(drawn_curve), get_dash(drawn_curve.style.band["dashes"])
            for piece in _find_true_slices(good):
                x, below, above = (part[piece].tolist() for part in (curve.theory_x, low, high))
                if self.names:
                    for row in zip(self._name_positions(x), below, above, strict=True):
                        _add_row(data, *row, colour, dash)
                else:
                    _add_row(data, x + x[::-1], below + above[::-1], colour, dash)
        return data

    def make_integer_theory_rows(self, curves: Sequence[DrawnCurve]) -> Rows:
        """Return rows of theory points for an integer x, where theory has no values between integers."""
        data = _make_columns("x", "y", "color")
        for drawn_curve in curves if self.has_integer_x else ():
            curve, style = drawn_curve.curve, drawn_curve.style.line
            if curve.theory is not None and curve.theory_x is not None and style is not None:
                points = self._get_visible_points(curve.theory_x, curve.theory)
                for x, y in zip(*points, strict=True) if len(points[0]) <= MAX_INTEGER_MARKS_PER_LINE else ():
                    _add_row(data, x, y, get_curve_colour(style["color"]))
        return data

    def make_point_rows(self, curves: Sequence[DrawnCurve]) -> Rows:
        """Return rows of means over runs, with the ends of their error bars."""
        data = _make_columns(*POINT_COLUMNS)
        for drawn_curve in curves:
            curve = drawn_curve.curve
            if curve.mean is None or curve.runs is not None:
                continue
            good = self.get_visible_mask(curve.x, curve.mean)
            y = curve.mean[good]
            error = np.zeros_like(y) if curve.error is None else np.nan_to_num(curve.error[good])
            low = series.clip_band_for_log(y - error, y) if self.log_y else y - error
            points, label = drawn_curve.style.points, plain_from_latex(drawn_curve.label)
            colour, x = self._get_point_colour(drawn_curve), self._get_visible_points(curve.x, curve.mean)[0]
            x_error = drawn_curve.x_error
            left, right = (x, x) if x_error is None else (x + sign * np.nan_to_num(x_error[good]) for sign in (-1, 1))
            mask = drawn_curve.filled_mask
            fill_mask = np.full(y.shape, "markerfacecolor" in points) if mask is None else mask[good]
            fills = np.where(fill_mask, colour, PAGE_COLOUR).tolist()
            errors = [f"± {size:.2g}" if size else "" for size in error]
            marker = points["marker"]
            style = colour, BOKEH_MARKERS[marker], MARKER_ANGLES.get(marker, 0.0), label
            values = (
                x,
                y.tolist(),
                low.tolist(),
                (y + error).tolist(),
                [*left],
                [*right],
                errors,
                fills,
                *([part] * y.size for part in style),
            )
            for column, column_values in zip(data.values(), values, strict=True):
                column += column_values
        return data

    def make_guide_rows(self, lines: Sequence[DrawnLine]) -> Rows:
        """Return rows of guides and fitted lines that are neither vertical nor horizontal."""
        data = _make_columns(*GUIDE_COLUMNS)
        for line in lines:
            if line.x is not None and line.y is not None:
                dash, colour = (get_dash(line.style.get("linestyle", "-")), get_curve_colour(line.style["color"]))
                width, alpha = line.style.get("linewidth", 1.0), line.style.get("alpha", 1.0)
                _add_row(data, list(line.x), list(line.y), colour, dash, width * self.theme.size, alpha)
        return data

    def make_mark_rows(self, marks: Sequence[DrawnMark]) -> Rows:
        """Return rows of marked points."""
        data = _make_columns(*MARK_COLUMNS)
        for mark in marks:
            marker, size = mark.style["marker"], mark.style.get("markersize", DEFAULT_MARK_POINTS)
            colour, angle = get_curve_colour(mark.style["color"]), MARKER_ANGLES.get(marker, 0.0)
            pixels = PIXELS_PER_POINT * size * self.theme.size
            _add_row(data, mark.x, mark.y, colour, BOKEH_MARKERS[marker], pixels, angle)
        return data

    def _get_point_colour(self, drawn_curve: DrawnCurve) -> str:
        return get_curve_colour(drawn_curve.style.points["color"])

    def _name_positions(self, x: Sequence[Any]) -> list[Any]:
        """Return the names at these positions along x, or the positions themselves without names."""
        return [self.names[int(position)] for position in x] if self.names else [*x]

    def _get_visible_points(self, x: np.ndarray, y: np.ndarray) -> tuple[list[Any], list[Any]]:
        good = self.get_visible_mask(x, y)
        return self._name_positions(x[good].tolist()), y[good].tolist()

    def get_visible_mask(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return a mask of the values that the axes can show."""
        good = np.isfinite(y)
        if self.log_y:
            good &= y > 0
        if self.log_x:
            good &= x > 0
        return good


def _make_columns(*names: str) -> Rows:
    return {name: [] for name in names}


def _add_row(data: Rows, *values: Any) -> None:
    for column, value in zip(data.values(), values, strict=True):
        column.append(value)


def _make_steps(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Convert points to a step function that keeps each value up to the next x.

    >>> [part.tolist() for part in _make_steps(np.array([0, 1, 2]), np.array([5, 5, 6]))]
    [[0, 1, 1, 2, 2], [5, 5, 5, 5, 6]]
    """
    return np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]


def _find_true_slices(mask: np.ndarray) -> Iterator[slice]:
    """Return slices of consecutive True values in a mask.

    >>> [*_find_true_slices(np.array([True, True, False, True]))]
    [slice(0, 2, None), slice(3, 4, None)]
    """
    edges = np.flatnonzero(np.diff(mask, prepend=False, append=False)).tolist()
    return (slice(first, last) for first, last in zip(edges[::2], edges[1::2], strict=True))
