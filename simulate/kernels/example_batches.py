"""Batches of stored examples for the steps of a descent."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, repeat

import numpy as np

from statmech.scenarios.descent import DescentCell

ALL_EXAMPLES = slice(None)


def iterate_batches(cell: DescentCell, rng: np.random.Generator) -> Iterator[np.ndarray | slice]:
    """Yield the row indices of each step's examples, endlessly.

    With replacement, each batch is a random subset, a fraction b of the examples. Shuffled, the examples are divided
    into 1/b batches once an epoch, each of nearly the same size.

    >>> from statmech import Descent
    >>> cell = next(Descent(loss="square", descent="gradient", N=2, alpha=3, batch=0.5).cells())
    >>> steps = iterate_batches(cell, np.random.default_rng(0))
    >>> sorted(np.concatenate([next(steps), next(steps)]).tolist())
    [0, 1, 2, 3, 4, 5]
    """
    if cell.batch == 1:
        return repeat(ALL_EXAMPLES)
    return (
        _iterate_random_batches(cell, rng) if cell.sampling == "replacement" else _iterate_shuffled_batches(cell, rng)
    )


def _iterate_random_batches(cell: DescentCell, rng: np.random.Generator) -> Iterator[np.ndarray]:
    size = max(1, round(cell.batch * cell.P))
    while True:
        yield rng.choice(cell.P, size, replace=False, shuffle=False)


def _iterate_shuffled_batches(cell: DescentCell, rng: np.random.Generator) -> Iterator[np.ndarray]:
    edges = [cell.P * batch // cell.batches_per_epoch for batch in range(cell.batches_per_epoch + 1)]
    while True:
        order = rng.permutation(cell.P)
        yield from (order[first:last] for first, last in pairwise(edges))
