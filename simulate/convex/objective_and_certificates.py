r"""The objective of a convex fit, certificates for its minimum, and losses split at their kinks.

**Objective.** A learner minimises :math:`F(\mathbf w) = \sum_\mu\ell(x_\mu) + l_1|\mathbf w|_1 +
\tfrac{l_2}2|\mathbf w|^2`. The arguments of the loss are linear in the weights, x = c + B w. For labels they are the
stabilities y h: row mu of B is :math:`y^\mu\mathbf x^\mu/\sqrt N` and c = 0. For real outputs they are the residuals
y - h: row mu is :math:`-\mathbf x^\mu/\sqrt N` and c = y. The last weights may have no penalty, like an intercept.

**Certificate.** The distance of weights from the minimum has an upper bound for any loss and penalty r. Let a be
slopes, one for each term of the loss. A convex term exceeds its tangent of slope a by at most the excess
e(x, a) >= 0, and with :math:`\mathbf v = -B^\top a`

.. math:: F(\mathbf w) - F(\mathbf u) \le \sum_\mu e(x_\mu, a_\mu) + r(\mathbf w) - \mathbf v\cdot\mathbf w
          + \left[\mathbf v\cdot\mathbf u - r(\mathbf u)\right]

for every u. The bracket is largest where each weight is :math:`(|v|-l_1)_+/l_2`. Without the penalty l2 it is at most
:math:`(\max|v|-l_1)_+\,|\mathbf u|_1`, where :math:`|\mathbf u|_1\le F(\mathbf w)/l_1` for every u better than w, if no
loss is negative. Weights without a penalty add :math:`|v|\,|u - w|`, for u up to `UNPENALISED_WEIGHT_RADIUS` + |w|
away. All terms are small near the minimum, so that no digits cancel.

The weights may be found by any method. The slope a of an example at a kink may have any value between the slopes on
both sides. If the method does not provide these slopes, they are chosen to satisfy the condition of a minimum,
:math:`B^\top a + \partial r(\mathbf w) = 0`, in the least-squares sense over nonzero weights.

**Kinks.** A loss is split into a part without kinks and intervals of slopes. An interval [low, high] of slopes a at k
adds the maximum of :math:`a(x-k)-\gamma a^2/2` over a to the loss: a kink if the `softness` :math:`\gamma` is 0, else a
parabola that becomes linear where its slope reaches an end. Without softness, two infinite ends are the constraint
x = k, and one infinite end is x >= k or x <= k.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from statmech.convex.losses import Loss, find_minimiser_interval

GAP_TOL = 1e-9  # relative to the minimum of the objective
MIN_OBJECTIVE = 1e-300  # the inverse is still finite
LARGE_PROBLEM_DIMENSION = 300  # larger problems first try methods for random inputs
UNPENALISED_WEIGHT_RADIUS = 1.0
KINK_DISTANCE_TOL = 1e-6  # closer examples count as lying on the kink
NULL_WEIGHT_TOL = 1e-9
CURVATURE_TEST_ARGUMENTS = np.linspace(-20.0, 20.0, 401)  # covers the arguments of typical losses


class Problem(NamedTuple):
    """A loss of x = c + B w for B (P, N) and c (P,), and the factors of |w|_1 and |w|^2 / 2.

    The last `num_unpenalised_weights` weights have no penalty. They need l1 = 0 and a loss that has a minimum.
    """

    B: np.ndarray
    c: np.ndarray
    loss: Loss
    l1: float
    l2: float
    num_unpenalised_weights: int = 0

    def x(self, w: np.ndarray) -> np.ndarray:
        """Return the arguments (P,) of the loss."""
        return self.c + self.B @ w

    def value(self, w: np.ndarray, x: np.ndarray) -> float:
        """Return F of weights w with these arguments x of the loss."""
        return float(self.loss.value(x).sum()) + self.penalty(w)

    def penalty(self, w: np.ndarray) -> float:
        """Return the penalty of weights w."""
        penalised = self.penalised_weights(w)
        return float(self.l1 * np.abs(penalised).sum() + 0.5 * self.l2 * (penalised @ penalised))

    def penalised_weights(self, w: np.ndarray) -> np.ndarray:
        """Return the penalised weights."""
        return w[: len(w) - self.num_unpenalised_weights]

    @property
    def ridge(self) -> np.ndarray | float:
        """The factor of w^2 / 2 in the penalty, for each weight (N,) or for all."""
        return (
            self.l2 * (np.arange(self.B.shape[1]) < self.B.shape[1] - self.num_unpenalised_weights)
            if self.num_unpenalised_weights
            else self.l2
        )

    @property
    def is_large(self) -> bool:
        """Whether both N and P are large."""
        return min(self.B.shape) >= LARGE_PROBLEM_DIMENSION

    @property
    def scale(self) -> float:
        """The objective F at w = 0."""
        return float(self.loss.value(self.c).sum())

    @property
    def can_reach_zero_objective(self) -> bool:
        """Whether the minimum of F may be 0: without a penalty, or if an intercept alone fits examples of one label."""
        if self.l1 == self.l2 == 0:
            return True
        return bool(self.num_unpenalised_weights and np.ptp(self.B[:, -1]) == 0 and find_minimiser_interval(self.loss))

    def relative_gap(self, gap: float, value: float) -> float:
        """Return a gap relative to the value of F, or relative to F(0) if the minimum of F may be 0."""
        return gap / max(self.scale if self.can_reach_zero_objective else value, MIN_OBJECTIVE)


class Minimum(NamedTuple):
    """Weights (N,), and a bound on their relative gap to the minimum (NaN without a minimum)."""

    w: np.ndarray
    gap: float

    @property
    def converged(self) -> bool:
        """Whether the gap is at most `GAP_TOL`."""
        return bool(self.gap <= GAP_TOL)


def make_missing_minimum(N: int) -> Minimum:
    """Make the result for a problem without a minimum."""
    return Minimum(np.full(N, np.nan), np.nan)


def make_loss_argument_map(X: np.ndarray, y: np.ndarray, has_labels: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return B and c for inputs X (P, N) and outputs y (P,): stabilities of labels, or residuals of real outputs."""
    root = np.sqrt(X.shape[1])
    return (X * (y / root)[:, None], np.zeros(len(y))) if has_labels else (X / -root, y)


