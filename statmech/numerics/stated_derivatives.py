"""Checks of functions that users add: undeclared jumps and wrong derivatives."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

import numpy as np

REACH = 8.0  # fields and stabilities
DIFFERENCE, SLOPE_ERROR = 1e-6, 1e-4  # for finite differences
JUMP, WIDTH = 1e-3, 1e-9  # a larger step over a smaller width is a jump


def between(kinks: Iterable[float]) -> Iterator[tuple[float, float]]:
    """Return the intervals between the kinks, within the examined range."""
    inside = (kink for kink in map(float, kinks) if -REACH < kink < REACH)
    return itertools.pairwise(np.sort([-REACH, REACH, *inside]))


def jump(g: Callable[[np.ndarray], np.ndarray], kinks: Iterable[float]) -> float | None:
    """Find a point where g jumps outside its kinks, or return None if g has no such jump.

    Quadrature across an undeclared jump would not converge.

    >>> round(jump(lambda x: np.sign(x - 0.25), kinks=(0.0,)), 6)
    0.25
    """
    for low, high in between(kinks):
        margin, steps = 1e-6 * (high - low), np.zeros(1)
        while high - low > WIDTH:
            x = np.linspace(low + margin, high - margin, 1001)
            margin, steps = 0.0, abs(np.diff(np.broadcast_to(g(x), x.shape)))
            low, high = x[(index := int(np.argmax(steps)))], x[index + 1]
        if steps.max() > JUMP:
            return float(low)
    return None


def wrong_slope(
    g: Callable[[np.ndarray], np.ndarray], slope: Callable[[np.ndarray], np.ndarray], kinks: Iterable[float]
) -> float | None:
    """Find a point between kinks with a wrong slope of g, compared with finite differences, or return None.

    >>> wrong_slope(np.sin, np.cos, kinks=()) is None
    True
    """
    for low, high in between(kinks):
        margin = DIFFERENCE + 1e-6 * (high - low)
        x = np.linspace(low + margin, high - margin, 101)
        declared, by_differences = slope(x), (g(x + DIFFERENCE) - g(x - DIFFERENCE)) / (2 * DIFFERENCE)
        wrong = abs(by_differences - declared) > SLOPE_ERROR * (1 + abs(declared))
        if wrong.any():
            return float(x[wrong][0])
    return None
