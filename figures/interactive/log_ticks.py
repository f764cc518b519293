"""Ticks of logarithmic axes over one or two decades, where Bokeh's own ticks are linear."""

from __future__ import annotations

import math
from typing import Any

from bokeh.models import FixedTicker, LogTicker

MIN_NUMBERED_DECADES, MAX_NUMBERED_DECADES = 0.7, 2.0  # decades: Bokeh's own ticks are good on shorter and longer axes
LABELLED_MANTISSAS = (1, 2, 5)
SUPERSCRIPT_DIGITS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def make_log_ticks(low: float, high: float, mantissas: tuple[int, ...] = LABELLED_MANTISSAS) -> list[float]:
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
    if not MIN_NUMBERED_DECADES <= math.log10(high / low) < MAX_NUMBERED_DECADES:
        if fixed:
            axis.update(ticker=LogTicker(), major_label_overrides={})
        return
    ticks, minor = make_log_ticks(low, high), make_log_ticks(low, high, tuple(range(1, 10)))
    if not fixed:
        axis.ticker = FixedTicker(ticks=ticks, minor_ticks=minor)
    elif axis.ticker.ticks == ticks:
        return
    else:
        axis.ticker.update(ticks=ticks, minor_ticks=minor)
    axis.major_label_overrides = {tick: format_tick(tick) for tick in ticks}
