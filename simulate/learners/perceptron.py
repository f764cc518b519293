r"""Rosenblatt's perceptron on stored examples: wrong or undecided examples are added with strength 1, in turn.

.. math:: \mathbf w \leftarrow \mathbf w + \Theta(-\mathbf w\cdot\xi^\mu S^\mu)\,\xi^\mu S^\mu/N

from w = 0, until all examples are right at the end of an epoch. Updates are counted as examples visited.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from simulate.kernels.mistakes import wrong
from simulate.learners.cyclic import CyclicStudent, learn_in_turn
from simulate.learners.examples import Batch
from simulate.learners.interface import LearnerTask, Learnt


def move(field: jax.Array, strength: jax.Array, own: jax.Array, parameter: jax.Array) -> jax.Array:
    """Return the increase of a strength: 1 if the example is not right, else 0."""
    return jnp.where(wrong(field), 1.0, 0.0)


def done(state: CyclicStudent, real: jax.Array) -> jax.Array:
    """Return True if all examples are right."""
    return jnp.all((state.fields > 0) | ~real)


def learn(batch: Batch, task: LearnerTask) -> Learnt:
    """Learn all data sets of a batch by the perceptron rule."""
    return learn_in_turn(batch, task, 0.0, move, done, "no-errors")
