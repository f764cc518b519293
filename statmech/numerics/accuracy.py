"""The accuracy of theory: full precision, or the precision that a chart can show.

After each step of a slider, a chart must be redrawn within a tenth of a second, and it shows three digits only. The
equations of inputs with hundreds of variances take longer at full precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_CHART_ACCURACY: ContextVar[bool] = ContextVar("enough for charts", default=False)


@contextmanager
def use_chart_accuracy() -> Iterator[None]:
    """Lower the accuracy of slow theory to a relative error of about 1e-5 within a `with` block.

    >>> with use_chart_accuracy():
    ...     is_chart_accuracy_active()
    True
    """
    token = _CHART_ACCURACY.set(True)
    try:
        yield
    finally:
        _CHART_ACCURACY.reset(token)


def is_chart_accuracy_active() -> bool:
    """Return True if theory may have a relative error of about 1e-5.

    >>> is_chart_accuracy_active()
    False
    """
    return _CHART_ACCURACY.get()
