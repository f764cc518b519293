r"""An upper bound on the distance of weights from the minimum, for any loss and penalty r.

Let a be slopes, one for each term of the loss. A convex term exceeds its tangent of slope a by at most the `excess`
e(x, a) >= 0, and with :math:`\mathbf v = -B^\top a`

.. math:: F(\mathbf w) - F(\mathbf u) \le \sum_\mu e(x_\mu, a_\mu) + r(\mathbf w) - \mathbf v\cdot\mathbf w
          + \left[\mathbf v\cdot\mathbf u - r(\mathbf u)\right]

for every u. The bracket is largest where each weight is :math:`(|v|-l_1)_+/l_2`. Without the penalty l2 it is at most
:math:`(\max|v|-l_1)_+\,|\mathbf u|_1`, where :math:`|\mathbf u|_1\le F(\mathbf w)/l_1` for every u better than w, if no
loss is negative. Weights without a penalty add :math:`|v|\,|u - w|`, for u up to `UNPENALISED_WEIGHT_RADIUS` + |w|
away. All terms are small near the minimum, so that no digits cancel.
"""

from __future__ import annotations

import numpy as np

from simulate.minimisers.problem import Problem

UNPENALISED_WEIGHT_RADIUS = 1.0


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
    farthest = (
        value / l1 if l1 > 0 else np.abs(w).sum()
    )  # without a penalty, only compare with students up to the distance of 0
    return float(np.sum(kinked - np.sign(v) * excess * w) + excess.max() * farthest) + free
