r"""Data sets of stored examples: P inputs :math:`\xi\sim N(0, I)` with a teacher's labels S, some flipped.

A data set depends only on the experiment's key, N and the seed's number: all learners, noise levels and alphas see the
same teacher and the same inputs, the first P of one infinite sequence, and the examples that are flipped at one noise
level are also flipped at larger ones. Learners use :math:`\mathbf z^\mu = S^\mu\xi^\mu` and the Gram matrix :math:`G =
\mathbf z\mathbf z^\mathsf{T}/N`. A student :math:`\mathbf w = \frac1N\sum_\mu x_\mu\mathbf z^\mu` of embedding
strengths x has the fields :math:`\mathbf w\cdot\mathbf z^\mu = (Gx)_\mu`: a step that changes one strength costs one
row of G, not O(P N).
"""

from __future__ import annotations

import bisect
from typing import NamedTuple

import numpy as np

from statmech.scenarios.cells import hash_identity

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
