"""Trajectories of students from the equations in modes, solved cell by cell.

Inputs of unequal variance have many modes, isotropic inputs a single mode. For rules with closed forms, the equations
of a single mode need only NumPy and SciPy, and are used if JAX is missing (`theory.scenarios.online`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from statmech.modes import condense_modes, make_modes
from statmech.runtime.devices import use_cpu_double_precision
from statmech.runtime.forks import record_jax_use
from statmech.scenarios.online_student import OnlineCell
from theory.online.stiff_equations import check_length_overflow, integrate_stiff_equations
from theory.online.structured import ModeEquations
from theory.online.structured_jacobian import compute_jacobian
from theory.online.students import Students

ATOL = 1e-12  # for early times, as angles decay at most as 1/t


class WeightAndFieldStudents(NamedTuple):
    """Students at each time, described by products of weights and by covariances of fields."""

    weights: Students
    fields: Students


def solve_cells(cells: Iterable[OnlineCell], times: Iterable[float]) -> list[WeightAndFieldStudents]:
    """Solve the equations of each cell for its students at each time.

    Arrays have a leading axis of times.

    Raises `SolverError` if the integration stops early, `DivergedStudentError` if a length leaves the floating-point
    range.
    """
    record_jax_use()
    with use_cpu_double_precision():
        return [_solve_cell(cell, np.asarray(list(times), float)) for cell in cells]


def _solve_cell(cell: OnlineCell, times: np.ndarray) -> WeightAndFieldStudents:
    modes = make_modes([1.0]) if cell.inputs.isotropic else cell.inputs.modes(cell.N)
    assert modes is not None  # scenarios without modes have no equations
    equations = ModeEquations(cell, condense_modes(modes))
    students = [
        equations.describe_by_weights_and_fields(t, row)
        for t, row in zip(times, _integrate_equations(equations, times), strict=True)
    ]
    metrics = WeightAndFieldStudents(
        *(Students(*map(np.stack, zip(*over_time, strict=True))) for over_time in zip(*students, strict=True))
    )
    check_length_overflow(metrics.weights.log_length, cell.message_description)
    return metrics


def _integrate_equations(equations: ModeEquations, times: np.ndarray) -> np.ndarray:
    """Integrate the equations, and return the state vectors (T, n) at the given times."""
    return integrate_stiff_equations(
        equations.compute_rates,
        equations.pack_state(equations.start),
        times,
        _make_absolute_tolerances(equations, times[-1]),
        equations.cell.message_description,
        (lambda t, values: compute_jacobian(equations, t, values)) if equations.students == 1 else None,
    )


def _make_absolute_tolerances(equations: ModeEquations, last_time: float) -> np.ndarray:
    """Return absolute tolerances (n,) that keep small angles accurate until the last time."""
    min_angle = 1 / (1 + last_time)
    start = equations.start
    delta, perpendicular = (
        np.full(start.delta.shape, min_angle),
        np.broadcast_to(min_angle**2 * equations.share, start.delta.shape),
    )
    pair_products = np.broadcast_to(min_angle**2 * equations.share, start.pair_products.shape)
    return ATOL * np.concatenate(
        [np.ones(2 * equations.students), *map(np.ravel, (delta, perpendicular, pair_products))]
    )
