"""MinOver and AdaTron for scikit-learn: perceptrons of large stability.

Both take the same steps as the learners of `simulate.learners`, one data set at a time and without compiling for its
shape: `simulate.estimators.minover_blocks` and `simulate.estimators.adatron_blocks`, imported by the first fit.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from simulate.estimators.example_weights import VisitSchedule
from simulate.estimators.linear import LinearClassifier, LinearStudent
from simulate.learners.interface import bound_stability_gap
from statmech.scenarios.stored_examples import StoredExamples

NUM_RECORDED_EPOCHS = 32  # logarithmically spaced


class StabilityClassifier(LinearClassifier):
    """Base class of MinOver and AdaTron, which learn embedding strengths as in the teacher-student simulation.

    Neither MinOver nor AdaTron converges if the examples are not separable. The result is then the student with the
    fewest training errors among about 30 recorded students.
    """

    max_epochs: int
    strengths_: list[np.ndarray]

    def __new__(cls, *values: Any, **options: Any) -> Self:
        """Reject class weights and create the estimator."""
        _reject_weight_options(cls.__name__, options)
        return super().__new__(cls)

    def fit(self, X: Any, y: Any, **options: Any) -> Self:  # type: ignore[override]  # scikit-learn reads the names
        """Fit the classifier to examples X (m, features) with labels y (m,), without sample weights."""
        name = type(self).__name__
        _reject_weight_options(name, options)
        if unknown := options.keys() - {"sample_weight"}:
            raise TypeError(f"{name}.fit() got an unexpected keyword argument '{min(unknown)}'")
        self.strengths_ = []
        return super().fit(X, y)

    def _learn(self, z: np.ndarray, visits: VisitSchedule) -> LinearStudent:
        recorded = np.unique(np.rint(np.geomspace(1, self.max_epochs, NUM_RECORDED_EPOCHS)).astype(int))
        strengths, epochs, converged = self._find_strengths(z, recorded)
        best_index = len(recorded) - 1
        if not converged:
            message = (
                f"{type(self).__name__} did not converge in {self.max_epochs} epochs: inseparable, or too few epochs"
            )
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
            errors = np.sum(strengths @ z @ z.T <= 0, axis=1)
            best_index -= int(np.argmin(errors[::-1]))  # the latest student with the fewest errors
        self.strengths_.append(strengths[best_index])
        return LinearStudent(strengths[best_index] @ z / z.shape[1], max(1, int(epochs[best_index])))

    @abstractmethod
    def _find_strengths(self, z: np.ndarray, recorded_epochs: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """Compute the embedding strengths (T, m) after each recorded number of epochs (T,).

        Also returns the number of epochs made (T,), and True if learning converged.
        """

    def _check_parameters(self) -> None:
        parameters = {
            key: value for key, value in self.get_params().items() if key not in ("max_epochs", "fit_intercept")
        }
        StoredExamples(
            learner=type(self).__name__.lower(), alpha=1.0, epochs=(self.max_epochs,), **parameters
        )  # checks the parameters, with the messages of a config


def _reject_weight_options(name: str, options: dict[str, Any]) -> None:
    """Raise `TypeError` if an estimator's options contain weights."""
    for option in ("sample_weight", "class_weight"):
        if options.get(option) is not None:
            why = "the largest stability depends on the examples, not on their weights. Leave out examples of weight 0"
            raise TypeError(f"{name} does not support {option}: {why}")


class MinOver(StabilityClassifier):
    r"""MinOver, which repeatedly adds the example with the smallest stability (`simulate.learners.minover`).

    .. math:: \mathbf w \leftarrow \mathbf w + y^\mu\mathbf x^\mu, \qquad
              \mu = \mathrm{argmin}_\nu\, y^\nu\,\mathbf w\cdot\mathbf x^\nu

    (Krauth & Mezard 1987). The intercept is the weight of a constant feature 1, and counts in the stability.

    Parameters
    ----------
    max_epochs : int
    stop : {"epochs", "stability-patience", "field-patience"}
        Stop rule, as in a config.
    within : float
        Relative distance from the largest stability. A `ConvergenceWarning` is issued if it is not certified.
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

    def _find_strengths(self, z: np.ndarray, recorded_epochs: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        from simulate.estimators import minover_blocks  # needs Numba

        run = minover_blocks.run_minover(z, recorded_epochs * len(z), self.stop)
        converged = bound_stability_gap(run.fields, run.strengths[-1]) <= self.within
        return run.strengths, -(-run.updates // len(z)), bool(converged)


class AdaTron(StabilityClassifier):
    r"""Batch AdaTron, the perceptron of maximum stability by coordinate ascent (`simulate.learners.adatron`).

    .. math:: x_\mu \leftarrow x_\mu + \max\{-x_\mu,\ \omega(1-e_\mu)/G_{\mu\mu}\}

    (Anlauf & Biehl 1989). The intercept is the weight of a constant feature 1, and counts in the stability.

    Parameters
    ----------
    max_epochs : int
        Maximal number of epochs; a `ConvergenceWarning` is issued if it is not enough.
    omega : float
        Step size, 0 < omega < 2.
    tolerance : float
        Learning stops at this certified relative distance from the largest stability.
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

    def _find_strengths(self, z: np.ndarray, recorded_epochs: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        from simulate.estimators import adatron_blocks  # needs Numba

        return adatron_blocks.run_adatron(z, recorded_epochs, self.omega, self.tolerance)
