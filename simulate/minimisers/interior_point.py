r"""An interior point method for losses and penalties with kinks, and for constraints.

A loss is split into a part g without kinks and one box of slopes per kink (`boxes`); the penalty l1 is a box of slopes
between -l1 and l1 of the weights themselves. With :math:`\Theta` the sum of g'' and of one over the softnesses of an
example's boxes, and D = l2 plus one over that of a weight's, each step solves

.. math:: (D + B^\top\Theta B)\,d\mathbf w = \mathbf b

in min(N, P) dimensions: for P < N by :math:`(BD^{-1}B^\top + \Theta^{-1})\,q = \mathbf b'`, which holds for constraints,
too, where :math:`\Theta^{-1} = 0`. Predictor and corrector are those of Mehrotra (SIAM J. Optim. 2, 575 (1992)).
**Certificate**: `certificates`, with the boxes' slopes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from simulate.minimisers.boxes import Box, box
from simulate.minimisers.certificates import penalty_gap
from simulate.minimisers.problem import REACHED, Minimum, Problem
from statmech.convex.losses import Loss

STEPS = 100
EXACT = 1e-12  # relative gap at which steps end
SHORT = 0.99  # of the way to the boundary


class Split(NamedTuple):
    """A loss as a part without kinks, of this slope and curvature, and a box of slopes [low, high] of x - at each."""

    slope: Callable[[np.ndarray], np.ndarray]
    curvature: Callable[[np.ndarray], np.ndarray]
    at: np.ndarray  # (K, 1), as are low and high
    low: np.ndarray
    high: np.ndarray


def split(loss: Loss) -> Split:
    """A loss as the sum of a part without kinks and of one (x - k)_+ times the jump of the slope per kink k."""
    at = np.array(loss.kinks, dtype=float)[:, None]
    beyond = np.nextafter(at, np.inf)
    jumps = loss.slope(beyond) - loss.slope(np.nextafter(at, -np.inf))

    def slope(x: np.ndarray) -> np.ndarray:
        beside = np.where(np.any(x == at, axis=0), np.nextafter(x, np.inf), x)  # the slope at a kink is any
        return loss.slope(beside) - np.sum(jumps * (beside > at), axis=0)

    return Split(slope, loss.curvature, at, np.zeros_like(jumps), jumps)


def bounds(low: float, high: float) -> Split:
    """No loss, but the constraints low <= x <= high."""
    if low == high:
        ends = [(low, -np.inf, np.inf)]
    else:
        ends = [end for end in ((low, -np.inf, 0.0), (high, 0.0, np.inf)) if np.isfinite(end[0])]
    return Split(np.zeros_like, np.zeros_like, *np.array(ends).T[:, :, None])


class State(NamedTuple):
    """Weights, arguments of the loss, the boxes of the examples (K, P) and those of the weights (N,)."""

    w: np.ndarray
    x: np.ndarray
    rows: Box
    weights: Box | None


def interior_point(problem: Problem, parts: Split) -> Minimum:
    """The minimum for a loss in these parts; weights that the penalty l1 sets to 0 are 0 exactly."""
    now = best = _start(problem, parts)
    least, since = np.inf, 0
    for _ in range(STEPS):
        gap = certified(problem, parts, now)
        best, least, since = (now, gap, 0) if gap < least else (best, least, since + 1)
        if least <= EXACT or since > (3 if least <= REACHED else 20) or np.isnan(gap):
            break
        try:
            now = _stepped(problem, parts, now)
        except LinAlgError:  # rounding has made the matrix indefinite
            break
    return _sparse(problem, parts, best, least)


def _sparse(problem: Problem, parts: Split, now: State, gap: float) -> Minimum:
    """The state's weights, those 0 whose slopes are farther from their bounds than they from 0, if certified."""
    if now.weights is None:
        return Minimum(now.w, gap)
    room = np.minimum(now.weights.above, now.weights.below) / problem.l1
    w = np.where(np.maximum(now.weights.s, now.weights.r) < room, 0.0, now.w)
    after = certified(problem, parts, now._replace(w=w, x=problem.x(w)))
    return Minimum(w, after) if after <= max(2 * gap, 10 * EXACT) else Minimum(now.w, gap)


def _start(problem: Problem, parts: Split) -> State:
    x = problem.c
    rows = box(x - parts.at, parts.low, parts.high, 1.0)
    w = np.zeros(problem.B.shape[1])
    limit = np.array(problem.l1)
    return State(w, x, rows, box(w, -limit, limit, 1.0) if problem.l1 > 0 else None)


def certified(problem: Problem, parts: Split, now: State) -> float:
    """The relative gap of a state's weights and slopes; infinite where a constraint is broken."""
    z = now.x - parts.at
    a = np.clip(now.rows.a, parts.low, parts.high)
    forced = np.where(z > 0, parts.high, parts.low)
    broken = ~np.isfinite(forced) & (np.abs(z) > REACHED)
    cost = np.where(np.isfinite(forced), (np.where(np.isfinite(forced), forced, 0.0) - a) * z, np.abs(a * z))
    value = _value(problem, parts, now)
    v = -(parts.slope(now.x) + a.sum(axis=0)) @ problem.B
    gap = float(cost.sum()) + penalty_gap(now.w, v, problem.l1, problem.l2, value)
    penalised = problem.l1 > 0 or problem.l2 > 0
    return np.inf if broken.any() else gap / max(value if penalised else problem.scale, 1e-300)


