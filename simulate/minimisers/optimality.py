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
    for at in problem.loss.kinks:
        kink = np.where(np.abs(x - at) < BESIDE, at, kink)
    beside = np.isfinite(kink)
    a = problem.loss.slope(x)
    kinks = kink[beside]
    tried = _slopes(problem, w, np.where(beside, 0.0, a), beside) if slopes is None else slopes[beside]
    a[beside] = np.clip(tried, *(problem.loss.slope(np.nextafter(kinks, side)) for side in (-np.inf, np.inf)))
    value = problem.value(w, x)
    excess = problem.loss.value(x[beside]) - problem.loss.value(kinks) - a[beside] * (x[beside] - kinks)
    return problem.relative(float(excess.sum() + penalty_gap(problem, w, -(a @ problem.B), value)), value)


def _slopes(problem: Problem, w: np.ndarray, others: np.ndarray, beside: np.ndarray) -> np.ndarray:
    """The slopes of the examples beside a kink, given those of the others (P,)."""
    lacks = others @ problem.B + problem.ridge * w + problem.l1 * np.sign(w)
    used = (np.abs(w) > VANISHING) | (problem.l1 == 0)
    return np.linalg.lstsq(problem.B[np.ix_(beside, used)].T, -lacks[used], rcond=None)[0]
