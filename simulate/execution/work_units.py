"""Units of work: parts of a scenario's cells and seeds, simulated by threads on all cores.

A `Simulator` divides one kind of scenario into units and simulates each. The result of a unit depends only on its cells
and seeds, never on other units.
"""

from __future__ import annotations

import gc
import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from itertools import islice, product
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from statmech.errors import ScenarioError
from statmech.keys.inputs_and_examples import make_few_direction_warnings
from statmech.keys.scenario import AbstractScenario, check_is_scenario
from statmech.keys.sweep_grid import Cell
from statmech.runtime.jax_and_blas_settings import use_one_blas_thread
from statmech.runtime.operating_system import count_cores, get_peak_memory, get_total_memory
from statmech.stores.sweep_chunks import MAX_SEEDS_PER_CHUNK, compute_chunk_lengths
from statmech.stores.sweep_cost import MEMORY_BYTES_PER_CELL, check_cell_memory, estimate_cost, thin_scenario

MAX_PENDING_UNITS_PER_WORKER = 2  # limits the memory of results that wait
# bytes, measured by `benchmarks/peers.py memory`: libraries for stores and figures, and compilers with programs
STORE_LIBRARY_BYTES, PICTURE_LIBRARY_BYTES, XLA_BYTES, JAX_BYTES, NUMBA_BYTES = (
    int(GiB * 2**30) for GiB in (0.08, 0.07, 0.12, 0.06, 0.1)
)
XLA_PROGRAM_BYTES = int(0.008 * 2**30)  # typical size in memory
DRAWING_MEMORY_FACTOR = 5.5  # peak memory of comparing and drawing, relative to the size of the results
C = TypeVar("C", bound=Cell)


@contextmanager
def open_thread_pool(workers: int | None = None) -> Iterator[ThreadPoolExecutor]:
    """Open a pool with a thread per core for units of work. An interrupt cancels tasks that have not started.

    Threads suffice because JAX computes without the interpreter's lock.
    """
    pool = ThreadPoolExecutor(max_workers=workers or count_cores())
    try:
        # every core has a thread: additional BLAS threads would wait for each other (K = 100: 5 times slower)
        with use_one_blas_thread():
            yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def get_memory_per_core() -> float:
    """Return the machine's memory per core, in bytes."""
    return get_total_memory() / count_cores()


class UnitResult(NamedTuple):
    """Results of some seeds of one cell: its index in the grid, the seeds, and values (seeds, ...).

    For several cells the index contains arrays (cells,), and the values have the shape (cells, seeds, ...).
    """

    cell_index: tuple[int, ...] | tuple[np.ndarray, ...]
    seeds: slice
    values: dict[str, np.ndarray]


class Simulator(ABC):
    """Base class of simulators, one for each kind of scenario. Subclasses define `source`, `units` and `run`."""

    source: str  # method of simulation, stored with the results
    scenario: AbstractScenario

    def __init__(self, scenario: AbstractScenario):
        self.scenario = scenario

    @abstractmethod
    def units(self, cells: Sequence[Any], seeds: range) -> Iterable[Any]:
        """Divide these cells and seeds into units. The first seed is a multiple of the kind's `together`."""

    @abstractmethod
    def run(self, unit: Any) -> list[UnitResult]:
        """Simulate one unit and return its results."""

    def insert_best_controls(self, cells: Sequence[Any]) -> Sequence[Any]:
        """Return the cells with all computed inputs of their units, which may take long."""
        return cells

    def prepare_units(self, cells: Sequence[Any], seeds: range) -> Iterable[Any]:
        """Prepare the cells and return units that can be run. Estimates call only `units`."""
        return self.units(self.insert_best_controls(cells), seeds)

    def check_resources(self) -> None:
        """Raise `ScenarioError` if this machine cannot simulate the scenario, before anything runs."""
        return

    def estimate_max_unit_bytes(self) -> float:
        """Return the memory of the largest unit, in bytes."""
        return 0.0

    def count_library_bytes(self) -> float:
        """Return the memory, in bytes, of compilers, programs and libraries that the first unit loads."""
        return 0.0

    def make_extra_attributes(self) -> dict[str, Any]:
        """Return attributes to add to the dataset."""
        return {}

    def get_remarks_before_run(self) -> list[str]:
        """Return sentences that a user should read before the simulation starts."""
        return []

    def open_context(self) -> AbstractContextManager[Any]:
        """Return a context that surrounds the run of all units."""
        return nullcontext()


class SeedUnit(NamedTuple):
    """A unit of work: all cells of one dimension N with one seed."""

    cells: tuple[Any, ...]
    seed: int


