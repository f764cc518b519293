"""Simulation of a student that learns the rows of a real table online, with errors on all rows."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from simulate.execution.work_units import UnitResult, check_run_memory
from simulate.kinds.seed_batches import BatchSimulator, BatchUnit, check_student_lengths
from simulate.online import perceptrons, weight_vector_engine
from simulate.online.learning_steps import EngineTask
from statmech.inputs.real_tables import RealTable, describe_table_diagnoses
from statmech.kinds.online_table import OnlineRows, OnlineRowsCell


class Simulator(BatchSimulator[OnlineRowsCell]):
    """Simulator of a student that learns the rows of a table online, with weight vectors."""

    source = weight_vector_engine.NAME
    scenario: OnlineRows

    def describe_task(self, cell: OnlineRowsCell, other_cells: Sequence[OnlineRowsCell] = ()) -> EngineTask:
        """Describe the student of a cell to the engine."""
        return perceptrons.make_table_row_task(cell)

    def count_vector_engine_bytes(self, cell: OnlineRowsCell) -> int:
        """Return the bytes of a unit: weight vectors, recorded vectors, the rows, and the fields of all rows."""
        n, N = cell.table.Z.shape
        seeds = weight_vector_engine.batch(cell.K)
        return super().count_vector_engine_bytes(cell) + 8 * seeds * (N * len(self.scenario.t) + n) + 12 * n * N

    def check_resources(self) -> None:
        """Raise `ScenarioError` if a table that is learnt online does not fit into memory."""
        for cell in self.scenario.cells():
            check_run_memory("inputs", f"a run with rows of {cell.N:,} columns", self.count_vector_engine_bytes(cell))

    def run(self, unit: BatchUnit[OnlineRowsCell]) -> list[UnitResult]:
        """Simulate online learning of table rows for a batch of seeds, and return the variables of a cell."""
        record = self.run_engine(unit)
        check_student_lengths(self.scenario, unit, record.parallel[..., 0], record.perpendicular)
        assert record.weights is not None
        return unit.make_results(measure_students(unit.cells[0].table, record.weights[..., 0, :]))

    def make_extra_attributes(self) -> dict[str, str]:
        """Return the name of the engine, and the diagnosis of each table as JSON."""
        return super().make_extra_attributes() | {"tables": json.dumps(self.scenario.diagnose_tables())}

    def get_remarks_before_run(self) -> list[str]:
        """Return remarks on omitted columns, and on tables outside the valid range of theory."""
        return describe_table_diagnoses(self.scenario.diagnose_tables())


def measure_students(table: RealTable, weights: np.ndarray) -> dict[str, np.ndarray]:
    """Measure the variables of students that learn online on all rows of their table.

    Parameters
    ----------
    table
        The table.
    weights
        The students (cells, seeds, T, N).
    """
    fields = [_measure_fields_by_class(table.y, weights[..., t, :] @ table.Z.T) for t in range(weights.shape[2])]
    m, Q, wrong = (np.stack(part, axis=-1) for part in zip(*fields, strict=True))
    length = np.sqrt(np.mean(weights**2, axis=-1))
    return {"m_field": m, "length_field": Q, "length": length, "eps_y": wrong}


def _measure_fields_by_class(y: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Measure fields of table rows: half the distance of class means, the deviations, and the error.

    The fields are h (..., n).
    """
    right = y > 0
    means = [h[..., mask].mean(axis=-1, keepdims=True) for mask in (right, ~right)]
    m = (means[0] - means[1])[..., 0] / 2
    Q = np.sqrt(np.mean((h - np.where(right, *means)) ** 2, axis=-1))
    return m, Q, np.mean((1 - y * np.sign(h)) / 2, axis=-1)
