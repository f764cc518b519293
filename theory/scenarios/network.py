"""Theory of two-layer networks: order parameters from their equations, and the resulting errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from statmech.networks.specialisation import specialisation
from statmech.scenarios.network import Network, NetworkCell
from statmech.scenarios.network_matrices import Units
from theory.control.at_optimum import at_optimum
from theory.networks import structured
from theory.networks.equations import error_of, solve_cells
from theory.networks.perfect_learning import SMALL, continued

SOURCE = "order-parameter equations of networks, N -> infinity"
LOST = 1e-7  # smaller eps_g have lost digits: then additional times are needed between the recorded ones
EARLIEST, RATIO = 0.1, 1.1  # for the additional times


@at_optimum
def solve(scenario: Network, cells: Sequence[NetworkCell]) -> Iterator[dict[str, np.ndarray]]:
    """Return the variables of each cell in order, with no variables for a cell without equations."""
    t, solved = np.asarray(scenario.t, float), [cell for cell in cells if not cell.unsolved]
    equal, unequal = ([cell for cell in solved if cell.inputs.isotropic == same] for same in (True, False))
    known = {True: iter(_with_equations(equal, t)), False: iter(_structured(unequal, t))}
    return ({} if cell.unsolved else next(known[cell.inputs.isotropic]) for cell in cells)


def _structured(cells: Sequence[NetworkCell], t: np.ndarray) -> list[dict[str, np.ndarray]]:
    """Solve cells with inputs of unequal variance, whose errors follow from the fields."""
    return [
        _described(cell, weights) | {"eps_g": error_of(cell, fields, T)}
        for cell, (weights, fields, T) in zip(cells, structured.solve_cells(cells, t), strict=True)
    ]


def _with_equations(cells: Sequence[NetworkCell], t: np.ndarray) -> list[dict[str, np.ndarray]]:
    """Solve cells with isotropic inputs.

    Times are added if an error becomes small between two recorded times.
    """
    values = _solved(cells, t)
    lost = [at for at, own in enumerate(values) if np.any(own["eps_g"] < SMALL) and _first_small(own["eps_g"]) < LOST]
    if lost and t[-1] > EARLIEST:
        every = np.union1d(t, np.geomspace(EARLIEST, t[-1], 2 + int(np.log(t[-1] / EARLIEST) / np.log(RATIO))))
        for at, own in zip(lost, _solved([cells[at] for at in lost], every), strict=True):
            values[at] = {name: value[np.searchsorted(every, t)] for name, value in own.items()}
    return values


def _first_small(error: np.ndarray) -> float:
    return float(error[np.argmax(error < SMALL)])


def _solved(cells: Sequence[NetworkCell], t: np.ndarray) -> list[dict[str, np.ndarray]]:
    units = solve_cells(cells, t)
    values = [_described(cell, own) for cell, own in zip(cells, units, strict=True)]
    errors = continued(cells, units, [own["eps_g"] for own in values], t)
    return [own | {"eps_g": error} for own, error in zip(values, errors, strict=True)]


def attributes(scenario: Network) -> dict[str, str]:
    """Return the averaging method of each activation: closed forms, line integrals or quadrature."""
    found = {cell.name: cell.averages for cell in scenario.cells()}
    return {"averages": ", ".join(f"{name}: {how}" for name, how in found.items())}


def _described(cell: NetworkCell, units: Units) -> dict[str, np.ndarray]:
    """Return the variables of one cell from its units R (..., K, M), Q (..., K, K) and v (..., K)."""
    return {
        "eps_g": error_of(cell, units),
        **units._asdict(),
        "specialisation": specialisation(cell.T, units.R, units.Q),
    }
