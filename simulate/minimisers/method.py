"""The choice of a method for a loss and a penalty."""

from __future__ import annotations

from simulate.kernels.least_risk import quick_minimum
from simulate.minimisers.interior_point import interior_point
from simulate.minimisers.newton import newton
from simulate.minimisers.optimality import gap_of
from simulate.minimisers.problem import Minimum, Problem
from simulate.minimisers.slope_intervals import parts_of


def minimise(problem: Problem) -> Minimum:
    """Minimise a problem whose penalty does not vanish.

    For a vanishing penalty see `simulate.minimisers.vanishing_penalty`.
    """
    if problem.l1 == 0 and not problem.loss.kinks:
        return newton(problem)
    if problem.large and not problem.free:
        minimum = quick_minimum(problem)
        if minimum.converged:
            return minimum
    minimum = interior_point(problem, parts_of(problem.loss))
    # with many examples on kinks, rounding errors dominate the method's slopes: weights determine them better
    return minimum if minimum.converged else Minimum(minimum.w, min(minimum.gap, gap_of(problem, minimum.w)))
