r"""Newton's method for smooth losses with the penalty l2 in min(N, P) dimensions, and its line search.

The curvature of a loss may jump. With a = l'(x) and the curvatures D the Hessian is :math:`l_2 + B^\top DB`. For P < N
the weights are :math:`\mathbf w = -B^\top q/l_2`. They are the minimum if q = a, and the step is

.. math:: (1 + DG/l_2)\,dq = a - q, \qquad G = BB^\top, \qquad dx = -G\,dq/l_2 .

**Large problems** first try conjugate gradients, whose steps take a few products with B where the Hessian is well
conditioned, as for random inputs. The steps need not be exact: each leaves a tenth of the gradient (Dembo, Eisenstat &
Steihaug, SIAM J. Numer. Anal. 19, 400, 1982).

**Certificate**: the curvature of F is at least l_2, so :math:`F(\mathbf w) - \min F \le |\nabla F|^2/2l_2`. Without a
penalty, Newton's own estimate, half of :math:`\nabla F\cdot H^{-1}\nabla F`, is used instead.

**Line search**: `find_step_length` finds the minimum of a convex function along a line.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular

from simulate.convex.objective_and_certificates import (
    CURVATURE_TEST_ARGUMENTS,
    GAP_TOL,
    Minimum,
    Problem,
    bound_unpenalised_weight_gap,
)

LINE_SEARCH_SLOPE_TOL = 0.1  # relative to the slope at the start
MAX_STEP_DOUBLINGS, MAX_STEP_HALVINGS = 12, 60
MAX_NEWTON_STEPS = 200
NEWTON_GAP_TOL = 1e-15  # a smaller relative gap is rounding error
CONTINUATION_GAP_TOL = 1e-3  # relative gap before the penalty is decreased
CG_RESIDUAL_TOL = 0.1  # relative residual of conjugate gradients in one step
MAX_CG_STEPS_DIVISOR = 16  # more than dimensions / divisor iterations cost more than an exact step
CONTINUATION_PENALTIES = tuple(0.1**power for power in range(8))  # values of l2, from strong to weak


def find_step_length(slope: Callable[[float], float], max_doublings: int = MAX_STEP_DOUBLINGS) -> float:
    """Find the length t of a step: the zero of an increasing function slope(t) that is negative at t = 0.

    The search begins at t = 1, returned if its slope is small enough, and doubles t at most `max_doublings` times.

    >>> round(find_step_length(lambda t: t - 3.0), 6)
    3.0
    """
    start = slope(0.0)
    left, right, right_slope = 0.0, 1.0, slope(1.0)
    left_slope = start
    for _ in range(max_doublings):
        if right_slope >= LINE_SEARCH_SLOPE_TOL * start:
            break
        left, left_slope, right = right, right_slope, 2 * right
        right_slope = slope(right)
    slope_tol = -LINE_SEARCH_SLOPE_TOL * start
    if abs(right_slope) <= slope_tol or right_slope < 0:
        return right
    return _find_zero_slope(slope, left, left_slope, right, right_slope, slope_tol)


def _find_zero_slope(
    slope: Callable[[float], float], left: float, left_slope: float, right: float, right_slope: float, slope_tol: float
) -> float:
    """Find a step length with |slope| <= slope_tol between a negative and a positive slope (Illinois method)."""
    t = right
    for _ in range(MAX_STEP_HALVINGS):
        rise = right_slope - left_slope  # may be 0 by rounding: the interval is then halved
        t = (left * right_slope - right * left_slope) / rise if rise > 0 else right
        if not left < t < right:
            t = (left + right) / 2
        value = slope(t)
        if abs(value) <= slope_tol:
            break
        if value < 0:
            left, left_slope, right_slope = t, value, right_slope / 2
        else:
            right, right_slope, left_slope = t, value, left_slope / 2
    return t


class NewtonStep(NamedTuple):
    """A Newton step: the direction of the unknowns, the change dx (P,) of the arguments, w.dw and |dw|^2."""

    direction: np.ndarray
    argument_change: np.ndarray
    weight_step_product: float
    squared_step_length: float


DirectionSolver = Callable[[Problem, np.ndarray, np.ndarray], np.ndarray]  # (problem, x, gradient) -> direction
StepPreview = tuple[float, Callable[[], NewtonStep]]  # the gap, and a function that computes the step if needed


def minimise_by_newton(problem: Problem, start: np.ndarray | None = None) -> Minimum:
    """Minimise a smooth loss with l1 = 0, from weights (N,) or from 0."""
    P, N = problem.B.shape
    if problem.l2 > 0 and not problem.num_unpenalised_weights and _suits_conjugate_gradients(problem):
        with suppress(LinAlgError):
            minimum = _minimise_primal(problem, np.zeros(N), NEWTON_GAP_TOL, _conjugate)
            if minimum.gap <= NEWTON_GAP_TOL:
                return minimum
    if P < N and problem.l2 > 0 and not problem.num_unpenalised_weights:
        return _minimise_dual(problem)
    w = np.zeros(N) if start is None else start
    for l2 in CONTINUATION_PENALTIES if problem.loss.bends else ():  # continuation: weaker penalties step by step
        if l2 > problem.l2:
            w = _minimise_primal(problem._replace(l2=l2), w, CONTINUATION_GAP_TOL).w
    return _minimise_primal(problem, w, NEWTON_GAP_TOL)


def _suits_conjugate_gradients(problem: Problem) -> bool:
    """Return True for large problems where conjugate gradients are faster.

    Exact steps are faster if few are needed, or if they involve only the examples between two bends.
    """
    P, N = problem.B.shape
    sparse, quadratic = P < N and problem.loss.bends, np.ptp(problem.loss.curvature(CURVATURE_TEST_ARGUMENTS)) == 0
    return bool(problem.is_large and not sparse and not quadratic)


def _solve_by_cholesky_factor(problem: Problem, x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Solve for Newton's direction by Cholesky factors."""
    return -cho_solve(compute_cholesky_factor(problem, x), gradient)


