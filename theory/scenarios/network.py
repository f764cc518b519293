"""Networks of two layers: order parameters from their equations, and the error from these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from statmech.lattice_averages import averages_of
from statmech.network_error import generalization_error
from statmech.scenarios.network import Network, NetworkCell
from statmech.scenarios.network_matrices import Units
from statmech.specialisation import specialisation
from theory.networks import solve_cells

SOURCE = "order-parameter equations of networks, N -> infinity"


def solve(scenario: Network, cells: Sequence[NetworkCell]) -> Iterator[dict[str, np.ndarray]]:
    """The variables of each cell, in their order."""
    return (described(cell, units) for cell, units in zip(cells, solve_cells(cells, scenario.t), strict=True))


def attributes(scenario: Network) -> dict[str, str]:
    """How the activations' averages are computed: by closed forms, line integrals or quadrature."""
    found = {cell.name: cell.averages for cell in scenario.cells()}
    return {"averages": ", ".join(f"{name}: {how}" for name, how in found.items())}


def described(cell: NetworkCell, units: Units) -> dict[str, np.ndarray]:
    """The variables of one cell from its units R (..., K, M), Q (..., K, K) and v (..., K)."""
    return {
        "eps_g": generalization_error(averages_of(cell.activation), cell.T, cell.w, *units, output=cell.teacher.output),
        **units._asdict(),
        "specialisation": specialisation(cell.T, units.R, units.Q),
    }
