r"""An interior-point method for losses and penalties with kinks and for constraints, with an active-set solution.

A loss is split into a part g without kinks and intervals of slopes (`LossParts`). The penalty l1 is the interval from
-l1 to l1 of the slopes of the weights themselves.

Interval of slopes: a term :math:`\max_a a z` over the slopes a from `low` to `high`, with z = s - r, s and r >= 0,
costs high s - low r. At its minimum s (high - a) = 0 and r (a - low) = 0. The method sets both products to a small
positive number, which decreases from step to step. An infinite bound forbids one sign of z: two infinite bounds force
z = 0. The slopes, slacks and distances are stored as `BoundedSlopes`.

Steps: let :math:`\Theta` be g'' plus the inverse softnesses of an example's intervals, and D = l2 plus the inverse
softness of a weight's interval. Each step solves

.. math:: (D + B^\top\Theta B)\,d\mathbf w = \mathbf b

in min(N, P) dimensions: for P < N by :math:`(BD^{-1}B^\top + \Theta^{-1})\,q = \mathbf b'`, which holds also for
constraints, where :math:`\Theta^{-1} = 0`. Predictor and corrector follow Mehrotra, SIAM J. Optim. 2, 575 (1992).
If the slope of g is not linear, a step ends where F, with -mu times the logarithms of all slacks, is minimal along the
step; without the corrector F decreases along every step.

Certificate: the bound of `simulate.convex.objective_and_certificates`, with the slopes of the method.

Active set: where rounding ends the steps too early, `solve_active_set` solves the equations of the minimum near the
last state. The active set consists of the nonzero weights, and of the examples on kinks or between bends. With the
other weights 0, and the other slopes at the ends of their intervals, the minimum solves the linear equations

.. math:: l_2\mathbf w + B^\top\mathbf a + l_1\,\mathrm{sgn}\,\mathbf w = 0, \qquad x_\mu - k = \gamma a_\mu .

An interior-point method stalls before full accuracy if fewer weights than examples are nonzero, for example when a
sparse teacher is recovered: its matrix becomes singular. Here a weight becomes 0 if the solution reverses its sign, and
free if its slope exceeds l1, until the set no longer changes (Hintermüller, Ito & Kunisch, SIAM J. Optim. 13, 865,
2002).
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq

from simulate.convex.newton import compute_cholesky_factor, find_step_length
from simulate.convex.objective_and_certificates import GAP_TOL, LossParts, Minimum, Problem, bound_penalty_gap

MAX_ACTIVE_SET_ROUNDS = 20
GRADIENT_RESIDUAL_TOL = 1e-13  # relative to the slopes of the penalty
PIVOT_TOL = 1e-13  # smaller relative pivots count as 0
MAX_INTERIOR_STEPS = 200
INTERIOR_GAP_TOL = 1e-14  # relative to the objective
MIN_GAP_FOR_ACTIVE_SET = 1e-12  # a larger final gap is due to rounding: the active set is solved instead
MAX_STEP_FRACTION_TO_BOUNDARY = 0.99  # keeps slacks positive by stopping before the boundary
NUM_STEP_REFINEMENTS = 2  # each refinement solves for the residual of the previous solution
MIN_SLACK_PRODUCT_RATIO = 0.05  # limits the decrease in a step if the slope of g is not linear


class BoundedSlopes(NamedTuple):
    """Slopes a, slacks s and r, and the distances high - a and a - low, arrays of one shape.

    For an infinite bound the distance is 1 and the slack 0.
    """

    a: np.ndarray
    s: np.ndarray
    r: np.ndarray
    above: np.ndarray
    below: np.ndarray

    def apply_step(self, step: BoundedSlopes, t: float, slope_fraction: float) -> BoundedSlopes:
        """Return the box after a fraction of a step.

        Slacks move by the fraction t of their step, slopes and their distances by the fraction `slope_fraction`.
        """
        parts = (slope_fraction, t, t, slope_fraction, slope_fraction)
        return BoundedSlopes(*(value + part * change for value, part, change in zip(self, parts, step, strict=True)))

    @property
    def slack_product_sum(self) -> float:
        """The sum of s (high - a) + r (a - low)."""
        return float(np.sum(self.s * self.above) + np.sum(self.r * self.below))

    @property
    def num_slack_products(self) -> int:
        """The number of complementarity products that can be nonzero."""
        return int(np.count_nonzero(self.s) + np.count_nonzero(self.r))

    @property
    def argument_response_to_slope(self) -> np.ndarray:
        """The derivative of z with respect to a."""
        return self.s / self.above + self.r / self.below

    def get_product_targets(self, mu: float, predictor: BoundedSlopes | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the targets of both complementarity products (Mehrotra's corrector).

        A target is 0 where its product always vanishes.
        """
        if predictor is None:
            return mu * (self.s > 0), mu * (self.r > 0)
        return (mu + predictor.s * predictor.a) * (self.s > 0), (mu - predictor.r * predictor.a) * (self.r > 0)

    def offset(self, z: np.ndarray, product_targets: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Return the offset e in the step (dz + e) / softness of the slopes."""
        return z - product_targets[0] / self.above + product_targets[1] / self.below

    def step(self, da: np.ndarray, product_targets: tuple[np.ndarray, np.ndarray]) -> BoundedSlopes:
        """Return the step of the box for a step of the slopes."""
        ds = (product_targets[0] + self.s * da) / self.above - self.s
        dr = (product_targets[1] - self.r * da) / self.below - self.r
        return BoundedSlopes(da, ds, dr, np.where(self.s > 0, -da, 0.0), np.where(self.r > 0, da, 0.0))

    def get_max_step_fractions(self, step: BoundedSlopes) -> tuple[float, float]:
        """Return the largest fractions of a step that keep the slacks and the distances nonnegative."""
        return _get_max_step(self[1:3], step[1:3]), _get_max_step(self[3:], step[3:])

    def barrier_slope(self, step: BoundedSlopes, t: float, mu: float) -> float:
        """Return the derivative with respect to t of high s - low r - mu (log s + log r) along a step."""
        s, r = self.s + t * step.s, self.r + t * step.r
        of_s = (self.above + self.a) * step.s - mu * np.divide(step.s, s, out=np.zeros_like(s), where=self.s > 0)
        of_r = (self.below - self.a) * step.r - mu * np.divide(step.r, r, out=np.zeros_like(r), where=self.r > 0)
        return float(of_s.sum() + of_r.sum())


class InteriorPointState(NamedTuple):
    """Weights, arguments of the loss, and the boxes of the examples (K, P) and of the weights (N,)."""

    w: np.ndarray
    x: np.ndarray
    rows: BoundedSlopes
    weights: BoundedSlopes | None


def _get_max_step(values: tuple[np.ndarray, ...], step: tuple[np.ndarray, ...]) -> float:
    """Return the largest fraction of a step that keeps all values nonnegative."""
    pairs = zip(values, step, strict=True)
    max_ratio = max(float(np.max(-change[value > 0] / value[value > 0], initial=0.0)) for value, change in pairs)
    return np.inf if max_ratio == 0 else 1 / max_ratio


def make_bounded_slopes(
    z: np.ndarray, low: np.ndarray, high: np.ndarray, softness: np.ndarray | float
) -> BoundedSlopes:
    """Make an initial box, with slopes in the middle of their intervals or near the only finite bound.

    The slacks represent z - `softness` a.
    """
    lows, highs = np.broadcast_to(low, z.shape), np.broadcast_to(high, z.shape)
    has_low, has_high = np.isfinite(lows), np.isfinite(highs)
    floor, ceiling = np.where(has_low, lows, 0.0), np.where(has_high, highs, 0.0)
    a = np.where(has_low & has_high, (floor + ceiling) / 2, floor + ceiling + 1.0 * has_low - 1.0 * has_high)
    rest = z - softness * a
    s = np.where(has_high, np.maximum(rest, 0.0) + 1, 0.0)
    r = np.where(has_low, np.maximum(-rest, 0.0) + 1, 0.0)
    return BoundedSlopes(a, s, r, np.where(has_high, ceiling - a, 1.0), np.where(has_low, a - floor, 1.0))


def is_vanishing_weight(weights: BoundedSlopes, l1: float) -> np.ndarray:
    """Return a mask of the weights that are closer to 0 than their slopes are to the bounds."""
    return np.maximum(weights.s, weights.r) < np.minimum(weights.above, weights.below) / l1


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


def minimise_by_interior_point(problem: Problem, parts: LossParts) -> Minimum:
    """Minimise an objective by interior points, with its loss split into these parts.

    Weights that the penalty l1 sets to 0 are exactly 0.
    """
    state = best = _make_initial_state(problem, parts)
    min_gap, steps_since_best = np.inf, 0
    for _ in range(MAX_INTERIOR_STEPS):
        gap = compute_certified_gap(problem, parts, state)
        is_nearer = gap < min_gap or gap == np.inf  # while a constraint is violated, the last state is the best
        best, min_gap, steps_since_best = (
            (state, gap, 0) if is_nearer else (best, min_gap, steps_since_best + bool(np.isfinite(gap)))
        )
        if min_gap <= INTERIOR_GAP_TOL or steps_since_best > (2 if min_gap <= GAP_TOL else 10) or np.isnan(gap):
            break
        try:
            state = _take_interior_step(problem, parts, state)
        except LinAlgError:  # rounding has made the matrix indefinite
            break
    minimum = _set_small_weights_to_zero(problem, parts, best, min_gap)
    return (
        minimum
        if minimum.gap <= MIN_GAP_FOR_ACTIVE_SET or not parts.linear
        else _refine_by_active_set(problem, parts, best, minimum)
    )


def _refine_by_active_set(problem: Problem, parts: LossParts, state: InteriorPointState, minimum: Minimum) -> Minimum:
    """Solve the equations of the state's active set, and return the solution if its gap is smaller."""
    w, a = solve_active_set(problem, parts, state)
    gap = compute_certified_gap(problem, parts, state._replace(w=w, x=problem.x(w), rows=state.rows._replace(a=a)))
    return Minimum(w, gap) if gap < minimum.gap else minimum


def _set_small_weights_to_zero(problem: Problem, parts: LossParts, state: InteriorPointState, gap: float) -> Minimum:
    """Set weights near 0 of an interior state to exactly 0 if the result is still certified."""
    if state.weights is None:
        return Minimum(state.w, gap)
    w = np.where(is_vanishing_weight(state.weights, problem.l1), 0.0, state.w)
    after = compute_certified_gap(problem, parts, state._replace(w=w, x=problem.x(w)))
    return Minimum(w, after) if after <= max(2 * gap, 0.1 * GAP_TOL) else Minimum(state.w, gap)


def _make_initial_state(problem: Problem, parts: LossParts) -> InteriorPointState:
    x = problem.c
    rows = make_bounded_slopes(x - parts.positions, parts.low, parts.high, parts.softness)
    w = np.zeros(problem.B.shape[1])
    limit = np.array(problem.l1)
    return InteriorPointState(w, x, rows, make_bounded_slopes(w, -limit, limit, 0.0) if problem.l1 > 0 else None)


def compute_certified_gap(problem: Problem, parts: LossParts, state: InteriorPointState) -> float:
    """Return a certified bound on the relative duality gap of an interior state's weights and slopes.

    The gap is infinite if a constraint is violated.
    """
    a = np.clip(state.rows.a, parts.low, parts.high)
    v = -(parts.slope(state.x) + a.sum(axis=0)) @ problem.B
    value = problem.penalty(state.w) if parts.has_constraints else problem.value(state.w, state.x)
    return problem.relative_gap(
        parts.excess_over_tangents(state.x, a) + bound_penalty_gap(problem, state.w, v, value), value
    )


class InteriorStepEquations:
    """The linear equations of an interior-point step, factorised once."""

    def __init__(self, problem: Problem, parts: LossParts, state: InteriorPointState):
        self.problem, self.parts, self.now = problem, parts, state
        self.curvature = parts.curvature(state.x)
        self.slope_response = state.rows.argument_response_to_slope + parts.softness
        with np.errstate(divide="ignore"):
            self.stiffness = self.curvature + np.sum(1 / self.slope_response, axis=0)
        soft = np.inf if state.weights is None else state.weights.argument_response_to_slope
        self.D = problem.ridge + np.broadcast_to(1 / soft, state.w.shape)
        P, N = problem.B.shape
        self.wide = not np.isfinite(self.stiffness).all() or (P < N and self.D.all())
        self.factors = cho_factor(
            self._make_dual_matrix() if self.wide else self._make_primal_matrix(), lower=True, overwrite_a=True
        )

    def _make_primal_matrix(self) -> np.ndarray:
        rows = self.problem.B * np.sqrt(self.stiffness)[:, None]
        matrix = rows.T @ rows
        matrix.flat[:: len(matrix) + 1] += self.D
        return matrix

    def _make_dual_matrix(self) -> np.ndarray:
        """Return the dual matrix with rows scaled by the root of Theta where Theta is finite."""
        hard = np.isinf(self.stiffness)
        self.root = np.where(hard, 1.0, np.sqrt(self.stiffness))
        rows = self.problem.B * self.root[:, None] / np.sqrt(self.D)
        matrix = rows @ rows.T
        matrix.flat[:: len(matrix) + 1] += np.where(hard, 0.0, 1.0)
        return matrix

    def step(self, mu: float, predictor: InteriorPointState | None) -> InteriorPointState:
        """Return the step towards complementarity products equal to mu."""
        state, B = self.now, self.problem.B
        row_targets = state.rows.get_product_targets(mu, predictor.rows if predictor else None)
        offset = state.rows.offset(state.x - self.parts.positions - self.parts.softness * state.rows.a, row_targets)
        gradient = self.problem.ridge * state.w + (self.parts.slope(state.x) + state.rows.a.sum(axis=0)) @ B
        if state.weights is not None:
            weight_targets = state.weights.get_product_targets(mu, predictor.weights if predictor else None)
            offset_w = state.weights.offset(state.w, weight_targets)
            gradient = gradient + state.weights.a + offset_w / state.weights.argument_response_to_slope
        dw, q = self._solve_weight_and_slope_steps(gradient, offset)
        dx = B @ dw
        rows = state.rows.step(self._compute_slope_step(dx, q, offset), row_targets)
        if state.weights is None:
            return InteriorPointState(dw, dx, rows, None)
        return InteriorPointState(
            dw, dx, rows, state.weights.step((dw + offset_w) / state.weights.argument_response_to_slope, weight_targets)
        )

    def _solve_weight_and_slope_steps(self, gradient: np.ndarray, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Solve for the step dw (N,) of the weights and the change q (P,) of each example's slopes."""
        B = self.problem.B
        if self.wide and self.parts.linear:  # solving for q itself keeps the digits of small slopes
            q = self._solve_dual(self._average_offsets(offset) - B @ (gradient / self.D))
            return -(gradient + q @ B) / self.D, q
        pull = np.sum(offset / self.slope_response, axis=0)
        force, dw = gradient + pull @ B, np.zeros(len(gradient))
        for _ in range(NUM_STEP_REFINEMENTS):
            left = force + self.D * dw + (self.stiffness * (B @ dw)) @ B
            dw = dw - (self._solve_primal(left) if self.wide else cho_solve(self.factors, left))
        return dw, self.stiffness * (B @ dw) + pull

    def _average_offsets(self, offset: np.ndarray) -> np.ndarray:
        """Average the offsets of each example (P,) over its intervals, weighted by stiffness."""
        if np.isinf(self.stiffness).any():  # examples with a constraint have a single interval
            return offset[0]
        return np.sum(offset / self.slope_response, axis=0) / self.stiffness

    def _solve_primal(self, left: np.ndarray) -> np.ndarray:
        """Solve (D + B^T Theta B) w = `left` for the weights (N,), in P dimensions."""
        q = self._solve_dual(self.problem.B @ (left / self.D))
        return (left - q @ self.problem.B) / self.D

    def _solve_dual(self, left: np.ndarray) -> np.ndarray:
        """Solve (B D^-1 B^T + Theta^-1) q = `left` for the slopes (P,)."""
        return self.root * cho_solve(self.factors, self.root * left)

    def _compute_slope_step(self, dx: np.ndarray, q: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """Return the step (K, P) of the slopes.

        The step of the stiffest interval is the remainder after all other intervals.
        """
        if not len(offset):
            return offset
        stiffest = np.argmin(self.slope_response, axis=0)[None]
        is_other = np.arange(len(offset))[:, None] != stiffest
        slopes = np.where(is_other, (dx + offset) / np.where(is_other, self.slope_response, 1.0), 0.0)
        np.put_along_axis(slopes, stiffest, q - self.curvature * dx - slopes.sum(axis=0), axis=0)
        return slopes


def _take_interior_step(problem: Problem, parts: LossParts, state: InteriorPointState) -> InteriorPointState:
    """Return the state after a predictor-corrector step, or after a step limited by F."""
    system = InteriorStepEquations(problem, parts, state)
    guess = system.step(0.0, None)
    total, count = _sum_slack_products(state)
    t = min(1.0, *_get_max_steps(state, guess))
    after, _ = _sum_slack_products(_apply_step(state, guess, t, t))
    fall = (after / total) ** 3
    if not parts.linear:
        return _take_line_search_step(
            problem, parts, state, system, guess, max(fall, MIN_SLACK_PRODUCT_RATIO) * total / count
        )
    step = system.step(fall * total / count, guess)
    t = min(1.0, MAX_STEP_FRACTION_TO_BOUNDARY * min(_get_max_steps(state, step)))
    return _apply_step(state, step, t, t)


def _take_line_search_step(
    problem: Problem,
    parts: LossParts,
    state: InteriorPointState,
    system: InteriorStepEquations,
    guess: InteriorPointState,
    mu: float,
) -> InteriorPointState:
    """Return the interior state that minimises F along a step.

    The corrected step is used if F decreases along it, else the step without the corrector.
    """
    for step in (system.step(mu, guess), system.step(mu, None)):
        longest, of_slopes = (min(1.0, MAX_STEP_FRACTION_TO_BOUNDARY * part) for part in _get_max_steps(state, step))
        slope = partial(_compute_barrier_slope, problem, parts, state, step, mu, longest)
        if slope(0.0) < 0:
            break
    return _apply_step(state, step, longest * find_step_length(slope, 0), of_slopes)


def _compute_barrier_slope(
    problem: Problem,
    parts: LossParts,
    state: InteriorPointState,
    step: InteriorPointState,
    mu: float,
    longest: float,
    step_fraction: float,
) -> float:
    """Return the derivative, along a step, of F minus mu times the sum of the logarithms of all slacks."""
    t = step_fraction * longest
    with np.errstate(over="ignore", invalid="ignore"):
        loss = float(np.nan_to_num(parts.slope(state.x + t * step.x) @ step.x, nan=np.inf))
    penalty = problem.l2 * float(problem.penalised_weights(state.w + t * step.w) @ problem.penalised_weights(step.w))
    pairs = [(state.rows, step.rows), (state.weights, step.weights)]
    return (
        loss
        + penalty
        + sum(box_state.barrier_slope(box_step, t, mu) for box_state, box_step in pairs if box_state and box_step)
    )


def _sum_slack_products(state: InteriorPointState) -> tuple[float, int]:
    boxes = [slope_box for slope_box in (state.rows, state.weights) if slope_box is not None]
    return sum(slope_box.slack_product_sum for slope_box in boxes), max(
        1, sum(slope_box.num_slack_products for slope_box in boxes)
    )


def _get_max_steps(state: InteriorPointState, step: InteriorPointState) -> tuple[float, float]:
    """Return the largest fractions of a step that keep all slacks and all distances nonnegative."""
    rows = state.rows.get_max_step_fractions(step.rows)
    if state.weights is None or step.weights is None:
        return rows
    weights = state.weights.get_max_step_fractions(step.weights)
    return min(rows[0], weights[0]), min(rows[1], weights[1])


def _apply_step(
    state: InteriorPointState, step: InteriorPointState, t: float, slope_fraction: float
) -> InteriorPointState:
    weights = (
        None
        if state.weights is None or step.weights is None
        else state.weights.apply_step(step.weights, t, slope_fraction)
    )
    return InteriorPointState(
        state.w + t * step.w, state.x + t * step.x, state.rows.apply_step(step.rows, t, slope_fraction), weights
    )
