"""Simulation of a student that learns online from a moving teacher, with batches of seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulate.execution.work_units import UnitResult
from simulate.kinds.seed_batches import BatchSimulator, BatchUnit, check_float32_precision, check_student_lengths
from simulate.online import perceptrons
from simulate.online.learning_steps import EngineTask
from statmech.kinds.moving_teacher import MovingTeacher, MovingTeacherCell
from statmech.students.student_geometry import compute_ensemble_order_parameters


class Simulator(BatchSimulator[MovingTeacherCell]):
    """Simulator of a moving teacher and its student, with batches of seeds on the requested engine."""

    source = "weight vectors or order parameters on line"
    scenario: MovingTeacher

    def describe_task(self, cell: MovingTeacherCell, other_cells: Sequence[MovingTeacherCell] = ()) -> EngineTask:
        """Describe the moving teacher and the student of a cell to the engine."""
        return perceptrons.make_moving_teacher_task(cell, self.scenario.dtype)

    def run(self, unit: BatchUnit[MovingTeacherCell]) -> list[UnitResult]:
        """Simulate a moving teacher and its student for a batch of seeds, and return the variables of the cell."""
        record = self.run_engine(unit)
        parallel, perpendicular = record.parallel[..., 0], record.perpendicular
        check_student_lengths(self.scenario, unit, parallel, perpendicular)
        if self.scenario.dtype == "float32" and self.scenario.engine == "gram":
            check_float32_precision(self.scenario, unit.cells[0], parallel[0], perpendicular[0])
        pair = compute_ensemble_order_parameters(parallel, perpendicular)
        teacher, student = ({name: pair[name][..., k] for name in ("eps_g", "R", "length")} for k in (0, 1))
        renamed = {"eps_teacher": teacher["eps_g"], "R_teacher": teacher["R"], "length_teacher": teacher["length"]}
        return unit.make_results({**student, **renamed, "q": np.asarray(pair["q"][..., 0])})
