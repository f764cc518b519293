r"""The pseudo-inverse rule, the fixed point of Adaline.

The shortest w that minimises :math:`\sum_\mu(\mathbf w\cdot\mathbf z^\mu - 1)^2`: its strengths are the shortest
solution of :math:`Gx = 1` in the least-squares sense.
"""

from __future__ import annotations

import numpy as np

from simulate.learners.learner_interface import DataSetBatch, LearnerTask, LearntStudents, at_once, one_by_one


def compute_pseudo_inverse_strengths(z: np.ndarray) -> np.ndarray:
    """Compute the strengths x (P,) of examples z (P, N) from the singular values of z.

    This is more accurate than G = z z^T / N.
    """
    P, N = z.shape
    left, values, _ = np.linalg.svd(z, full_matrices=False)
    significant = values > values[0] * max(P, N) * np.finfo(float).eps
    return N * (left[:, significant] / values[significant] ** 2) @ left[:, significant].sum(axis=0)


def learn(batch: DataSetBatch, task: LearnerTask) -> LearntStudents:
    """Find the pseudo-inverse solution for each data set of a batch."""
    x, exists = one_by_one(batch, compute_pseudo_inverse_strengths)
    return at_once(task.until, exists, strengths=x)
