"""Populations of which the rows of a real table are drawn: how examples are drawn, and what learners are tested on.

The theory of each is that of `theory.tables`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np


class Split(NamedTuple):
    """The numbers of the rows that are examples, and of those that learners are tested on."""

    examples: np.ndarray
    tested: np.ndarray | slice


@dataclass(frozen=True)
class TablePopulation(ABC):
    """A population of rows; subclasses state `draw` and `most`."""

    label: ClassVar[str]

    @abstractmethod
    def draw(self, rng: np.random.Generator, rows: int, P: int) -> Split:
        """Draw P examples of a table; a smaller number has the first of them.

        Parameters
        ----------
        rng
            Random numbers.
        rows
            The number of rows of the table.
        P
            The number of examples.
        """

    def most(self, rows: int) -> float:
        """The largest number of examples that can be drawn."""
        return np.inf


@dataclass(frozen=True)
class Table(TablePopulation):
    """The table itself: rows are drawn with replacement, and learners are tested on all of them."""

    label: ClassVar = "all rows"
    equation: ClassVar = r"P(\mathbf x, y) = \tfrac1n\sum_{i=1}^n\delta(\mathbf x - \mathbf x_i)\,\delta_{y, y_i}"

    def draw(self, rng: np.random.Generator, rows: int, P: int) -> Split:
        return Split(rng.integers(0, rows, P), slice(None))


@dataclass(frozen=True)
class HeldOut(TablePopulation):
    """That of which the table is a sample: rows are drawn without replacement, and learners tested on the others."""

    label: ClassVar = "held-out rows"
    equation: ClassVar = r"(\mathbf x_i, y_i) \sim P(\mathbf x, y), \quad i = 1 \ldots n"

    def draw(self, rng: np.random.Generator, rows: int, P: int) -> Split:
        order = rng.permutation(rows)
        return Split(order[:P], order[P:])

    def most(self, rows: int) -> float:
        return rows - 1


TABLE_POPULATIONS: dict[str, type[TablePopulation]] = {"table": Table, "held_out": HeldOut}
