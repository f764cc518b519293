r"""Exact solution for the perceptron of maximum stability.

It has the direction of the shortest vector in the convex hull of the :math:`\mathbf z^\mu`, and the length of this
vector is the stability :math:`\kappa`. Over x >= 0, :math:`|\sum_\mu x_\mu\mathbf z^\mu|^2 + (1-\sum_\mu x_\mu)^2` is
minimal at a multiple of that vector's coefficients: nonnegative least squares, solved by SciPy's active set method to
rounding. The hull contains the origin, and the minimal length is 0, if and only if no perceptron is right on all
examples.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from simulate.learners.learner_interface import DataSetBatch, LearnerTask, LearntStudents, at_once, one_by_one

NULL_HULL_DISTANCE_TOL = 1e-8  # from the convex hull to the origin, in units of sqrt(N)


def compute_max_stability_strengths(z: np.ndarray) -> np.ndarray | None:
    """Compute the strengths x (P,) of maximum stability, scaled to a smallest field of 1.

    None if no perceptron is right on all examples z (P, N).
    """
    P, N = z.shape
    x, _ = nnls(np.vstack([z.T, np.ones(P)]), np.append(np.zeros(N), 1.0), maxiter=100 * P)
    nearest = x @ z / x.sum()
    length2 = nearest @ nearest
    return x / x.sum() * N / length2 if length2 > NULL_HULL_DISTANCE_TOL**2 * N else None


def learn(batch: DataSetBatch, task: LearnerTask) -> LearntStudents:
    """Find the perceptron of maximum stability for each data set of a batch."""
    x, exists = one_by_one(batch, compute_max_stability_strengths)
    return at_once(task.until, exists, strengths=x)
