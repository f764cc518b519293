"""The Bayes vote: students drawn uniformly from the version space decide by majority.

A vote of n independent students errs more often than the vote of all students, by a relative excess of about 1/n
(`theory.ensemble_error` at R = q). The same holds for students of a chain with n autocorrelation times.
"""

from __future__ import annotations

from simulate.learners.learner_interface import DataSetBatch, LearnerTask, LearntStudents
from simulate.learners.version_space import sample_version_space

MIN_VOTE_AUTOCORRELATION_TIMES = 100.0  # the vote is then close to the exact Bayes vote


def learn(batch: DataSetBatch, task: LearnerTask) -> LearntStudents:
    """Draw the voting students for each data set of a batch."""
    return sample_version_space(batch, task, task.learner.votes, task.learner.sweeps, MIN_VOTE_AUTOCORRELATION_TIMES)
