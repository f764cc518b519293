"""Online learning in batches of seeds: work units, engines and random keys of perceptrons and networks."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from simulate.execution.work_units import XLA_BYTES, XLA_PROGRAM_BYTES, Simulator, UnitResult, check_run_memory
from simulate.online import gram_engine, weight_vector_engine
from simulate.online.learning_steps import MIN_FLOAT32_RATE_PER_STEP, EngineRecord, EngineTask
from statmech.errors import DivergedStudentError, ScenarioError
from statmech.keys.scenario import AbstractScenario
from statmech.keys.time_dependent_keys import count_steps
from statmech.numerics.random_numbers import fold_in_key_data, make_key_data
from statmech.runtime.jax_and_blas_settings import use_next_device
from statmech.runtime.operating_system import count_cores, record_jax_use
from statmech.stores.sweep_chunks import MAX_SEEDS_PER_CHUNK
from statmech.stores.sweep_cost import estimate_cost

if TYPE_CHECKING:  # at run time, only the scenario's own kind is imported
    from statmech.kinds.network import NetworkCell
    from statmech.kinds.online_learning import OnlineCell, OnlineLearning

MIN_BATCH_SEEDS = 8  # fewer seeds take as long as 8
MIN_SEEDS_PER_BATCH_PART = (
    16  # splitting occupies more cores, but two parts of 8 seeds take 1.5 times as long as a batch of 16
)
MAX_PROGRAM_CALLS_PER_UNIT = 16  # program calls: the cells of a unit fold their random keys together
EXACT_LENGTH_LIMIT_BY_DTYPE = {
    "float64": 1e150,
    "float32": 1e15,
}  # bounds length and 1/length, so that their squares stay representable after sums or division by N
C = TypeVar("C", bound="OnlineCell | NetworkCell")


@dataclass(frozen=True)
class BatchUnit(Generic[C]):
    """Work unit: cells of one program, a batch number, the requested seeds, and the simulated part of the batch.

    The full batch is simulated even if few of its seeds are requested, unless the engine gives a part the same bits.
    """

    cells: tuple[C, ...]
    batch_index: int
    seeds: slice
    simulated_batch_slice: slice
    max_cells_per_call: int = 1  # maximum number of cells per program call
    uses_fast_compilation: bool = False  # True if the program is compiled for short runs

    def make_results(self, values: dict[str, np.ndarray]) -> list[UnitResult]:
        """Convert values (cells, seeds, ...) to the results of the unit."""
        if len(self.cells) == 1:
            return [UnitResult(self.cells[0].index, self.seeds, {name: value[0] for name, value in values.items()})]
        return [UnitResult(tuple(np.array([cell.index for cell in self.cells]).T), self.seeds, values)]


class BatchSimulator(Simulator, Generic[C]):
    """Simulator of batches of seeds on one of two engines. Subclasses define the task of each cell."""

    scenario: OnlineLearning
    float32_limited_rates: tuple[str, ...] = ("decay",)  # rates of the Gram engine that float32 may not resolve

    @abstractmethod
    def describe_task(self, cell: C, other_cells: Sequence[C] = ()) -> EngineTask:
        """Describe a cell, and other cells of the same program, to the engine."""

    def get_program_key(self, cell: C) -> Hashable:
        """Return a key that all cells of one program share, or None for a cell that is simulated alone."""
        return None

    def count_students(self, cell: C) -> int:
        """Return the number of students simulated for a cell."""
        return int(cell.K)

    def count_teachers(self, cell: C) -> int:
        """Return the number of teacher units of a cell."""
        return 1

    def choose_engine(self, cell: C) -> ModuleType:
        """Return the engine that simulates a cell."""
        return weight_vector_engine if self.scenario.engine == "vectors" else gram_engine

    def make_extra_attributes(self) -> dict[str, str]:
        """Return the names of the engines as attributes of the dataset."""
        engines = (self.choose_engine(cell).NAME for cell in self._iterate_representative_cells())
        return {"source": "; ".join(dict.fromkeys(engines))}

    def count_library_bytes(self) -> float:
        """Return the memory of the compiler and its programs in bytes."""
        return XLA_BYTES + XLA_PROGRAM_BYTES * estimate_cost(self.scenario).programs

    def estimate_max_unit_bytes(self) -> float:
        """Return the bytes of the largest unit of online learning."""
        return max(
            map(
                self._estimate_unit_bytes,
                self.units(list(self.scenario.cells()), range(min(self.scenario.seeds, MAX_SEEDS_PER_CHUNK))),
            )
        )

    def _estimate_unit_bytes(self, unit: BatchUnit[C]) -> float:
        """Estimate the bytes of a unit: weight vectors, and products of students and teachers at recorded times.

        XLA holds two copies of the simulated products, and one copy is concatenated. Variables are then computed
        for the requested seeds.
        """
        cell = unit.cells[0]
        K, M = self.count_students(cell), self.count_teachers(cell)
        simulated = unit.simulated_batch_slice.stop - unit.simulated_batch_slice.start
        requested = unit.seeds.stop - unit.seeds.start
        recorded, described = K * (K + M), self.count_variable_elements(cell)
        numbers = max(3 * simulated * recorded, simulated * recorded + requested * described)
        weights = self.count_vector_engine_bytes(cell) if self.choose_engine(cell) is weight_vector_engine else 0
        return weights + 8.0 * len(unit.cells) * len(self.scenario.t) * numbers

    def count_variable_elements(self, cell: C) -> int:
        """Count the array elements per seed and recorded time that computing the variables requires."""
        K = self.count_students(cell)
        return 3 * K * (K + self.count_teachers(cell)) + 3

    def _iterate_representative_cells(self) -> Iterator[Any]:
        """Yield one cell for each combination of sizes, inputs and rates."""
        return self.scenario.iterate_representative_cells("K", "M", "N", "inputs", "drift", "decay")

    def count_vector_engine_bytes(self, cell: C) -> int:
        """Return the bytes of a batch of seeds on the engine of weight vectors."""
        drifting, sizes = getattr(cell, "drift", 0.0) > 0, (self.count_students(cell), self.count_teachers(cell))
        return weight_vector_engine.estimate_unit_bytes(
            *sizes, cell.N, self.scenario.dtype, drifting, cell.inputs.has_errors_given_by_angles
        )

    def check_resources(self) -> None:
        """Raise `ScenarioError` if weight vectors do not fit into memory or float32 does not resolve a rate."""
        for cell in self._iterate_representative_cells():
            for name in self._find_rates_lost_in_float32(cell):
                small = f"{name} = {getattr(cell, name):g}, divided by N = {cell.N:g}"
                raise ScenarioError([(("dtype",), f"float32 does not resolve {small}; use float64")])
            if self.choose_engine(cell) is weight_vector_engine:
                run = f"a run with the weight vectors of N = {cell.N:g}, K = {cell.K}"
                check_run_memory(
                    "N", run, self.count_vector_engine_bytes(cell), "`engine: gram` avoids this for Gaussian inputs"
                )

    def _find_rates_lost_in_float32(self, cell: C) -> list[str]:
        """Return the rates of a cell learnt online that float32 does not resolve.

        The direct engine's teacher turns in all coordinates, so that only the decay matters.
        """
        if self.scenario.dtype != "float32":
            return []
        names = ("decay",) if self.choose_engine(cell) is weight_vector_engine else self.float32_limited_rates
        return [name for name in names if 0 < getattr(cell, name) < MIN_FLOAT32_RATE_PER_STEP * cell.N]

    def insert_best_controls(self, cells: Sequence[Any]) -> Sequence[Any]:
        """Return the cells to simulate in batches, with best controls instead of `optimal` keys."""
        if "control" not in self.scenario.theory_only_variables:
            return cells
        from theory.control.optimal_controls import add_best_controls  # imported late: few runs search for an optimum

        return [cell for cell, _ in add_best_controls(cells, self.scenario.t[-1])]

    def units(self, cells: Sequence[Any], seeds: range) -> Iterator[BatchUnit[C]]:
        """Yield work units of one or more cells, with seeds in batches or in parts of batches."""
        for group, width, cells_per_call, short in self._group_cells(cells):
            size = self.choose_engine(group[0]).batch(self.count_students(group[0]))
            for first in range(seeds.start, seeds.stop, width):
                part = slice(first % size, first % size + width)
                yield BatchUnit(
                    group, first // size, slice(first, min(first + width, seeds.stop)), part, cells_per_call, short
                )

    def _group_cells(self, cells: Sequence[Any]) -> Iterator[tuple[tuple[C, ...], int, int, bool]]:
        """Yield each unit's cells, number of seeds, cells per program call, and whether its runs are short."""
        groups: dict[Hashable, list[C]] = {}
        for cell in cells:
            program = self.get_program_key(cell) if self._can_split_batches_exactly(cell) else None
            groups.setdefault(program or cell.index, []).append(cell)
        for group in groups.values():
            cells_per_worker = -(-len(group) // (self.scenario.workers or count_cores()))
            width = self._halve_batch_width(gram_engine.batch(self.count_students(group[0])))
            short = self._is_faster_than_compilation(group)
            total_width = len(group) * width
            is_large = width < gram_engine.BATCH_WIDTH and total_width >= 2 * gram_engine.WIDE_BATCH_WIDTH
            wide = gram_engine.HAS_WIDTH_INDEPENDENT_BITS and is_large and self.has_same_bits_when_wide(group[0])
            cells_per_call = (gram_engine.WIDE_BATCH_WIDTH if wide else gram_engine.BATCH_WIDTH) // width
            if (
                total_width < 2 * gram_engine.BATCH_WIDTH or cells_per_call == 1
            ):  # if cells are few, separate units occupy more cores
                yield from (((cell,), self.choose_seeds_per_unit(cell), 1, short) for cell in group)
            else:
                calls = -(-cells_per_worker // cells_per_call)
                size = -(-calls // -(-calls // MAX_PROGRAM_CALLS_PER_UNIT)) * cells_per_call
                yield from (
                    (tuple(group[i : i + size]), width, cells_per_call, short) for i in range(0, len(group), size)
                )

    def _can_split_batches_exactly(self, cell: C) -> bool:
        """Return True if a part of a batch gives bitwise the same results as the full batch."""
        return self.choose_engine(cell) is gram_engine and gram_engine.can_split_batch(
            self.count_students(cell), self.count_teachers(cell)
        )

    def _is_faster_than_compilation(self, group: Sequence[C]) -> bool:
        """Return True if simulating all cells of a program takes less time than optimised compilation."""
        cell = group[0]
        batches = len(group) * -(-self.scenario.seeds // gram_engine.batch(self.count_students(cell)))
        return (
            self._can_split_batches_exactly(cell)
            and batches * self.scenario.t[-1] * cell.N <= gram_engine.MAX_FAST_COMPILE_STEPS
        )

    def has_same_bits_when_wide(self, cell: C) -> bool:
        """Return True if wide programs (`gram.WIDE_BATCH_WIDTH`) give bitwise the results of narrow programs."""
        return False

    def _halve_batch_width(self, width: int, min_width: int = 1) -> int:
        """Halve the width of a batch while the part still contains all seeds."""
        while width // 2 >= max(self.scenario.seeds, min_width):
            width //= 2
        return width

    def choose_seeds_per_unit(self, cell: C) -> int:
        """Return the number of seeds simulated together: a full batch, unless seeds or units are too few."""
        width: int = self.choose_engine(cell).batch(self.count_students(cell))
        if not (gram_engine.HAS_WIDTH_INDEPENDENT_BITS and self._can_split_batches_exactly(cell)):
            return width
        width = self._halve_batch_width(width, MIN_BATCH_SEEDS)
        num_cells, workers = math.prod(self.scenario.shape.values()), self.scenario.workers or count_cores()
        while width // 2 >= MIN_SEEDS_PER_BATCH_PART and num_cells * -(-self.scenario.seeds // width) < workers:
            width //= 2
        return width

    def run_engine(self, unit: BatchUnit[C]) -> EngineRecord:
        """Run the engine on a batch of seeds and return its record (cells, seeds, ...) in float64."""
        record_jax_use()
        cell, num_seeds = unit.cells[0], unit.seeds.stop - unit.seeds.start
        keys = make_unit_random_keys(self.scenario, unit)
        engine = self.choose_engine(cell)
        task = self.describe_task(cell, unit.cells[1:])
        with use_next_device(gpu=engine is weight_vector_engine):
            recorded = count_steps(self.scenario.t, cell.N)
            if engine is gram_engine:
                parts = gram_engine.simulate_task_batches(
                    task,
                    keys,
                    recorded,
                    unit.simulated_batch_slice,
                    unit.max_cells_per_call,
                    unit.uses_fast_compilation,
                )
            else:
                single = engine.run(task, keys[0], recorded, unit.simulated_batch_slice)
                parts = EngineRecord(*(part if part is None else part[None] for part in single))
            return EngineRecord(*(part if part is None else np.asarray(part, float)[:, :num_seeds] for part in parts))


def make_unit_random_keys(scenario: AbstractScenario, unit: BatchUnit[C]) -> np.ndarray:
    """Return the random key of each cell's batch of seeds.

    A key depends on the experiment's key, the cell's parameters and the batch number, but not on a grid position.
    """
    keys = np.tile(make_key_data(scenario.key), (len(unit.cells), 1))
    for numbers in np.array([cell.identity_hash() for cell in unit.cells], np.uint32).T:
        keys = fold_in_key_data(keys, numbers)
    return fold_in_key_data(keys, unit.batch_index)


def is_defined_by_statmech(formula: object) -> bool:
    """Return True if statmech defines this rule or activation: user formulas may not accept arrays of parameters."""
    return type(formula).__module__.startswith("statmech.")


def check_student_lengths(scenario: Any, unit: BatchUnit[Any], parallel: np.ndarray, perpendicular: np.ndarray) -> None:
    """Raise `DivergedStudentError` if a length in a batch (cells, seeds, T, K) is NaN or outside the exact range."""
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.hypot(parallel, np.sqrt(np.diagonal(perpendicular, axis1=-2, axis2=-1)))
    longest = EXACT_LENGTH_LIMIT_BY_DTYPE[scenario.dtype]
    exact = np.all((1 / longest < length) & (length < longest), axis=(1, 2, 3))
    if not exact.all():
        left = f"a student's length left the range from {1 / longest:g} to {longest:g}, where {scenario.dtype} is exact"
        raise DivergedStudentError(f"{unit.cells[int(np.argmin(exact))].message_description} has diverged: {left}")


def check_float32_precision(scenario: Any, cell: OnlineCell, parallel: np.ndarray, perpendicular: np.ndarray) -> None:
    """Raise `ScenarioError` if float32 does not resolve the update of a batch's students by one example."""
    if scenario.t[-1] * cell.N < 0.5:
        return
    length = np.sqrt(np.max(parallel**2 + np.diagonal(perpendicular, axis1=-2, axis2=-1)))
    if length * cell.N > gram_engine.MAX_FLOAT32_LENGTH_PER_STEP * cell.get_rule_at(scenario.t[-1]).eta:
        small = f"the update by one example at N = {cell.N:g} for a student of length {length:.3g}"
        raise ScenarioError(
            [(("dtype",), f"float32 does not resolve {small} ({cell.message_description}); use float64")]
        )
