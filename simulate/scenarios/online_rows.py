"""Simulates a student that learns rows of a real table online: seeds in batches, and errors on all rows."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence

import numpy as np

from simulate.execution import units
from simulate.execution.units import UnitResult
from simulate.kernels import perceptrons, vectors
from simulate.kernels.learner import Task
from simulate.scenarios.batches import Batches, Unit
from simulate.scenarios.labelled_rows import remarks_on
from simulate.scenarios.online import check_lengths
from statmech.real_table import RealTable
from statmech.scenarios.online_rows import OnlineRows, OnlineRowsCell


class Simulator(Batches[OnlineRowsCell]):
    """A student of rows: seeds in batches, by weight vectors."""

    source = vectors.NAME
    scenario: OnlineRows

    def task(self, cell: OnlineRowsCell, others: Sequence[OnlineRowsCell] = ()) -> Task:
        """The student of a cell."""
        return perceptrons.task_of_rows(cell)

    def program(self, cell: OnlineRowsCell) -> Hashable:
        """None: each cell is simulated alone."""
        return None

    def needed(self, cell: OnlineRowsCell) -> int:
        """Bytes of a unit: its vectors, those that are recorded, the rows, and fields of all rows."""
        n, N = cell.table.Z.shape
        seeds = vectors.batch(cell.K)
        return super().needed(cell) + 8 * seeds * (N * len(self.scenario.t) + n) + 12 * n * N

    def check(self) -> None:
        """Refuse tables that this machine cannot hold."""
        for cell in self.scenario.cells():
            units.check_memory("inputs", f"a run with rows of {cell.N:,} columns", self.needed(cell))

    def run(self, unit: Unit[OnlineRowsCell]) -> list[UnitResult]:
        """The variables of a batch of seeds of a cell."""
        record = self.record(unit)
        check_lengths(self.scenario, unit, record.along[..., 0], record.across)
        assert record.weights is not None
        return unit.results(measured(unit.cells[0].table, record.weights[..., 0, :]))

    def attrs(self) -> dict[str, str]:
        """The engine, and the diagnosis of each table, as JSON."""
        return super().attrs() | {"tables": json.dumps(self.scenario.diagnoses())}

    def remarks(self) -> list[str]:
        """Columns that are left out, and what is out of the range in which theory holds."""
        return remarks_on(self.scenario.diagnoses())


def measured(table: RealTable, weights: np.ndarray) -> dict[str, np.ndarray]:
    """Measure the variables of students on all rows of a table.

    Parameters
    ----------
    table
        The table.
    weights
        The students (cells, seeds, T, N).
    """
    found = [_of_fields(table.y, weights[..., t, :] @ table.Z.T) for t in range(weights.shape[2])]
    m, Q, wrong = (np.stack(part, axis=-1) for part in zip(*found, strict=True))
    length = np.sqrt(np.mean(weights**2, axis=-1))
    return {"m_field": m, "length_field": Q, "length": length, "eps_y": wrong}


def _of_fields(y: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Half the distance of the classes' mean fields, the deviation of fields around them, and the error, of fields
    h (..., n)."""
    right = y > 0
    means = [h[..., of].mean(axis=-1, keepdims=True) for of in (right, ~right)]
    m = (means[0] - means[1])[..., 0] / 2
    Q = np.sqrt(np.mean((h - np.where(right, *means)) ** 2, axis=-1))
    return m, Q, np.mean((1 - y * np.sign(h)) / 2, axis=-1)
