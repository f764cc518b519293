"""Simulates networks of two layers: every cell, seeds in batches, batches on all cores."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from simulate.execution.units import UnitResult
from simulate.kernels import gram, gram_of_groups, networks, vectors
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

OTHER_ENGINE = "inputs with many variances for their N run on the direct engine (engine: vectors)"


class Fields(NamedTuple):
    """The fields of runs: T (M, M) of the teacher and its rows on axes of unit variance, on these axes `along`
    (seeds, T, K, M) and `across` (seeds, T, K, K) of the students, their covariances R with the teacher and Q with each
    other, and v (seeds, T, K)."""

    T: np.ndarray
    rows: np.ndarray
    along: np.ndarray
    across: np.ndarray
    R: np.ndarray
    Q: np.ndarray
    v: np.ndarray


class Simulator(Batches[NetworkCell]):
    """Networks: seeds in batches, by the engine that is asked for."""

    source = "networks of two layers on line"
    scenario: Network

    def task(self, cell: NetworkCell, others: Sequence[NetworkCell] = ()) -> Task:
        """The network of a cell, and of others."""
        return networks.task(cell, self.scenario.dtype, others)

    def engine(self, cell: NetworkCell) -> ModuleType:
        """The engine asked for, that of groups, or the direct one where many variances make it faster."""
        if self.scenario.direct(cell):
            return vectors
        return gram if gram.covers(cell.inputs) else gram_of_groups

    def students(self, cell: NetworkCell) -> int:
        """Count the students that do not start identical."""
        return len(networks.distinct(cell)[0])

    def teachers(self, cell: NetworkCell) -> int:
        """The teacher's units."""
        return cell.M

    def remarks(self) -> list[str]:
        """Say what a start without differences between units means for a run."""
        direct = self.scenario.engine == "gram" and any(self.engine(cell) is vectors for cell in self._sizes())
        found = {IDENTICAL: self.scenario.identical, SYMMETRIC: self.scenario.symmetric, OTHER_ENGINE: direct}
        return [sentence for sentence, holds in found.items() if holds]

    def program(self, cell: NetworkCell) -> Hashable:
        """The activation's family, sizes and what changes: the teacher and the start are those of all. None with
        functions of time."""
        if not own_to_statmech(cell.activation) or cell.controls:
            return None
        return family_of(cell.activation), cell.K, cell.M, cell.N, *cell.terms

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
        rows = rows_of(cell.T).astype(self.scenario.dtype).astype(float)
        R = record.along @ rows.T
        with np.errstate(over="ignore", invalid="ignore"):
            Q = record.along @ np.swapaxes(record.along, -1, -2) + record.across
        v = np.asarray(record.kept)
        self._check_size(cell, R=R, Q=Q, v=v)
        self._check_precision(cell, Q, v)
        values = {"R": R, "Q": Q, "v": v, "specialisation": specialisation(cell.T, R, Q)}
        if record.basis_field is None:
            return values | self._errors(cell, seeds, Fields(cell.T, rows, record.along, record.across, R, Q, v))
        own = (_fields_of_seed(rows, record, seed) for seed in range(len(v)))
        errors = [
            self._errors(cell, slice(seeds.start + at, seeds.start + at + 1), fields) for at, fields in enumerate(own)
        ]
        return values | {name: np.concatenate([each[name] for each in errors]) for name in errors[0]}

    @staticmethod
    def _every_student(record: Record, cell: NetworkCell) -> Record:
        """The record with the copies of identical students."""
        group = networks.distinct(cell)[1]
        across = record.across[..., group[:, None], group]
        every = Record(record.along[:, :, group], across, np.asarray(record.kept)[..., group])
        if record.along_field is None or record.across_field is None:
            return every
        return every._replace(
            along_field=record.along_field[:, :, group],
            across_field=record.across_field[..., group[:, None], group],
            basis_field=record.basis_field,
        )

    def _check_size(self, cell: NetworkCell, **products: np.ndarray) -> None:
        largest = LONGEST[self.scenario.dtype]
        for name, values in products.items():
            if not np.all(np.abs(values) < largest):
                raise DivergedError(f"{cell.described} has diverged: {name} left {-largest:g} to {largest:g}")

    def _check_precision(self, cell: NetworkCell, Q: np.ndarray, v: np.ndarray) -> None:
        """Refuse float32 where rounding is not small beside what one example of N t teaches."""
        if self.scenario.dtype != "float32" or self.engine(cell) is vectors or self.scenario.t[-1] * cell.N < 0.5:
            return
        lengths = {"eta": np.sqrt(np.max(np.diagonal(Q, axis1=-2, axis2=-1))), "eta_v": np.max(np.abs(v))}
        for name, length in lengths.items():
            if 0 < getattr(cell, name) * gram.STEP < length * cell.N:
                small = f"the update by one example at N = {cell.N:g} and {name} = {getattr(cell, name):g}"
                raise ScenarioError([(("dtype",), f"float32 does not resolve {small} ({cell.described}); use float64")])

    def _errors(self, cell: NetworkCell, seeds: slice, fields: Fields) -> dict[str, Any]:
        """The errors (seeds, T): in closed form where there is one, else over each seed's test fields."""
        T, rows, along, across, R, Q, v = fields
        closed = cell.activation.has_closed_forms
        if closed and not cell.sign and cell.teacher_activation == cell.activation:
            return {"eps_g": error_of_coordinates(cell.activation, rows, cell.w, along, across, v)}
        if closed and cell.sign and cell.M == 1 and cell.keeps_signs:
            error = generalization_error(cell.activation, T, cell.w, R, Q, v, output="sign")
            return {"eps_g": np.asarray(error), **self._measured(cell, seeds, fields, label_error=label_error)}
        return self._measured(
            cell, seeds, fields, eps_g=measured_error, **({"label_error": label_error} if cell.sign else {})
        )

    def _measured(self, cell: NetworkCell, seeds: slice, fields: Fields, **errors: Any) -> dict[str, Any]:
        """Errors over test fields that each seed draws."""
        T, _, _, _, R, Q, v = fields
        teacher = TeacherNetwork(cell.teacher_activation, T, cell.w, cell.teacher.output)
        words, found = [self.scenario.key, *cell.words()], {}
        for name, error in errors.items():
            rngs = [np.random.default_rng([*words, seed]) for seed in range(seeds.start, seeds.stop)]
            given = zip(R, Q, v, rngs, strict=True)
            found[name] = np.stack([error(cell.activation, teacher, *one) for one in given])
        return found


def _fields_of_seed(rows: np.ndarray, record: Record, seed: int) -> Fields:
    """The fields of one run, whose teacher has its own variances."""
    along, across, basis = (
        np.asarray(part)[seed : seed + 1] for part in (record.along_field, record.across_field, record.basis_field)
    )
    seen = rows @ basis[0, 0]
    Q = along @ np.swapaxes(along, -1, -2) + across
    return Fields(seen @ seen.T, seen, along, across, along @ seen.T, Q, np.asarray(record.kept)[seed : seed + 1])
