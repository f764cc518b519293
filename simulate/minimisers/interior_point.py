r"""An interior point method for losses and penalties with kinks, and for constraints.

A loss is split into a part g without kinks and intervals of slopes (`parts`, `boxes`); the penalty l1 is the interval
from -l1 to l1 of the slopes of the weights themselves. Let :math:`\Theta` be g'' plus the inverse softnesses of an
example's intervals, and D = l2 plus the inverse softness of a weight's interval. Each step solves

.. math:: (D + B^\top\Theta B)\,d\mathbf w = \mathbf b

in min(N, P) dimensions: for P < N by :math:`(BD^{-1}B^\top + \Theta^{-1})\,q = \mathbf b'`, which holds also for
constraints, where :math:`\Theta^{-1} = 0`. Predictor and corrector follow Mehrotra, SIAM J. Optim. 2, 575 (1992).
If the slope of g is not linear, a step ends where F, with -mu times the logarithms of all slacks, is minimal along the
step; without the corrector F decreases along every step.
Where rounding ends the steps too early, `active_set` solves the equations of the minimum.
**Certificate**: `certificates`, with these slopes.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from simulate.minimisers.active_set import settled, zeros
from simulate.minimisers.certificates import penalty_gap
from simulate.minimisers.complementarity import Iterate, box
from simulate.minimisers.line_search import step_length
from simulate.minimisers.problem import REACHED, Minimum, Problem
from simulate.minimisers.slope_intervals import Parts

STEPS = 200
EXACT = 1e-14  # relative gap
ENOUGH = 1e-12  # a larger relative gap is due to rounding: the active set is solved
SHORT = 0.99  # keeps slacks positive
REFINED = 2  # solutions of a step's equations, each for the residual of the previous solution
FALL = 0.05  # limits the decrease of the products in a step if the slope of g is not linear


def interior_point(problem: Problem, parts: Parts) -> Minimum:
    """Find the minimum for a loss in these parts.

    Weights that the penalty l1 sets to 0 are exactly 0.
    """
    state = best = _start(problem, parts)
    min_gap, steps_since_best = np.inf, 0
    for _ in range(STEPS):
        gap = certified(problem, parts, state)
        is_nearer = gap < min_gap or gap == np.inf  # while a constraint is violated the last state is the nearest
        best, min_gap, steps_since_best = (
            (state, gap, 0) if is_nearer else (best, min_gap, steps_since_best + bool(np.isfinite(gap)))
        )
        if min_gap <= EXACT or steps_since_best > (2 if min_gap <= REACHED else 10) or np.isnan(gap):
            break
        try:
            state = _stepped(problem, parts, state)
        except LinAlgError:  # rounding has made the matrix indefinite
            break
    minimum = _sparse(problem, parts, best, min_gap)
    return minimum if minimum.gap <= ENOUGH or not parts.linear else _settled(problem, parts, best, minimum)


def _settled(problem: Problem, parts: Parts, near: Iterate, found: Minimum) -> Minimum:
    """Solve the equations of the state's active set, and return the solution if its gap is smaller."""
    w, a = settled(problem, parts, near)
    gap = certified(problem, parts, near._replace(w=w, x=problem.x(w), rows=near.rows._replace(a=a)))
    return Minimum(w, gap) if gap < found.gap else found


def _sparse(problem: Problem, parts: Parts, now: Iterate, gap: float) -> Minimum:
    """Set weights near 0 to exactly 0 if the result is still certified."""
    if now.weights is None:
        return Minimum(now.w, gap)
    w = np.where(zeros(now.weights, problem.l1), 0.0, now.w)
    after = certified(problem, parts, now._replace(w=w, x=problem.x(w)))
    return Minimum(w, after) if after <= max(2 * gap, 0.1 * REACHED) else Minimum(now.w, gap)


def _start(problem: Problem, parts: Parts) -> Iterate:
    x = problem.c
    rows = box(x - parts.at, parts.low, parts.high, parts.give)
    w = np.zeros(problem.B.shape[1])
    limit = np.array(problem.l1)
    return Iterate(w, x, rows, box(w, -limit, limit, 0.0) if problem.l1 > 0 else None)