def _conjugate(problem: Problem, x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Solve for Newton's direction by conjugate gradients.

    Raises `LinAlgError` if they converge slowly.
    """
    from scipy.sparse.linalg import LinearOperator, cg

    B, l2, curvature = problem.B, problem.l2, problem.loss.curvature(x)
    hessian = LinearOperator((B.shape[1],) * 2, lambda v: l2 * v + (curvature * (B @ v)) @ B, dtype=float)
    direction: np.ndarray
    direction, slow = cg(hessian, -gradient, rtol=CG_RESIDUAL_TOL, maxiter=min(B.shape) // MAX_CG_STEPS_DIVISOR)
    if slow:
        raise LinAlgError
    return direction


def _minimise_primal(
    problem: Problem, w: np.ndarray, gap_tol: float, solve_direction: DirectionSolver = _solve_by_cholesky_factor
) -> Minimum:
    """Minimise over the weights by Newton steps, and return the minimum with its gap."""

    def ahead(w: np.ndarray, x: np.ndarray) -> StepPreview:
        gradient = problem.ridge * w + problem.loss.slope(x) @ problem.B

        def step() -> NewtonStep:
            direction = solve_direction(problem, x, gradient)
            weights, move = problem.penalised_weights(w), problem.penalised_weights(direction)
            return NewtonStep(direction, problem.B @ direction, float(weights @ move), float(move @ move))

        if problem.l2 > 0:
            pull = problem.penalised_weights(gradient)
            return pull @ pull / problem.l2 / 2 + bound_unpenalised_weight_gap(problem, w, gradient), step
        estimate = step()
        return -gradient @ estimate.direction / 2, lambda: estimate

    return Minimum(
        *_run_newton_steps(
            problem,
            ahead,
            w,
            problem.x(w),
            lambda w: problem.penalised_weights(w) @ problem.penalised_weights(w),
            gap_tol,
        )
    )


def _minimise_dual(problem: Problem) -> Minimum:
    """Minimise over the slopes q of the examples by Newton steps, for P < N."""
    G = problem.B @ problem.B.T / problem.l2

    def ahead(q: np.ndarray, x: np.ndarray) -> StepPreview:
        residual = problem.loss.slope(x) - q

        def step() -> NewtonStep:
            direction = _solve_dual_direction(G, problem.loss.curvature(x), residual)
            change = G @ direction
            return NewtonStep(direction, -change, q @ change / problem.l2, direction @ change / problem.l2)

        return residual @ (G @ residual) / 2, step

    q, gap = _run_newton_steps(
        problem, ahead, np.zeros(len(G)), problem.c, lambda q: q @ (G @ q) / problem.l2, NEWTON_GAP_TOL
    )
    return Minimum(-(q @ problem.B) / problem.l2, gap)


def _solve_dual_direction(G: np.ndarray, curvature: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """Solve (1 + D G) dq = `residual` for the direction dq.

    Without curvature dq equals the residual; for the other examples the matrix is made symmetric.
    """
    curved = curvature > 0
    root = np.sqrt(curvature[curved])
    direction = np.where(curved, 0.0, residual)
    rest = residual[curved] / root - root * (G[curved] @ direction)
    matrix = root[:, None] * G[np.ix_(curved, curved)] * root
    matrix.flat[:: len(root) + 1] += 1.0
    direction[curved] = root * cho_solve(cho_factor(matrix, lower=True, overwrite_a=True), rest)
    return direction


def _run_newton_steps(
    problem: Problem,
    preview_step: Callable[..., StepPreview],
    unknown: np.ndarray,
    x: np.ndarray,
    squared_norm: Any,
    gap_tol: float,
) -> tuple[np.ndarray, float]:
    """Take steps of optimal length until the relative gap reaches the tolerance or rounding level.

    Returns the best unknowns and their gap.
    """
    best, min_gap = unknown, np.inf
    for _ in range(MAX_NEWTON_STEPS):
        gap, step = preview_step(unknown, x)
        gap = problem.relative_gap(gap, problem.loss.value(x).sum() + problem.l2 * squared_norm(unknown) / 2)
        stalled = min_gap <= GAP_TOL and gap > min_gap / 4
        if gap < min_gap:
            best, min_gap = unknown, gap
        if gap <= gap_tol or stalled or not np.isfinite(gap):
            break
        newton_step = step()
        t = find_step_length(partial(_compute_directional_slope, problem, x, newton_step))
        unknown, x = unknown + t * newton_step.direction, x + t * newton_step.argument_change
    return best, min_gap


def _compute_directional_slope(problem: Problem, x: np.ndarray, step: NewtonStep, t: float) -> float:
    """Return the derivative of F along a step."""
    with np.errstate(over="ignore", invalid="ignore"):
        loss = problem.loss.slope(x + t * step.argument_change) @ step.argument_change
    return float(np.nan_to_num(loss, nan=np.inf)) + problem.l2 * (
        step.weight_step_product + t * step.squared_step_length
    )


def compute_cholesky_factor(problem: Problem, x: np.ndarray) -> Any:
    """Factorise the Hessian (N, N) by SciPy's Cholesky method.

    Directions without curvature receive a small curvature.
    """
    curvature = problem.loss.curvature(x)
    curved = curvature > 0
    rows = problem.B[curved]  # a copy, scaled in place because copying costs as much as the product
    rows *= np.sqrt(curvature[curved])[:, None]
    hessian = rows.T @ rows
    ridge = problem.ridge
    while True:
        hessian.flat[:: len(hessian) + 1] += ridge
        try:
            return cho_factor(hessian, lower=True)
        except LinAlgError:
            ridge = max(10 * np.max(ridge), 1e-12 * max(np.trace(hessian) / len(hessian), 1e-300))


def compute_inverse_hessian(problem: Problem, w: np.ndarray) -> np.ndarray | None:
    """Compute the inverse (N, N) of the Hessian at weights w.

    None if it is singular.
    """
    curvature = problem.loss.curvature(problem.x(w))
    rows = problem.B[curvature > 0] * np.sqrt(curvature[curvature > 0])[:, None]
    N = problem.B.shape[1]
    if len(rows) < N and problem.l2 == 0:
        return None
    return cho_solve(cho_factor(rows.T @ rows + problem.l2 * np.eye(N)), np.eye(N))


def compute_susceptibility(problem: Problem, w: np.ndarray) -> float:
    r"""Compute V, the mean response of a weight to a force on this weight.

    .. math:: V = \frac1N\,\mathrm{tr}\,(l_2 + B^\top DB)^{-1}
    """
    N = problem.B.shape[1]
    curvature = problem.loss.curvature(problem.x(w))
    rows = problem.B[curvature > 0] * np.sqrt(curvature[curvature > 0])[:, None]
    if len(rows) < N and problem.l2 == 0:
        return np.inf
    wide = len(rows) < N
    matrix = rows @ rows.T if wide else rows.T @ rows
    matrix.flat[:: len(matrix) + 1] += problem.l2
    root = np.linalg.cholesky(matrix)
    trace = np.sum(solve_triangular(root, np.eye(len(root)), lower=True) ** 2)
    return float(trace + (N - len(rows)) / problem.l2 if wide else trace) / N


def compute_field_response(problem: Problem, w: np.ndarray, deviations: np.ndarray) -> float:
    r"""Compute V from the Hessian H at a minimum, the mean response of a field to a force acting on it.

    .. math:: V = \frac1N\,\mathrm{tr}\,\Sigma H^{-1}

    Parameters
    ----------
    problem, w
        The minimised function, with the Hessian H, and its minimum.
    deviations
        Standard deviations of the inputs around a centre (N,), in units of the problem's.
    """
    N = len(deviations)
    curved = int(np.count_nonzero(problem.loss.curvature(problem.x(w))))
    if problem.l2 == 0 and curved < np.count_nonzero(deviations):
        return np.inf
    root, _ = compute_cholesky_factor(problem, problem.x(w))
    forces = np.zeros((len(w), N))
    forces[np.arange(N), np.arange(N)] = deviations
    return float(np.sum(solve_triangular(root, forces, lower=True) ** 2)) / N
