"""Checks of functions that users add: undeclared jumps and wrong derivatives."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

import numpy as np

MAX_TEST_FIELD = 8.0  # functions are tested at fields and stabilities up to this magnitude
FINITE_DIFFERENCE_STEP, DECLARED_SLOPE_TOL = 1e-6, 1e-4  # for finite differences
MIN_JUMP_HEIGHT, MAX_JUMP_WIDTH = 1e-3, 1e-9  # a larger change over a smaller width is a jump


def list_smooth_intervals(kinks: Iterable[float]) -> Iterator[tuple[float, float]]:
    """Return the intervals between the kinks, within the examined range."""
    inside = (kink for kink in map(float, kinks) if -MAX_TEST_FIELD < kink < MAX_TEST_FIELD)
    return itertools.pairwise(np.sort([-MAX_TEST_FIELD, MAX_TEST_FIELD, *inside]))


def find_jump(g: Callable[[np.ndarray], np.ndarray], kinks: Iterable[float]) -> float | None:
    """Find a point where g jumps outside its kinks, or return None if g has no such jump.

    Quadrature across an undeclared jump would not converge.

    >>> round(find_jump(lambda x: np.sign(x - 0.25), kinks=(0.0,)), 6)
    0.25
    """
    for low, high in list_smooth_intervals(kinks):
        margin, steps = 1e-6 * (high - low), np.zeros(1)
        while high - low > MAX_JUMP_WIDTH:
            x = np.linspace(low + margin, high - margin, 1001)
            margin, steps = 0.0, abs(np.diff(np.broadcast_to(g(x), x.shape)))
            low, high = x[(index := int(np.argmax(steps)))], x[index + 1]
        if steps.max() > MIN_JUMP_HEIGHT:
            return float(low)
    return None


def find_wrong_slope(
    g: Callable[[np.ndarray], np.ndarray], slope: Callable[[np.ndarray], np.ndarray], kinks: Iterable[float]
) -> float | None:
    """Find a point where the declared slope of g differs from finite differences, or return None.

    >>> find_wrong_slope(np.sin, np.cos, kinks=()) is None
    True
    """
    for low, high in list_smooth_intervals(kinks):
        margin = FINITE_DIFFERENCE_STEP + 1e-6 * (high - low)
        x = np.linspace(low + margin, high - margin, 101)
        declared, by_differences = (
            slope(x),
            (g(x + FINITE_DIFFERENCE_STEP) - g(x - FINITE_DIFFERENCE_STEP)) / (2 * FINITE_DIFFERENCE_STEP),
        )
        wrong = abs(by_differences - declared) > DECLARED_SLOPE_TOL * (1 + abs(declared))
        if wrong.any():
            return float(x[wrong][0])
    return None