def bound_unpenalised_weight_gap(problem: Problem, w: np.ndarray, v: np.ndarray) -> float:
    """Return the maximum of v.(u - w) over nearby unpenalised weights u."""
    first = len(w) - problem.num_unpenalised_weights
    return float(np.abs(v[first:]) @ (UNPENALISED_WEIGHT_RADIUS + np.abs(w[first:])))


def bound_penalty_gap(problem: Problem, w: np.ndarray, v: np.ndarray, value: float) -> float:
    """Return the maximum of r(w) - v.w + v.u - r(u) over all u that may have F(u) < F(w) = `value`."""
    l1, l2, free = problem.l1, problem.l2, bound_unpenalised_weight_gap(problem, w, v)
    w, v = problem.penalised_weights(w), problem.penalised_weights(v)
    excess = np.maximum(np.abs(v) - l1, 0.0)
    clipped = np.clip(v, -l1, l1)
    kinked = l1 * np.abs(w) - clipped * w
    if l2 > 0:
        rest = np.sign(v) * excess
        return float(np.sum(kinked + (l2 * w - rest) ** 2 / (2 * l2))) + free
    # without a penalty, only compare with students up to the distance of 0
    farthest = value / l1 if l1 > 0 else np.abs(w).sum()
    return float(np.sum(kinked - np.sign(v) * excess * w) + excess.max() * farthest) + free


def bound_relative_gap(problem: Problem, w: np.ndarray, slopes: np.ndarray | None = None) -> float:
    """Bound the relative distance of weights (N,) from the minimum.

    The bound holds for any `slopes` (P,) given for the examples at kinks. NaN if the weights are not finite.
    """
    if not np.isfinite(w).all():
        return np.nan
    x = problem.x(w)
    kink = np.full(x.shape, np.nan)
    for position in problem.loss.kinks:
        kink = np.where(np.abs(x - position) < KINK_DISTANCE_TOL, position, kink)
    near_kink = np.isfinite(kink)
    a = problem.loss.slope(x)
    kinks = kink[near_kink]
    kink_slopes = (
        _find_kink_slopes(problem, w, np.where(near_kink, 0.0, a), near_kink) if slopes is None else slopes[near_kink]
    )
    a[near_kink] = np.clip(kink_slopes, *(problem.loss.slope(np.nextafter(kinks, side)) for side in (-np.inf, np.inf)))
    value = problem.value(w, x)
    excess = problem.loss.value(x[near_kink]) - problem.loss.value(kinks) - a[near_kink] * (x[near_kink] - kinks)
    return problem.relative_gap(float(excess.sum() + bound_penalty_gap(problem, w, -(a @ problem.B), value)), value)


def _find_kink_slopes(problem: Problem, w: np.ndarray, smooth_slopes: np.ndarray, is_kink: np.ndarray) -> np.ndarray:
    """Find the slopes of the examples at a kink, given the slopes of all other examples (P,)."""
    gradient = smooth_slopes @ problem.B + problem.ridge * w + problem.l1 * np.sign(w)
    used = (np.abs(w) > NULL_WEIGHT_TOL) | (problem.l1 == 0)
    return np.linalg.lstsq(problem.B[np.ix_(is_kink, used)].T, -gradient[used], rcond=None)[0]


