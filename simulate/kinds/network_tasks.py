"""Simulation of networks that learn several tasks, with batches of seeds distributed over all cores."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from simulate.kinds import network
from simulate.online import networks
from simulate.online.learning_steps import EngineRecord, EngineTask
from statmech.kinds.network import NetworkCell
from statmech.kinds.network_tasks import NetworkTasks
from statmech.students.network_error import generalization_error_from_coordinates, specialisation
from statmech.students.student_geometry import factorise_gram


class Simulator(network.Simulator):
    """Simulator of networks that learn several tasks, with batches of seeds on the requested engine."""

    source = "networks of several tasks on line"
    scenario: NetworkTasks

    def describe_task(self, cell: Any, other_cells: Sequence[Any] = ()) -> EngineTask:
        """Describe the network of a cell and its tasks to the engine."""
        return networks.make_multitask_network_task(cell, self.scenario.dtype)

    def get_program_key(self, cell: NetworkCell) -> Hashable:
        """Return None: each cell is simulated alone."""
        return None

    def _compute_cell_variables(self, cell: Any, seeds: slice, record: EngineRecord) -> dict[str, Any]:
        """Compute the variables of networks that learn several tasks, with one error per task, for a batch of seeds."""
        rows = factorise_gram(cell.T).astype(self.scenario.dtype).astype(float)
        R = record.parallel @ rows.T
        v = np.asarray(record.saved_state)
        T = cell.T
        units_per_task = cell.teacher_units_per_task
        with np.errstate(over="ignore", invalid="ignore"):
            Q = record.parallel @ np.swapaxes(record.parallel, -1, -2) + record.perpendicular
        self._check_divergence(cell, R=R, Q=Q, v=v)
        self._check_float32_precision(cell, Q, v)
        heads = np.broadcast_to(v, (*v.shape[:-2], cell.tasks, cell.K))
        errors = [
            generalization_error_from_coordinates(
                cell.activation, rows, w, record.parallel, record.perpendicular, heads[..., task, :]
            )
            for task, w in enumerate(cell.w)
        ]
        parts = [slice(task * units_per_task, (task + 1) * units_per_task) for task in range(cell.tasks)]
        return {
            "eps_g": np.stack(errors, axis=-1),
            "R": R,
            "Q": Q,
            "v": self.scenario.drop_shared_head_axis(v),
            "specialisation": np.stack([specialisation(T[part, part], R[..., part], Q) for part in parts], axis=-1),
        }

    @staticmethod
    def _expand_identical_students(record: EngineRecord, cell: NetworkCell) -> EngineRecord:
        """Return the record of a network with several heads (seeds, T, heads, K) and copies of identical students."""
        first, group = networks.find_distinct_students(cell)
        weights = np.asarray(record.saved_state)
        heads = weights.reshape(*weights.shape[:-1], -1, len(first))
        perpendicular = record.perpendicular[..., group[:, None], group]
        return EngineRecord(record.parallel[:, :, group], perpendicular, heads[..., group])