class PerSeedSimulator(Simulator):
    """Simulator with one unit per N and seed, for cells of equal N that share a seed's random numbers."""

    def units(self, cells: Sequence[Any], seeds: range) -> Iterator[SeedUnit]:
        """Yield a unit of work per dimension and seed with all cells, the largest dimensions first."""
        groups: dict[int, list[Any]] = {}
        for cell in cells:
            groups.setdefault(cell.N, []).append(cell)
        for N in sorted(groups, reverse=True):
            for seed in seeds:
                yield SeedUnit(tuple(groups[N]), seed)


class PerRunSimulator(Simulator, Generic[C]):
    """Simulator with one unit per cell and seed, for scenarios that gain nothing from larger units."""

    source = "one run after the other"

    def simulate(self, cell: C, seed: int) -> dict[str, Any]:
        """Simulate one run by the scenario's own `simulate` method, and return its variables."""
        assert self.scenario.simulate is not None  # other scenarios have a simulator of their own
        return self.scenario.simulate(cell, seed)

    def units(self, cells: Sequence[Any], seeds: range) -> Iterator[tuple[Any, int]]:
        """Yield each combination of a cell and a seed."""
        yield from product(cells, seeds)

    def run(self, unit: tuple[Any, int]) -> list[UnitResult]:
        """Simulate one run, and return its variables with an axis of seeds."""
        cell, seed = unit
        values = {name: np.asarray(value)[None] for name, value in self.simulate(cell, seed).items()}
        return [UnitResult(cell.index, slice(seed, seed + 1), values)]


def make_simulator(scenario: AbstractScenario) -> Simulator:
    """Return a simulator that uses the scenario's `simulate` method or the module of the same name in `simulate`."""
    check_is_scenario(scenario)
    if scenario.simulate is not None:
        return PerRunSimulator(scenario)
    return import_module(f"simulate.{scenario.get_module_name()}").Simulator(scenario)


def check_can_simulate(simulator: Simulator) -> None:
    """Raise `ScenarioError` if this machine cannot simulate the units of work, before anything runs."""
    if problems := list(simulator.scenario.find_input_file_problems()):
        raise ScenarioError(problems)
    check_cell_memory(simulator.scenario)
    simulator.check_resources()


def check_run_memory(key: str, run_description: str, needed_bytes: float, advice: str = "") -> None:
    """Raise `ScenarioError` for the field `key` if a run needs more memory than there is per core."""
    if needed_bytes > (available := get_memory_per_core()):
        sizes = f"takes {needed_bytes / 2**30:.3g} GiB, and {available / 2**30:.3g} GiB are available per core"
        raise ScenarioError([((key,), f"{run_description} {sizes}{'. ' + advice if advice else ''}")])


def count_affordable_units(simulator: Simulator, workers: int | None, memory: float | None) -> int | None:
    """Return the number of units of work that may run at once within a memory limit in bytes.

    Raises `ScenarioError` if the memory does not suffice for one unit.
    """
    if memory is None:
        return workers
    unit = _make_small_simulator(simulator).estimate_max_unit_bytes()
    left = memory - _estimate_shared_bytes(simulator, workers)
    if left < unit:
        needs = f"libraries and results take {(memory - left) / 2**30:.2g} GiB, one unit of work {unit / 2**30:.2g} GiB"
        raise ScenarioError([(("memory",), f"{memory / 2**30:.3g} GiB is too little: {needs}")])
    return max(1, min(workers or count_cores(), int(left / max(unit, 1.0))))


