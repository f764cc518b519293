"""Simulation of perceptrons that learn several tasks, with batches of seeds distributed over all cores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulate.execution.work_units import UnitResult
from simulate.kinds.seed_batches import BatchSimulator, BatchUnit, check_float32_precision, check_student_lengths
from simulate.online import perceptrons
from simulate.online.learning_steps import EngineTask
from statmech.kinds.online_tasks import OnlineTaskCell, OnlineTasks, separate_truth
from statmech.students.student_geometry import compute_student_order_parameters, factorise_gram


class Simulator(BatchSimulator[OnlineTaskCell]):
    """Simulator of a perceptron that learns several tasks, with batches of seeds on the requested engine."""

    source = "weight vectors or order parameters on line"
    scenario: OnlineTasks

    def describe_task(self, cell: OnlineTaskCell, other_cells: Sequence[OnlineTaskCell] = ()) -> EngineTask:
        """Describe the student of a cell and its teachers to the engine."""
        return perceptrons.make_multitask_perceptron_task(cell, self.scenario.dtype)

    def count_teachers(self, cell: OnlineTaskCell) -> int:
        """Return the number of tasks, and of the truth."""
        return len(cell.teacher_overlaps)

    def run(self, unit: BatchUnit[OnlineTaskCell]) -> list[UnitResult]:
        """Simulate a perceptron of several tasks for a batch of seeds, and return the variables of its cell."""
        record, [cell], scenario = self.run_engine(unit), unit.cells, self.scenario
        length, perpendicular = np.linalg.norm(record.parallel, axis=-1), record.perpendicular
        check_student_lengths(scenario, unit, length, perpendicular)
        if scenario.dtype == "float32" and scenario.engine == "gram":
            check_float32_precision(scenario, cell, length[0], perpendicular[0])
        rows = factorise_gram(cell.teacher_overlaps).astype(scenario.dtype).astype(float)
        values = _compute_variables(rows, record.parallel[..., 0, :], np.sqrt(perpendicular[..., 0, 0]))
        return unit.make_results(separate_truth(values, cell.tasks))


def _compute_variables(rows: np.ndarray, coordinates: np.ndarray, rest_length: np.ndarray) -> dict[str, np.ndarray]:
    """Compute the variables of a perceptron of several tasks from its coordinates and the length (...) of its rest.

    The coordinates (..., tasks) refer to the space of the teachers' rows (tasks, tasks).
    """
    projections = coordinates @ rows.T
    # a difference of vectors stays accurate as R tends to 1, unlike 1 - R^2
    perpendicular = np.linalg.norm(coordinates[..., None, :] - projections[..., None] * rows, axis=-1)
    values = compute_student_order_parameters(projections, np.hypot(perpendicular, rest_length[..., None]))
    return values | {"length": np.hypot(np.linalg.norm(coordinates, axis=-1), rest_length)}
