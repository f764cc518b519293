"""The Bayes vote: students drawn uniformly from the version space decide by majority.

A vote of n independent students errs more often than that of all, by a relative excess of about 1/n
(`theory.ensemble_error` at R = q gives it); so does one of a chain with as many autocorrelation times.
"""

from __future__ import annotations

from simulate.learners.examples import Batch
from simulate.learners.interface import LearnerTask, Learnt
from simulate.learners.version_space import students
from statmech.learners import Bayes

ENOUGH = 100.0  # autocorrelation times, for a vote close to that of the whole version space


def learn(batch: Batch, task: LearnerTask) -> Learnt:
    assert isinstance(task.learner, Bayes)
    return students(batch, task, task.learner.votes, task.learner.sweeps, ENOUGH)
