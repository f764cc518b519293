"""Theory of networks that learn several tasks: order parameters from their equations, and the resulting errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from statmech.networks.specialisation import specialisation
from statmech.scenarios.network_matrices import Units
from statmech.scenarios.network_tasks import NetworkTaskCell, NetworkTasks
from theory.control.at_optimum import at_optimum
from theory.networks.tasks import errors_of, solve_cells
from theory.scenarios.network import SOURCE as SOURCE
from theory.scenarios.network import attributes as attributes


@at_optimum
def solve(scenario: NetworkTasks, cells: Sequence[NetworkTaskCell]) -> Iterator[dict[str, np.ndarray]]:
    """Return the variables of each cell in order."""
    solutions = zip(cells, solve_cells(cells, scenario.t), strict=True)
    return (_described(scenario, cell, units) | {"task_share": cell.share(scenario.t)} for cell, units in solutions)


def _described(scenario: NetworkTasks, cell: NetworkTaskCell, units: Units) -> dict[str, np.ndarray]:
    """Return the variables of one cell from R (T, K, M), Q (T, K, K) and the heads v (T, heads, K)."""
    R, Q, v = units
    T, units_per_task = cell.T, cell.own
    parts = [slice(task * units_per_task, (task + 1) * units_per_task) for task in range(cell.tasks)]
    return {
        "eps_g": errors_of(cell, units),
        "R": R,
        "Q": Q,
        "v": scenario.without_shared_axis(v),
        "specialisation": np.stack([specialisation(T[part, part], R[..., part], Q) for part in parts], axis=-1),
    }
