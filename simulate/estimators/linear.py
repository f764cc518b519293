"""Base class of the linear estimators, which learn from examples multiplied by their labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array, check_is_fitted

from simulate.estimators.example_weights import VisitSchedule, combine_example_weights, drop_zero_weight_examples
from simulate.estimators.one_against_rest import OneAgainstRestClassifier

MAX_FEATURE_VALUE = 1e50  # the variance of margins, of order 1e200, must not overflow


class LinearStudent(NamedTuple):
    """Weights of a student, with the bias last, and its number of passes or epochs."""

    w: np.ndarray
    n_iter: int


class LinearClassifier(OneAgainstRestClassifier, ABC):
    """Base class of linear classifiers with the scikit-learn interface.

    Subclasses define the learning algorithm and whether rows may be sparse.
    """

    accepts_sparse_rows = False
    fit_intercept: bool
    class_weight: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier to examples X (m, features) with labels y (m,) and sample weights (m,)."""
        self._check_parameters()
        X, y = self._validate_data(X, y, dtype=float, accept_sparse="csr" if self.accepts_sparse_rows else False)
        check_large_features(X)
        check_small_features(X)
        X, y, weights = drop_zero_weight_examples(X, y, combine_example_weights(X, y, sample_weight, self.class_weight))
        self._set_classes(y)
        rows = (append_bias_multiply_by_labels(X, signs, self.fit_intercept) for signs in self._make_sign_labels(y))
        self._set_fitted_weights([self._learn(z, VisitSchedule(len(y), weights)) for z in rows])
        return self

    def _check_partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> tuple[Any, np.ndarray, Any, bool]:
        """Check the examples passed to `partial_fit` and return them with their weights.

        The last result is True for the first call, which must name all classes.
        """
        self._check_parameters()
        if str(self.class_weight) == "balanced":
            raise ValueError('class_weight="balanced" needs all examples: call fit, or set a dictionary of weights')
        first = not hasattr(self, "classes_")
        X, y = self._validate_data(
            X, y, dtype=float, accept_sparse="csr" if self.accepts_sparse_rows else False, reset=first
        )
        check_large_features(X)
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        known_classes = np.unique(classes) if first else self.classes_
        if len(known_classes) < 2:
            raise ValueError(f"{type(self).__name__} needs at least two classes, not {known_classes.tolist()}")
        if unknown := sorted(set(np.unique(y).tolist()) - set(known_classes.tolist())):
            raise ValueError(f"y has classes {unknown} that are not among {known_classes.tolist()}")
        self.classes_ = known_classes
        return X, y, combine_example_weights(X, y, sample_weight, self.class_weight), first

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the activations w.x + b, (m,) for two classes, otherwise (m, classes).

        For two classes a positive activation means the second class.
        """
        check_is_fitted(self)
        X = self._validate_data(X, dtype=float, accept_sparse="csr" if self.accepts_sparse_rows else False, reset=False)
        check_large_features(X)
        return self._stack_decisions(list((X @ self.coef_.T + self.intercept_).T))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.accepts_sparse_rows
        return tags

    @abstractmethod
    def _learn(self, z: Any, visits: VisitSchedule) -> LinearStudent:
        """Train a student on the rows z (m, features + 1), the examples times their labels.

        The last column is the constant feature.
        """

    def _check_parameters(self) -> None:
        """Raise `ValueError` for invalid parameters."""

    def _set_fitted_weights(self, students: list[LinearStudent]) -> None:
        weights = np.array([student.w for student in students])
        self.coef_ = weights[:, :-1].copy()
        self.intercept_ = weights[:, -1] if self.fit_intercept else np.zeros(len(weights))
        self.n_iter_ = max(student.n_iter for student in students)


def check_large_features(X: Any) -> None:
    """Raise `ValueError` if features of X, dense or sparse, are so large that margins might overflow."""
    largest = float(np.max(np.abs(X.data if sp.issparse(X) else X), initial=0.0))
    if largest > MAX_FEATURE_VALUE:
        raise ValueError(
            f"X has a value of size {largest:g}, larger than {MAX_FEATURE_VALUE:g}: divide that feature by a constant"
        )


def check_small_features(X: Any) -> None:
    """Raise `ValueError` if a feature of X (m, features) is so small that its products underflow."""
    largest = abs(X).max(axis=0).toarray().ravel() if sp.issparse(X) else np.max(np.abs(X), axis=0)
    small = np.flatnonzero((largest > 0) & (largest < 1 / MAX_FEATURE_VALUE))
    if small.size:
        fault = f"the values of feature {small[0]} of X have sizes up to {largest[small[0]]:g}"
        raise ValueError(f"{fault}, less than {1 / MAX_FEATURE_VALUE:g}: multiply it by a constant")


def append_bias_multiply_by_labels(X: Any, signs: np.ndarray, intercept: bool) -> Any:
    """Append a constant feature (0 without an intercept) to examples and multiply them by their labels."""
    signs = signs.astype(float)
    constant = (signs if intercept else 0 * signs)[:, None]
    if sp.issparse(X):
        return sp.hstack([sp.diags_array(signs) @ X, sp.csr_array(constant)], format="csr")
    return np.hstack([signs[:, None] * X, constant])


def margin(model: Any, X: Any, y: Any) -> float:
    r"""Compute the margin of a fitted linear classifier on a data set of two classes.

    .. math:: \min_\mu\, y^\mu\,(\mathbf w\cdot\mathbf x^\mu+b)/|\mathbf w|, \qquad y^\mu = \pm1

    Negative if an example is misclassified (Daume, section 3.5, sets it to :math:`-\infty` then). The weights are
    `coef_` and `intercept_`, also for estimators with another decision function (voted, attentive).

    Parameters
    ----------
    model : estimator
        A linear classifier of two classes, fitted: of `simulate.learners` or scikit-learn, with `coef_`.
    X : array or sparse matrix (m, features)
    y : array (m,)
        Labels of these classes.

    Returns
    -------
    float
        In the units of X.

    Raises
    ------
    ValueError
        For more than two classes, labels of another class, or weights that are all 0.

    Examples
    --------
    >>> from simulate.learners import Perceptron
    >>> X, y = [[2.0], [-1.0]], [1, 0]
    >>> margin(Perceptron(fit_intercept=False).fit(X, y), X, y)
    1.0
    """
    check_is_fitted(model, "coef_")
    X, y = check_array(X, dtype=float, accept_sparse="csr"), np.asarray(y)
    if len(model.classes_) != 2:
        raise ValueError(f"a margin requires two classes, but this classifier has {len(model.classes_)}")
    if unknown := sorted(set(y.tolist()) - set(model.classes_.tolist())):
        raise ValueError(f"y has classes {unknown} that are not among {model.classes_.tolist()}")
    length = np.linalg.norm(model.coef_)
    if length == 0:
        raise ValueError("the margin is undefined: all weights of this classifier are 0")
    activations = (X @ model.coef_.T + model.intercept_)[:, 0]
    return float(np.min(np.where(y == model.classes_[1], 1.0, -1.0) * activations) / length)
