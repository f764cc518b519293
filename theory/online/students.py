"""State of students that learn online: one student and one pair represent all students with equal starts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from statmech.numerics.gaussian import Array
from statmech.scenarios.online_student import OnlineCell


class Students(NamedTuple):
    """State of students: log l and y = 1 - R (..., S), and transverse cosines of the integrated pairs (..., pairs)."""

    log_length: Array
    y: Array
    c: Array


def count_distinct_students(cell: OnlineCell) -> int:
    """Return the number of distinct students: 1 if all have the same initial condition, else K."""
    return 1 if cell.has_equal_starts else cell.K


def make_pair_indices(num_students: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of all pairs of distinct students.

    A single student forms a pair with a copy of itself.
    """
    return np.triu_indices(num_students, 1) if num_students > 1 else (np.array([0]), np.array([0]))


def make_initial_students(cell: OnlineCell) -> Students:
    """Return the initial state of a cell's distinct students.

    >>> from statmech import Scenario
    >>> [cell] = Scenario(rule="hebb", K=2, t=[1], start={"R": 0.6}).cells()
    >>> make_initial_students(cell)
    Students(log_length=array([0.]), y=array([0.4]), c=array([-0.5625]))
    """
    S, (length, R, q) = count_distinct_students(cell), cell.start_order_parameters
    first, second = make_pair_indices(S) if S > 1 else (np.array([0]), np.array([min(1, cell.K - 1)]))
    sin2 = (1 - R) * (1 + R)
    scale = np.sqrt(sin2[first] * sin2[second])
    perpendicular = q[first, second] - R[first] * R[second]
    # students on the teacher's axis have no transverse direction, and move together
    c = np.divide(perpendicular, scale, out=np.ones_like(perpendicular), where=scale > 0)
    return Students(np.log(length[:S]), 1 - R[:S], np.clip(c, -1, 1))
