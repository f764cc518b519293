"""What a learner is asked for, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from simulate.learners.examples import Batch
from statmech.gaussian import Array, namespace
from statmech.learners import STOPPED_BY, Learner


class Task(NamedTuple):
    """A learner with its parameters; the updates (B, T) at which each data set's student is recorded,
    and a row of 32-bit words (B, W) for each data set's random numbers."""

    name: str
    learner: Learner
    until: np.ndarray
    words: np.ndarray


class Learnt(NamedTuple):
    """Students of B data sets at T moments.

    Embedding strengths (B, T, P), or, from a learner that has none, students' weights (B, T, K, N); how many updates
    were made, what ended them (an index of `STOPPED_BY`) and whether the learner says that it converged, all (B, T).
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
    by: str = "exact",
    converged: np.ndarray | bool = True,
) -> Learnt:
    """The same strengths (B, P) or students (B, K, N) at every moment, of learners whose steps are not recorded.

    There is no student where none `exists` (B,).
    """
    code = np.where(exists, STOPPED_BY.index(by), STOPPED_BY.index("no-solution"))

    def repeated(one: np.ndarray) -> np.ndarray:
        return np.repeat(one[:, None], until.shape[1], axis=1)

    def existing(one: np.ndarray | None) -> np.ndarray | None:
        return None if one is None else repeated(np.where(exists.reshape(-1, *[1] * (one.ndim - 1)), one, np.nan))

    return Learnt(
        existing(strengths), existing(students), np.zeros_like(until), repeated(code), repeated(exists & converged)
    )


def own(batch: Batch, lane: int) -> np.ndarray:
    """A data set's own examples z (P, N), without the filling."""
    return batch.z[lane, : batch.sizes[lane]]


def one_by_one(batch: Batch, strengths: Callable[[np.ndarray], np.ndarray | None]) -> tuple[np.ndarray, np.ndarray]:
    """Each data set's strengths, filled up with zeros (B, P), and whether it has any (B,)."""
    x, exists = np.zeros(batch.z.shape[:2]), np.zeros(len(batch.z), bool)
    for lane, size in enumerate(batch.sizes):
        found = strengths(own(batch, lane))
        if found is not None:
            x[lane, :size], exists[lane] = found, True
    return x, exists


def gap(fields: Array, strengths: Array) -> Array:
    """1 - kappa / (an upper bound of the largest kappa), see `simulate.learners.minover`; infinite for w = 0.

    Of fields and strengths (..., P), in NumPy or JAX, the fields in any unit.
    """
    xp = namespace(fields)
    along = xp.sum(xp.where(strengths > 0, strengths * fields, 0.0), axis=-1)
    least, total = xp.min(fields, axis=-1), xp.sum(strengths, axis=-1)
    return xp.where(along > 0, 1 - least * total / xp.where(along > 0, along, 1.0), np.inf)
