"""The method for a loss and a penalty."""

from __future__ import annotations

from simulate.kernels.least_risk import quick_minimum
from simulate.minimisers.interior_point import interior_point
from simulate.minimisers.newton import newton
from simulate.minimisers.optimality import gap_of
from simulate.minimisers.problem import Minimum, Problem
from simulate.minimisers.slope_intervals import parts_of


def minimise(problem: Problem) -> Minimum:
    """The minimum of a problem whose penalty does not vanish; for one that does see `vanishing`."""
    if problem.l1 == 0 and not problem.loss.kinks:
        return newton(problem)
    if problem.large and not problem.free:
        minimum = quick_minimum(problem)
        if minimum.converged:
            return minimum
    minimum = interior_point(problem, parts_of(problem.loss))
    # where many examples lie on kinks rounding blurs the method's own slopes, which the weights determine better
    return minimum if minimum.converged else Minimum(minimum.w, min(minimum.gap, gap_of(problem, minimum.w)))
