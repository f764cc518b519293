"""The minimum of a convex function along a line."""

from __future__ import annotations

from collections.abc import Callable

LINE_SEARCH_SLOPE_TOL = 0.1  # relative to the slope at the start
MAX_STEP_DOUBLINGS, MAX_STEP_HALVINGS = 12, 60


def find_step_length(slope: Callable[[float], float], max_doublings: int = MAX_STEP_DOUBLINGS) -> float:
    """Find the zero of an increasing function slope(t) that is negative at t = 0.

    The search begins at t = 1, returned if its slope is small enough, and doubles t at most `max_doublings` times.

    >>> round(find_step_length(lambda t: t - 3.0), 6)
    3.0
    """
    start = slope(0.0)
    left, right, right_slope = 0.0, 1.0, slope(1.0)
    left_slope = start
    for _ in range(max_doublings):
        if right_slope >= LINE_SEARCH_SLOPE_TOL * start:
            break
        left, left_slope, right = right, right_slope, 2 * right
        right_slope = slope(right)
    slope_tol = -LINE_SEARCH_SLOPE_TOL * start
    if abs(right_slope) <= slope_tol or right_slope < 0:
        return right
    return _find_zero_slope(slope, left, left_slope, right, right_slope, slope_tol)


def _find_zero_slope(
    slope: Callable[[float], float], left: float, left_slope: float, right: float, right_slope: float, slope_tol: float
) -> float:
    """Find a t with |slope| <= slope_tol between a negative and a positive slope (Illinois method)."""
    t = right
    for _ in range(MAX_STEP_HALVINGS):
        rise = right_slope - left_slope  # may be 0 by rounding: the interval is then halved
        t = (left * right_slope - right * left_slope) / rise if rise > 0 else right
        if not left < t < right:
            t = (left + right) / 2
        value = slope(t)
        if abs(value) <= slope_tol:
            break
        if value < 0:
            left, left_slope, right_slope = t, value, right_slope / 2
        else:
            right, right_slope, left_slope = t, value, left_slope / 2
    return t
