r"""Data sets of stored examples, and the interface of the learners of these examples: task and result.

Data sets: P inputs :math:`\xi\sim N(0, I)` have a teacher's labels S, some flipped. A data set depends only on the
experiment's key, N and the seed's number: all learners, noise levels and alphas see the same teacher and the same
inputs, the first P of one infinite sequence, and the examples that are flipped at one noise level are also flipped at
larger ones.

Learners use :math:`\mathbf z^\mu = S^\mu\xi^\mu` and the Gram matrix :math:`G = \mathbf z\mathbf z^\mathsf{T}/N`. A
student :math:`\mathbf w = \frac1N\sum_\mu x_\mu\mathbf z^\mu` of embedding strengths x has the fields
:math:`\mathbf w\cdot\mathbf z^\mu = (Gx)_\mu`: a step that changes one strength costs one row of G, not O(P N).
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from statmech.keys.sweep_grid import hash_identity
from statmech.numerics.gaussian import Array, get_array_module
from statmech.students.learners import STOP_REASONS, Learner

PADDED_SIZES = [8, 16, 24, *(n << k for k in range(3, 40) for n in (4, 5, 6, 7))]  # multiples of 8


class DataSet(NamedTuple):
    """A teacher (N,) of length sqrt(N), and its examples times their labels, z (P, N)."""

    teacher: np.ndarray
    z: np.ndarray


class DataSetBatch(NamedTuple):
    """Data sets side by side, padded with zeros to P examples: z (B, P, N), gram (B, P, P), sizes (B,)."""

    z: np.ndarray
    gram: np.ndarray
    sizes: np.ndarray

    @property
    def is_example(self) -> np.ndarray:
        """A mask (B, P): True for examples, False for padding."""
        return np.arange(self.z.shape[1]) < self.sizes[:, None]


def round_up_to_padded_size(P: int) -> int:
    """Return the size that P examples are padded to.

    Few different sizes mean few programs to compile.
    """
    return PADDED_SIZES[bisect.bisect_left(PADDED_SIZES, P)]


class SeedInputs(NamedTuple):
    """A seed's teacher (N,), inputs (P, N), and a uniform number for each input (P,).

    The uniform number decides whether the label is flipped.

    Examples
    --------
    >>> few = draw_seed_inputs(0, 7, 20, 5).examples(5, flip=0.0)
    >>> many = draw_seed_inputs(0, 7, 20, 50).examples(50, flip=0.0)
    >>> bool(np.all(many.z[:5] == few.z) and np.all(few.z @ few.teacher > 0))
    True
    """

    teacher: np.ndarray
    inputs: np.ndarray
    flip_uniforms: np.ndarray

    def examples(self, P: int, flip: float) -> DataSet:
        """Return the first P examples, with labels flipped with this probability."""
        xi = self.inputs[:P]
        labels = np.where(xi @ self.teacher < 0, -1.0, 1.0) * np.where(self.flip_uniforms[:P] < flip, -1.0, 1.0)
        return DataSet(self.teacher, labels[:, None] * xi)


def draw_seed_inputs(key: int, seed: int, N: int, P: int) -> SeedInputs:
    """Draw the first P inputs of a seed, and its teacher.

    The parameters are explained in `draw_data_set`.
    """
    entropy = hash_identity({"data": "stored examples", "N": N})
    teachers, inputs, noise = (np.random.default_rng([key, seed, role, *entropy]) for role in range(3))
    teacher = teachers.standard_normal(N)
    teacher *= np.sqrt(N) / np.linalg.norm(teacher)
    return SeedInputs(teacher, inputs.standard_normal((P, N)), noise.random(P))


def draw_data_set(key: int, seed: int, N: int, P: int, flip: float) -> DataSet:
    """Draw the first P examples of a seed's data set.

    Parameters
    ----------
    key
        Key of the experiment.
    seed
        Number of the seed.
    N, P
        Input dimension, and number of examples.
    flip
        Probability that a label is flipped.
    """
    return draw_seed_inputs(key, seed, N, P).examples(P, flip)


def make_data_set_batch(data: list[DataSet], P: int) -> DataSetBatch:
    """Combine data sets into a batch, each padded to P examples."""
    N = data[0].z.shape[1]
    z = np.zeros((len(data), P, N))
    gram = np.zeros((len(data), P, P))
    for index, data_set in enumerate(data):
        size = len(data_set.z)
        z[index, :size] = data_set.z
        gram[index, :size, :size] = data_set.z @ data_set.z.T / N
    return DataSetBatch(z, gram, np.array([len(data_set.z) for data_set in data]))


class LearnerTask(NamedTuple):
    """The task of a learner: its parameters, recorded times and random numbers.

    The name and parameters of the learner, the numbers of updates (B, T) when each data set's student is recorded, and
    a row of 32-bit integers (B, W) per data set for its random numbers.
    """

    name: str
    learner: Learner
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
    """Return the same students at all recorded times, for learners without recorded steps.

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
    """Find the strengths (B, P) of each data set, padded with zeros, and a mask (B,) of existing solutions."""
    x, exists = np.zeros(batch.z.shape[:2]), np.zeros(len(batch.z), bool)
    for index, size in enumerate(batch.sizes):
        solution = strengths(get_unpadded_examples(batch, index))
        if solution is not None:
            x[index, :size], exists[index] = solution, True
    return x, exists


def bound_stability_gap(fields: Array, strengths: Array) -> Array:
    """Bound the relative distance of a student's stability from the maximum stability.

    The gap is 1 - kappa / (an upper bound of the largest kappa), see `simulate.learners.minover`. It is infinite for w
    = 0. Fields, in any unit, and strengths are arrays (..., P), in NumPy or JAX.
    """
    xp = get_array_module(fields)
    weighted_sum = xp.sum(xp.where(strengths > 0, strengths * fields, 0.0), axis=-1)
    min_field, total = xp.min(fields, axis=-1), xp.sum(strengths, axis=-1)
    return xp.where(weighted_sum > 0, 1 - min_field * total / xp.where(weighted_sum > 0, weighted_sum, 1.0), np.inf)
