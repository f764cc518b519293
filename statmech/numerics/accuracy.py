"""The accuracy of theory: all its digits, or those that a chart can show.

A step of a slider has a tenth of a second. The equations of inputs with hundreds of variances take longer with all
digits, and a chart shows three of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ENOUGH_FOR_CHARTS: ContextVar[bool] = ContextVar("enough for charts", default=False)


@contextmanager
def accurate_enough_for_charts() -> Iterator[None]:
    """A context in which theory that is slow with all digits errs by some 1e-5 of its values.

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
    """Whether theory that errs by some 1e-5 is accurate enough.

    >>> is_enough_for_charts()
    False
    """
    return _ENOUGH_FOR_CHARTS.get()
