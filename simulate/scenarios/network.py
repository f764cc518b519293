"""Simulates networks of two layers: every cell, seeds in batches, batches on all cores."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from simulate.execution.units import UnitResult
from simulate.kernels import gram, networks
from simulate.kernels.learner import Record, Task
from simulate.scenarios.batches import Batches, Unit, own_to_statmech
from statmech.errors import DivergedError, ScenarioError
from statmech.networks.measured_error import TeacherNetwork, label_error, measured_error
from statmech.networks.network_error import error_of_coordinates, generalization_error
from statmech.networks.specialisation import specialisation
from statmech.parameters import family_of
from statmech.scenarios.initial_conditions import LONGEST
from statmech.scenarios.network import IDENTICAL, SYMMETRIC, Network, NetworkCell
from statmech.scenarios.network_matrices import rows_of


class Simulator(Batches[NetworkCell]):
    """Networks: seeds in batches, by the engine that is asked for."""

    source = "networks of two layers on line"
    scenario: Network

    def task(self, cell: NetworkCell, others: Sequence[NetworkCell] = ()) -> Task:
        """The network of a cell, and of others."""
        return networks.task(cell, self.scenario.dtype, others)

    def students(self, cell: NetworkCell) -> int:
        """Count the students that do not start identical."""
        return len(networks.distinct(cell)[0])

    def teachers(self, cell: NetworkCell) -> int:
        """The teacher's units."""
        return cell.M

    def remarks(self) -> list[str]:
        """Say what a start without differences between units means for a run."""
        found = {IDENTICAL: self.scenario.identical, SYMMETRIC: self.scenario.symmetric}
        return [sentence for sentence, holds in found.items() if holds]

    def program(self, cell: NetworkCell) -> Hashable:
        """The activation's family, sizes and what changes: the teacher and the start are those of all."""
        if not own_to_statmech(cell.activation):
            return None
        return family_of(cell.activation), cell.K, cell.M, cell.N, cell.noise > 0, cell.decay > 0

    def run(self, unit: Unit[NetworkCell]) -> list[UnitResult]:
        """The variables of a batch of seeds of each cell."""
        record = self.record(unit)
        each = (Record(*(part if part is None else part[i] for part in record)) for i in range(len(unit.cells)))
        return [
            UnitResult(cell.index, unit.seeds, self._values(cell, unit.seeds, self._every_student(part, cell)))
            for cell, part in zip(unit.cells, each, strict=True)
        ]

    def _values(self, cell: NetworkCell, seeds: slice, record: Record) -> dict[str, Any]:
        """The variables of a batch of seeds of a cell."""
        dtype = self.scenario.dtype
        rows = rows_of(cell.T).astype(dtype).astype(float)
        R = record.along @ rows.T
        with np.errstate(over="ignore", invalid="ignore"):
            Q = record.along @ np.swapaxes(record.along, -1, -2) + record.across
        v = np.asarray(record.kept)
        self._check_size(cell, R=R, Q=Q, v=v)
        self._check_precision(cell, Q, v)
        values = {"R": R, "Q": Q, "v": v, "specialisation": specialisation(cell.T, R, Q)}
        return values | self._errors(cell, seeds, rows, record, R, Q)

    @staticmethod
    def _every_student(record: Record, cell: NetworkCell) -> Record:
        """The record with the copies of identical students."""
        group = networks.distinct(cell)[1]
        across = record.across[..., group[:, None], group]
        return Record(record.along[:, :, group], across, np.asarray(record.kept)[..., group])

    def _check_size(self, cell: NetworkCell, **products: np.ndarray) -> None:
        largest = LONGEST[self.scenario.dtype]
        for name, values in products.items():
            if not np.all(np.abs(values) < largest):
                raise DivergedError(f"{cell.described} has diverged: {name} left {-largest:g} to {largest:g}")

    def _check_precision(self, cell: NetworkCell, Q: np.ndarray, v: np.ndarray) -> None:
        """Refuse float32 where rounding is not small beside what one example of N t teaches."""
        if self.scenario.dtype != "float32" or self.engine(cell) is not gram or self.scenario.t[-1] * cell.N < 0.5:
            return
        lengths = {"eta": np.sqrt(np.max(np.diagonal(Q, axis1=-2, axis2=-1))), "eta_v": np.max(np.abs(v))}
        for name, length in lengths.items():
            if 0 < getattr(cell, name) * gram.STEP < length * cell.N:
                small = f"the update by one example at N = {cell.N:g} and {name} = {getattr(cell, name):g}"
                raise ScenarioError([(("dtype",), f"float32 does not resolve {small} ({cell.described}); use float64")])

    def _errors(
        self, cell: NetworkCell, seeds: slice, rows: np.ndarray, record: Record, R: np.ndarray, Q: np.ndarray
    ) -> dict[str, Any]:
        """The errors (seeds, T): in closed form where there is one, else over each seed's test fields."""
        v = np.asarray(record.kept)
        closed = cell.activation.has_closed_forms
        if closed and not cell.sign and cell.teacher_activation == cell.activation:
            return {"eps_g": error_of_coordinates(cell.activation, rows, cell.w, record.along, record.across, v)}
        if closed and cell.sign and cell.M == 1 and cell.keeps_signs:
            error = generalization_error(cell.activation, cell.T, cell.w, R, Q, v, output="sign")
            return {"eps_g": np.asarray(error), **self._measured(cell, seeds, R, Q, v, label_error=label_error)}
        return self._measured(
            cell, seeds, R, Q, v, eps_g=measured_error, **({"label_error": label_error} if cell.sign else {})
        )

    def _measured(
        self, cell: NetworkCell, seeds: slice, R: np.ndarray, Q: np.ndarray, v: np.ndarray, **errors: Any
    ) -> dict[str, Any]:
        """Errors over test fields that each seed draws."""
        teacher = TeacherNetwork(cell.teacher_activation, cell.T, cell.w, cell.teacher.output)
        words, found = [self.scenario.key, *cell.words()], {}
        for name, error in errors.items():
            rngs = [np.random.default_rng([*words, seed]) for seed in range(seeds.start, seeds.stop)]
            given = zip(R, Q, v, rngs, strict=True)
            found[name] = np.stack([error(cell.activation, teacher, *one) for one in given])
        return found
