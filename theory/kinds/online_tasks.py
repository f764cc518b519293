"""Theory of a perceptron that learns several tasks: order parameters from equations, errors from angles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from statmech.kinds.online_tasks import OnlineTaskCell, OnlineTasks, separate_truth
from statmech.students.student_geometry import angle_from_versine
from theory.online.several_tasks import TaskStudent, solve_cells

SOURCE = "order-parameter equations, N -> infinity"


def solve(scenario: OnlineTasks, cells: Sequence[OnlineTaskCell]) -> Iterator[dict[str, np.ndarray]]:
    """Return the theoretical variables of each cell with several tasks learnt online, in order."""
    solutions = zip(cells, solve_cells(cells, scenario.t), strict=True)
    return (
        separate_truth(_compute_variables(student), cell.tasks)
        | {"task_share": cell.compute_task_fractions(scenario.t)}
        for cell, student in solutions
    )


def _compute_variables(student: TaskStudent) -> dict[str, np.ndarray]:
    """Compute the variables from a student's log l (T,) and y (T, tasks)."""
    error = angle_from_versine(student.y) / np.pi
    return {"eps_g": error, "R": 1 - student.y, "length": np.exp(student.log_length)}
