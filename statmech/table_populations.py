"""Populations for the rows of a real table: how examples are drawn and learners are tested.

`theory.tables` has the theory of each population.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np


class RowSplit(NamedTuple):
    """The row indices of the examples and of the test rows."""

    examples: np.ndarray
    test_rows: np.ndarray | slice


@dataclass(frozen=True)
class TablePopulation(ABC):
    """A population of rows. Subclasses define `draw` and may override `max_examples`."""

    label: ClassVar[str]

    @abstractmethod
    def draw(self, rng: np.random.Generator, rows: int, P: int) -> RowSplit:
        """Draw P examples from a table, so that a smaller P selects the first of the same examples.

        Parameters
        ----------
        rng
            Random numbers.
        rows
            The number of rows of the table.
        P
            The number of examples.
        """

    def max_examples(self, rows: int) -> float:
        """Return the maximum number of examples for a table with this number of rows."""
        return np.inf


@dataclass(frozen=True)
class ResampledTablePopulation(TablePopulation):
    """The table itself: examples are drawn with replacement, and all rows are test rows."""

    label: ClassVar = "all rows"
    equation: ClassVar = r"P(\mathbf x, y) = \tfrac1n\sum_{i=1}^n\delta(\mathbf x - \mathbf x_i)\,\delta_{y, y_i}"

    def draw(self, rng: np.random.Generator, rows: int, P: int) -> RowSplit:
        return RowSplit(rng.integers(0, rows, P), slice(None))


@dataclass(frozen=True)
class HeldOutRowsPopulation(TablePopulation):
    """The population behind the table: examples are drawn without replacement, and all other rows are test rows."""

    label: ClassVar = "held-out rows"
    equation: ClassVar = r"(\mathbf x_i, y_i) \sim P(\mathbf x, y), \quad i = 1 \ldots n"

    def draw(self, rng: np.random.Generator, rows: int, P: int) -> RowSplit:
        order = rng.permutation(rows)
        return RowSplit(order[:P], order[P:])

    def max_examples(self, rows: int) -> float:
        return rows - 1


TABLE_POPULATIONS: dict[str, type[TablePopulation]] = {
    "table": ResampledTablePopulation,
    "held_out": HeldOutRowsPopulation,
}
