"""Theory of networks that learn several tasks: order parameters from their equations, and the resulting errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from statmech.keys.initial_states import StudentUnits
from statmech.kinds.network_tasks import NetworkTaskCell, NetworkTasks
from statmech.students.network_error import specialisation
from theory.kinds.network import SOURCE as SOURCE
from theory.kinds.network import attributes as attributes
from theory.networks.several_tasks import compute_task_errors, solve_cells


def solve(scenario: NetworkTasks, cells: Sequence[NetworkTaskCell]) -> Iterator[dict[str, np.ndarray]]:
    """Return the theoretical variables of each network with several tasks in order."""
    solutions = zip(cells, solve_cells(cells, scenario.t), strict=True)
    return (
        _compute_variables(scenario, cell, units) | {"task_share": cell.compute_task_fractions(scenario.t)}
        for cell, units in solutions
    )


def _compute_variables(scenario: NetworkTasks, cell: NetworkTaskCell, units: StudentUnits) -> dict[str, np.ndarray]:
    """Return the variables of a network with several tasks from R (T, K, M), Q (T, K, K) and heads v (T, heads, K)."""
    R, Q, v = units
    T, units_per_task = cell.T, cell.teacher_units_per_task
    parts = [slice(task * units_per_task, (task + 1) * units_per_task) for task in range(cell.tasks)]
    return {
        "eps_g": compute_task_errors(cell, units),
        "R": R,
        "Q": Q,
        "v": scenario.drop_shared_head_axis(v),
        "specialisation": np.stack([specialisation(T[part, part], R[..., part], Q) for part in parts], axis=-1),
    }
