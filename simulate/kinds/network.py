"""Simulation of two-layer networks, with batches of seeds distributed over all cores."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from simulate.execution.work_units import UnitResult
from simulate.kinds.seed_batches import BatchSimulator, BatchUnit, is_defined_by_statmech
from simulate.online import gram_engine, grouped_gram_engine, networks, weight_vector_engine
from simulate.online.learning_steps import EngineRecord, EngineTask
from statmech.errors import DivergedStudentError, ScenarioError
from statmech.keys.initial_states import MAX_STUDENT_LENGTH_BY_DTYPE
from statmech.kinds.network import IDENTICAL_START_NOTE, SYMMETRIC_START_NOTE, Network, NetworkCell
from statmech.parameters.parameter_fields import get_real_parameter_family
from statmech.students.network_error import (
    TeacherNetwork,
    generalization_error,
    generalization_error_from_coordinates,
    label_error,
    measured_error,
    specialisation,
)
from statmech.students.student_geometry import factorise_gram

DIRECT_ENGINE_REMARK = "inputs with many variances for their N run on the direct engine (engine: vectors)"


class NetworkFieldCovariances(NamedTuple):
    """Covariances of fields in runs with a teacher T (M, M), whose `rows` are coordinates on unit-variance axes.

    `parallel` (seeds, T, K, M) are the students' components on these axes, `perpendicular` (seeds, T, K, K) the
    products of the remaining parts. R and Q are covariances with the teacher and among students, v (seeds, T, K) the
    output weights.
    """

    T: np.ndarray
    rows: np.ndarray
    parallel: np.ndarray
    perpendicular: np.ndarray
    R: np.ndarray
    Q: np.ndarray
    v: np.ndarray


class Simulator(BatchSimulator[NetworkCell]):
    """Simulator of two-layer networks, with batches of seeds on the requested engine."""

    source = "networks of two layers on line"
    scenario: Network

    def describe_task(self, cell: NetworkCell, other_cells: Sequence[NetworkCell] = ()) -> EngineTask:
        """Describe the networks of a cell, and of other cells with the same program, to the engine."""
        return networks.make_network_task(cell, self.scenario.dtype, other_cells)

    def choose_engine(self, cell: NetworkCell) -> ModuleType:
        """Return the requested engine, the engine of groups, or the direct engine if many variances make it faster."""
        if self.scenario.uses_weight_vectors(cell):
            return weight_vector_engine
        return gram_engine if gram_engine.supports_inputs(cell.inputs) else grouped_gram_engine

    def count_students(self, cell: NetworkCell) -> int:
        """Return the number of students with distinct initial weights."""
        return len(networks.find_distinct_students(cell)[0])

    def count_teachers(self, cell: NetworkCell) -> int:
        """Return the number of teacher units."""
        return cell.M

    def get_remarks_before_run(self) -> list[str]:
        """Return remarks on symmetric starts of networks and on the use of the direct engine."""
        direct = self.scenario.engine == "gram" and any(
            self.choose_engine(cell) is weight_vector_engine for cell in self._iterate_representative_cells()
        )
        conditions = {
            IDENTICAL_START_NOTE: self.scenario.has_identical_start,
            SYMMETRIC_START_NOTE: self.scenario.has_symmetric_start,
            DIRECT_ENGINE_REMARK: direct,
        }
        return [sentence for sentence, holds in conditions.items() if holds]

    def get_program_key(self, cell: NetworkCell) -> Hashable:
        """Return the activation's family, the sizes and the active terms, which cells of one program share.

        The key is None for functions of time or a user's activation: such cells are simulated alone.
        """
        if not is_defined_by_statmech(cell.activation) or cell.controls:
            return None
        return get_real_parameter_family(cell.activation), cell.K, cell.M, cell.N, *cell.program_flags

    def run(self, unit: BatchUnit[NetworkCell]) -> list[UnitResult]:
        """Simulate networks of two layers for a batch of seeds, and return the variables of each cell."""
        record = self.run_engine(unit)
        records = (
            EngineRecord(*(part if part is None else part[i] for part in record)) for i in range(len(unit.cells))
        )
        return [
            UnitResult(
                cell.index,
                unit.seeds,
                self._compute_cell_variables(cell, unit.seeds, self._expand_identical_students(part, cell)),
            )
            for cell, part in zip(unit.cells, records, strict=True)
        ]

    def _compute_cell_variables(self, cell: NetworkCell, seeds: slice, record: EngineRecord) -> dict[str, Any]:
        """Compute the variables of a cell's networks for a batch of seeds."""
        rows = factorise_gram(cell.T).astype(self.scenario.dtype).astype(float)
        R = record.parallel @ rows.T
        with np.errstate(over="ignore", invalid="ignore"):
            Q = record.parallel @ np.swapaxes(record.parallel, -1, -2) + record.perpendicular
        v = np.asarray(record.saved_state)
        self._check_divergence(cell, R=R, Q=Q, v=v)
        self._check_float32_precision(cell, Q, v)
        values = {"R": R, "Q": Q, "v": v, "specialisation": specialisation(cell.T, R, Q)}
        if record.teacher_basis_fields is None:
            return values | self._compute_errors(
                cell, seeds, NetworkFieldCovariances(cell.T, rows, record.parallel, record.perpendicular, R, Q, v)
            )
        fields_by_seed = (_get_seed_fields(rows, record, seed) for seed in range(len(v)))
        errors = [
            self._compute_errors(cell, slice(seeds.start + index, seeds.start + index + 1), fields)
            for index, fields in enumerate(fields_by_seed)
        ]
        return values | {name: np.concatenate([seed_errors[name] for seed_errors in errors]) for name in errors[0]}

    @staticmethod
    def _expand_identical_students(record: EngineRecord, cell: NetworkCell) -> EngineRecord:
        """Return the record of networks with copies of identical students."""
        group = networks.find_distinct_students(cell)[1]
        perpendicular = record.perpendicular[..., group[:, None], group]
        expanded = EngineRecord(record.parallel[:, :, group], perpendicular, np.asarray(record.saved_state)[..., group])
        if record.parallel_fields is None or record.perpendicular_fields is None:
            return expanded
        return expanded._replace(
            parallel_fields=record.parallel_fields[:, :, group],
            perpendicular_fields=record.perpendicular_fields[..., group[:, None], group],
            teacher_basis_fields=record.teacher_basis_fields,
        )

    def _check_divergence(self, cell: NetworkCell, **products: np.ndarray) -> None:
        """Raise `DivergedStudentError` if a product of networks has left the valid range of the number type."""
        largest = MAX_STUDENT_LENGTH_BY_DTYPE[self.scenario.dtype]
        for name, values in products.items():
            if not np.all(np.abs(values) < largest):
                raise DivergedStudentError(
                    f"{cell.message_description} has diverged: the size of {name} exceeds {largest:g}"
                )

    def _check_float32_precision(self, cell: NetworkCell, Q: np.ndarray, v: np.ndarray) -> None:
        """Raise `ScenarioError` if float32 does not resolve the update of networks by one example."""
        if (
            self.scenario.dtype != "float32"
            or self.choose_engine(cell) is weight_vector_engine
            or self.scenario.t[-1] * cell.N < 0.5
        ):
            return
        lengths = {"eta": np.sqrt(np.max(np.diagonal(Q, axis1=-2, axis2=-1))), "eta_v": np.max(np.abs(v))}
        for name, length in lengths.items():
            if 0 < getattr(cell, name) * gram_engine.MAX_FLOAT32_LENGTH_PER_STEP < length * cell.N:
                small = f"the update by one example at N = {cell.N:g} and {name} = {getattr(cell, name):g}"
                raise ScenarioError(
                    [(("dtype",), f"float32 does not resolve {small} ({cell.message_description}); use float64")]
                )

    def _compute_errors(self, cell: NetworkCell, seeds: slice, fields: NetworkFieldCovariances) -> dict[str, Any]:
        """Return the errors (seeds, T) of networks, in closed form if possible, otherwise measured on test fields."""
        T, rows, parallel, perpendicular, R, Q, v = fields
        closed = cell.activation.has_closed_forms
        if closed and not cell.sign and cell.teacher_activation == cell.activation:
            return {
                "eps_g": generalization_error_from_coordinates(
                    cell.activation, rows, cell.w, parallel, perpendicular, v
                )
            }
        if closed and cell.sign and cell.M == 1 and cell.teacher_preserves_sign:
            error = generalization_error(cell.activation, T, cell.w, R, Q, v, output="sign")
            return {"eps_g": np.asarray(error), **self._measured(cell, seeds, fields, label_error=label_error)}
        return self._measured(
            cell, seeds, fields, eps_g=measured_error, **({"label_error": label_error} if cell.sign else {})
        )

    def _measured(
        self, cell: NetworkCell, seeds: slice, fields: NetworkFieldCovariances, **errors: Any
    ) -> dict[str, Any]:
        """Measure errors of networks on test fields, drawn separately for each seed."""
        T, _, _, _, R, Q, v = fields
        teacher = TeacherNetwork(cell.teacher_activation, T, cell.w, cell.teacher.output)
        entropy, values = [self.scenario.key, *cell.identity_hash()], {}
        for name, error in errors.items():
            rngs = [np.random.default_rng([*entropy, seed]) for seed in range(seeds.start, seeds.stop)]
            samples = zip(R, Q, v, rngs, strict=True)
            values[name] = np.stack([error(cell.activation, teacher, *sample) for sample in samples])
        return values


def _get_seed_fields(rows: np.ndarray, record: EngineRecord, seed: int) -> NetworkFieldCovariances:
    """Return the field covariances of the networks in one run, which has its own input variances."""
    parallel, perpendicular, basis = (
        np.asarray(part)[seed : seed + 1]
        for part in (record.parallel_fields, record.perpendicular_fields, record.teacher_basis_fields)
    )
    scaled_rows = rows @ basis[0, 0]
    Q = parallel @ np.swapaxes(parallel, -1, -2) + perpendicular
    return NetworkFieldCovariances(
        scaled_rows @ scaled_rows.T,
        scaled_rows,
        parallel,
        perpendicular,
        parallel @ scaled_rows.T,
        Q,
        np.asarray(record.saved_state)[seed : seed + 1],
    )
