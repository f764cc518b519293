"""Units of work: the pieces that a scenario's cells and seeds are cut into, simulated on all cores.

A `Simulator` cuts one kind of scenario into units and simulates each. The result of a unit depends on its cells and
seeds alone, never on what else is simulated.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from itertools import islice, product
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from simulate.execution.threads import memory_per_core, threads
from statmech.errors import ScenarioError
from statmech.results.chunks import SEEDS, chunk_lengths
from statmech.runtime.system import cores, peak_memory
from statmech.runtime.system import memory as machine_memory
from statmech.scenarios.base import AbstractScenario, check_type
from statmech.scenarios.cells import Cell
from statmech.scenarios.cost import CELL_BYTES, check_cells, estimate, thinned

AHEAD = 2  # units per core that are started before the first result is taken
# bytes, measured by `benchmarks/everyday.py memory`: libraries of stores and of pictures, and compilers with programs
STORES, PICTURES, XLA, JAX, NUMBA = (int(GiB * 2**30) for GiB in (0.07, 0.07, 0.15, 0.1, 0.12))
DRAWN = 5.5  # times the bytes of results, while they are compared and drawn

C = TypeVar("C", bound=Cell)


class UnitResult(NamedTuple):
    """The values (seeds, ...) of some seeds of one cell, which its index in the grid names.

    Of several cells the index is one of arrays (cells,), and values are (cells, seeds, ...).
    """

    where: tuple[int, ...] | tuple[np.ndarray, ...]
    seeds: slice
    values: dict[str, np.ndarray]


class Simulator(ABC):
    """The simulation of one kind of scenario; subclasses state `source`, `units` and `run`, and override the rest."""

    source: str  # of the numbers, for the dataset's attributes
    scenario: AbstractScenario

    def __init__(self, scenario: AbstractScenario):
        self.scenario = scenario

    @abstractmethod
    def units(self, cells: Sequence[Any], seeds: range) -> Iterable[Any]:
        """The units that simulate these seeds of these cells; the first seed is a multiple of the kind's `together`."""

    @abstractmethod
    def run(self, unit: Any) -> list[UnitResult]:
        """The results of one unit."""

    def ready(self, cells: Sequence[Any]) -> Sequence[Any]:
        """The cells with everything that their units need, which may take long to compute."""
        return cells

    def ready_units(self, cells: Sequence[Any], seeds: range) -> Iterable[Any]:
        """The units that can be run; `units` alone divides the work, for an estimate."""
        return self.units(self.ready(cells), seeds)

    def check(self) -> None:
        """Refuse what this machine cannot simulate, before anything runs; raises `ScenarioError`."""
        return

    def memory(self) -> float:
        """Bytes that the largest unit holds."""
        return 0.0

    def libraries(self) -> float:
        """Bytes of compilers with their programs, and of libraries that the first unit imports."""
        return 0.0

    def attrs(self) -> dict[str, Any]:
        """Further attributes of the dataset."""
        return {}

    def remarks(self) -> list[str]:
        """Sentences that a user should read before the simulation starts."""
        return []

    def context(self) -> AbstractContextManager[Any]:
        """A context that holds while units run."""
        return nullcontext()


class SeedUnit(NamedTuple):
    """All cells of one dimension, and one seed."""

    cells: tuple[Any, ...]
    seed: int


class SeedBySeed(Simulator):
    """Simulates kinds whose cells of one dimension N share a seed's random numbers: one unit per dimension and seed."""

    def units(self, cells: Sequence[Any], seeds: range) -> Iterator[SeedUnit]:
        """All cells of one dimension with one seed, the largest dimensions first."""
        groups: dict[int, list[Any]] = {}
        for cell in cells:
            groups.setdefault(cell.N, []).append(cell)
        for N in sorted(groups, reverse=True):
            for seed in seeds:
                yield SeedUnit(tuple(groups[N]), seed)


class RunByRun(Simulator, Generic[C]):
    """Simulates kinds that gain nothing from running seeds or cells together: one unit per cell and seed."""

    source = "one run after the other"

    def simulate(self, cell: C, seed: int) -> dict[str, Any]:
        """The variables of one run, by the scenario's own method of this name."""
        assert self.scenario.simulate is not None  # or its file would simulate it
        return self.scenario.simulate(cell, seed)

    def units(self, cells: Sequence[Any], seeds: range) -> Iterator[tuple[Any, int]]:
        """Every cell with every seed."""
        yield from product(cells, seeds)

    def run(self, unit: tuple[Any, int]) -> list[UnitResult]:
        """The variables of one run, with an axis of seeds."""
        cell, seed = unit
        values = {name: np.asarray(value)[None] for name, value in self.simulate(cell, seed).items()}
        return [UnitResult(cell.index, slice(seed, seed + 1), values)]


def simulator_of(scenario: AbstractScenario) -> Simulator:
    """The simulator of a scenario: of its own method `simulate`, else of its file in `simulate/scenarios/`."""
    check_type(scenario)
    if scenario.simulate is not None:
        return RunByRun(scenario)
    simulator: Simulator = import_module(f"simulate.scenarios.{scenario.module()}").Simulator(scenario)
    return simulator


