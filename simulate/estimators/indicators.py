"""Nominal attributes as 0-1 indicators, the inputs of sparse perceptrons.

A column of text has one indicator per value. A column of numbers has one per interval: one interval per value if there
are few values, else intervals of approximately equal numbers of examples. Intervals are closed above, "a < x <= b"
(scikit-learn's KBinsDiscretizer uses intervals closed below, "a <= x < b", with values as bounds). A missing value
("?", NaN, None, pandas.NA) has no indicator in a column of either kind, and neither has an unknown category.

With negations each indicator has a second one, true wherever the first is false. The negation is also true where the
value is missing, since "= v" is false there. In this way a vote can count an indicator that is false: "unless x = v"
and "if x != v" are the same.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np


@dataclass(frozen=True)
class IndicatorAttribute:
    """A named column with its categories, or with the upper bounds of all intervals but the last."""

    name: str
    category_names: tuple[str, ...] | None
    interval_upper_bounds: np.ndarray | None

    def encode_column(self, column: np.ndarray, missing_text: str) -> np.ndarray:
        """Return indicators (m, n) of 0 and 1, one column per category or interval.

        Rows of missing values and unknown categories are 0. Raises `ValueError` for text in a column of numbers.
        """
        is_known = ~find_missing_values(column, missing_text)
        if self.category_names is None:
            assert self.interval_upper_bounds is not None
            array = np.zeros((len(column), len(self.interval_upper_bounds) + 1))
            array[is_known, np.searchsorted(self.interval_upper_bounds, self._convert_numbers(column[is_known]))] = 1
            return array
        labels = np.array([str(value) for value in column], dtype=object)
        return ((labels[:, None] == np.array(self.category_names, dtype=object)) & is_known[:, None]).astype(float)

    def _convert_numbers(self, column: np.ndarray) -> np.ndarray:
        """Convert a column of numbers to floats."""
        try:
            return np.asarray(column, float)
        except ValueError:
            text = next(value for value in column if not isinstance(value, Real))
            raise ValueError(f"{self.name} is a column of numbers, but {text!r} is not a number") from None

    def get_conditions(self) -> list[str]:
        """Return the condition of each indicator as text.

        >>> IndicatorAttribute("age", None, np.array([30.0, 60.0])).get_conditions()
        ['age <= 30', '30 < age <= 60', 'age > 60']
        """
        if self.category_names is not None:
            return [f"{self.name} = {value}" for value in self.category_names]
        assert self.interval_upper_bounds is not None
        if not self.interval_upper_bounds.size:
            return [f"any {self.name}"]
        low, high = self.interval_upper_bounds[0], self.interval_upper_bounds[-1]
        middle = [
            f"{a:.4g} < {self.name} <= {b:.4g}"
            for a, b in zip(self.interval_upper_bounds[:-1], self.interval_upper_bounds[1:], strict=True)
        ]
        return [f"{self.name} <= {low:.4g}", *middle, f"{self.name} > {high:.4g}"]

    def get_negated_conditions(self) -> list[str]:
        """Return the condition of each negated indicator as text.

        >>> IndicatorAttribute("age", None, np.array([30.0, 60.0])).get_negated_conditions()
        ['age > 30', 'not 30 < age <= 60', 'age <= 60']
        """
        if self.category_names is not None:
            return [f"{self.name} != {value}" for value in self.category_names]
        names = [f"not {name}" for name in self.get_conditions()]
        assert self.interval_upper_bounds is not None
        if self.interval_upper_bounds.size:
            names[0], names[-1] = (
                f"{self.name} > {self.interval_upper_bounds[0]:.4g}",
                f"{self.name} <= {self.interval_upper_bounds[-1]:.4g}",
            )
        return names


def find_missing_values(column: np.ndarray, missing_text: str) -> np.ndarray:
    """Return a mask (m,) of the missing values: the text `missing_text`, None, NaN or pandas.NA.

    >>> find_missing_values(np.array([1.0, None, "?", "a", np.nan], dtype=object), "?").tolist()
    [False, True, True, False, True]
    """
    if column.dtype.kind in "biuf":
        return np.isnan(column)
    return np.array([value is None or _is_unequal(value, value) or value == missing_text for value in column], bool)


def _is_unequal(x: Any, y: Any) -> bool:
    """Return True unless `x` equals `y`.

    NaN does not equal itself, and pandas.NA equals nothing.
    """
    equal = x == y
    return not (isinstance(equal, bool | np.bool_) and equal)


def make_indicator_attribute(
    name: str,
    column: np.ndarray,
    max_intervals: int,
    missing_text: str,
    categories: Any = None,
    weights: np.ndarray | None = None,
) -> IndicatorAttribute:
    """Make the attribute of a column, with categories for text or intervals for numbers.

    Parameters
    ----------
    name
        Name of the column.
    column
        Values of the column (m,).
    max_intervals
        Maximal number of intervals.
    missing_text
        The text that marks a missing value.
    categories
        Possible values of a nominal attribute. None: the values of the column.
    weights
        Weights of the values, divided equally among the intervals. None: all equal.
    """
    is_known = ~find_missing_values(column, missing_text)
    present = column[is_known]
    if categories is not None:
        categories = tuple(map(str, categories))
        if unknown := sorted({str(value) for value in present} - {*categories}):
            raise ValueError(f"Found unknown categories {unknown} in {name}. Known: {', '.join(categories)}")
        return IndicatorAttribute(name, categories, None)
    if not present.size or not all(isinstance(value, Real) for value in present):
        labels = sorted({str(value) for value in present})
        if len(labels) > max_intervals and all(map(_is_number, labels)):
            remedy = "convert them (pandas.to_numeric), or list them in `categories`"
            warnings.warn(f"{name} contains numbers as text, which are treated as categories: {remedy}", stacklevel=4)
        return IndicatorAttribute(name, tuple(labels), None)
    values = np.asarray(present, float)
    levels = np.unique(values)
    if levels.size > max_intervals:
        fractions = np.linspace(0, 1, max_intervals + 1)[1:-1]
        levels = np.unique(
            _find_weighted_quantiles(values, fractions, np.ones(len(values)) if weights is None else weights[is_known])
        )
        return IndicatorAttribute(name, None, levels[levels < values.max()])
    return IndicatorAttribute(name, None, _compute_separating_values(levels[:-1], levels[1:]))


def _find_weighted_quantiles(values: np.ndarray, fractions: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Find the smallest values whose cumulative weight reaches the given fractions of the total.

    With weights that are not integers, rounding errors would decide in `np.quantile(..., method="inverted_cdf")`.
    """
    order = np.argsort(values)
    below = np.cumsum(weights[order]) / weights.sum()
    return values[order][np.searchsorted(below, fractions - 1e-12)]


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _compute_separating_values(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the midpoints of pairs of values, or the lower value of neighbouring floats."""
    with np.errstate(over="ignore"):
        middle = (high + low) / 2
    middle = np.where(np.isfinite(middle), middle, low / 2 + high / 2)
    return np.where(middle < high, middle, low)


def encode_indicators(
    attributes: list[IndicatorAttribute], X: Any, missing: str, negated: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Encode all columns of X as indicators (m, n), and return the attribute (n,) of each indicator.

    If `negated`, the negations follow the indicators.
    """
    parts = [attribute.encode_column(X[:, i], missing) for i, attribute in enumerate(attributes)]
    indicators, numbers = np.hstack(parts), np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
    return (np.hstack([indicators, 1 - indicators]), np.tile(numbers, 2)) if negated else (indicators, numbers)
