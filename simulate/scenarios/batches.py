"""Online learning in batches of seeds: the units, engines and keys of perceptrons and networks."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from simulate.execution import units
from simulate.execution.units import UnitResult
from simulate.kernels import gram, vectors
from simulate.kernels.field_steps import SLOWEST
from simulate.kernels.learner import Record, Task
from statmech.errors import ScenarioError
from statmech.random_numbers import folded, key_of
from statmech.results.chunks import SEEDS
from statmech.runtime.devices import next_device
from statmech.runtime.forks import check_fork
from statmech.runtime.system import cores
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.step_sizes import steps

if TYPE_CHECKING:  # a run imports its own kind alone
    from statmech.scenarios.network import Network, NetworkCell
    from statmech.scenarios.online import OnlineCell, Scenario
    from statmech.scenarios.online_clusters import OnlineClusterCell, OnlineClusters
    from statmech.scenarios.online_rows import OnlineRows, OnlineRowsCell
    from statmech.scenarios.online_tasks import OnlineTaskCell, OnlineTasks

NARROWEST = 8  # seeds: fewer take the time of 8
SHORTEST = (
    16  # seeds into which a batch is cut to occupy all cores: two parts of 8 take 1.5 times the time of one of 16
)
CALLS = 16  # of a program, at most, in a unit of many cells: their keys are folded together
C = TypeVar("C", "OnlineCell", "NetworkCell", "OnlineClusterCell", "OnlineRowsCell", "OnlineTaskCell")


@dataclass(frozen=True)
class Unit(Generic[C]):
    """Cells of one program, the number of a batch of their seeds, the wanted ones, and the part that is simulated.

    The whole batch is simulated, however few of its seeds are wanted, unless the engine gives a part the same bits.
    """

    cells: tuple[C, ...]
    batch: int
    seeds: slice
    part: slice
    beside: int = 1  # cells that the program simulates side by side; it serves fewer, too
    short: bool = False  # whether the program is compiled for short runs

    def results(self, values: dict[str, np.ndarray]) -> list[UnitResult]:
        """The results of a unit, from values (cells, seeds, ...)."""
        if len(self.cells) == 1:
            return [UnitResult(self.cells[0].index, self.seeds, {name: value[0] for name, value in values.items()})]
        return [UnitResult(tuple(np.array([cell.index for cell in self.cells]).T), self.seeds, values)]


class Batches(units.Simulator, Generic[C]):
    """Simulates seeds in batches, by one of the two engines; subclasses state the cells' tasks."""

    scenario: Scenario | Network | OnlineClusters | OnlineRows | OnlineTasks
    slow: tuple[str, ...] = ("decay",)  # rates of the Gram engine that float32 may not resolve

    @abstractmethod
    def task(self, cell: C, others: Sequence[C] = ()) -> Task:
        """Describe a cell to the engine, and other cells of the same program."""

    @abstractmethod
    def program(self, cell: C) -> Hashable:
        """Return what cells of one program have in common; None for a cell that is simulated alone."""

    def students(self, cell: C) -> int:
        """The number of students that are simulated of a cell."""
        return int(cell.K)

    def teachers(self, cell: C) -> int:
        """The number of teacher units of a cell."""
        return 1

    def engine(self, cell: C) -> ModuleType:
        """The engine that simulates a cell."""
        return vectors if self.scenario.engine == "vectors" else gram

    def attrs(self) -> dict[str, str]:
        """The engines that simulate."""
        engines = (self.engine(cell).NAME for cell in self._sizes())
        return {"source": "; ".join(dict.fromkeys(engines))}

    def libraries(self) -> float:
        """Bytes of the compiler and its programs."""
        return units.XLA

    def memory(self) -> float:
        """Bytes that the largest unit of work holds."""
        return max(map(self._bytes, self.units(list(self.scenario.cells()), range(min(self.scenario.seeds, SEEDS)))))

    def _bytes(self, unit: Unit[C]) -> float:
        """Bytes of a unit: its weight vectors, and the products of its students and teachers at recorded times.

        XLA holds two copies of those that are simulated, of which one is concatenated; then variables are computed of
        the seeds that are asked for.
        """
        cell = unit.cells[0]
        K, M = self.students(cell), self.teachers(cell)
        simulated, asked = unit.part.stop - unit.part.start, unit.seeds.stop - unit.seeds.start
        recorded, described = K * (K + M), self.described(cell)
        numbers = max(3 * simulated * recorded, simulated * recorded + asked * described)
        weights = self.needed(cell) if self.engine(cell) is vectors else 0
        return weights + 8.0 * len(unit.cells) * len(self.scenario.t) * numbers

    def described(self, cell: C) -> int:
        """Numbers that are held per seed and recorded time while variables are computed from the record."""
        K = self.students(cell)
        return 3 * K * (K + self.teachers(cell)) + 3

    def _sizes(self) -> Iterator[Any]:
        """A cell of each size, inputs and rates: fewer than all, with the first values of the other axes."""
        return self.scenario.representatives("K", "M", "N", "inputs", "drift", "decay")

    def needed(self, cell: C) -> int:
        """Bytes of a unit of weight vectors."""
        drifting, sizes = getattr(cell, "drift", 0.0) > 0, (self.students(cell), self.teachers(cell))
        return vectors.memory(*sizes, cell.N, self.scenario.dtype, drifting, cell.inputs.exact)

    def check(self) -> None:
        """Refuse weight vectors that this machine cannot hold, and rates that float32 does not resolve."""
        for cell in self._sizes():
            for name in self._unresolved(cell):
                small = f"{name} = {getattr(cell, name):g}, divided by N = {cell.N:g}"
                raise ScenarioError([(("dtype",), f"float32 does not resolve {small}; use float64")])
            if self.engine(cell) is vectors:
                run = f"a run with the weight vectors of N = {cell.N:g}, K = {cell.K}"
                units.check_memory("N", run, self.needed(cell), "`engine: gram` avoids this for Gaussian inputs")

    def _unresolved(self, cell: C) -> list[str]:
        """The rates of a cell that float32 does not resolve: the direct engine's teacher turns in all coordinates."""
        if self.scenario.dtype != "float32":
            return []
        names = ("decay",) if self.engine(cell) is vectors else self.slow
        return [name for name in names if 0 < getattr(cell, name) < SLOWEST * cell.N]

    def ready(self, cells: Sequence[Any]) -> Sequence[Any]:
        """The cells with their best controls, where keys are wanted at their optimum."""
        if "control" not in self.scenario.theory_only:
            return cells
        from theory.control.best_controls import with_best  # here: few runs search an optimum

        return [cell for cell, _ in with_best(cells, self.scenario.t[-1])]

    def units(self, cells: Sequence[Any], seeds: range) -> Iterator[Unit[C]]:
        """The cells, alone or many together, their seeds in batches, or in parts of batches."""
        for some, width, beside, short in self._together(cells):
            size = self.engine(some[0]).batch(self.students(some[0]))
            for first in range(seeds.start, seeds.stop, width):
                part = slice(first % size, first % size + width)
                yield Unit(some, first // size, slice(first, min(first + width, seeds.stop)), part, beside, short)

    def _together(self, cells: Sequence[Any]) -> Iterator[tuple[tuple[C, ...], int, int, bool]]:
        """The cells of each unit, its seeds, the cells that its program simulates side by side, whether it is short."""
        groups: dict[Hashable, list[C]] = {}
        for cell in cells:
            program = self.program(cell) if self._divisible(cell) else None
            groups.setdefault(program or cell.index, []).append(cell)
        for group in groups.values():
            each = -(-len(group) // (self.scenario.workers or cores()))
            width, short = self._narrowest(gram.batch(self.students(group[0]))), self._is_short(group)
            lanes = len(group) * width
            many = width < gram.FULL and lanes >= 2 * gram.WIDE
            wide = gram.ANY_WIDTH and many and self.has_bits_of_wide(group[0])
            beside = (gram.WIDE if wide else gram.FULL) // width
            if lanes < 2 * gram.FULL or beside == 1:  # so few keep more cores busy alone
                yield from (((cell,), self.width(cell), 1, short) for cell in group)
            else:
                calls = -(-each // beside)
                size = -(-calls // -(-calls // CALLS)) * beside
                yield from ((tuple(group[i : i + size]), width, beside, short) for i in range(0, len(group), size))

    def _divisible(self, cell: C) -> bool:
        """Whether a part of a batch has the bits of the whole."""
        return self.engine(cell) is gram and gram.divisible(self.students(cell), self.teachers(cell))

    def _is_short(self, group: Sequence[C]) -> bool:
        """Whether the steps of all cells of a program take less time than compiling it for speed."""
        cell = group[0]
        batches = len(group) * -(-self.scenario.seeds // gram.batch(self.students(cell)))
        return self._divisible(cell) and batches * self.scenario.t[-1] * cell.N <= gram.SHORT

    def has_bits_of_wide(self, cell: C) -> bool:
        """Whether a program of `gram.WIDE` lanes has the bits of fewer."""
        return False

    def _narrowest(self, width: int, at_least: int = 1) -> int:
        """The smallest part of a batch that holds all seeds."""
        while width // 2 >= max(self.scenario.seeds, at_least):
            width //= 2
        return width

    def width(self, cell: C) -> int:
        """Seeds that are simulated together: a whole batch, unless there are fewer seeds, or fewer units than cores."""
        width: int = self.engine(cell).batch(self.students(cell))
        if not (gram.ANY_WIDTH and self._divisible(cell)):
            return width
        width = self._narrowest(width, NARROWEST)
        everywhere, workers = math.prod(self.scenario.shape.values()), self.scenario.workers or cores()
        while width // 2 >= SHORTEST and everywhere * -(-self.scenario.seeds // width) < workers:
            width //= 2
        return width

    def record(self, unit: Unit[C]) -> Record:
        """Return the engine's record of a unit, parts (cells, seeds, ...), as float64."""
        check_fork()
        cell, asked = unit.cells[0], unit.seeds.stop - unit.seeds.start
        keys, engine, task = unit_keys(self.scenario, unit), self.engine(cell), self.task(cell, unit.cells[1:])
        with next_device(gpu=engine is vectors):
            recorded = steps(self.scenario.t, cell.N)
            if engine is gram:
                made = gram.run_tasks(task, keys, recorded, unit.part, unit.beside, unit.short)
            else:
                alone = engine.run(task, keys[0], recorded, unit.part)
                made = Record(*(part if part is None else part[None] for part in alone))
            return Record(*(part if part is None else np.asarray(part, float)[:, :asked] for part in made))


def unit_keys(scenario: AbstractScenario, unit: Unit[C]) -> np.ndarray:
    """The key of each cell's batch: of the experiment's key, the cell's own parameters and the batch's number, not of
    any position."""
    keys = np.tile(key_of(scenario.key), (len(unit.cells), 1))
    for word in np.array([cell.words() for cell in unit.cells], np.uint32).T:
        keys = folded(keys, word)
    return folded(keys, unit.batch)


def own_to_statmech(kind: object) -> bool:
    """Whether statmech defines a rule or activation: another's formulas need not take an array for a number."""
    return type(kind).__module__.startswith("statmech.")
