r"""The limit of a vanishing penalty: of all minima of the loss the one whose penalty is least.

If students can bring every example to where its loss is least, the penalty is minimised under these constraints: least
squares of minimum norm, basis pursuit (l1), maximum stability (hinge and squared hinge). Else the loss alone is
minimised. A loss that always falls has no minimum on examples that can be separated.
"""

from __future__ import annotations

import numpy as np

from simulate.minimisers.interior_point import interior_point
from simulate.minimisers.method import minimise
from simulate.minimisers.newton import newton
from simulate.minimisers.problem import MIN_SCALE, Minimum, Problem, nowhere
from simulate.minimisers.separability import Separation, separation
from simulate.minimisers.slope_intervals import constraints
from statmech.convex.limits import smallest


def vanishing(problem: Problem, separated: Separation | None = None) -> Minimum:
    """The limit for a penalty of the shape of `problem`'s, whose factors are stated at lam = 1.

    Whether labels can be `separated` is found out if it is not given.
    """
    best = smallest(problem.loss)
    low, high = (best.low, best.high) if best else (np.inf, np.inf)
    P, N = problem.B.shape
    if np.isfinite(high):
        return _within(problem, low, high) if P <= N else _alone(problem, None)
    result = separated or separation(problem.B)
    if not result.exists:
        return _alone(problem, result.w)
    return nowhere(N) if np.isinf(low) else _within(problem, low, high)


def _within(problem: Problem, low: float, high: float) -> Minimum:
    """The least penalty with all of the loss's arguments between these bounds."""
    P, N = problem.B.shape
    if low == high and (problem.l1 == 0 or P == N):
        return _interpolation(problem, low)
    return interior_point(problem, constraints(low, high))


def _interpolation(problem: Problem, target: float) -> Minimum:
    """The shortest w with c + B w = target, and by how much its loss exceeds the least, in units of that of w = 0."""
    w = np.linalg.lstsq(problem.B, target - problem.c, rcond=None)[0]
    excess = np.sum(problem.loss.value(problem.x(w)) - problem.loss.value(np.full(1, target)))
    return Minimum(w, float(excess / max(problem.scale, MIN_SCALE)))


def _alone(problem: Problem, start: np.ndarray | None) -> Minimum:
    """The minimum of the loss without a penalty."""
    bare = problem._replace(l1=0.0, l2=0.0)
    return minimise(bare) if bare.loss.kinks else newton(bare, start)