def check(simulator: Simulator) -> None:
    """Refuse what this machine cannot simulate, before anything runs; raises `ScenarioError`."""
    if problems := list(simulator.scenario.data_problems()):
        raise ScenarioError(problems)
    check_cells(simulator.scenario)
    simulator.check()


def check_memory(key: str, run: str, needed: float, instead: str = "") -> None:
    """Refuse a run that needs more bytes than this machine has per core; raises `ScenarioError` at `key`."""
    if needed > (held := memory_per_core()):
        sizes = f"takes {needed / 2**30:.3g} GiB, and {held / 2**30:.3g} GiB are available per core"
        raise ScenarioError([((key,), f"{run} {sizes}{'. ' + instead if instead else ''}")])


def affordable(simulator: Simulator, workers: int | None, memory: float | None) -> int | None:
    """The number of units that may run at once in so many bytes; raises `ScenarioError` if not even one may."""
    if memory is None:
        return workers
    unit, left = _simulator_of_few(simulator).memory(), memory - _common(simulator, workers)
    if left < unit:
        needs = f"libraries and results take {(memory - left) / 2**30:.2g} GiB, one unit of work {unit / 2**30:.2g} GiB"
        raise ScenarioError([(("memory",), f"{memory / 2**30:.3g} GiB are too little: {needs}")])
    return max(1, min(workers or cores(), int(left / max(unit, 1.0))))


def needed(simulator: Simulator, memory: float | None = None, drawn: bool = False) -> float:
    """Estimate the bytes that this process holds while it simulates with so much memory at most.

    If results are then compared and `drawn`, that may take more.
    """
    scenario, few = simulator.scenario, _simulator_of_few(simulator)
    workers = affordable(simulator, scenario.workers, memory) or cores()
    cells = list(few.scenario.cells())
    seeds = range(min(scenario.seeds, SEEDS * -(-workers // len(cells))))
    at_once = len(list(islice(few.units(cells, seeds), workers)))
    drawing = drawn and can_draw(scenario, memory)
    shown = _libraries(simulator) + PICTURES + DRAWN * estimate(scenario).bytes_ if drawing else 0.0
    return max(_common(simulator, workers) + at_once * few.memory(), shown)


def can_draw(scenario: AbstractScenario, memory: float | None) -> bool:
    """True if the results of a scenario fit into so much memory, by default half of this machine's, twice."""
    return 2 * estimate(scenario).bytes_ <= (memory or machine_memory() / 2)


def _simulator_of_few(simulator: Simulator) -> Simulator:
    """The simulator of some cells of a large grid, the largest units among them."""
    return type(simulator)(thinned(simulator.scenario))


def _libraries(simulator: Simulator) -> float:
    return peak_memory() + STORES + simulator.libraries()


def _common(simulator: Simulator, workers: int | None) -> float:
    """Estimate the bytes of libraries, programs, cells and chunks, whatever units run at once."""
    scenario, few = simulator.scenario, _simulator_of_few(simulator)
    cost, lengths = estimate(scenario), chunk_lengths(scenario)
    chunk = cost.bytes_ / cost.runs * math.prod(lengths)
    cells = list(islice(few.scenario.cells(), math.prod(lengths[:-1])))
    units = sum(1 for _ in few.units(cells, range(lengths[-1])))
    begun = min(math.ceil(cost.runs / math.prod(lengths)), 1 + math.ceil(AHEAD * (workers or cores()) / units))
    # each chunk that has begun has its variables and results that wait for others; one is being written
    return _libraries(simulator) + CELL_BYTES * cost.cells + chunk * (2 * begun + 1)


def attrs(simulator: Simulator) -> dict[str, Any]:
    """Attributes of a scenario's dataset: its source, the digests of its data and code, and those of its simulator."""
    data, code = simulator.scenario.data_digests(), simulator.scenario.code_digests()
    return {"source": simulator.source, **({"data": data} if data else {}), "code": code, **simulator.attrs()}


def run_units(
    simulator: Simulator,
    units: Iterable[Any],
    workers: int | None = None,
    before_unit: Callable[[], None] | None = None,
) -> Iterator[tuple[Any, list[UnitResult] | Exception]]:
    """Each unit in turn with its results, or the exception that it raised; few are started ahead, to spare memory."""

    def run(unit: Any) -> list[UnitResult]:
        if before_unit is not None:
            before_unit()
        return simulator.run(unit)

    workers = workers or simulator.scenario.workers or cores()
    with simulator.context(), threads(workers) as pool:
        started: deque[tuple[Any, Any]] = deque()
        for unit in units:
            started.append((unit, pool.submit(run, unit)))
            if len(started) > AHEAD * workers:
                yield _ended(*started.popleft())
        while started:
            yield _ended(*started.popleft())


def _ended(unit: Any, future: Any) -> tuple[Any, list[UnitResult] | Exception]:
    problem = future.exception()
    if problem is None:
        return unit, future.result()
    if not isinstance(problem, Exception):  # an interrupt ends everything
        raise problem
    return unit, problem
