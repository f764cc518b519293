r"""Errors that optimal controls minimise, from the exact equations: at the last time, or averaged over time.

The average is a sum over Gauss-Legendre nodes. Panels are equal, and geometric near t = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from statmech.errors import DivergedError, SolverError
from statmech.numerics.gaussian import legendre
from statmech.optima import LAST, Objective
from statmech.order_parameters import angle_from_versine
from statmech.scenarios.network import NetworkCell
from statmech.scenarios.network_tasks import NetworkTaskCell
from statmech.scenarios.online import OnlineCell
from statmech.scenarios.online_tasks import OnlineTaskCell
from theory.networks import equations
from theory.networks import tasks as network_tasks
from theory.online import tasks as online_tasks
from theory.online import trajectories

PANELS, GEOMETRIC, NODES = 50, 40, 4  # equal panels, geometric edges, and nodes per panel of a time average
FIRST = 1e-4  # relative to the time that is averaged over


def objectives(cells: Sequence[Any], last: float, objective: Objective) -> np.ndarray:
    """Compute the objective (n,) of cells of one kind.

    The objective is infinite if the student diverges.
    """
    try:
        return _objectives(cells, last, objective)
    except (SolverError, DivergedError):
        if len(cells) == 1:
            return np.array([np.inf])
    return np.concatenate([objectives([cell], last, objective) for cell in cells])


def _objectives(cells: Sequence[Any], last: float, objective: Objective) -> np.ndarray:
    if objective.over == LAST:
        times, weights = np.array([last]), np.ones(1)
    else:
        times, weights = _nodes(last)
    errors = np.stack(errors_of(cells, times))
    return np.asarray(weights @ errors @ objective.shares(errors.shape[-1]))


def errors_of(cells: Sequence[Any], times: np.ndarray) -> list[np.ndarray]:
    """Compute the generalization errors (T, tasks) of cells of one kind.

    Cells are integrated in parallel where possible.
    """
    return _errors(cells[0], cells, times)


@singledispatch
def _errors(first: Any, cells: Sequence[Any], times: np.ndarray) -> list[np.ndarray]:
    raise TypeError(f"{first!r} has no error that a control could lower")


@_errors.register
def _of_students(_: OnlineCell, cells: Sequence[Any], times: np.ndarray) -> list[np.ndarray]:
    return [angle_from_versine(students.y[:, :1]) / np.pi for students in trajectories.solve_cells(list(cells), times)]


@_errors.register
def _of_students_of_tasks(_: OnlineTaskCell, cells: Sequence[Any], times: np.ndarray) -> list[np.ndarray]:
    return [angle_from_versine(student.y) / np.pi for student in online_tasks.solve_cells(cells, times)]


@_errors.register
def _of_networks(_: NetworkCell, cells: Sequence[Any], times: np.ndarray) -> list[np.ndarray]:
    solutions = equations.solve_cells(cells, times)
    return [equations.error_of(cell, units)[:, None] for cell, units in zip(cells, solutions, strict=True)]


@_errors.register
def _of_networks_of_tasks(_: NetworkTaskCell, cells: Sequence[Any], times: np.ndarray) -> list[np.ndarray]:
    solutions = network_tasks.solve_cells(cells, times)
    return [network_tasks.errors_of(cell, units) for cell, units in zip(cells, solutions, strict=True)]


def _nodes(last: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the times and weights of a time average."""
    edges = np.union1d(np.linspace(0, last, PANELS + 1), np.geomspace(FIRST, 1, GEOMETRIC) * last)
    x, weight = legendre(NODES)
    width = np.diff(edges)[:, None]
    return (edges[:-1, None] + width * x).reshape(-1), (width * weight).reshape(-1) / last
