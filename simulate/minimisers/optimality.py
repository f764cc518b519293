r"""A certificate for weights found by any method.

The slope a of an example at a kink may have any value between the slopes on both sides. If the method does not provide
these slopes, they are chosen to satisfy the condition of a minimum, :math:`B^\top a + \partial r(\mathbf w) = 0`, in
the least-squares sense over nonzero weights.
"""

from __future__ import annotations

import numpy as np

from simulate.minimisers.certificates import bound_penalty_gap
from simulate.minimisers.problem import Problem

KINK_DISTANCE_TOL = 1e-6  # closer examples count as lying on the kink
NULL_WEIGHT_TOL = 1e-9


def bound_relative_gap(problem: Problem, w: np.ndarray, slopes: np.ndarray | None = None) -> float:
    """Bound the relative distance of weights (N,) from the minimum.

    The bound holds for any `slopes` (P,) given for the examples at kinks. NaN if the weights are not finite.
    """
    if not np.isfinite(w).all():
        return np.nan
    x = problem.x(w)
    kink = np.full(x.shape, np.nan)
    for position in problem.loss.kinks:
        kink = np.where(np.abs(x - position) < KINK_DISTANCE_TOL, position, kink)
    near_kink = np.isfinite(kink)
    a = problem.loss.slope(x)
    kinks = kink[near_kink]
    kink_slopes = (
        _find_kink_slopes(problem, w, np.where(near_kink, 0.0, a), near_kink) if slopes is None else slopes[near_kink]
    )
    a[near_kink] = np.clip(kink_slopes, *(problem.loss.slope(np.nextafter(kinks, side)) for side in (-np.inf, np.inf)))
    value = problem.value(w, x)
    excess = problem.loss.value(x[near_kink]) - problem.loss.value(kinks) - a[near_kink] * (x[near_kink] - kinks)
    return problem.relative_gap(float(excess.sum() + bound_penalty_gap(problem, w, -(a @ problem.B), value)), value)


def _find_kink_slopes(problem: Problem, w: np.ndarray, smooth_slopes: np.ndarray, is_kink: np.ndarray) -> np.ndarray:
    """Find the slopes of the examples at a kink, given the slopes of all other examples (P,)."""
    gradient = smooth_slopes @ problem.B + problem.ridge * w + problem.l1 * np.sign(w)
    used = (np.abs(w) > NULL_WEIGHT_TOL) | (problem.l1 == 0)
    return np.linalg.lstsq(problem.B[np.ix_(is_kink, used)].T, -gradient[used], rcond=None)[0]
