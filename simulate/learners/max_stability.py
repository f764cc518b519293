r"""The perceptron of maximum stability, exactly.

Its direction is that of the shortest vector in the convex hull of the :math:`\mathbf z^\mu`, whose length is the
stability :math:`\kappa`. Over x >= 0, :math:`|\sum_\mu x_\mu\mathbf z^\mu|^2 + (1-\sum_\mu x_\mu)^2` is least at a
multiple of that point's weights: nonnegative least squares, solved by SciPy's active set method to rounding.
The hull contains the origin, and the least length is 0, if and only if no perceptron is right on all examples.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from simulate.learners.examples import Batch
from simulate.learners.interface import LearnerTask, Learnt, at_once, one_by_one

VANISHING = 1e-8  # distance of hull and origin, in units of sqrt(N), that counts as 0


def strengths(z: np.ndarray) -> np.ndarray | None:
    """x (P,), scaled so that the smallest field is 1; None if no perceptron is right on all examples z (P, N)."""
    P, N = z.shape
    x, _ = nnls(np.vstack([z.T, np.ones(P)]), np.append(np.zeros(N), 1.0), maxiter=100 * P)
    nearest = x @ z / x.sum()
    length2 = nearest @ nearest
    return x / x.sum() * N / length2 if length2 > VANISHING**2 * N else None


def learn(batch: Batch, task: LearnerTask) -> Learnt:
    x, exists = one_by_one(batch, strengths)
    return at_once(task.until, exists, strengths=x)
