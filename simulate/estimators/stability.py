"""MinOver and AdaTron for scikit-learn: perceptrons of large stability."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from simulate.estimators.linear import LinearClassifier, Student
from simulate.learners import learn
from simulate.learners.examples import DataSet, batch, padded
from simulate.learners.interface import Task
from statmech import learners
from statmech.learners import Learner
from statmech.scenarios.stored_examples import StoredExamples

MOMENTS = 32  # epochs at which students are recorded, from the first to the last
LARGEST = 20_000  # examples, with a Gram matrix of 3 GiB


class _Stored(LinearClassifier):
    """A learner of embedding strengths, as in the teacher-student simulation.

    On examples that are not separable neither MinOver nor AdaTron converges. The result is then the student of fewest
    training errors among those recorded after about 30 numbers of epochs.
    """

    def _of(self, name: str, learner: Learner, z: np.ndarray) -> Student:
        m, features = z.shape
        if m > LARGEST:
            raise ValueError(f"{m} examples are too many: the Gram matrix is limited to {LARGEST} rows")
        data = batch([DataSet(np.zeros(features), z)], padded(m))
        until = np.unique(np.rint(np.geomspace(1, self.max_epochs, MOMENTS)).astype(int)) * m
        with jax.enable_x64(True):
            learnt = learn(data, Task(name, learner, until[None], np.zeros((1, 8), np.uint32)))
        assert learnt.strengths is not None
        strengths, kept = learnt.strengths[0, :, :m], len(until) - 1
        if not learnt.converged[0, -1]:
            message = f"{type(self).__name__} did not converge in {self.max_epochs} epochs: not separable, or too few"
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
            errors = np.sum(strengths @ z @ z.T <= 0, axis=1)
            kept -= int(np.argmin(errors[::-1]))  # the latest of the fewest
        self.strengths_.append(strengths[kept])
        return Student(strengths[kept] @ z / features, max(1, -(-int(learnt.updates[0, kept]) // m)))

    max_epochs: int
    strengths_: list[np.ndarray]

    def fit(self, X: Any, y: Any) -> Any:
        """Learn from examples X (m, features) with labels y (m,)."""
        self.strengths_ = []
        return super().fit(X, y)

    def _check_parameters(self) -> None:
        own = {key: value for key, value in self.get_params().items() if key not in ("max_epochs", "fit_intercept")}
        StoredExamples(learner=type(self).__name__.lower(), alpha=1.0, epochs=(self.max_epochs,), **own)  # its messages


class MinOver(_Stored):
    r"""MinOver: the example of least stability is added repeatedly (`simulate.learners.minover`).

    .. math:: \mathbf w \leftarrow \mathbf w + y^\mu\mathbf x^\mu, \qquad
              \mu = \mathrm{argmin}_\nu\, y^\nu\,\mathbf w\cdot\mathbf x^\nu

    (Krauth & Mezard 1987). The intercept is the weight of a constant feature 1, and counts in the stability.

    Parameters
    ----------
    max_epochs : int
    stop : {"epochs", "stability-patience", "field-patience"}
        Stop rule, as in a config.
    within : float
        Relative distance from the largest stability that must be certified; else a `ConvergenceWarning`.
    fit_intercept : bool

    Attributes
    ----------
    classes_, coef_, intercept_
    n_iter_ : int
        Epochs.
    strengths_ : list of arrays (m,)
        Embedding strengths.

    Examples
    --------
    >>> model = MinOver(max_epochs=1000).fit([[2.0], [-1.0], [-3.0]], [1, 0, 0])
    >>> bool(abs(-model.intercept_[0] / model.coef_[0, 0] - 0.5) < 0.01)      # half way between 2 and -1
    True
    """

    def __init__(self, max_epochs: int = 1000, stop: str = "epochs", within: float = 0.01, fit_intercept: bool = True):
        self.max_epochs = max_epochs
        self.stop = stop
        self.within = within
        self.fit_intercept = fit_intercept

    def _learn(self, z: Any) -> Student:
        return self._of("minover", learners.MinOver(within=self.within, stop=self.stop), z)


class AdaTron(_Stored):
    r"""Batch AdaTron, the perceptron of maximum stability by coordinate ascent (`simulate.learners.adatron`).

    .. math:: x_\mu \leftarrow x_\mu + \max\{-x_\mu,\ \omega(1-e_\mu)/G_{\mu\mu}\}

    (Anlauf & Biehl 1989). The intercept is the weight of a constant feature 1, and counts in the stability.

    Parameters
    ----------
    max_epochs : int
        Epochs after which a `ConvergenceWarning` is issued.
    omega : float
        Step size, 0 < omega < 2.
    tolerance : float
        Certified relative distance from the largest stability at which learning stops.
    fit_intercept : bool

    Examples
    --------
    >>> model = AdaTron().fit([[2.0], [-1.0], [-3.0]], [1, 0, 0])
    >>> model.decision_function([[2.0], [-1.0], [-3.0]]).round(4).tolist()      # the nearest two: equal
    [1.0, -1.0, -2.3333]
    """

    def __init__(self, max_epochs: int = 1000, omega: float = 1.0, tolerance: float = 1e-6, fit_intercept: bool = True):
        self.max_epochs = max_epochs
        self.omega = omega
        self.tolerance = tolerance
        self.fit_intercept = fit_intercept

    def _learn(self, z: Any) -> Student:
        return self._of("adatron", learners.AdaTron(omega=self.omega, tolerance=self.tolerance), z)
