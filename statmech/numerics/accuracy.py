"""The accuracy of theory: full precision, or the precision that a chart can show.

A step of a slider has a tenth of a second. The equations of inputs with hundreds of variances take longer at full
precision, and a chart shows three digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ENOUGH_FOR_CHARTS: ContextVar[bool] = ContextVar("enough for charts", default=False)


@contextmanager
def accurate_enough_for_charts() -> Iterator[None]:
    """Lower the accuracy of slow theory to a relative error of about 1e-5 within a `with` block.

    >>> with accurate_enough_for_charts():
    ...     is_enough_for_charts()
    True
    """
    token = _ENOUGH_FOR_CHARTS.set(True)
    try:
        yield
    finally:
        _ENOUGH_FOR_CHARTS.reset(token)


def is_enough_for_charts() -> bool:
    """Return True if theory may have a relative error of about 1e-5.

    >>> is_enough_for_charts()
    False
    """
    return _ENOUGH_FOR_CHARTS.get()
