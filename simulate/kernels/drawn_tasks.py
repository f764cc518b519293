"""The task of each example, drawn by one uniform with the probabilities of the protocol."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import jax.numpy as jnp
import numpy as np

from statmech.numerics.gaussian import Array
from statmech.protocols import Pieces
from statmech.runtime.programs import filled_up


def for_engine(pieces: Pieces) -> Pieces:
    """The pieces of a protocol for an engine: with some that never begin, so that one program serves many numbers."""
    missing = filled_up(max(len(pieces.starts), 2)) - len(pieces.starts)
    starts = np.pad(pieces.starts, (0, missing), constant_values=np.inf)
    return Pieces(starts[None], np.pad(pieces.shares, ((0, missing), (0, 0)), mode="edge")[None])


def drawn_tasks(uniform: Array, shares: Array, tasks: int) -> list[Array]:
    """Whether each task is that of the example, for shares (tasks,): a uniform in its part of (0, 1)."""
    ends = jnp.cumsum(shares)
    task = reduce(add, (uniform >= end for end in ends[:-1]), jnp.zeros(jnp.shape(uniform), int))
    return [task == k for k in range(tasks)]


def chosen(values: Sequence[Array], drawn: Sequence[Array]) -> Array:
    """The values of the task that is drawn."""
    return reduce(add, (mask * value for mask, value in zip(drawn, values, strict=True)))
