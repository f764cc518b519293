"""How a sweep is cut into blocks: what is played, written and read back together.

A block is a box of the grid (the sweep's axes, then seeds). It is one chunk of every variable of a store, so that
writers of different blocks never touch the same file. Blocks are cut for a few seconds of work each: little is lost
with one, and writing them costs little beside playing them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from statmech.scenarios.cost import CORES, estimate

SEEDS = 64  # seeds of a block at most, a multiple of what any kind of scenario plays together
SECONDS, BYTES = 2.0, 2**26  # of a block, about
CELLS = 4096  # of a block, at most: so many take a second, however small they are


class Block(NamedTuple):
    """A box of the grid: its number, and its slice of each axis of the sweep and of the seeds."""

    number: int
    box: tuple[slice, ...]

    @property
    def corner(self) -> tuple[int, ...]:
        """The index of its first cell."""
        return tuple(part.start for part in self.box[:-1])

    @property
    def shape(self) -> tuple[int, ...]:
        """Its lengths along the axes, and seeds."""
        return tuple(part.stop - part.start for part in self.box)

    @property
    def runs(self) -> int:
        """How many cells and seeds it has."""
        return math.prod(self.shape)

    @property
    def seeds(self) -> range:
        """The seeds of the block."""
        return range(self.box[-1].start, self.box[-1].stop)


def chunks_of(scenario: Any) -> tuple[int, ...]:
    """The lengths of a block along each axis of a sweep, and seeds; a function of the scenario alone."""
    cost = estimate(scenario)
    fitting = int(BYTES / (cost.bytes_ / cost.runs)) // scenario.together * scenario.together
    seeds = min(SEEDS, scenario.seeds, max(fitting, scenario.together))
    seconds, bytes_ = CORES * cost.seconds / cost.runs * seeds, cost.bytes_ / cost.runs * seeds
    cells = max(1, min(int(SECONDS / max(seconds, 1e-9)), int(BYTES / bytes_), CELLS))
    found = [seeds]
    for length in reversed(scenario.shape.values()):  # the last axis first, as a grid is walked
        found.append(min(length, cells))
        cells = max(1, cells // length)
    return tuple(reversed(found))


def blocks(shape: tuple[int, ...], chunks: tuple[int, ...]) -> Iterator[Block]:
    """All blocks of a grid, the last axis fastest.

    >>> [block.box for block in blocks((3, 2), (2, 2))]
    [(slice(0, 2, None), slice(0, 2, None)), (slice(2, 3, None), slice(0, 2, None))]
    """
    counts = [math.ceil(n / chunk) for n, chunk in zip(shape, chunks, strict=True)]
    for number, at in enumerate(itertools.product(*map(range, counts))):
        box = tuple(slice(i * c, min((i + 1) * c, n)) for i, c, n in zip(at, chunks, shape, strict=True))
        yield Block(number, box)
