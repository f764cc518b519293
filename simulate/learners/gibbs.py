"""Gibbs learning: one student drawn uniformly from the version space."""

from __future__ import annotations

from simulate.learners.examples import Batch
from simulate.learners.interface import LearnerTask, Learnt
from simulate.learners.version_space import students
from statmech.learners import Gibbs

ENOUGH = 20.0  # autocorrelation times, for a student independent of the start of its chain


def learn(batch: Batch, task: LearnerTask) -> Learnt:
    assert isinstance(task.learner, Gibbs)
    return students(batch, task, 1, task.learner.sweeps, ENOUGH)
