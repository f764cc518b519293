r"""The objective, :math:`F(\mathbf w) = \sum_\mu\ell(x_\mu) + l_1|\mathbf w|_1 + \tfrac{l_2}2|\mathbf w|^2`.

The arguments of the loss are linear in the weights, x = c + B w. For labels they are the stabilities y h: row mu of B
is :math:`y^\mu\mathbf x^\mu/\sqrt N` and c = 0. For real outputs they are the residuals y - h: row mu is
:math:`-\mathbf x^\mu/\sqrt N` and c = y. The last weights may have no penalty, like an intercept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from statmech.convex.limits import find_minimiser_interval
from statmech.convex.losses import Loss

GAP_TOL = 1e-9  # relative to the minimum of the objective
MIN_OBJECTIVE = 1e-300  # the inverse is still finite
LARGE_PROBLEM_DIMENSION = 300  # larger problems first try methods for random inputs


class Problem(NamedTuple):
    """A loss of x = c + B w for B (P, N) and c (P,), and the factors of |w|_1 and |w|^2 / 2.

    The last `free` weights have no penalty. They need l1 = 0 and a loss that has a minimum.
    """

    B: np.ndarray
    c: np.ndarray
    loss: Loss
    l1: float
    l2: float
    num_unpenalised_weights: int = 0

    def x(self, w: np.ndarray) -> np.ndarray:
        """Return the arguments (P,) of the loss."""
        fields: np.ndarray = self.c + self.B @ w
        return fields

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
