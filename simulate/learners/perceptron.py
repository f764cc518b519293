r"""Rosenblatt's perceptron on stored examples: in turn, what is wrong or undecided is added with strength 1.

.. math:: \mathbf w \leftarrow \mathbf w + \Theta(-\mathbf w\cdot\xi^\mu S^\mu)\,\xi^\mu S^\mu/N

from w = 0, until all are right at the end of an epoch. Updates are counted as examples visited.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from simulate.examples import Batch
from simulate.learners.cyclic import State, learn_in_turn
from simulate.learnt import Learnt, Task


def move(field: jax.Array, strength: jax.Array, own: jax.Array, parameter: jax.Array) -> jax.Array:
    """Strength 1 more if the example is not right."""
    return jnp.where(field <= 0, 1.0, 0.0)


def done(state: State, real: jax.Array) -> jax.Array:
    """Whether all examples are right."""
    return jnp.all((state.fields > 0) | ~real)


def learn(batch: Batch, task: Task) -> Learnt:
    return learn_in_turn(batch, task, 0.0, move, done, "no-errors")
