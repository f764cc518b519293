"""The method for a loss and a penalty."""

from __future__ import annotations

from simulate.minimisers.interior_point import interior_point
from simulate.minimisers.newton import newton
from simulate.minimisers.parts import parts_of
from simulate.minimisers.problem import Minimum, Problem


def minimise(problem: Problem) -> Minimum:
    """The minimum of a problem whose penalty does not vanish; for one that does see `vanishing`."""
    if problem.l1 > 0 or problem.loss.kinks:
        return interior_point(problem, parts_of(problem.loss))
    return newton(problem)
