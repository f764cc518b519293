r"""Minimisers of a loss with a penalty at finite N, each with a certificate of its distance from the minimum.

| loss | penalty | method |
|---|---|---|
| smooth, its curvature may jump | l2 | Newton's in min(N, P) dimensions (`newton`) |
| with kinks, or any | l1, elastic net, or any | interior points (`interior_point`) |
| any | a vanishing one | the least penalty among the minima of the loss (`vanishing`) |
"""

from __future__ import annotations

from simulate.minimisers.interior_point import interior_point, split
from simulate.minimisers.newton import newton
from simulate.minimisers.problem import Minimum, Problem
from simulate.minimisers.vanishing import vanishing


def minimise(problem: Problem) -> Minimum:
    """The minimum of a problem whose penalty does not vanish; for one that does see `vanishing`."""
    if problem.l1 > 0 or problem.loss.kinks:
        return interior_point(problem, split(problem.loss))
    return newton(problem)


__all__ = ["Minimum", "Problem", "minimise", "vanishing"]
