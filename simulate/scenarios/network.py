"""Simulates networks of two layers: every cell, seeds in batches, batches on all cores."""

from __future__ import annotations

import numpy as np

from simulate.execution.units import UnitResult
from simulate.kernels import gram, networks
from simulate.kernels.learner import Record, Task
from simulate.scenarios.batches import Batches, Unit
from statmech.activations import Linear
from statmech.errors import DivergedError, ScenarioError
from statmech.network_error import Teacher, error_of_coordinates, generalization_error, measured_error
from statmech.scenarios.network import Network, NetworkCell
from statmech.scenarios.network_matrices import LARGEST, rows_of
from statmech.specialisation import specialisation

ALIKE = (
    "all students start identical{where}, and get the same changes: they stay identical, and act as one unit with the "
    "sum of their weights"
)
SYMMETRIC = (
    "exchanging units does not change the start{where}: in theory students stay on the symmetric plateau, but in a "
    "simulation fluctuations of order 1/sqrt(N) end it, so that the two disagree from there on, as they should. Give "
    "a start with different R to compare them"
)


class Simulator(Batches):
    """Networks: seeds in batches, by the engine that is asked for."""

    source = "networks of two layers on line"
    scenario: Network

    def task(self, cell: NetworkCell) -> Task:
        """Its network."""
        return networks.task(cell, self.scenario.dtype)

    def students(self, cell: NetworkCell) -> int:
        """Those that do not start identical."""
        return len(networks.distinct(cell)[0])

    def teachers(self, cell: NetworkCell) -> int:
        """The teacher's units."""
        return cell.M

    def remarks(self) -> list[str]:
        """What a start without differences between units means for a run."""
        cells = list(self.scenario.cells())
        return [*_remark(ALIKE, cells, identical), *_remark(SYMMETRIC, cells, symmetric)]

    def run(self, unit: Unit) -> list[UnitResult]:
        """The variables of a batch of seeds."""
        cell, dtype, record = unit.cell, self.scenario.dtype, self._every_student(self.record(unit), unit.cell)
        rows = rows_of(cell.T).astype(dtype).astype(float)
        R = record.along @ rows.T
        with np.errstate(over="ignore", invalid="ignore"):
            Q = record.along @ np.swapaxes(record.along, -1, -2) + record.across
        v = np.asarray(record.kept)
        self._check_size(cell, R=R, Q=Q, v=v)
        self._check_precision(cell, Q, v)
        values = {"R": R, "Q": Q, "v": v, "specialisation": specialisation(cell.T, R, Q)}
        values["eps_g"] = self._error(unit, rows, record, R, Q)
        return [UnitResult(cell.index, unit.seeds, values)]

    @staticmethod
    def _every_student(record: Record, cell: NetworkCell) -> Record:
        """The record with the copies of identical students."""
        group = networks.distinct(cell)[1]
        across = record.across[..., group[:, None], group]
        return Record(record.along[:, :, group], across, np.asarray(record.kept)[..., group])

    def _check_size(self, cell: NetworkCell, **products: np.ndarray) -> None:
        largest = LARGEST[self.scenario.dtype]
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

    def _error(self, unit: Unit, rows: np.ndarray, record: Record, R: np.ndarray, Q: np.ndarray) -> np.ndarray:
        """The generalization error (seeds, T): in closed form where there is one, else over each seed's test fields."""
        cell, v = unit.cell, np.asarray(record.kept)
        closed = cell.activation.has_closed_forms
        if closed and not cell.sign and cell.teacher_activation == cell.activation:
            return error_of_coordinates(cell.activation, rows, cell.w, record.along, record.across, v)
        if closed and cell.sign and cell.M == 1 and _keeps_signs(cell):
            return np.asarray(generalization_error(cell.activation, cell.T, cell.w, R, Q, v, output="sign"))
        teacher = Teacher(cell.teacher_activation, cell.T, cell.w, cell.teacher.output)
        seeds = range(unit.seeds.start, unit.seeds.stop)
        rngs = [np.random.default_rng([self.scenario.key, *cell.words(), seed]) for seed in seeds]
        given = zip(R, Q, v, rngs, strict=True)
        return np.stack([measured_error(cell.activation, teacher, *one) for one in given])


def _keeps_signs(cell: NetworkCell) -> bool:
    """Whether the teacher's g has the sign of its field, so that its label is that of the field."""
    x = np.array([-3.0, -1.0, -1e-3, 1e-3, 1.0, 3.0])
    return bool(np.all(np.sign(cell.teacher_activation.both(x)[0]) == np.sign(x)))


def identical(cell: NetworkCell) -> bool:
    """Whether several students start identical, and with equal weights."""
    units = cell.units
    equal = all(np.ptp(part, axis=0).max() == 0 for part in (units.R, units.Q, units.v))
    return cell.K > 1 and not cell.drawn and bool(equal)


def symmetric(cell: NetworkCell) -> bool:
    """Whether exchanging students and teacher units leaves the start as it is, though students differ.

    Linear units have no plateau: only their sum matters.
    """
    if cell.drawn or cell.K < 2 or cell.M < 2 or isinstance(cell.activation, Linear) or identical(cell):
        return False
    matrices = all(_exchangeable(matrix) for matrix in (cell.units.Q, cell.T))
    return matrices and all(np.ptp(values) == 0 for values in (cell.units.R, cell.units.v, cell.w))


def _exchangeable(matrix: np.ndarray) -> bool:
    """Whether a matrix has one value on the diagonal and one beside it."""
    rest = matrix[~np.eye(len(matrix), dtype=bool)]
    return bool(np.ptp(np.diagonal(matrix)) == 0 and np.ptp(rest) == 0)


def _remark(sentence: str, cells: list[NetworkCell], holds: object) -> list[str]:
    """The sentence, with the place where it holds if that is not everywhere."""
    assert callable(holds)
    found = sorted({(cell.M, cell.K) for cell in cells if holds(cell)})
    if not found:
        return []
    everywhere = len(found) == len({(cell.M, cell.K) for cell in cells})
    where = "" if everywhere else " at " + ", ".join(f"M = {M}, K = {K}" for M, K in found)
    return [sentence.format(where=where)]
