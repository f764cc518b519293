"""Theme and axes of interactive charts: sizes, legible colours, limits, ticks, and labels at the ends of lines.

Theme: colours have the contrast of `figures.contrast` to a white page. A dark page shows the same charts through a
filter of the browser.

Axes: the limits of the y axis show all curves, except values next to a divergence. Up to two decades, ticks of
logarithmic axes replace Bokeh's own ticks, which are linear there. Labels are wrapped, do not overlap and stay inside
the chart.
"""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from bokeh.models import FixedTicker, LogTicker
from matplotlib.colors import to_hex

from figures.contrast import LINE_CONTRAST, TEXT_CONTRAST, make_legible
from figures.curves import Curve, widen_equal_limits
from figures.labels import SUPERSCRIPT_DIGITS

PAGE_COLOUR, TEXT_COLOUR, AXIS_COLOUR, GRID_COLOUR = "#ffffff", "#444444", "#8a8a8a", "#e5e5e5"
# inverts lightness and keeps hues. Panel's variable is "invert(1)" on a dark page and "none" on a light page, where the
# list of filters is therefore invalid and has no effect
DARK_PAGE_FILTER = "var(--panel-icon-filter) hue-rotate(180deg) contrast(0.9) brightness(1.2)"


class ChartTheme(NamedTuple):
    """The theme of a chart.

    Parameters
    ----------
    size
        Size of letters, lines and points, relative to the default.
    bare
        True if the page outside the chart names axes and lines.
    """

    size: float = 1.0
    bare: bool = False


DEFAULT_THEME = ChartTheme()


def get_curve_colour(colour: Any) -> str:
    """Return a legible colour for lines and points that have this colour on paper.

    >>> get_curve_colour("#0072B2"), get_curve_colour("0.8")
    ('#0072b2', '#939393')
    """
    return make_legible(to_hex(colour), PAGE_COLOUR, LINE_CONTRAST)


def get_text_colour(colour: Any) -> str:
    """Return a legible colour for text about a curve that has this colour on paper."""
    return make_legible(get_curve_colour(colour), PAGE_COLOUR, TEXT_CONTRAST)


LABEL_LINE_LETTERS, MAX_LABEL_LINES = 20, 3  # longer labels would leave too little space for the curves
UNBREAKABLE_EQUALS = "\u00a0=\u00a0"  # keeps a name and its value on one line


def wrap_label(label: str) -> str:
    """Wrap the label of a curve, and cut it off after `MAX_LABEL_LINES` lines.

    The whole label is shown under the pointer.

    >>> wrap_label("power law (decay 1.5, teacher decay 2)"), wrap_label("hebb")
    ('power law (decay\\n1.5, teacher decay\\n2)', 'hebb')
    >>> wrap_label("nesterov, momentum = 0.9").replace("\u00a0", " ")
    'nesterov,\\nmomentum = 0.9'
    """
    text = label.replace(" = ", UNBREAKABLE_EQUALS)
    return "\n".join(textwrap.wrap(text, LABEL_LINE_LETTERS, max_lines=MAX_LABEL_LINES, placeholder=" …"))


def separate_positions(targets: Sequence[float], min_distance: float, height: float) -> list[float]:
    """Spread positions to a minimal distance, as little as possible and in the same order.

    The new positions lie between 0 and the height if there is enough space.

    >>> separate_positions([10.0, 12.0, 50.0], 10.0, 60.0), separate_positions([1.0, 2.0, 59.0], 10.0, 60.0)
    ([6.0, 16.0, 50.0], [5.0, 15.0, 55.0])
    """
    order = sorted(range(len(targets)), key=lambda index: targets[index])
    groups: list[list[int]] = []
    positions = list(targets)
    for index in order:
        groups.append([index])
        while True:
            group = groups[-1]
            middle = sum(targets[member] for member in group) / len(group)
            for rank, member in enumerate(group):
                positions[member] = middle + (rank - (len(group) - 1) / 2) * min_distance
            if len(groups) == 1 or positions[group[0]] - positions[groups[-2][-1]] >= min_distance:
                break
            groups[-2:] = [groups[-2] + group]
    return _move_into_range(positions, order, min_distance, height)


def _move_into_range(positions: list[float], order: Sequence[int], min_distance: float, height: float) -> list[float]:
    """Move positions into the range from 0 to the height, and push neighbours aside."""
    lower = min_distance / 2
    for index in order:
        positions[index] = max(positions[index], lower)
        lower = positions[index] + min_distance
    upper = height - min_distance / 2
    for index in reversed(order):
        positions[index] = min(positions[index], upper)
        upper = positions[index] - min_distance
    return positions


