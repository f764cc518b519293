"""Learners of stored examples, one file each, named as in `statmech.learners.LEARNERS`.

Each file has `learn(batch, task) -> Learnt`. Students live in the space of embedding strengths x, in which a step costs
O(P) (see `simulate.learners.examples`); those of the version space are weight vectors.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from simulate.learners.examples import Batch
from simulate.learners.interface import Learnt, Task
from statmech.forks import check_fork


def learn(batch: Batch, task: Task) -> Learnt:
    """All data sets of a batch, learnt by one learner: by the file of its name, or by its class's own `learn`."""
    check_fork()
    learner = getattr(task.learner, "learn", None) or import_module(f"simulate.learners.{task.name}").learn
    learnt: Learnt = learner(batch, task)
    return learnt


ESTIMATORS = {
    "Perceptron": "simulate.estimators.perceptron",
    "MinOver": "simulate.estimators.stability",
    "AdaTron": "simulate.estimators.stability",
    "AttentivePerceptron": "simulate.estimators.attentive",
    "SparsePerceptron": "simulate.estimators.sparse",
}


def __getattr__(name: str) -> Any:
    """Learners as scikit-learn estimators, imported when asked for: scikit-learn alone takes a second."""
    if name not in ESTIMATORS:
        raise AttributeError(f"module 'simulate.learners' has no attribute {name!r}")
    return getattr(import_module(ESTIMATORS[name]), name)
