"""Size of a sweep: estimates of its cells, bytes and seconds before it runs, and its division into chunks.

A chunk is simulated, written and read in one piece. It is a box of the grid (the sweep's axes, then seeds), and one
zarr chunk of every variable of a store, so that writers of different chunks never touch the same file. A chunk takes a
few seconds of work: losing one costs little, and writing it takes little time compared with its simulation.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from statmech.errors import ScenarioError
from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import MAX_CELLS_PER_STORE, MAX_CELLS_PER_STORE_CHUNK
from statmech.runtime.operating_system import get_total_memory

REFERENCE_MACHINE_CORES = 2  # cores of the machine that measured all times (benchmarks/README.md)
# seconds of CPU time on an Intel Xeon, 22 November 2026: five runs of `statmech run ensemble rule=perceptron K=3 t=5
# seeds=8` minus its two programs (2.6 to 2.7 s in total), and first calls of the Gram engine (`peers.py programs`)
PROGRAM_START_SECONDS, COMPILE_SECONDS, PROGRAM_LOAD_SECONDS = 2.5, 1.9, 0.08
MEMORY_BYTES_PER_CELL = 800  # memory per parameter combination, including its runs
MAX_CELLS_PER_COST_ESTIMATE = 1000  # larger sweeps are thinned before the estimate


class SweepCost(NamedTuple):
    """The estimated cost of a sweep: grid points, independent runs, bytes of the dataset, and seconds.

    `programs` is the number of programs to be compiled or loaded from the cache.
    """

    cells: int
    runs: int
    dataset_bytes: int
    seconds: float
    programs: int


def estimate_cost(scenario: AbstractScenario) -> SweepCost:
    """Estimate the cost of simulating a scenario.

    >>> from statmech import Scenario
    >>> estimate_cost(Scenario(rule=["hebb", "adatron"], K=2, N=1000, t=[1.0], seeds=10)).runs
    20
    """
    cells = math.prod(scenario.shape.values())
    sizes = {name: len(values) for name, values in scenario.recorded_coordinates.items()}
    values = sum(math.prod(sizes[dim] for dim in variable.dims) for variable in scenario.variables.values())
    runs = cells * scenario.seeds
    sample = thin_scenario(scenario)
    fraction = math.prod(sample.shape.values()) / cells
    seconds = sample.estimate_seconds_per_seed() * scenario.seeds / count_scenario_cores(scenario) / fraction
    return SweepCost(cells, runs, 8 * values * runs, seconds, len(sample.list_compiled_programs()))


def check_cell_memory(scenario: AbstractScenario) -> None:
    """Raise `ScenarioError` if the parameter combinations exceed the memory of this machine."""
    number, available = math.prod(scenario.shape.values()), get_total_memory()
    if MEMORY_BYTES_PER_CELL * number > available:
        required = MEMORY_BYTES_PER_CELL * number
        sizes = f"require {required / 2**30:,.0f} GiB, and this machine has {available / 2**30:,.0f} GiB"
        raise ScenarioError([((), f"{number:,} parameter combinations {sizes}: use fewer values on the axes")])


def count_scenario_cores(scenario: AbstractScenario) -> int:
    """Return the number of cores in use by a simulation on a machine with `REFERENCE_MACHINE_CORES` cores."""
    return min(REFERENCE_MACHINE_CORES, scenario.workers or REFERENCE_MACHINE_CORES)


def thin_scenario(scenario: AbstractScenario) -> Any:
    """Thin a scenario to about `MAX_CELLS_PER_COST_ESTIMATE` cells, with every n-th value of its longest axes.

    The smallest and largest number of each axis are always kept, because costs are monotonic in each key.

    >>> from statmech import Scenario
    >>> large = Scenario(rule="hebb", t=1, eta={"linspace": [0.1, 1, 1000]}, flip={"linspace": [0, 0.5, 1000]})
    >>> some = thin_scenario(large)
    >>> some.shape
    {'eta': 32, 'flip': 33}
    """
    axes, shape = scenario.dimensions, scenario.shape
    stride = {name: 1 for name in shape}
    while math.prod(-(-n // stride[name]) for name, n in shape.items()) > MAX_CELLS_PER_COST_ESTIMATE:
        longest = max(shape, key=lambda name: shape[name] / stride[name])
        stride[longest] += 1
    thinned_values: dict[str, Any] = {}
    for axis, coordinates in axes.items():
        indices = sorted({*range(0, shape[axis], stride[axis]), *_find_extreme_indices(coordinates)})
        thinned_values |= {name: tuple(values[i] for i in indices) for name, values in coordinates.items()}
    parameters = {name: thinned_values.pop(name, value) for name, value in scenario.parameters.items()}
    return scenario.model_copy(update={**thinned_values, "parameters": parameters})


def _find_extreme_indices(coordinates: dict[str, tuple[Any, ...]]) -> Iterator[int]:
    """Yield the positions of the smallest and largest number of each key on an axis."""
    for values in coordinates.values():
        if all(isinstance(value, int | float) for value in values):
            yield from (values.index(min(values)), values.index(max(values)))


MAX_SEEDS_PER_CHUNK = 64  # a multiple of the seed batch of every kind of scenario
TARGET_CHUNK_SECONDS, TARGET_CHUNK_BYTES = 2.0, 2**26  # approximate, from the estimated cost
MAX_CHUNKS_PER_STORE = MAX_CELLS_PER_STORE // MAX_CELLS_PER_STORE_CHUNK


class Chunk(NamedTuple):
    """A box of the parameter grid: its number, and its slices along the sweep's axes and the seeds."""

    number: int
    slices: tuple[slice, ...]

    @property
    def first_index(self) -> tuple[int, ...]:
        """The index of the chunk's first parameter combination."""
        return tuple(side.start for side in self.slices[:-1])

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths along the axes, and the number of seeds."""
        return tuple(side.stop - side.start for side in self.slices)

    @property
    def runs(self) -> int:
        """The number of runs: parameter combinations times seeds."""
        return math.prod(self.shape)

    @property
    def seeds(self) -> range:
        """The seeds of the chunk's runs."""
        return range(self.slices[-1].start, self.slices[-1].stop)

    def contains(self, index: tuple[int, ...]) -> bool:
        """Return True if a parameter combination is in the chunk."""
        return all(side.start <= i < side.stop for i, side in zip(index, self.slices, strict=False))


