"""Theory of a student that learns online from a moving teacher, for each parameter combination."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from statmech.kinds.moving_teacher import MovingTeacher, MovingTeacherCell
from statmech.students.student_geometry import angle_from_versine
from theory.online.moving_teacher import solve_moving_teacher

SOURCE = "order-parameter equations, N -> infinity"


def solve(scenario: MovingTeacher, cells: Sequence[MovingTeacherCell]) -> Iterator[dict[str, np.ndarray]]:
    """Return the theoretical variables of each cell with a moving teacher, in order.

    Cells that differ only in N share their equations.
    """
    variables_by_key: dict[object, dict[str, np.ndarray]] = {}
    for cell in cells:
        key = cell.rule, cell.moving_teacher, cell.flip
        if key not in variables_by_key:
            variables_by_key[key] = _compute_variables(cell, scenario.t)
        yield variables_by_key[key]


def _compute_variables(cell: MovingTeacherCell, times: Sequence[float]) -> dict[str, np.ndarray]:
    """Return the variables of a moving teacher and its student at each time."""
    trajectory = solve_moving_teacher(cell, times)
    error, R, length = angle_from_versine(trajectory.y) / np.pi, 1 - trajectory.y, np.exp(trajectory.log_length)
    teacher = {"eps_teacher": error[:, 0], "R_teacher": R[:, 0], "length_teacher": length[:, 0]}
    return teacher | {"eps_g": error[:, 1], "R": R[:, 1], "length": length[:, 1], "q": 1 - trajectory.pair_versine}
