r"""Errors that optimal controls minimise, from the exact equations: at the last time, or averaged over time.

The average is a sum over Gauss-Legendre nodes. Panels are equal, and geometric near t = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from statmech.errors import DivergedStudentError, SolverError
from statmech.numerics.gaussian import get_legendre_rule
from statmech.optima import LAST_TIME_OBJECTIVE, Objective
from statmech.order_parameters import angle_from_versine
from statmech.scenarios.network import NetworkCell
from statmech.scenarios.network_tasks import NetworkTaskCell
from statmech.scenarios.online_student import OnlineCell
from statmech.scenarios.online_tasks import OnlineTaskCell
from theory.networks import equations
from theory.networks import tasks as network_tasks
from theory.online import tasks as online_tasks
from theory.online import trajectories

NUM_EQUAL_TIME_PANELS, NUM_GEOMETRIC_TIME_EDGES, NODES_PER_TIME_PANEL = (
    50,
    40,
    4,
)  # equal panels, geometric edges, and nodes per panel of a time average
FIRST_TIME_PANEL_FRACTION = 1e-4  # relative to the averaging time


def compute_control_objectives(cells: Sequence[Any], last_time: float, objective: Objective) -> np.ndarray:
    """Compute the objectives (n,) of n cells of one kind.

    An objective is infinite if the student diverges.
    """
    try:
        return _compute_objectives_or_raise(cells, last_time, objective)
    except (SolverError, DivergedStudentError):
        if len(cells) == 1:
            return np.array([np.inf])
    return np.concatenate([compute_control_objectives([cell], last_time, objective) for cell in cells])


def _compute_objectives_or_raise(cells: Sequence[Any], last_time: float, objective: Objective) -> np.ndarray:
    if objective.over == LAST_TIME_OBJECTIVE:
        times, weights = np.array([last_time]), np.ones(1)
    else:
        times, weights = _make_time_average_nodes(last_time)
    errors = np.stack(compute_task_errors(cells, times))
    return np.asarray(weights @ errors @ objective.shares(errors.shape[-1]))


def compute_task_errors(cells: Sequence[Any], times: np.ndarray) -> list[np.ndarray]:
    """Compute the generalization errors (T, tasks) of cells of one kind.

    Cells are integrated in parallel where possible.
    """
    return _compute_errors_by_type(cells[0], cells, times)


@singledispatch
def _compute_errors_by_type(first_cell: Any, cells: Sequence[Any], times: np.ndarray) -> list[np.ndarray]:
    raise TypeError(f"{first_cell!r} has no error that a control could lower")


@_compute_errors_by_type.register
def _compute_student_errors(_: OnlineCell, cells: Sequence[Any], times: np.ndarray) -> list[np.ndarray]:
    return [angle_from_versine(students.y[:, :1]) / np.pi for students in trajectories.solve_cells(list(cells), times)]


@_compute_errors_by_type.register
def _compute_task_student_errors(_: OnlineTaskCell, cells: Sequence[Any], times: np.ndarray) -> list[np.ndarray]:
    return [angle_from_versine(student.y) / np.pi for student in online_tasks.solve_cells(cells, times)]


@_compute_errors_by_type.register
def _compute_network_errors(_: NetworkCell, cells: Sequence[Any], times: np.ndarray) -> list[np.ndarray]:
    solutions = equations.solve_cells(cells, times)
    return [
        equations.compute_generalization_error(cell, units)[:, None]
        for cell, units in zip(cells, solutions, strict=True)
    ]


@_compute_errors_by_type.register
def _compute_task_network_errors(_: NetworkTaskCell, cells: Sequence[Any], times: np.ndarray) -> list[np.ndarray]:
    solutions = network_tasks.solve_cells(cells, times)
    return [network_tasks.compute_task_errors(cell, units) for cell, units in zip(cells, solutions, strict=True)]


def _make_time_average_nodes(last_time: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the quadrature times and weights of a time average."""
    edges = np.union1d(
        np.linspace(0, last_time, NUM_EQUAL_TIME_PANELS + 1),
        np.geomspace(FIRST_TIME_PANEL_FRACTION, 1, NUM_GEOMETRIC_TIME_EDGES) * last_time,
    )
    x, weight = get_legendre_rule(NODES_PER_TIME_PANEL)
    width = np.diff(edges)[:, None]
    return (edges[:-1, None] + width * x).reshape(-1), (width * weight).reshape(-1) / last_time
