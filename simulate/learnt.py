"""What a learner is asked for, and what it gives back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simulate.examples import Batch
from statmech.learners import STOPPED_BY, Learner


class Task(NamedTuple):
    """A learner with its parameters and stop rule; the updates (B, T) at which each data set's student is recorded,
    and a row of 32-bit words (B, W) for each data set's random numbers."""

    name: str
    learner: Learner
    stop: str
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


def at_once(strengths: np.ndarray, exists: np.ndarray, until: np.ndarray) -> Learnt:
    """The same strengths (B, P) at every moment, of learners that take no steps; no student where none `exists`."""
    strengths = np.where(exists[:, None], strengths, np.nan)
    moments = until.shape[1]
    by = np.where(exists, STOPPED_BY.index("exact"), STOPPED_BY.index("no-solution"))

    def repeated(one: np.ndarray) -> np.ndarray:
        return np.repeat(one[:, None], moments, axis=1)

    return Learnt(repeated(strengths), None, np.zeros_like(until), repeated(by), repeated(exists))


def own(batch: Batch, lane: int) -> np.ndarray:
    """A data set's own examples z (P, N), without the filling."""
    return batch.z[lane, : batch.sizes[lane]]