MAX_CUT_PEAK_WIDTH_FRACTION = 0.01  # a peak on a smaller fraction of x is cut off
PEAK_MARGIN, LIMIT_MARGIN = 0.3, 0.05  # relative to the height
MAX_LEVEL_DISTANCE_IN_HEIGHTS = 1.0  # in heights of the curves: levels farther away are not shown


class AxisLimits(NamedTuple):
    """The lower and the upper end of an axis."""

    low: float
    high: float

    def get_relative_position(self, y: float, log: bool) -> float:
        """Return the position of a value, from 0 at the lower end to 1 at the upper end."""
        low, high, scaled_y = _scale_values(np.array([self.low, self.high, self.clip_value(y)]), log)
        return float((scaled_y - low) / (high - low))

    def clip_value(self, y: float) -> float:
        """Return the nearest value within the limits."""
        return float(np.clip(y, self.low, self.high)) if np.isfinite(y) else self.low

    def covers_fraction(self, wider: AxisLimits, min_fraction: float, log: bool) -> bool:
        """Return True if these limits cover at least this fraction of wider limits."""
        low, high = _scale_values(np.array(self), log)
        wide_low, wide_high = _scale_values(np.array(wider), log)
        return bool(high - low >= min_fraction * (wide_high - wide_low))


def extend_limits(needed: AxisLimits | None, current: AxisLimits | None, log: bool) -> AxisLimits | None:
    """Extend the current limits to include the needed limits.

    >>> (
    ...     extend_limits(AxisLimits(0, 3), AxisLimits(1, 4), False),
    ...     extend_limits(AxisLimits(1, 2), AxisLimits(0, 4), False)
    ... )
    (AxisLimits(low=0, high=4), AxisLimits(low=0, high=4))
    """
    if needed is None or current is None or (log and current.low <= 0):
        return needed or current
    return AxisLimits(min(needed.low, current.low), max(needed.high, current.high))


def compute_y_limits(
    curves: Iterable[Curve], log_x: bool, log_y: bool, theory_is_bound: bool = False
) -> AxisLimits | None:
    """Return the limits that show these curves and nearby levels, or None if the curves have no value.

    Theory that is a bound, which may be far away, counts as a level if there are points.
    """
    curves = [*curves]
    points = [replace(curve, theory=None) for curve in curves] if theory_is_bound else []
    values = _collect_finite_scaled_values(
        (part for curve in points for part in _get_values_to_show(curve, log_x, log_y)), log_y
    )
    bounds = [curve.theory for curve in curves if curve.theory is not None] if values.size else []
    if not bounds:
        values = _collect_finite_scaled_values(
            (part for curve in curves for part in _get_values_to_show(curve, log_x, log_y)), log_y
        )
    if not values.size:
        return None
    levels = _collect_finite_scaled_values(
        (*bounds, *(level for curve in curves for _, level in curve.reference_levels)), log_y
    )
    cutoff = MAX_LEVEL_DISTANCE_IN_HEIGHTS * np.ptp(values) or (abs(values[0]) if bounds else 0.0) or np.inf
    near_levels = levels[(levels >= values.min() - cutoff) & (levels <= values.max() + cutoff)]
    low = values.min(initial=near_levels.min(initial=np.inf))
    high = values.max(initial=near_levels.max(initial=-np.inf))
    margin = LIMIT_MARGIN * (high - low) or 0.1 * log_y
    low, high = float(low - margin), float(high + margin)
    return AxisLimits(10**low, 10**high) if log_y else AxisLimits(*widen_equal_limits(low, high))


def _collect_finite_scaled_values(parts: Iterable[np.ndarray], log: bool) -> np.ndarray:
    """Return all finite values in the linear or logarithmic coordinates of an axis."""
    values = np.concatenate([np.zeros(0), *(_scale_values(part, log).ravel() for part in parts)])
    return values[np.isfinite(values)]


