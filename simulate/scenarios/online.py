"""Simulates online learning: every cell, seeds in batches, batches on all cores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType

import jax
import numpy as np

from simulate.execution import units
from simulate.execution.devices import next_device
from simulate.execution.threads import cores
from simulate.execution.units import UnitResult
from simulate.kernels import gram, perceptrons, vectors
from simulate.kernels.field_steps import SLOWEST
from statmech.errors import DivergedError, ScenarioError
from statmech.few_students import FEW, vote_of_few
from statmech.forks import check_fork
from statmech.majority_vote import (
    TEST_CIRCLES,
    circles,
    circles_beside_equal_students,
    vote_beside_equal_students,
)
from statmech.random_numbers import folded, key_of
from statmech.results.dataset import describe, gram_of
from statmech.scenarios.online import Cell, Scenario, steps

LONGEST = {"float64": 1e150, "float32": 1e15}  # and the inverse: their squares, over N or N of them, keep all digits
NARROWEST = 8  # seeds: fewer take the time of 8
SHORTEST = (
    16  # seeds into which a batch is cut to occupy all cores: two parts of 8 take 1.5 times the time of one of 16
)
VOTE_CHUNK = 2**17  # fields integrated together: enough that threads compute more than they wait for the interpreter


@dataclass(frozen=True)
class Unit:
    """A cell, the number of a batch of its seeds, those that are wanted, and the part of the batch that is simulated.

    The whole batch is simulated, however few of its seeds are wanted, unless the engine gives a part the same bits.
    """

    cell: Cell
    batch: int
    seeds: slice
    part: slice


class Simulator(units.Simulator):
    """Online learning: seeds in batches, by the engine that is asked for where that is exact."""

    source = "weight vectors or order parameters on line"
    scenario: Scenario

    def attrs(self) -> dict[str, str]:
        """The engines that simulate."""
        engines = (engine_of(self.scenario, cell).NAME for cell in self.scenario.cells())
        return {"source": "; ".join(dict.fromkeys(engines))}

    def remarks(self) -> list[str]:
        """True if the requested engine is replaced by another."""
        asked = f"simulate.kernels.{self.scenario.engine}"
        if all(engine_of(self.scenario, cell).__name__ == asked for cell in self.scenario.cells()):
            return []
        return ["inputs other than gaussian run on the direct engine (engine: vectors)"]

    def memory(self) -> float:
        """Bytes that the largest unit of work holds."""
        direct = [cell for cell in self.scenario.cells() if engine_of(self.scenario, cell) is vectors]
        return max((float(_memory(cell, self.scenario.dtype)) for cell in direct), default=0.0)

    def check(self) -> None:
        """Refuse weight vectors that this machine cannot hold, and rates that float32 does not resolve."""
        for cell in self.scenario.cells():
            for name in self._unresolved(cell):
                small = f"{name} = {getattr(cell, name):g}, divided by N = {cell.N:g}"
                raise ScenarioError([(("dtype",), f"float32 does not resolve {small}; use float64")])
            if engine_of(self.scenario, cell) is vectors:
                needed = _memory(cell, self.scenario.dtype)
                run = f"a run with the weight vectors of N = {cell.N:g}, K = {cell.K}"
                units.check_memory("N", run, needed, "`engine: gram` avoids this for Gaussian inputs")

    def _unresolved(self, cell: Cell) -> list[str]:
        """The rates of a cell that float32 does not resolve: the direct engine's teacher turns in all coordinates."""
        if self.scenario.dtype != "float32":
            return []
        names = ("decay",) if engine_of(self.scenario, cell) is vectors else ("decay", "drift")
        return [name for name in names if 0 < getattr(cell, name) < SLOWEST * cell.N]

    def units(self, cells: Sequence[Cell], seeds: range) -> Iterator[Unit]:
        """Every cell, its seeds in batches, or in parts of batches."""
        for cell in cells:
            size, width = engine_of(self.scenario, cell).batch(cell.K), self.width(cell)
            for first in range(seeds.start, seeds.stop, width):
                part = slice(first % size, first % size + width)
                yield Unit(cell, first // size, slice(first, min(first + width, seeds.stop)), part)

    def width(self, cell: Cell) -> int:
        """Seeds that are simulated together: a whole batch, unless there are fewer seeds, or fewer units than cores."""
        width = engine_of(self.scenario, cell).batch(cell.K)
        if engine_of(self.scenario, cell) is vectors or not gram.divisible(cell.K):
            return width
        while width // 2 >= max(self.scenario.seeds, NARROWEST):
            width //= 2
        everywhere, workers = math.prod(self.scenario.shape.values()), self.scenario.workers or cores()
        while width // 2 >= SHORTEST and everywhere * -(-self.scenario.seeds // width) < workers:
            width //= 2
        return width

    def run(self, unit: Unit) -> list[UnitResult]:
        """The variables of a batch of seeds."""
        return [UnitResult(unit.cell.index, unit.seeds, _values(self.scenario, unit))]


def engine_of(scenario: Scenario, cell: Cell) -> ModuleType:
    """The engine that simulates a cell: the one asked for, or the direct one where the Gram engine is not exact."""
    return vectors if scenario.engine == "vectors" or not gram.covers(cell.inputs) else gram


def _memory(cell: Cell, dtype: str) -> int:
    """Bytes of a unit of weight vectors."""
    return vectors.memory(cell.K, 1, cell.N, dtype, cell.drift > 0)


def _values(scenario: Scenario, unit: Unit) -> dict[str, np.ndarray]:
    """The variables of a unit's seeds, with a leading axis of them."""
    check_fork()
    cell, asked = unit.cell, unit.seeds.stop - unit.seeds.start
    with jax.enable_x64(True), next_device():
        recorded = steps(scenario.t, cell.N)
        task = perceptrons.task(cell, scenario.dtype)
        record = engine_of(scenario, cell).run(task, unit_key(scenario, unit), recorded, unit.part)
        along, across = (np.asarray(part, float)[:asked] for part in record[:2])
        along = along[..., 0]
    _check_lengths(scenario, cell, along, across)
    _check_precision(scenario, cell, along, across)
    values = describe(along, across)
    if record.measured is None:
        values["eps_g_majority_vote"] = _votes(scenario, unit, along, across)
    else:
        *students, vote, mean = np.moveaxis(np.asarray(record.measured, float)[:asked], -1, 0)
        values |= {"eps_g": np.stack(students, axis=-1), "eps_g_majority_vote": vote, "eps_g_weight_mean": mean}
    return values | ({"gram": gram_of(along, across)} if scenario.gram else {})


def _check_lengths(scenario: Scenario, cell: Cell, along: np.ndarray, across: np.ndarray) -> None:
    """Refuse students (seeds, T, K) too long or short for their numbers to be right; NaN is neither."""
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.hypot(along, np.sqrt(np.diagonal(across, axis1=-2, axis2=-1)))
    longest = LONGEST[scenario.dtype]
    if not np.all((1 / longest < length) & (length < longest)):
        left = f"a student's length left {1 / longest:g} to {longest:g}, where {scenario.dtype} is exact"
        raise DivergedError(f"{cell.described} has diverged: {left}")


def _check_precision(scenario: Scenario, cell: Cell, along: np.ndarray, across: np.ndarray) -> None:
    """Refuse float32 where the Gram engine's rounding is not small beside what one example of N t teaches."""
    if scenario.dtype != "float32" or engine_of(scenario, cell) is not gram or scenario.t[-1] * cell.N < 0.5:
        return
    length = np.sqrt(np.max(along**2 + np.diagonal(across, axis1=-2, axis2=-1)))
    eta = cell.rule.eta / (1 + scenario.t[-1] / cell.t0)
    if length * cell.N > gram.STEP * eta:
        small = f"the update by one example at N = {cell.N:g} for a student of length {length:.3g}"
        raise ScenarioError([(("dtype",), f"float32 does not resolve {small} ({cell.described}); use float64")])


def unit_key(scenario: Scenario, unit: Unit) -> np.ndarray:
    """A batch's key: of the experiment's key, the cell's own parameters and the batch's number, not of any position."""
    key = key_of(scenario.key)
    for word in (*unit.cell.words(), unit.batch):
        key = folded(key, word)
    return key


def _votes(scenario: Scenario, unit: Unit, along: np.ndarray, across: np.ndarray) -> np.ndarray:
    """The error of the majority vote, shape (seeds, T): exact, or measured on circles that each seed draws."""
    cell, errors = unit.cell, []
    if cell.K <= FEW:
        return vote_of_few(along, across)
    points = _circles(cell)
    together = max(1, VOTE_CHUNK // (along[0].size * points))
    for first in range(0, len(along), together):
        some = slice(first, first + together)
        seeds = range(unit.seeds.start, unit.seeds.stop)[some]
        rngs = [np.random.default_rng([scenario.key, *cell.words(), seed]) for seed in seeds]
        inputs = np.stack([circles(rng, points, cell.K) for rng in rngs], axis=1)
        errors.append(vote_beside_equal_students(along[some], across[some], inputs[:, :, None]))
    return np.concatenate(errors)


def _circles(cell: Cell) -> int:
    """Circles for each seed: few where students stay nearly equal."""
    return circles_beside_equal_students(cell.K, cell.N) if cell.alike else TEST_CIRCLES