def _value(problem: Problem, parts: Split, now: State) -> float:
    """F; a constraint costs nothing."""
    if np.isfinite(parts.low).all() and np.isfinite(parts.high).all():
        return problem.value(now.w, now.x)
    return problem.l1 * float(np.abs(now.w).sum()) + 0.5 * problem.l2 * float(now.w @ now.w)


def _stepped(problem: Problem, parts: Split, now: State) -> State:
    """The state after a predictor and a corrector."""
    system = System(problem, parts, now)
    guess = system.step(0.0, None)
    total, count = _products(now)
    after, _ = _products(_shifted(now, guess, min(1.0, _longest(now, guess))))
    mu = total / count * (after / total) ** 3
    step = system.step(mu, guess)
    return _shifted(now, step, min(1.0, SHORT * _longest(now, step)))


class System:
    """The linear equations of a step, factored once."""

    def __init__(self, problem: Problem, parts: Split, now: State):
        self.problem, self.parts, self.now = problem, parts, now
        self.curvature = parts.curvature(now.x)
        with np.errstate(divide="ignore"):
            self.stiffness = self.curvature + np.sum(1 / now.rows.softness, axis=0)
        soft = np.inf if now.weights is None else now.weights.softness
        self.D = problem.l2 + np.broadcast_to(1 / soft, now.w.shape)
        P, N = problem.B.shape
        self.wide = not np.isfinite(self.stiffness).all() or (P < N and self.D.all())
        self.factors = cho_factor(self._wide() if self.wide else self._tall(), lower=True, overwrite_a=True)

    def _tall(self) -> np.ndarray:
        rows = self.problem.B * np.sqrt(self.stiffness)[:, None]
        matrix = rows.T @ rows
        matrix.flat[:: len(matrix) + 1] += self.D
        return matrix

    def _wide(self) -> np.ndarray:
        """Symmetric, with 1 on the diagonal where Theta is finite: rows are scaled by its root."""
        hard = np.isinf(self.stiffness)
        self.root = np.where(hard, 1.0, np.sqrt(self.stiffness))
        rows = self.problem.B * self.root[:, None] / np.sqrt(self.D)
        matrix = rows @ rows.T
        matrix.flat[:: len(matrix) + 1] += np.where(hard, 0.0, 1.0)
        return matrix

    def step(self, mu: float, guess: State | None) -> State:
        """The step towards products mu."""
        now, B = self.now, self.problem.B
        aims = now.rows.aims(mu, guess.rows if guess else None)
        offset = now.rows.offset(now.x - self.parts.at, aims)
        lacks = self.problem.l2 * now.w + (self.parts.slope(now.x) + now.rows.a.sum(axis=0)) @ B
        if now.weights is not None:
            aims_w = now.weights.aims(mu, guess.weights if guess else None)
            offset_w = now.weights.offset(now.w, aims_w)
            lacks = lacks + now.weights.a + offset_w / now.weights.softness
        dw, q = self._solve(lacks, offset)
        dx = B @ dw
        rows = now.rows.step(self._slopes(dx, q, offset), aims)
        if now.weights is None:
            return State(dw, dx, rows, None)
        return State(dw, dx, rows, now.weights.step((dw + offset_w) / now.weights.softness, aims_w))

    def _solve(self, lacks: np.ndarray, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """dw (N,), and q (P,), the change of each example's slopes at the end of the step."""
        B, softness = self.problem.B, self.now.rows.softness
        if not self.wide:
            pull = np.sum(offset / softness, axis=0)
            dw = -cho_solve(self.factors, lacks + pull @ B)
            return dw, self.stiffness * (B @ dw) + pull
        if np.isinf(self.stiffness).any():
            mean = offset.sum(axis=0)  # a constraint is its example's one box
        else:
            mean = np.sum(offset / softness, axis=0) / np.where(self.stiffness > 0, self.stiffness, 1.0)
        q = self.root * cho_solve(self.factors, self.root * (mean - B @ (lacks / self.D)))
        return -(lacks + q @ B) / self.D, q

    def _slopes(self, dx: np.ndarray, q: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """The step (K, P) of the boxes' slopes."""
        if len(offset) == 1:
            return (q - self.curvature * dx)[None]
        return (dx + offset) / self.now.rows.softness


def _products(now: State) -> tuple[float, int]:
    boxes = [it for it in (now.rows, now.weights) if it is not None]
    return sum(it.products for it in boxes), max(1, sum(it.count for it in boxes))


def _longest(now: State, step: State) -> float:
    rows = now.rows.longest(step.rows)
    return rows if now.weights is None or step.weights is None else min(rows, now.weights.longest(step.weights))


def _shifted(now: State, step: State, t: float) -> State:
    weights = None if now.weights is None or step.weights is None else now.weights.shifted(step.weights, t)
    return State(now.w + t * step.w, now.x + t * step.x, now.rows.shifted(step.rows, t), weights)
