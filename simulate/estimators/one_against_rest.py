"""Base class of all classifiers: one student for two classes, otherwise one student per class against the rest."""

from __future__ import annotations

from itertools import zip_longest
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data


class OneAgainstRestClassifier(ClassifierMixin, BaseEstimator):
    """Base class of classifiers whose `decision_function` has one column per student."""

    classes_: np.ndarray

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each example.

        With two classes, only a positive decision means the second class.
        """
        decision = self.decision_function(X)
        return self.classes_[(decision > 0).astype(int) if decision.ndim == 1 else decision.argmax(axis=1)]

    def _validate_data(self, *arrays: Any, **options: Any) -> Any:
        """Validate data as scikit-learn does.

        Warnings about overflow in the sum over finite X are suppressed.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            return validate_data(self, *arrays, **options)

    def _set_classes(self, y: np.ndarray) -> None:
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            [only] = self.classes_.tolist()
            raise ValueError(f"{type(self).__name__} needs examples of at least two classes, not of 1 class: {only!r}")

    def _make_sign_labels(self, y: np.ndarray) -> list[np.ndarray]:
        """Return the labels +-1 of each student."""
        ones = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        return [np.where(y == positive_class, 1, -1) for positive_class in ones]

    @staticmethod
    def _stack_decisions(columns: list[np.ndarray]) -> np.ndarray:
        """Return one column (m,) for two classes, otherwise an array (m, classes)."""
        return columns[0] if len(columns) == 1 else np.column_stack(columns)


def check_integer_parameters(min_value: int = 1, **values: Any) -> None:
    """Raise `ValueError` for parameters that are not integers of at least `min_value`."""
    for name, value in values.items():
        if not isinstance(value, Integral) or value < min_value:
            raise ValueError(f"{name} must be an integer of at least {min_value}, not {format_python_value(value)}")


def format_python_value(value: Any) -> str:
    """Return the repr of a value as a Python object, for example 1.0 instead of np.float64(1.0).

    >>> format_python_value(np.float64(1.0)), format_python_value("one")
    ('1.0', "'one'")
    """
    return repr(value.item() if isinstance(value, np.generic) else value)


def sum_counts_per_pass(passes: list[list[Any]]) -> list[Any]:
    """Sum the counts of several students pass by pass.

    Students may have different numbers of passes.

    >>> sum_counts_per_pass([[3, 1, 0], [2, 0]])
    [5, 1, 0]
    """
    return [sum(counts) for counts in zip_longest(*passes, fillvalue=0)]
