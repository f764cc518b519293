"""Learners of stored examples, one file each, named as in `statmech.students.learners.LEARNERS`.

Each file has `learn(batch, task) -> Learnt`. Students are represented by embedding strengths x, so that a step costs
O(P) (see `simulate.learners.learner_interface`). Students of the version space are represented by weight vectors.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from simulate.learners.learner_interface import DataSetBatch, LearnerTask, LearntStudents
from statmech.runtime.compiled_programs import enable_jax_cache
from statmech.runtime.operating_system import record_jax_use

ESTIMATOR_MODULES = {
    "Perceptron": "simulate.classification.estimators.linear_classifiers",
    "MinOver": "simulate.classification.estimators.minover_adatron",
    "AdaTron": "simulate.classification.estimators.minover_adatron",
    "AttentivePerceptron": "simulate.classification.estimators.attentive",
    "SparsePerceptron": "simulate.classification.estimators.sparse_perceptron",
    "margin": "simulate.classification.estimators.linear_classifiers",
}


def learn(batch: DataSetBatch, task: LearnerTask) -> LearntStudents:
    """Train one learner on all data sets of a batch.

    Uses the method `learn` of its class if it has one, else the file of its name.

    Parameters
    ----------
    batch : simulate.learners.learner_interface.DataSetBatch
        Data sets side by side.
    task : simulate.learners.learner_interface.LearnerTask
        The learner with its parameters, and the numbers of updates when students are recorded.

    Returns
    -------
    LearntStudents
    """
    record_jax_use()
    learner = getattr(task.learner, "learn", None) or import_module(f"simulate.learners.{task.name}").learn
    enable_jax_cache()  # the learner's module may be the first to import JAX
    return learner(batch, task)


def __getattr__(name: str) -> Any:
    """Import a scikit-learn estimator or `margin` at its first use.

    Importing scikit-learn alone takes a second.
    """
    if name not in ESTIMATOR_MODULES:
        raise AttributeError(f"module 'simulate.learners' has no attribute {name!r}")
    return getattr(import_module(ESTIMATOR_MODULES[name]), name)