def estimate_peak_memory(simulator: Simulator, memory: float | None = None, with_figures: bool = False) -> float:
    """Estimate this process's peak memory, in bytes, while it simulates units of work within a memory limit.

    With `with_figures`, results are then compared and drawn, which may need more memory than the simulation.
    """
    scenario, small_simulator = simulator.scenario, _make_small_simulator(simulator)
    workers = count_affordable_units(simulator, scenario.workers, memory) or count_cores()
    cells = list(small_simulator.scenario.cells())
    seeds = range(min(scenario.seeds, MAX_SEEDS_PER_CHUNK * -(-workers // len(cells))))
    at_once = len(list(islice(small_simulator.units(cells, seeds), workers)))
    is_drawn = with_figures and can_draw_within_memory(scenario, memory)
    drawing_bytes = (
        _get_library_bytes(simulator)
        + PICTURE_LIBRARY_BYTES
        + DRAWING_MEMORY_FACTOR * estimate_cost(scenario).dataset_bytes
        if is_drawn
        else 0.0
    )
    return max(
        _estimate_shared_bytes(simulator, workers) + at_once * small_simulator.estimate_max_unit_bytes(), drawing_bytes
    )


def can_draw_within_memory(scenario: AbstractScenario, memory: float | None) -> bool:
    """Return True if `memory`, by default half of this machine's, holds the results of a scenario twice."""
    return 2 * estimate_cost(scenario).dataset_bytes <= (memory or get_total_memory() / 2)


def _make_small_simulator(simulator: Simulator) -> Simulator:
    """Return a simulator of some cells of a large grid that includes the largest units."""
    return type(simulator)(thin_scenario(simulator.scenario))


def _get_library_bytes(simulator: Simulator) -> float:
    """Estimate the memory, in bytes, of libraries that this process has loaded or will load."""
    return get_peak_memory() + STORE_LIBRARY_BYTES + simulator.count_library_bytes()


def _estimate_shared_bytes(simulator: Simulator, workers: int | None) -> float:
    """Estimate the memory, in bytes, that does not depend on the number of simultaneous units of work."""
    scenario, small_simulator = simulator.scenario, _make_small_simulator(simulator)
    cost, lengths = estimate_cost(scenario), compute_chunk_lengths(scenario)
    chunk = cost.dataset_bytes / cost.runs * math.prod(lengths)
    cells = list(islice(small_simulator.scenario.cells(), math.prod(lengths[:-1])))
    units = sum(1 for _ in small_simulator.units(cells, range(lengths[-1])))
    begun = min(
        math.ceil(cost.runs / math.prod(lengths)),
        1 + math.ceil(MAX_PENDING_UNITS_PER_WORKER * (workers or count_cores()) / units),
    )
    # each started chunk holds its variables and results that wait for other units, and one chunk is being written
    return _get_library_bytes(simulator) + MEMORY_BYTES_PER_CELL * cost.cells + chunk * (2 * begun + 1)


def make_dataset_attributes(simulator: Simulator) -> dict[str, Any]:
    """Return the attributes that a simulator gives to its dataset, with digests of its data and code."""
    data, code = simulator.scenario.data_digests(), simulator.scenario.user_code_digests()
    return {
        "source": simulator.source,
        **({"data": data} if data else {}),
        "code": code,
        **simulator.make_extra_attributes(),
    }


def run_units(
    simulator: Simulator,
    units: Iterable[Any],
    workers: int | None = None,
    before_unit: Callable[[], None] | None = None,
) -> Iterator[tuple[Any, list[UnitResult] | Exception]]:
    """Run units on threads, and yield each in order with its results or its exception.

    Only a few units are started ahead, to save memory.
    """

    def run(unit: Any) -> list[UnitResult]:
        if before_unit is not None:
            before_unit()
        return simulator.run(unit)

    workers = workers or simulator.scenario.workers or count_cores()
    with simulator.open_context(), open_thread_pool(workers) as pool:
        started: deque[tuple[Any, Any]] = deque()
        for unit in units:
            started.append((unit, pool.submit(run, unit)))
            if len(started) > MAX_PENDING_UNITS_PER_WORKER * workers:
                yield _collect_unit_result(*started.popleft())
        while started:
            yield _collect_unit_result(*started.popleft())


def _collect_unit_result(unit: Any, future: Any) -> tuple[Any, list[UnitResult] | Exception]:
    """Return a unit of work with its results or the exception that it raised."""
    problem = future.exception()
    if problem is None:
        return unit, future.result()
    if not isinstance(problem, Exception):  # for example, an interrupt
        raise problem
    return unit, problem


class ConvexFitSimulator(PerRunSimulator[C]):
    """Base class of simulators whose runs hold all examples in memory."""

    @abstractmethod
    def count_run_bytes(self, cell: C) -> float:
        """Return the bytes of a run."""

    def get_memory_key(self, cell: C) -> str:
        """Return the key to reduce if a run does not fit into memory."""
        return "alpha"

    def describe_run(self, cell: Any) -> str:
        """Describe the size of a run for messages."""
        return f"a run with {cell.P:,} examples in {cell.N:,} dimensions"

    def check_resources(self) -> None:
        """Raise `ScenarioError` if the examples do not fit into memory."""
        for cell in self.scenario.cells():
            check_run_memory(self.get_memory_key(cell), self.describe_run(cell), self.count_run_bytes(cell))

    def estimate_max_unit_bytes(self) -> float:
        """Return the bytes of the largest run."""
        return max(map(self.count_run_bytes, self.scenario.cells()))


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Open a context without garbage collection, which takes 0.1 s each time while a simulator lists its cells."""
    active = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if active:
            gc.enable()


def _announce_optimum_searches(scenario: Any) -> Iterator[str]:
    """Yield a notice that controls are optimised before a simulation, if a scenario has such controls."""
    if not getattr(scenario, "optimal_keys", None):
        return
    number = sum(bool(cell.optimal_keys) for cell in scenario.cells())
    subject = "1 parameter combination has a key" if number == 1 else f"{number} parameter combinations have keys"
    yield f"{subject} at the optimum: each is searched before it is simulated, in seconds or minutes"


def remarks(scenario: AbstractScenario) -> list[str]:
    """Return the sentences of a simulator that a user should read before its units of work run."""
    return [
        *make_simulator(thin_scenario(scenario)).get_remarks_before_run(),
        *make_few_direction_warnings(scenario),
        *_announce_optimum_searches(scenario),
    ]
