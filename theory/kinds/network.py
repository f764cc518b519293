"""Theory of two-layer networks: order parameters from their equations, and the resulting errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from statmech.keys.initial_states import StudentUnits
from statmech.kinds.network import Network, NetworkCell
from statmech.students.network_error import specialisation
from theory.networks import anisotropic_inputs
from theory.networks.order_parameter_equations import compute_generalization_error, solve_cells
from theory.networks.perfect_learning import MAX_REFINED_ERROR, refine_small_errors

SOURCE = "order-parameter equations of networks, N -> infinity"
MIN_ACCURATE_ERROR = 1e-7  # smaller eps_g have lost digits: times are added between the recorded times
FIRST_ADDED_TIME, ADDED_TIME_RATIO = 0.1, 1.1  # geometric grid of added times


def solve(scenario: Network, cells: Sequence[NetworkCell]) -> Iterator[dict[str, np.ndarray]]:
    """Return the theoretical variables of each network in order, empty for cells without equations."""
    t, solvable = np.asarray(scenario.t, float), [cell for cell in cells if not cell.unsolved]
    equal, unequal = ([cell for cell in solvable if cell.inputs.isotropic == same] for same in (True, False))
    variables = {True: iter(_solve_isotropic(equal, t)), False: iter(_solve_structured(unequal, t))}
    return ({} if cell.unsolved else next(variables[cell.inputs.isotropic]) for cell in cells)


def _solve_structured(cells: Sequence[NetworkCell], t: np.ndarray) -> list[dict[str, np.ndarray]]:
    """Solve cells of networks with inputs of unequal variance, whose errors follow from the fields."""
    return [
        _compute_variables(cell, weights) | {"eps_g": compute_generalization_error(cell, fields, T)}
        for cell, (weights, fields, T) in zip(cells, anisotropic_inputs.solve_cells(cells, t), strict=True)
    ]


def _solve_isotropic(cells: Sequence[NetworkCell], t: np.ndarray) -> list[dict[str, np.ndarray]]:
    """Solve cells of networks with isotropic inputs.

    Times are added if an error becomes small between two recorded times.
    """
    values = _solve_at_times(cells, t)
    inaccurate = [
        index
        for index, variables in enumerate(values)
        if np.any(variables["eps_g"] < MAX_REFINED_ERROR)
        and _get_first_small_error(variables["eps_g"]) < MIN_ACCURATE_ERROR
    ]
    if inaccurate and t[-1] > FIRST_ADDED_TIME:
        all_times = np.union1d(
            t,
            np.geomspace(FIRST_ADDED_TIME, t[-1], 2 + int(np.log(t[-1] / FIRST_ADDED_TIME) / np.log(ADDED_TIME_RATIO))),
        )
        for index, variables in zip(
            inaccurate, _solve_at_times([cells[index] for index in inaccurate], all_times), strict=True
        ):
            values[index] = {name: value[np.searchsorted(all_times, t)] for name, value in variables.items()}
    return values


def _get_first_small_error(error: np.ndarray) -> float:
    return float(error[np.argmax(error < MAX_REFINED_ERROR)])


def _solve_at_times(cells: Sequence[NetworkCell], t: np.ndarray) -> list[dict[str, np.ndarray]]:
    units = solve_cells(cells, t)
    values = [_compute_variables(cell, cell_units) for cell, cell_units in zip(cells, units, strict=True)]
    errors = refine_small_errors(cells, units, [variables["eps_g"] for variables in values], t)
    return [variables | {"eps_g": error} for variables, error in zip(values, errors, strict=True)]


def attributes(scenario: Network) -> dict[str, str]:
    """Return the averaging method of each activation: closed forms, line integrals or quadrature."""
    methods = {cell.name: cell.averaging_method for cell in scenario.cells()}
    return {"averages": ", ".join(f"{name}: {method}" for name, method in methods.items())}


def _compute_variables(cell: NetworkCell, units: StudentUnits) -> dict[str, np.ndarray]:
    """Return the theoretical variables of a network from its units R (..., K, M), Q (..., K, K) and v (..., K)."""
    return {
        "eps_g": compute_generalization_error(cell, units),
        **units._asdict(),
        "specialisation": specialisation(cell.T, units.R, units.Q),
    }
