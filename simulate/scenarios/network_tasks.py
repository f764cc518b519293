"""Simulates networks that learn several tasks: every cell, seeds in batches, batches on all cores."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from simulate.kernels import network_tasks, networks
from simulate.kernels.learner import Record, Task
from simulate.scenarios import network
from statmech.networks.network_error import error_of_coordinates
from statmech.networks.specialisation import specialisation
from statmech.scenarios.network import NetworkCell
from statmech.scenarios.network_matrices import rows_of
from statmech.scenarios.network_tasks import NetworkTaskCell, NetworkTasks


class Simulator(network.Simulator):
    """Networks of several tasks: seeds in batches, by the engine that is asked for."""

    source = "networks of several tasks on line"
    scenario: NetworkTasks

    def task(self, cell: NetworkCell, others: Sequence[NetworkCell] = ()) -> Task:
        """The network of a cell, and the tasks that it learns."""
        assert isinstance(cell, NetworkTaskCell)
        return network_tasks.task(cell, self.scenario.dtype)

    def program(self, cell: NetworkCell) -> Hashable:
        """None: each cell is simulated alone."""
        return None

    def _values(self, cell: NetworkCell, seeds: slice, record: Record) -> dict[str, Any]:
        """The variables of a batch of seeds of a cell, whose record has every student in each head."""
        assert isinstance(cell, NetworkTaskCell)
        rows = rows_of(cell.T).astype(self.scenario.dtype).astype(float)
        R, v, T, own = record.along @ rows.T, np.asarray(record.kept), cell.T, cell.own
        with np.errstate(over="ignore", invalid="ignore"):
            Q = record.along @ np.swapaxes(record.along, -1, -2) + record.across
        self._check_size(cell, R=R, Q=Q, v=v)
        self._check_precision(cell, Q, v)
        heads = np.broadcast_to(v, (*v.shape[:-2], cell.tasks, cell.K))
        errors = [
            error_of_coordinates(cell.activation, rows, w, record.along, record.across, heads[..., task, :])
            for task, w in enumerate(cell.w)
        ]
        parts = [slice(task * own, (task + 1) * own) for task in range(cell.tasks)]
        return {
            "eps_g": np.stack(errors, axis=-1),
            "R": R,
            "Q": Q,
            "v": self.scenario.without_shared_axis(v),
            "specialisation": np.stack([specialisation(T[at, at], R[..., at], Q) for at in parts], axis=-1),
        }

    @staticmethod
    def _every_student(record: Record, cell: NetworkCell) -> Record:
        """The record with the copies of identical students, `kept` as heads (seeds, T, heads, K)."""
        first, group = networks.distinct(cell)
        kept = np.asarray(record.kept)
        heads = kept.reshape(*kept.shape[:-1], -1, len(first))
        across = record.across[..., group[:, None], group]
        return Record(record.along[:, :, group], across, heads[..., group])
