r"""The interface of learners of stored examples: their task, batches of data sets, and result.

Learners use :math:`\mathbf z^\mu = S^\mu\xi^\mu`, inputs times labels, and the Gram matrix
:math:`G = \mathbf z\mathbf z^\mathsf{T}/N`. A student :math:`\mathbf w = \frac1N\sum_\mu x_\mu\mathbf z^\mu` of
embedding strengths x has the fields :math:`\mathbf w\cdot\mathbf z^\mu = (Gx)_\mu`: a step that changes one strength
costs one row of G, not O(P N).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from statmech.numerics.gaussian import Array, get_array_module
from statmech.students.learners import STOP_REASONS


class DataSetBatch(NamedTuple):
    """Data sets side by side, padded with zeros to P examples: z (B, P, N), gram (B, P, P), sizes (B,)."""

    z: np.ndarray
    gram: np.ndarray
    sizes: np.ndarray

    @property
    def is_example(self) -> np.ndarray:
        """A mask (B, P): True for examples, False for padding."""
        return np.arange(self.z.shape[1]) < self.sizes[:, None]


class LearnerTask(NamedTuple):
    """The task of a learner: its parameters, recorded times and random numbers.

    The name and parameters of the learner, the numbers of updates (B, T) when each data set's student is recorded, and
    a row of 32-bit integers (B, W) per data set for its random numbers.
    """

    name: str
    learner: Any  # one of `statmech.students.learners.LEARNERS`
    until: np.ndarray
    words: np.ndarray


class LearntStudents(NamedTuple):
    """Students of B data sets at T recorded times.

    Embedding strengths (B, T, P), or, for learners without strengths, students' weights (B, T, K, N); the number of
    updates, the reason why each run ended (an index of `STOP_REASONS`) and convergence according to the learner, all
    (B, T).
    """

    strengths: np.ndarray | None
    students: np.ndarray | None
    updates: np.ndarray
    stopped_by: np.ndarray
    converged: np.ndarray


def at_once(
    until: np.ndarray,
    exists: np.ndarray,
    *,
    strengths: np.ndarray | None = None,
    students: np.ndarray | None = None,
    stop_reason: str = "exact",
    converged: np.ndarray | bool = True,
) -> LearntStudents:
    """Return the result of a learner without recorded steps: the same students at all recorded times.

    Parameters
    ----------
    until
        Recorded numbers of updates (B, T).
    exists
        True for data sets that have a student (B,); the others get NaN.
    strengths, students
        Embedding strengths (B, P), or weights (B, K, N).
    stop_reason
        Reason why runs ended, among `STOP_REASONS`.
    converged
        True for runs that have converged (B,).
    """
    code = np.where(exists, STOP_REASONS.index(stop_reason), STOP_REASONS.index("no-solution"))

    def repeat_values(values: np.ndarray) -> np.ndarray:
        return np.repeat(values[:, None], until.shape[1], axis=1)

    def repeat_existing(values: np.ndarray | None) -> np.ndarray | None:
        return (
            None
            if values is None
            else repeat_values(np.where(exists.reshape(-1, *[1] * (values.ndim - 1)), values, np.nan))
        )

    return LearntStudents(
        repeat_existing(strengths),
        repeat_existing(students),
        np.zeros_like(until),
        repeat_values(code),
        repeat_values(exists & converged),
    )


def get_unpadded_examples(batch: DataSetBatch, index: int) -> np.ndarray:
    """Return the examples z (P, N) of a data set, without padding."""
    return batch.z[index, : batch.sizes[index]]


def one_by_one(
    batch: DataSetBatch, strengths: Callable[[np.ndarray], np.ndarray | None]
) -> tuple[np.ndarray, np.ndarray]:
    """Solve for the strengths (B, P) of each data set in a batch, and return a mask (B,) of existing solutions.

    Strengths are padded with zeros.
    """
    x, exists = np.zeros(batch.z.shape[:2]), np.zeros(len(batch.z), bool)
    for index, size in enumerate(batch.sizes):
        solution = strengths(get_unpadded_examples(batch, index))
        if solution is not None:
            x[index, :size], exists[index] = solution, True
    return x, exists


def bound_stability_gap(fields: Array, strengths: Array) -> Array:
    """Bound the relative distance of a learner's stability from the maximum stability.

    The gap is 1 - kappa / (an upper bound of the largest kappa), see `simulate.learners.minover`. It is infinite for w
    = 0. Fields, in any unit, and strengths are arrays (..., P), in NumPy or JAX.
    """
    xp = get_array_module(fields)
    weighted_sum = xp.sum(xp.where(strengths > 0, strengths * fields, 0.0), axis=-1)
    min_field, total = xp.min(fields, axis=-1), xp.sum(strengths, axis=-1)
    return xp.where(weighted_sum > 0, 1 - min_field * total / xp.where(weighted_sum > 0, weighted_sum, 1.0), np.inf)
