"""The minimum of a convex function along a line."""

from __future__ import annotations

from collections.abc import Callable

FLAT = 0.1  # relative to the slope at the start
DOUBLINGS, HALVINGS = 12, 60


def step_length(slope: Callable[[float], float], doublings: int = DOUBLINGS) -> float:
    """Find the t where an increasing slope(t), negative at t = 0, vanishes.

    The result is 1 if the slope at t = 1 is small enough.

    The search begins at t = 1, which is doubled a limited number of times.

    >>> round(step_length(lambda t: t - 3.0), 6)
    3.0
    """
    start = slope(0.0)
    left, right, right_slope = 0.0, 1.0, slope(1.0)
    left_slope = start
    for _ in range(doublings):
        if right_slope >= FLAT * start:
            break
        left, left_slope, right = right, right_slope, 2 * right
        right_slope = slope(right)
    return (
        right
        if abs(right_slope) <= -FLAT * start or right_slope < 0
        else _between(slope, left, left_slope, right, right_slope, -FLAT * start)
    )


def _between(
    slope: Callable[[float], float], left: float, before: float, right: float, after: float, flat: float
) -> float:
    """Find a t with |slope| <= flat between a negative and a positive slope (Illinois method)."""
    t = right
    for _ in range(HALVINGS):
        t = (left * after - right * before) / (after - before) if after > before else right  # rounding left no slope
        if not left < t < right:
            t = (left + right) / 2
        value = slope(t)
        if abs(value) <= flat:
            break
        if value < 0:
            left, before, after = t, value, after / 2
        else:
            right, after, before = t, value, before / 2
    return t
