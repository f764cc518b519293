"""Nominal attributes as 0-1 indicators, the inputs of sparse perceptrons.

A column of words has one indicator per value; a missing value ("?") has none. A column of numbers has one per interval:
one interval per value if there are few values, else intervals of approximately equal numbers of examples, closed above,
"a < x <= b" (those of scikit-learn's KBinsDiscretizer are closed below, "a <= x < b", and the bounds are values).

With negations each indicator has a second one, true wherever the first is not, also where the value is missing, of
which "= v" is not true. In this way a vote can count an indicator that is false: "unless x = v" and "if x != v" are the
same.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Attribute:
    """A column: its name, and its words, or the upper bounds of its intervals (the last is unbounded)."""

    name: str
    words: tuple[str, ...] | None
    bounds: np.ndarray | None

    def indicators(self, column: np.ndarray, missing: str) -> np.ndarray:
        """Indicators (m, n) of 0 and 1, one column per word or interval. Raises `ValueError` for an unknown word."""
        if self.words is None:
            assert self.bounds is not None
            return np.eye(len(self.bounds) + 1)[np.searchsorted(self.bounds, np.asarray(column, float))]
        words = [str(value) for value in column]
        if unknown := sorted({*words} - {*self.words, missing}):
            raise ValueError(f"Found unknown categories {unknown} in {self.name}. Known: {', '.join(self.words)}")
        return (np.array(words)[:, None] == np.array(self.words)).astype(float)

    def names(self) -> list[str]:
        """The condition of each indicator in words.

        >>> Attribute("age", None, np.array([30.0, 60.0])).names()
        ['age <= 30', '30 < age <= 60', 'age > 60']
        """
        if self.words is not None:
            return [f"{self.name} = {word}" for word in self.words]
        assert self.bounds is not None
        if not self.bounds.size:
            return [f"any {self.name}"]
        low, high = self.bounds[0], self.bounds[-1]
        between = [f"{a:.4g} < {self.name} <= {b:.4g}" for a, b in zip(self.bounds[:-1], self.bounds[1:], strict=True)]
        return [f"{self.name} <= {low:.4g}", *between, f"{self.name} > {high:.4g}"]

    def negations(self) -> list[str]:
        """The condition of each negated indicator in words.

        >>> Attribute("age", None, np.array([30.0, 60.0])).negations()
        ['age > 30', 'not 30 < age <= 60', 'age <= 60']
        """
        if self.words is not None:
            return [f"{self.name} != {word}" for word in self.words]
        names = [f"not {name}" for name in self.names()]
        assert self.bounds is not None
        if self.bounds.size:
            names[0], names[-1] = f"{self.name} > {self.bounds[0]:.4g}", f"{self.name} <= {self.bounds[-1]:.4g}"
        return names


def attribute_of(name: str, column: np.ndarray, bins: int, missing: str, words: Any = None) -> Attribute:
    """Return the attribute of a column: nominal, or intervals of numbers.

    Parameters
    ----------
    name
        Name of the column.
    column
        Its values (m,).
    bins
        Largest number of intervals.
    missing
        The word that marks a missing value.
    words
        Possible values of a nominal attribute; None: those of the column.
    """
    if words is not None:
        return Attribute(name, tuple(map(str, words)), None)
    if not all(isinstance(value, Real) for value in column):
        words = sorted({str(value) for value in column} - {missing})
        return Attribute(name, tuple(words), None)
    values = np.asarray(column, float)
    levels = np.unique(values)
    if levels.size > bins:
        levels = np.unique(np.quantile(values, np.linspace(0, 1, bins + 1)[1:-1], method="inverted_cdf"))
        return Attribute(name, None, levels[levels < values.max()])
    return Attribute(name, None, _between(levels[:-1], levels[1:]))


def _between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The midpoints between values, or the lower value where there is no number between them."""
    with np.errstate(over="ignore"):
        middle = (high + low) / 2
    middle = np.where(np.isfinite(middle), middle, low / 2 + high / 2)
    return np.where(middle < high, middle, low)


def encode(attributes: list[Attribute], X: Any, missing: str, negated: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Indicators (m, n) of all columns of X, if `negated` followed by their negations, and their attributes (n,)."""
    parts = [attribute.indicators(X[:, i], missing) for i, attribute in enumerate(attributes)]
    indicators, numbers = np.hstack(parts), np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
    return (np.hstack([indicators, 1 - indicators]), np.tile(numbers, 2)) if negated else (indicators, numbers)
