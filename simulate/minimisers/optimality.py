r"""The certificate of weights that another method has found.

The slope a of an example beside a kink may be any between those on both sides. Where the method does not know them,
chosen are those that come nearest to the condition of a minimum, :math:`B^\top a + \partial r(\mathbf w) = 0`, in least
squares, over weights that are not 0.
"""

from __future__ import annotations

import numpy as np

from simulate.minimisers.certificates import penalty_gap
from simulate.minimisers.problem import Problem

BESIDE = 1e-6  # distance from a kink
VANISHING = 1e-9  # size of a weight that counts as 0


def gap_of(problem: Problem, w: np.ndarray, slopes: np.ndarray | None = None) -> float:
    """A bound on the relative distance of weights (N,) from the minimum; NaN if they are not finite.

    It holds whatever `slopes` (P,) are given for the examples beside kinks.
    """
    if not np.isfinite(w).all():
        return np.nan
    x = problem.x(w)
    kink = np.full(x.shape, np.nan)
    for position in problem.loss.kinks:
        kink = np.where(np.abs(x - position) < BESIDE, position, kink)
    near_kink = np.isfinite(kink)
    a = problem.loss.slope(x)
    kinks = kink[near_kink]
    kink_slopes = _slopes(problem, w, np.where(near_kink, 0.0, a), near_kink) if slopes is None else slopes[near_kink]
    a[near_kink] = np.clip(kink_slopes, *(problem.loss.slope(np.nextafter(kinks, side)) for side in (-np.inf, np.inf)))
    value = problem.value(w, x)
    excess = problem.loss.value(x[near_kink]) - problem.loss.value(kinks) - a[near_kink] * (x[near_kink] - kinks)
    return problem.relative(float(excess.sum() + penalty_gap(problem, w, -(a @ problem.B), value)), value)


def _slopes(problem: Problem, w: np.ndarray, others: np.ndarray, beside: np.ndarray) -> np.ndarray:
    """The slopes of the examples beside a kink, given those of the others (P,)."""
    gradient = others @ problem.B + problem.ridge * w + problem.l1 * np.sign(w)
    used = (np.abs(w) > VANISHING) | (problem.l1 == 0)
    return np.linalg.lstsq(problem.B[np.ix_(beside, used)].T, -gradient[used], rcond=None)[0]
