r"""Optimal brain damage on a single sigmoid unit (Le Cun, Denker & Solla 1989), as used by Jackson & Craven.

The unit is trained to minimal cross-entropy. Then the weight of smallest saliency

.. math:: s_i = \tfrac12 h_{ii}w_i^2, \qquad h_{ii} = \sum_x p(x)(1-p(x))\,x_i^2,

the increase of a quadratic error without mixed terms, is set to 0 permanently, and the procedure is repeated. A
validation set determines how many weights remain. To save time, a fraction of the remaining weights can be set to 0 at
once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import check_is_fitted, validate_data


class PrunedPerceptron(ClassifierMixin, BaseEstimator):
    """A sigmoid unit for two classes, pruned to the fewest weights with minimal validation error.

    `lam_per_example` is the strength of the l2 penalty per example, `validation` the fraction of the examples used for
    validation, `share` the fraction of the remaining weights that are removed at a time, at least one. Examples may be
    a sparse matrix. Fitted: `classes_`, `coef_`, `intercept_`. Raises `ValueError` as scikit-learn's estimators do.

    >>> X = np.random.default_rng(0).standard_normal((200, 10))
    >>> model = PrunedPerceptron().fit(X, X[:, 3] > 0)
    >>> np.flatnonzero(model.coef_)
    array([3])
    """

    def __init__(
        self, lam_per_example: float = 1e-3, validation: float = 0.25, random_state: Any = 0, share: float = 0.0
    ):
        self.lam_per_example = lam_per_example
        self.validation = validation
        self.random_state = random_state
        self.share = share

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the unit to examples X (m, features) with labels y (m,) of two classes."""
        X, y = validate_data(self, X, y, dtype=float, accept_sparse="csr")
        self.classes_ = np.unique(y)
        if len(self.classes_) != 2:
            raise ValueError(f"PrunedPerceptron requires examples of two classes, not of {len(self.classes_)}")
        inside, outside, y_inside, y_outside = train_test_split(
            X, y, test_size=self.validation, stratify=y, random_state=self.random_state
        )
        min_error = np.inf
        for coef, intercept in self._iterate_prunings(inside, y_inside):
            wrong = np.mean(self.classes_[(outside @ coef + intercept > 0).astype(int)] != y_outside)
            if wrong <= min_error:  # equal errors: prefer fewer weights
                min_error, self.coef_, self.intercept_ = wrong, coef[None], np.array([intercept])
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the activations (m,)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=float, accept_sparse="csr", reset=False)
        values: np.ndarray = X @ self.coef_[0] + self.intercept_[0]
        return values

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each example."""
        predicted: np.ndarray = self.classes_[(self.decision_function(X) > 0).astype(int)]
        return predicted

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _iterate_prunings(self, X: Any, y: np.ndarray) -> Iterator[tuple[np.ndarray, float]]:
        """Yield the weights and bias before each pruning, and finally the bias alone."""
        remaining, squares = np.arange(X.shape[1]), X.power(2) if sp.issparse(X) else X**2
        unit = LogisticRegression(C=1 / (self.lam_per_example * len(y)), max_iter=1000, warm_start=True)
        while remaining.size:
            unit.fit(X[:, remaining], y)
            coef = np.zeros(X.shape[1])
            coef[remaining] = unit.coef_[0]
            yield coef, float(unit.intercept_[0])
            p = unit.predict_proba(X[:, remaining])[:, 1]
            saliency = (p * (1 - p)) @ squares[:, remaining] * unit.coef_[0] ** 2 / 2
            pruned = np.argsort(saliency, kind="stable")[: max(1, int(self.share * remaining.size))]
            remaining, unit.coef_ = np.delete(remaining, pruned), np.delete(unit.coef_, pruned, axis=1)
        yield np.zeros(X.shape[1]), float(np.log(np.mean(y == self.classes_[1]) / np.mean(y == self.classes_[0])))
