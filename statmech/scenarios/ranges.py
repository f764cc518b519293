"""Ranges in the notation of other programs, `1..5` or `0.1:1:0.1`, converted to the form of a config."""

from __future__ import annotations

import re
from decimal import Decimal

NUMBER = r"[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
RANGE = re.compile(rf"\s*({NUMBER})\s*(?:\.\.\.?|:|-|to)\s*({NUMBER})(?:\s*(?:\.\.\.?|:)\s*({NUMBER}))?\s*")
MOST = 10_000  # values


def spaced(text: str) -> str:
    """Return `{linspace: [start, stop, number]}` for a range start..stop or start:stop:step, "" for other text.

    Without a step, the values have as many decimals as the end points. The last value is at most `stop`.

    >>> spaced("1..5"), spaced("0.1:1:0.1"), spaced("many")
    ('{linspace: [1, 5, 5]}', '{linspace: [0.1, 1, 10]}', '')
    """
    match = RANGE.fullmatch(text) if len(text) < 60 else None
    if match is None:
        return ""
    start, stop = _exact(match[1]), _exact(match[2])
    finest = min(_exponent(start), _exponent(stop), 0)
    step = _exact(match[3]) if match[3] else Decimal(1).scaleb(finest).copy_sign(stop - start)
    number = int((stop - start) / step) + 1 if step else 0
    if not 2 <= number <= MOST:
        return ""
    return f"{{linspace: [{_plain(start)}, {_plain(start + (number - 1) * step)}, {number}]}}"


def _exact(text: str) -> Decimal:
    """Parse a number exactly, as a decimal."""
    return Decimal(text.replace("_", ""))


def _exponent(number: Decimal) -> int:
    """Return the exponent of the last digit."""
    return int(number.as_tuple().exponent)


def _plain(number: Decimal) -> str:
    """Format a number in digits, without trailing zeros.

    >>> _plain(Decimal("1.0")), _plain(Decimal("1E+3"))
    ('1', '1000')
    """
    return f"{number.normalize():f}"
