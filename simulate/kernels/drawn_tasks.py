"""Random choice of each example's task, with the probabilities of a protocol."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import jax.numpy as jnp
import numpy as np

from statmech.numerics.gaussian import Array
from statmech.protocols import ProtocolPieces
from statmech.runtime.programs import pad_array_length


def pad_protocol(pieces: ProtocolPieces) -> ProtocolPieces:
    """Pad a protocol with pieces to a standard length.

    The added pieces never start. One program then serves protocols of different lengths.
    """
    missing = pad_array_length(max(len(pieces.starts), 2)) - len(pieces.starts)
    starts = np.pad(pieces.starts, (0, missing), constant_values=np.inf)
    return ProtocolPieces(starts[None], np.pad(pieces.shares, ((0, missing), (0, 0)), mode="edge")[None])


def draw_task_masks(uniform: Array, probabilities: Array, tasks: int) -> list[Array]:
    """Return a mask for each task: True where the example belongs to the task.

    The `probabilities` (tasks,) divide (0, 1) into intervals, and the uniform number selects one interval.
    """
    ends = jnp.cumsum(probabilities)
    task = reduce(add, (uniform >= end for end in ends[:-1]), jnp.zeros(jnp.shape(uniform), int))
    return [task == k for k in range(tasks)]


def select_task_values(values: Sequence[Array], masks: Sequence[Array]) -> Array:
    """Select for each example the values of its task."""
    return reduce(add, (mask * value for mask, value in zip(masks, values, strict=True)))
