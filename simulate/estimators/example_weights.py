"""Example weights, the products of sample and class weights, and their effect on a learner's passes.

Examples of weight 0 are dropped. A learner that visits examples in turn draws the visits of a pass in proportion to the
weights, by systematic resampling: an example of relative weight p receives np of n visits, rounded up or down at
random. Equal weights have no effect.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

MAX_TOTAL_VISITS_PER_PASS = 10**8  # limits the indices of a pass to 1 GB


def combine_example_weights(X: Any, y: np.ndarray, sample_weight: Any, class_weight: Any) -> np.ndarray | None:
    """Return the weights (m,) of examples, or None if neither samples nor classes have weights.

    Raises `ValueError` for weights that are negative or all 0, and for classes that y does not have.
    """
    if sample_weight is None and class_weight is None:
        return None
    weights: np.ndarray = _check_sample_weight(sample_weight, X, dtype=float, ensure_non_negative=True)
    if class_weight is None:
        return weights
    if not isinstance(class_weight, dict) and str(class_weight) != "balanced":
        raise ValueError(f'class_weight must be a dictionary of classes, "balanced", or None, not {class_weight!r}')
    classes, index = np.unique(y, return_inverse=True)
    with np.errstate(divide="ignore", invalid="ignore"):  # all examples of a class may have weight 0
        factors = compute_class_weight(class_weight, classes=classes, y=y, sample_weight=weights)
        weights = np.where(weights > 0, weights * factors[index], 0.0)
    if not (weights >= 0).all() or not weights.any():
        raise ValueError("class_weight must not be negative, nor 0 for all examples")
    return weights


def drop_zero_weight_examples(
    X: Any, y: np.ndarray, weights: np.ndarray | None
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Remove the examples of weight 0 and return X, y and relative weights.

    Equal weights become None.
    """
    if weights is None:
        return X, y, None
    positive = weights > 0
    X, y, weights = X[positive], y[positive], weights[positive]
    return X, y, None if weights.min() == weights.max() else weights / weights.max()


class VisitSchedule:
    """Schedule of the visits in each pass, with a record of the examples not visited since the last mistake."""

    def __init__(self, size: int, weights: np.ndarray | None = None):
        self.unvisited = np.ones(size, bool)
        self.weights = weights if weights is None else weights / weights.mean()

    def draw(self, order: np.ndarray, random: np.random.RandomState) -> np.ndarray:
        """Draw the rows visited in a pass, in proportion to their weights."""
        return order if self.weights is None else resample_by_weight(order, self.weights, random)

    def record_pass(self, rows: np.ndarray, mistakes: int) -> None:
        """Record the rows visited in a pass and its number of mistakes."""
        self.unvisited[rows] = False
        if mistakes:
            self.unvisited[:] = True

    @property
    def has_visited_all_correctly(self) -> bool:
        """True if all examples have been visited since the last pass with a mistake."""
        return not self.unvisited.any()


def resample_by_weight(order: np.ndarray, weights: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """Repeat each row of `order` by its weight, randomly rounded up or down to an integer.

    >>> resample_by_weight(np.array([2, 0, 1]), np.array([1.0, 2.0, 0.0]), np.random.RandomState(0))
    array([0, 1, 1])
    """
    if weights.sum() > MAX_TOTAL_VISITS_PER_PASS:
        raise ValueError(
            f"the weights add up to {weights.sum():g} visits, more than {MAX_TOTAL_VISITS_PER_PASS:,}: divide them"
        )
    ends = np.floor(np.cumsum(weights) + random.random_sample())
    return np.repeat(order, np.diff(ends, prepend=0.0).astype(int)[order])
