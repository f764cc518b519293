"""Online learning in batches of seeds: the units, engines and keys of perceptrons and networks."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Generic, TypeVar

import jax
import numpy as np

from simulate.execution import units
from simulate.execution.devices import next_device
from simulate.kernels import gram, vectors
from simulate.kernels.field_steps import SLOWEST
from simulate.kernels.learner import Record, Task
from statmech.errors import ScenarioError
from statmech.random_numbers import folded, key_of
from statmech.runtime.forks import check_fork
from statmech.runtime.system import cores
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.network import Network, NetworkCell
from statmech.scenarios.online import OnlineCell, Scenario, steps

NARROWEST = 8  # seeds: fewer take the time of 8
SHORTEST = (
    16  # seeds into which a batch is cut to occupy all cores: two parts of 8 take 1.5 times the time of one of 16
)

C = TypeVar("C", OnlineCell, NetworkCell)


@dataclass(frozen=True)
class Unit(Generic[C]):
    """A cell, the number of a batch of its seeds, those that are wanted, and the part of the batch that is simulated.

    The whole batch is simulated, however few of its seeds are wanted, unless the engine gives a part the same bits.
    """

    cell: C
    batch: int
    seeds: slice
    part: slice


class Batches(units.Simulator, Generic[C]):
    """Simulates seeds in batches, by one of the two engines; subclasses state the cells' tasks."""

    scenario: Scenario | Network
    slow: tuple[str, ...] = ("decay",)  # rates of the Gram engine that float32 may not resolve

    @abstractmethod
    def task(self, cell: C) -> Task:
        """Describe a cell to the engine."""

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
        engines = (self.engine(cell).NAME for cell in self.scenario.cells())
        return {"source": "; ".join(dict.fromkeys(engines))}

    def memory(self) -> float:
        """Bytes that the largest unit of work holds."""
        direct = [cell for cell in self.scenario.cells() if self.engine(cell) is vectors]
        return max((float(self.needed(cell)) for cell in direct), default=0.0)

    def needed(self, cell: C) -> int:
        """Bytes of a unit of weight vectors."""
        drifting, exact = getattr(cell, "drift", 0.0) > 0, not hasattr(cell, "inputs") or cell.inputs.exact
        return vectors.memory(self.students(cell), self.teachers(cell), cell.N, self.scenario.dtype, drifting, exact)

    def check(self) -> None:
        """Refuse weight vectors that this machine cannot hold, and rates that float32 does not resolve."""
        for cell in self.scenario.cells():
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

    def units(self, cells: Sequence[Any], seeds: range) -> Iterator[Unit[C]]:
        """Every cell, its seeds in batches, or in parts of batches."""
        for cell in cells:
            size, width = self.engine(cell).batch(self.students(cell)), self.width(cell)
            for first in range(seeds.start, seeds.stop, width):
                part = slice(first % size, first % size + width)
                yield Unit(cell, first // size, slice(first, min(first + width, seeds.stop)), part)

    def width(self, cell: C) -> int:
        """Seeds that are simulated together: a whole batch, unless there are fewer seeds, or fewer units than cores."""
        width: int = self.engine(cell).batch(self.students(cell))
        if self.engine(cell) is vectors or not gram.divisible(self.students(cell), self.teachers(cell)):
            return width
        while width // 2 >= max(self.scenario.seeds, NARROWEST):
            width //= 2
        everywhere, workers = math.prod(self.scenario.shape.values()), self.scenario.workers or cores()
        while width // 2 >= SHORTEST and everywhere * -(-self.scenario.seeds // width) < workers:
            width //= 2
        return width

    def record(self, unit: Unit[C]) -> Record:
        """Return the engine's record of a unit's seeds, as float64."""
        check_fork()
        cell, asked = unit.cell, unit.seeds.stop - unit.seeds.start
        with jax.enable_x64(True), next_device():
            recorded = steps(self.scenario.t, cell.N)
            made = self.engine(cell).run(self.task(cell), unit_key(self.scenario, unit), recorded, unit.part)
            return Record(*(part if part is None else np.asarray(part, float)[:asked] for part in made))


def unit_key(scenario: AbstractScenario, unit: Unit[C]) -> np.ndarray:
    """A batch's key: of the experiment's key, the cell's own parameters and the batch's number, not of any position."""
    key = key_of(scenario.key)
    for word in (*unit.cell.words(), unit.batch):
        key = folded(key, word)
    return key
