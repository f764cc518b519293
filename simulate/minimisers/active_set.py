r"""Active-set solution for the minimum near a given state of an interior point method.

The active set consists of the nonzero weights, and of the examples on kinks or between bends. With the other weights 0,
and the other slopes at the ends of their intervals, the minimum solves the linear equations

.. math:: l_2\mathbf w + B^\top\mathbf a + l_1\,\mathrm{sgn}\,\mathbf w = 0, \qquad x_\mu - k = \gamma a_\mu .

An interior method stalls before full accuracy if fewer weights than examples are nonzero, for example when a sparse
teacher is recovered: its matrix becomes singular. Here a weight becomes 0 if the solution reverses its sign, and free
if its slope exceeds l1, until the set no longer changes (Hintermüller, Ito & Kunisch, SIAM J. Optim. 13, 865, 2002).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve, lstsq

from simulate.minimisers.complementarity import BoundedSlopes, InteriorPointState
from simulate.minimisers.newton import compute_cholesky_factor
from simulate.minimisers.problem import Problem
from simulate.minimisers.slope_intervals import LossParts

MAX_ACTIVE_SET_ROUNDS = 20
GRADIENT_RESIDUAL_TOL = 1e-13  # relative to the slopes of the penalty
PIVOT_TOL = 1e-13  # smaller relative pivots count as 0


def is_vanishing_weight(weights: BoundedSlopes, l1: float) -> np.ndarray:
    """Return a mask of the weights that are closer to 0 than their slopes are to the bounds."""
    vanish: np.ndarray = np.maximum(weights.s, weights.r) < np.minimum(weights.above, weights.below) / l1
    return vanish


def solve_active_set(problem: Problem, parts: LossParts, state: InteriorPointState) -> tuple[np.ndarray, np.ndarray]:
    """Solve for weights (N,) and slopes (K, P) repeatedly, until the active set is constant.

    The slope of the loss is linear.
    """
    w, _, rows, weights = state
    free = np.ones(len(w), bool) if weights is None else ~is_vanishing_weight(weights, problem.l1)
    loose = (rows.s < rows.above) & (rows.r < rows.below)
    sign, a = np.sign(w), np.where(loose, rows.a, np.where(rows.s < rows.above, parts.low, parts.high))
    for _ in range(MAX_ACTIVE_SET_ROUNDS):
        w, a = _solve_active_equations(problem, parts, np.where(free, w, 0.0), a, problem.l1 * sign, free, loose)
        v = -(parts.slope(problem.x(w)) + a.sum(axis=0)) @ problem.B
        becomes_free, becomes_zero = ~free & (np.abs(v) > problem.l1), free & (w * sign < 0)
        if weights is None or not (becomes_free | becomes_zero).any():
            break
        free, sign = (free | becomes_free) & ~becomes_zero, np.where(becomes_free, np.sign(v), sign)
    return w, a


def _solve_active_equations(
    problem: Problem,
    parts: LossParts,
    w: np.ndarray,
    a: np.ndarray,
    l1: np.ndarray,
    free: np.ndarray,
    loose: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Solve the equations for the free weights and loose slopes by the smallest possible step."""
    x, B = problem.x(w), problem.B[:, free]
    rows, give = B[np.nonzero(loose)[1]], np.broadcast_to(parts.softness, a.shape)
    gradient = (problem.ridge * w + (parts.slope(x) + a.sum(axis=0)) @ problem.B + l1)[free]
    hessian = np.diag(np.broadcast_to(problem.ridge, w.shape)[free]) + (B.T * parts.curvature(x)) @ B
    matrix = np.block([[hessian, rows.T], [rows, -np.diag(give[loose])]])
    left = np.concatenate([gradient, (x - parts.positions - give * a)[loose]])
    step = lstsq(matrix, left, lapack_driver="gelsy", cond=PIVOT_TOL)[0]
    w[free] -= step[: B.shape[1]]
    a[loose] -= step[B.shape[1] :]
    return w, a


def solve_for_given_signs(problem: Problem, w: np.ndarray) -> np.ndarray:
    """Find the weights of zero gradient that have the signs, including zeros, of w (N,).

    For smooth losses.
    """
    free, solution = np.flatnonzero(w), np.zeros_like(w)
    part, near, l1 = problem._replace(B=problem.B[:, free]), w[free], problem.l1 * np.sign(w[free])
    residual = np.inf
    for _ in range(MAX_ACTIVE_SET_ROUNDS):
        x = part.x(near)
        gradient = problem.l2 * near + problem.loss.slope(x) @ part.B + l1
        previous_residual, residual = residual, float(np.linalg.norm(gradient))
        if (
            not GRADIENT_RESIDUAL_TOL * np.linalg.norm(l1) < residual < previous_residual
        ):  # converged, or no nearby solution has these signs
            break
        near = near - cho_solve(compute_cholesky_factor(part, x), gradient)
    solution[free] = near
    return solution
