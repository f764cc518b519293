"""Choice of the minimisation method for a loss and a penalty."""

from __future__ import annotations

from simulate.kernels.least_risk import try_quick_message_passing
from simulate.minimisers.interior_point import minimise_by_interior_point
from simulate.minimisers.newton import minimise_by_newton
from simulate.minimisers.optimality import bound_relative_gap
from simulate.minimisers.problem import Minimum, Problem
from simulate.minimisers.slope_intervals import split_loss_at_kinks


def minimise(problem: Problem) -> Minimum:
    """Minimise a problem whose penalty does not vanish.

    For a vanishing penalty see `simulate.minimisers.vanishing_penalty`.
    """
    if problem.l1 == 0 and not problem.loss.kinks:
        return minimise_by_newton(problem)
    if problem.is_large and not problem.num_unpenalised_weights:
        minimum = try_quick_message_passing(problem)
        if minimum.converged:
            return minimum
    minimum = minimise_by_interior_point(problem, split_loss_at_kinks(problem.loss))
    # with many examples on kinks, rounding errors dominate the slopes: the weights determine better ones
    return (
        minimum if minimum.converged else Minimum(minimum.w, min(minimum.gap, bound_relative_gap(problem, minimum.w)))
    )
