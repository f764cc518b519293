"""Division of a sweep into chunks, each simulated, written and read in one piece.

A chunk is a box of the grid (the sweep's axes, then seeds). It is one zarr chunk of every variable of a store, so that
writers of different chunks never touch the same file. A chunk takes a few seconds of work: losing one costs little, and
writing it takes little time compared with its simulation.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from statmech.errors import ScenarioError
from statmech.scenarios.axes import MAX_CELLS_PER_STORE, MAX_CELLS_PER_STORE_CHUNK
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.cost import count_scenario_cores, estimate_cost

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
