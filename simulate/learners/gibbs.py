"""Gibbs learning: one student drawn uniformly from the version space."""

from __future__ import annotations

from simulate.learners.examples import Batch
from simulate.learners.interface import LearnerTask, Learnt
from simulate.learners.version_space import students
from statmech.learners import Gibbs

ENOUGH = 20.0  # the student is then independent of the start of its chain


def learn(batch: Batch, task: LearnerTask) -> Learnt:
    """Draw one student for each data set of a batch."""
    assert isinstance(task.learner, Gibbs)
    return students(batch, task, 1, task.learner.sweeps, ENOUGH)