def certified(problem: Problem, parts: Parts, now: Iterate) -> float:
    """Return the relative gap of a state's weights and slopes.

    The gap is infinite if a constraint is violated.
    """
    a = np.clip(now.rows.a, parts.low, parts.high)
    v = -(parts.slope(now.x) + a.sum(axis=0)) @ problem.B
    value = problem.penalty(now.w) if parts.constrains else problem.value(now.w, now.x)
    return problem.relative(parts.excess(now.x, a) + penalty_gap(problem, now.w, v, value), value)


class System:
    """The linear equations of a step, factored once."""

    def __init__(self, problem: Problem, parts: Parts, now: Iterate):
        self.problem, self.parts, self.now = problem, parts, now
        self.curvature = parts.curvature(now.x)
        self.softness = now.rows.softness + parts.give
        with np.errstate(divide="ignore"):
            self.stiffness = self.curvature + np.sum(1 / self.softness, axis=0)
        soft = np.inf if now.weights is None else now.weights.softness
        self.D = problem.ridge + np.broadcast_to(1 / soft, now.w.shape)
        P, N = problem.B.shape
        self.wide = not np.isfinite(self.stiffness).all() or (P < N and self.D.all())
        self.factors = cho_factor(self._wide() if self.wide else self._tall(), lower=True, overwrite_a=True)

    def _tall(self) -> np.ndarray:
        rows = self.problem.B * np.sqrt(self.stiffness)[:, None]
        matrix = rows.T @ rows
        matrix.flat[:: len(matrix) + 1] += self.D
        return matrix

    def _wide(self) -> np.ndarray:
        """Return the symmetric matrix with 1 on the diagonal where Theta is finite: rows are scaled by its root."""
        hard = np.isinf(self.stiffness)
        self.root = np.where(hard, 1.0, np.sqrt(self.stiffness))
        rows = self.problem.B * self.root[:, None] / np.sqrt(self.D)
        matrix = rows @ rows.T
        matrix.flat[:: len(matrix) + 1] += np.where(hard, 0.0, 1.0)
        return matrix

    def step(self, mu: float, guess: Iterate | None) -> Iterate:
        """Return the step towards complementarity products mu."""
        state, B = self.now, self.problem.B
        row_targets = state.rows.aims(mu, guess.rows if guess else None)
        offset = state.rows.offset(state.x - self.parts.at - self.parts.give * state.rows.a, row_targets)
        gradient = self.problem.ridge * state.w + (self.parts.slope(state.x) + state.rows.a.sum(axis=0)) @ B
        if state.weights is not None:
            weight_targets = state.weights.aims(mu, guess.weights if guess else None)
            offset_w = state.weights.offset(state.w, weight_targets)
            gradient = gradient + state.weights.a + offset_w / state.weights.softness
        dw, q = self._solve(gradient, offset)
        dx = B @ dw
        rows = state.rows.step(self._slopes(dx, q, offset), row_targets)
        if state.weights is None:
            return Iterate(dw, dx, rows, None)
        return Iterate(dw, dx, rows, state.weights.step((dw + offset_w) / state.weights.softness, weight_targets))

    def _solve(self, lacks: np.ndarray, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Solve for dw (N,) and q (P,), the change of each example's slopes at the end of the step."""
        B = self.problem.B
        if self.wide and self.parts.linear:  # solving for q itself keeps the digits of small slopes
            q = self._dual(self._mean(offset) - B @ (lacks / self.D))
            return -(lacks + q @ B) / self.D, q
        pull = np.sum(offset / self.softness, axis=0)
        force, dw = lacks + pull @ B, np.zeros(len(lacks))
        for _ in range(REFINED):
            left = force + self.D * dw + (self.stiffness * (B @ dw)) @ B
            dw = dw - (self._inverse(left) if self.wide else cho_solve(self.factors, left))
        return dw, self.stiffness * (B @ dw) + pull

    def _mean(self, offset: np.ndarray) -> np.ndarray:
        """Average the offsets of each example (P,) over its intervals, weighted by stiffness."""
        if np.isinf(self.stiffness).any():  # an example with a constraint has only this interval
            return offset[0]
        mean: np.ndarray = np.sum(offset / self.softness, axis=0) / self.stiffness
        return mean

    def _inverse(self, left: np.ndarray) -> np.ndarray:
        """Solve (D + B^T Theta B) w = `left` for the weights (N,), in P dimensions."""
        q = self._dual(self.problem.B @ (left / self.D))
        return (left - q @ self.problem.B) / self.D

    def _dual(self, left: np.ndarray) -> np.ndarray:
        """Solve (B D^-1 B^T + Theta^-1) q = `left` for the slopes (P,)."""
        scaled: np.ndarray = self.root * cho_solve(self.factors, self.root * left)
        return scaled

    def _slopes(self, dx: np.ndarray, q: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """Return the step (K, P) of the slopes.

        The step of the stiffest interval is the remainder after all other intervals.
        """
        if not len(offset):
            return offset
        stiffest = np.argmin(self.softness, axis=0)[None]
        is_other = np.arange(len(offset))[:, None] != stiffest
        slopes = np.where(is_other, (dx + offset) / np.where(is_other, self.softness, 1.0), 0.0)
        np.put_along_axis(slopes, stiffest, q - self.curvature * dx - slopes.sum(axis=0), axis=0)
        return slopes


def _stepped(problem: Problem, parts: Parts, now: Iterate) -> Iterate:
    """Return the state after a predictor and a corrector, or after a step limited by F."""
    system = System(problem, parts, now)
    guess = system.step(0.0, None)
    total, count = _products(now)
    t = min(1.0, *_longest(now, guess))
    after, _ = _products(_shifted(now, guess, t, t))
    fall = (after / total) ** 3
    if not parts.linear:
        return _limited(problem, parts, now, system, guess, max(fall, FALL) * total / count)
    step = system.step(fall * total / count, guess)
    t = min(1.0, SHORT * min(_longest(now, step)))
    return _shifted(now, step, t, t)


def _limited(problem: Problem, parts: Parts, now: Iterate, system: System, guess: Iterate, mu: float) -> Iterate:
    """Return the state where F is minimal along a step.

    The corrected step is used if F decreases along it, else the step without the corrector.
    """
    for step in (system.step(mu, guess), system.step(mu, None)):
        longest, of_slopes = (min(1.0, SHORT * part) for part in _longest(now, step))
        slope = partial(_slope, problem, parts, now, step, mu, longest)
        if slope(0.0) < 0:
            break
    return _shifted(now, step, longest * step_length(slope, 0), of_slopes)


def _slope(
    problem: Problem, parts: Parts, now: Iterate, step: Iterate, mu: float, longest: float, part: float
) -> float:
    """Return the derivative along a step of F with -mu times the logarithms of the slacks."""
    t = part * longest
    with np.errstate(over="ignore", invalid="ignore"):
        loss = float(np.nan_to_num(parts.slope(now.x + t * step.x) @ step.x, nan=np.inf))
    penalty = problem.l2 * float(problem.held(now.w + t * step.w) @ problem.held(step.w))
    pairs = [(now.rows, step.rows), (now.weights, step.weights)]
    return (
        loss
        + penalty
        + sum(box_state.cost_slope(box_step, t, mu) for box_state, box_step in pairs if box_state and box_step)
    )


def _products(now: Iterate) -> tuple[float, int]:
    boxes = [slope_box for slope_box in (now.rows, now.weights) if slope_box is not None]
    return sum(slope_box.products for slope_box in boxes), max(1, sum(slope_box.number for slope_box in boxes))


def _longest(now: Iterate, step: Iterate) -> tuple[float, float]:
    """Return the largest fractions of a step that keep slacks, and distances, of all boxes nonnegative."""
    rows = now.rows.longest(step.rows)
    if now.weights is None or step.weights is None:
        return rows
    weights = now.weights.longest(step.weights)
    return min(rows[0], weights[0]), min(rows[1], weights[1])


def _shifted(now: Iterate, step: Iterate, t: float, of_slopes: float) -> Iterate:
    weights = None if now.weights is None or step.weights is None else now.weights.shifted(step.weights, t, of_slopes)
    return Iterate(now.w + t * step.w, now.x + t * step.x, now.rows.shifted(step.rows, t, of_slopes), weights)
