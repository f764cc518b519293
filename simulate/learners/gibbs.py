"""Gibbs learning: one student drawn uniformly from the version space."""

from __future__ import annotations

from simulate.learners.learner_interface import DataSetBatch, LearnerTask, LearntStudents
from simulate.learners.version_space import sample_version_space

MIN_GIBBS_AUTOCORRELATION_TIMES = 20.0  # makes the student independent of the start of its chain


def learn(batch: DataSetBatch, task: LearnerTask) -> LearntStudents:
    """Draw one student for each data set of a batch."""
    return sample_version_space(batch, task, 1, task.learner.sweeps, MIN_GIBBS_AUTOCORRELATION_TIMES)
