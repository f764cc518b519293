"""Conversion of ranges written as `1..5` or `0.1:1:0.1` to the syntax of configs."""

from __future__ import annotations

import re
from decimal import Decimal

NUMBER_PATTERN = r"[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
RANGE_PATTERN = re.compile(
    rf"\s*({NUMBER_PATTERN})\s*(?:\.\.\.?|:|-|to)\s*({NUMBER_PATTERN})(?:\s*(?:\.\.\.?|:)\s*({NUMBER_PATTERN}))?\s*"
)
MAX_RANGE_VALUES = 10_000  # text for a longer range is not converted


def convert_range_to_linspace(text: str) -> str:
    """Convert the range start..stop or start:stop:step to a `linspace`, and other text to "".

    Without a step, the values have the same number of decimals as the end points. The last value is at most `stop`.

    >>> convert_range_to_linspace("1..5"), convert_range_to_linspace("0.1:1:0.1"), convert_range_to_linspace("many")
    ('{linspace: [1, 5, 5]}', '{linspace: [0.1, 1, 10]}', '')
    """
    match = RANGE_PATTERN.fullmatch(text) if len(text) < 60 else None
    if match is None:
        return ""
    start, stop = _parse_decimal(match[1]), _parse_decimal(match[2])
    finest = min(_get_decimal_exponent(start), _get_decimal_exponent(stop), 0)
    step = _parse_decimal(match[3]) if match[3] else Decimal(1).scaleb(finest).copy_sign(stop - start)
    number = int((stop - start) / step) + 1 if step else 0
    if not 2 <= number <= MAX_RANGE_VALUES:
        return ""
    return f"{{linspace: [{_format_decimal(start)}, {_format_decimal(start + (number - 1) * step)}, {number}]}}"


def _parse_decimal(text: str) -> Decimal:
    """Parse a number as an exact decimal."""
    return Decimal(text.replace("_", ""))


def _get_decimal_exponent(number: Decimal) -> int:
    """Return the power of ten of the last digit."""
    return int(number.as_tuple().exponent)


def _format_decimal(number: Decimal) -> str:
    """Format a decimal without an exponent or trailing zeros.

    >>> _format_decimal(Decimal("1.0")), _format_decimal(Decimal("1E+3"))
    ('1', '1000')
    """
    return f"{number.normalize():f}"
