r"""Minimisation of a loss with a penalty at finite N, and the linear separability of a training set.

Each method returns a certificate of the distance from the minimum. The loss and the penalty determine the method:

| loss | penalty | method |
|---|---|---|
| smooth, its curvature may jump | l2 | Newton's in min(N, P) dimensions (`simulate.convex.newton`) |
| with kinks, or any | any, or one with l1 | interior points (`simulate.convex.interior_point`) |
| any | a vanishing one | the smallest penalty among the minima of the loss (`minimise_vanishing_penalty`) |

For random inputs of many dimensions conjugate gradients are faster than factored matrices, and message passing is
faster than interior points. They are tried first, and their result is used if its certificate holds. Once the signs of
the weights no longer change, solving the remaining equations may cost less than further steps
(`simulate.convex.interior_point.solve_active_set`).

Vanishing penalty: the limit is the minimum of the loss with the smallest penalty. If a student can minimise the loss of
every example, the penalty is minimised under these constraints: least squares of minimum norm, basis pursuit (l1),
maximum stability (hinge and squared hinge). Otherwise the loss alone is minimised. A strictly decreasing loss has no
minimum on separable examples.

Separability has a certificate in either case. Newton's method for the logistic loss without a penalty ends if all
stabilities are positive, or if the slopes a < 0 of the loss, normalised to the sum -1, have :math:`|B^\top a|` below
`NULL_STABILITY_TOL`. In the second case the convex hull of the rows of B comes as close to the origin, and no student
has a larger stability. Up to N examples in general position can be separated by the weights with all stabilities equal
to 1.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve

from simulate.convex.interior_point import minimise_by_interior_point
from simulate.convex.message_passing import minimise_by_message_passing, try_quick_message_passing
from simulate.convex.newton import compute_cholesky_factor, find_step_length, minimise_by_newton
from simulate.convex.objective_and_certificates import (
    MIN_OBJECTIVE,
    Minimum,
    Problem,
    bound_relative_gap,
    make_constraints,
    make_missing_minimum,
    split_loss_at_kinks,
)
from statmech.convex.losses import Logistic, Loss, find_minimiser_interval

NULL_STABILITY_TOL = 1e-8  # stability of a student of length sqrt(N)
MAX_SEPARATION_STEPS = 100


class Separation(NamedTuple):
    """The result of a separability test: whether examples can be separated, and weights.

    The weights are right on all examples, or else minimise the logistic loss.
    """

    exists: bool
    w: np.ndarray


def minimise(problem: Problem) -> Minimum:
    """Minimise a problem whose penalty does not vanish.

    For a vanishing penalty see `minimise_vanishing_penalty`.
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


def minimise_vanishing_penalty(problem: Problem, separation: Separation | None = None) -> Minimum:
    """Find the minimum in the limit of a vanishing penalty.

    The factors of the penalty are the factors at lam = 1. Whether labels can be `separation` is determined if it is not
    given.
    """
    best = find_minimiser_interval(problem.loss)
    low, high = (best.low, best.high) if best else (np.inf, np.inf)
    P, N = problem.B.shape
    if np.isfinite(high):
        return _minimise_under_bounds(problem, low, high) if P <= N else _minimise_loss_alone(problem, None)
    result = separation or find_separation(problem.B)
    if not result.exists:
        return _minimise_loss_alone(problem, result.w)
    return make_missing_minimum(N) if np.isinf(low) else _minimise_under_bounds(problem, low, high)


def _minimise_under_bounds(problem: Problem, low: float, high: float) -> Minimum:
    """Minimise the penalty with all arguments of the loss between these bounds."""
    P, N = problem.B.shape
    if low == high and (problem.l1 == 0 or P == N):
        return _find_min_norm_solution(problem, low)
    return minimise_by_interior_point(problem, make_constraints(low, high))


def _find_min_norm_solution(problem: Problem, target: float) -> Minimum:
    """Find the shortest w with c + B w = target.

    The gap is the excess of the loss over its minimum, relative to the loss at w = 0.
    """
    w = np.linalg.lstsq(problem.B, target - problem.c, rcond=None)[0]
    excess = np.sum(problem.loss.value(problem.x(w)) - problem.loss.value(np.full(1, target)))
    return Minimum(w, float(excess / max(problem.scale, MIN_OBJECTIVE)))


def _minimise_loss_alone(problem: Problem, start: np.ndarray | None) -> Minimum:
    """Minimise the loss without a penalty."""
    bare = problem._replace(l1=0.0, l2=0.0)
    return minimise(bare) if bare.loss.kinks else minimise_by_newton(bare, start)


def find_separation(B: np.ndarray) -> Separation:
    """Decide whether labelled examples with rows y x / sqrt(N) are linearly separable."""
    P, N = B.shape
    if P <= N:
        w = np.linalg.lstsq(B, np.ones(P), rcond=None)[0]
        if np.all(B @ w > 0):
            return Separation(True, w)
    return _separate_by_newton(Problem(B, np.zeros(P), Logistic(), 0.0, 0.0))


def _separate_by_newton(problem: Problem) -> Separation:
    w, x = np.zeros(problem.B.shape[1]), problem.c
    for _ in range(MAX_SEPARATION_STEPS):
        slopes = problem.loss.slope(x)
        pull = slopes @ problem.B
        if np.linalg.norm(pull) <= -NULL_STABILITY_TOL * slopes.sum():
            break
        dw = -cho_solve(compute_cholesky_factor(problem, x), pull)
        dx = problem.B @ dw
        t = find_step_length(partial(_compute_loss_slope_along_step, problem.loss, x, dx))
        w, x = w + t * dw, x + t * dx
        if np.all(x > 0) or np.all(dx > 0):
            return Separation(True, w if np.all(x > 0) else dw)
    return Separation(False, w)


def _compute_loss_slope_along_step(loss: Loss, x: np.ndarray, dx: np.ndarray, t: float) -> float:
    return float(loss.slope(x + t * dx) @ dx)


def minimise_risk(problem: Problem, separation: Separation | None, lam: float, solver: str = "minimise") -> Minimum:
    """Minimise a risk by the chosen solver, or return a NaN student if no best lam is known.

    Parameters
    ----------
    problem
        The function to minimise.
    separation
        Linear separability of the labels, where lam = 0.
    lam
        Strength of the penalty, or 0 for the limit of a vanishing penalty.
    solver
        `minimise`, or `amp` for message passing.
    """
    if np.isnan(lam):
        return make_missing_minimum(problem.B.shape[1])
    if lam == 0:
        return minimise_vanishing_penalty(problem, separation)
    if solver == "amp":
        w = minimise_by_message_passing(problem).w
        return Minimum(w, bound_relative_gap(problem, w))
    return minimise(problem)


def is_separable(problem: Problem, separation: Separation | None, minimum: Minimum, full_rank: bool = True) -> bool:
    """Return True if the labels of a minimised problem are linearly separable.

    Often the student itself separates the labels. Up to N examples are separable if inputs have full rank.
    """
    if separation is not None:
        return separation.exists
    P, N = problem.B.shape
    return (full_rank and P <= N) or bool(np.all(problem.x(minimum.w) > 0)) or find_separation(problem.B).exists