class LossParts(NamedTuple):
    """The slope and the curvature of the part without kinks, and K intervals of slopes."""

    slope: Callable[[np.ndarray], np.ndarray]
    curvature: Callable[[np.ndarray], np.ndarray]
    linear: bool  # whether `slope` is linear
    positions: np.ndarray  # positions (K, 1) of the intervals, in the shape of low, high and give
    low: np.ndarray
    high: np.ndarray
    softness: np.ndarray | float = 0.0

    @property
    def has_constraints(self) -> bool:
        """Whether the loss is infinite for some x."""
        return bool(np.all(self.softness == 0) and not np.isfinite([self.low, self.high]).all())

    def excess_over_tangents(self, x: np.ndarray, a: np.ndarray) -> float:
        """Return the excess of the intervals' loss at x (P,) over its tangents of slopes a (K, P)."""
        z = x - self.positions
        if self.has_constraints:
            is_allowed = (z >= -GAP_TOL) | np.isfinite(self.low)
            is_allowed &= (z <= GAP_TOL) | np.isfinite(self.high)
            return float(np.abs(a * z).sum()) if is_allowed.all() else np.inf
        unbounded = np.where(z > 0, self.high, self.low) if np.all(self.softness == 0) else z / self.softness
        best = np.clip(unbounded, self.low, self.high)
        return float(np.sum((best - a) * (z - self.softness * (best + a) / 2)))


def split_loss_at_kinks(loss: Loss) -> LossParts:
    """Split a loss into a part without kinks and intervals of slopes.

    A loss whose slope is linear between two ends becomes one interval. Other losses have one interval per kink.
    """
    return _make_single_slope_interval(loss) or _split_at_kinks(loss)


def make_constraints(low: float, high: float) -> LossParts:
    """Make the parts of a vanishing loss with the constraint low <= x <= high."""
    if low == high:
        ends = [(low, -np.inf, np.inf)]
    else:
        ends = [end for end in ((low, -np.inf, 0.0), (high, 0.0, np.inf)) if np.isfinite(end[0])]
    return LossParts(np.zeros_like, np.zeros_like, True, *np.array(ends).T[:, :, None])


def _split_at_kinks(loss: Loss) -> LossParts:
    """Split an objective's loss into a part without kinks and one interval for each kink.

    The length of an interval is the jump of the slope. The first interval starts at the slope itself, so that small
    slopes keep their digits.
    """
    positions = np.array(loss.kinks, dtype=float)[:, None]
    before, after = loss.slope(np.nextafter(positions, -np.inf)), loss.slope(np.nextafter(positions, np.inf))
    positions, before, after = (array[before != after][:, None] for array in (positions, before, after))
    low = np.where(np.arange(len(positions))[:, None] == 0, before, 0.0)
    high = low + after - before

    def slope(x: np.ndarray) -> np.ndarray:
        shifted = np.where(np.any(x == positions, axis=0), np.nextafter(x, np.inf), x)  # any slope is valid at a kink
        return loss.slope(shifted) - np.sum(np.where(shifted > positions, high, low), axis=0)

    linear = not loss.bends and np.ptp(loss.curvature(CURVATURE_TEST_ARGUMENTS)) == 0
    return LossParts(slope, loss.curvature, bool(linear), positions, low, high)


def _make_single_slope_interval(loss: Loss) -> LossParts | None:
    """Return the only interval of an objective's loss with constant curvature between two bends, 0 elsewhere.

    An end of the curved region may be infinite. None for other losses.
    """
    if loss.kinks:
        return None
    edges = np.array([min(loss.bends, default=0.0) - 20, *loss.bends, max(loss.bends, default=0.0) + 20])
    inner = edges[:-1, None] + np.diff(edges)[:, None] * np.linspace(0.01, 0.99, 50)
    curvature = loss.curvature(inner)
    curved = np.flatnonzero(curvature.max(axis=1) > 0)
    if len(curved) != 1 or np.ptp(curvature[curved[0]]) > 1e-12 * curvature[curved[0], 0]:
        return None
    give = 1 / curvature[curved[0], 0]
    x = inner[curved[0], 25]
    centre = x - give * loss.slope(x)
    left, right = curved[0], curved[0] + 1
    low = (edges[left] - centre) / give if left > 0 else -np.inf
    high = (edges[right] - centre) / give if right < len(edges) - 1 else np.inf
    return LossParts(np.zeros_like, np.zeros_like, True, *np.array([centre, low, high, give]).reshape(4, 1, 1))