def _get_values_to_show(curve: Curve, log_x: bool, log_y: bool) -> Iterable[np.ndarray]:
    """Yield the values of a curve that must be visible."""
    if curve.runs is not None:
        yield curve.runs.ravel()
    elif curve.mean is not None:
        error = np.zeros_like(curve.mean) if curve.error is None else np.nan_to_num(curve.error)
        yield np.concatenate([curve.mean + error, curve.mean if log_y else curve.mean - error])
    if curve.theory is None or curve.theory_x is None:
        return
    if not has_single_value(curve.theory):
        yield _cut_peaks(curve.theory_x, curve.theory, log_x, log_y)
    if curve.band is not None and not log_y:
        yield np.concatenate(curve.band)


def has_single_value(line: np.ndarray) -> bool:
    """Return True if only one of several values is finite, so that no line can be drawn."""
    return line.size > 1 and int(np.isfinite(line).sum()) == 1


def _cut_peaks(x: np.ndarray, y: np.ndarray, log_x: bool, log_y: bool) -> np.ndarray:
    """Cut off rare peaks of a line that extend far above or below all other values."""
    y_scaled = _scale_values(y, log_y)
    good = np.isfinite(y_scaled)
    if x.dtype.kind not in "if" or good.sum() < 10:
        return y
    x_scaled, values = _scale_values(x[good].astype(float), log_x and bool((x[good] > 0).all())), y_scaled[good]
    length = np.gradient(x_scaled)
    order = np.argsort(values)
    cumulative = np.cumsum(length[order]) / length.sum()
    low, high = values[order][
        np.searchsorted(cumulative, [MAX_CUT_PEAK_WIDTH_FRACTION, 1 - MAX_CUT_PEAK_WIDTH_FRACTION]).clip(
            0, values.size - 1
        )
    ]
    low, high = min(low, values[0], values[-1]), max(high, values[0], values[-1])
    clipped = np.clip(values, low - PEAK_MARGIN * (high - low), high + PEAK_MARGIN * (high - low))
    return np.asarray(10.0**clipped if log_y else clipped)


def _scale_values(values: np.ndarray, log: bool) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(values > 0, np.log10(values), np.nan) if log else np.asarray(values, float)


MAX_NUMBERED_DECADES, MIN_NUMBERED_TICKS = 2.0, 4  # Bokeh's own ticks are good on longer axes
LABELLED_MANTISSAS = (1, 2, 5), (1, 2, 3, 5, 7), tuple(range(1, 10))  # the first that gives enough ticks is used


def make_log_ticks(low: float, high: float, mantissas: tuple[int, ...] = LABELLED_MANTISSAS[0]) -> list[float]:
    """Return multiples of powers of ten, from a decade below an axis to a decade above.

    >>> [tick for tick in make_log_ticks(0.02, 0.6) if 0.02 <= tick <= 0.6]
    [0.02, 0.05, 0.1, 0.2, 0.5]
    """
    first, last = math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1
    return [float(f"{mantissa}e{power}") for power in range(first, last + 1) for mantissa in mantissas]


def format_tick(tick: float) -> str:
    """Format a tick as a number or, beyond four digits, as a power of ten.

    >>> [format_tick(tick) for tick in (0.0005, 20.0, 2e-05, 1e5)]
    ['0.0005', '20', '2·10⁻⁵', '10⁵']
    """
    power = math.floor(math.log10(tick) + 1e-9)
    if -4 <= power <= 4:
        return f"{tick:g}"
    mantissa = round(tick / 10.0**power)
    return ("" if mantissa == 1 else f"{mantissa}·") + "10" + str(power).translate(SUPERSCRIPT_DIGITS)


def set_log_axis_ticks(axis: Any, low: float, high: float) -> None:
    """Set numbered ticks on a logarithmic axis between two values, and keep its ticker if possible."""
    if not 0 < low < high:
        return
    fixed = isinstance(axis.ticker, FixedTicker)
    candidates = [make_log_ticks(low, high, mantissas) for mantissas in LABELLED_MANTISSAS]
    is_numbered = [sum(low <= tick <= high for tick in ticks) >= MIN_NUMBERED_TICKS for ticks in candidates]
    ticks, minor = next(itertools.compress(candidates, is_numbered), []), candidates[-1]
    if not ticks or math.log10(high / low) > MAX_NUMBERED_DECADES:
        if fixed:
            axis.update(ticker=LogTicker(), major_label_overrides={})
        return
    if not fixed:
        axis.ticker = FixedTicker(ticks=ticks, minor_ticks=minor)
    elif axis.ticker.ticks == ticks:
        return
    else:
        axis.ticker.update(ticks=ticks, minor_ticks=minor)
    axis.major_label_overrides = {tick: format_tick(tick) for tick in ticks}