def compute_chunk_lengths(scenario: AbstractScenario) -> tuple[int, ...]:
    """Return the lengths of a chunk along each axis of a sweep, and along the seeds.

    They depend on the scenario alone. Raises `ScenarioError` for more chunks than a store may have.
    """
    cost = estimate_cost(scenario)
    fitting = (
        int(TARGET_CHUNK_BYTES / (cost.dataset_bytes / cost.runs))
        // scenario.seeds_per_batch
        * scenario.seeds_per_batch
    )
    seeds = min(MAX_SEEDS_PER_CHUNK, scenario.seeds, max(fitting, scenario.seeds_per_batch))
    seconds, bytes_ = (
        count_scenario_cores(scenario) * cost.seconds / cost.runs * seeds,
        cost.dataset_bytes / cost.runs * seeds,
    )
    cells = max(
        1,
        min(
            int(TARGET_CHUNK_SECONDS / max(seconds, 1e-9)), int(TARGET_CHUNK_BYTES / bytes_), MAX_CELLS_PER_STORE_CHUNK
        ),
    )
    lengths = [seeds]
    for length in reversed(scenario.shape.values()):  # the last axis varies fastest
        lengths.append(min(length, cells))
        cells = max(1, cells // length)
    if (
        count := count_chunks((*scenario.shape.values(), scenario.seeds), chunk_shape := tuple(reversed(lengths)))
    ) > MAX_CHUNKS_PER_STORE:
        runs = f"{cost.runs:,} runs are stored in {count:,} chunks, and a store has at most {MAX_CHUNKS_PER_STORE:,}"
        raise ScenarioError([(("seeds",), f"{runs}: use fewer seeds, or fewer values on the axes")])
    return chunk_shape


def count_chunks(shape: Sequence[int], lengths: Sequence[int]) -> int:
    """Return the number of chunks that cover a grid."""
    return math.prod(-(-n // length) for n, length in zip(shape, lengths, strict=True))


def iterate_chunks(shape: tuple[int, ...], lengths: tuple[int, ...]) -> Iterator[Chunk]:
    """Yield all chunks of a grid, with the last axis varying fastest.

    >>> [chunk.slices for chunk in iterate_chunks((3, 2), (2, 2))]
    [(slice(0, 2, None), slice(0, 2, None)), (slice(2, 3, None), slice(0, 2, None))]
    """
    counts = [math.ceil(n / length) for n, length in zip(shape, lengths, strict=True)]
    for number, index in enumerate(itertools.product(*map(range, counts))):
        box = tuple(slice(i * c, min((i + 1) * c, n)) for i, c, n in zip(index, lengths, shape, strict=True))
        yield Chunk(number, box)
