r"""Rosenblatt's perceptron on stored examples: each wrong or undecided example in turn gains strength 1.

.. math:: \mathbf w \leftarrow \mathbf w + \Theta(-\mathbf w\cdot\xi^\mu S^\mu)\,\xi^\mu S^\mu/N

from w = 0, until all examples are right at the end of an epoch. Updates are counted as examples visited.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from simulate.learners.cyclic_learning import CyclicStudent, learn_cyclically
from simulate.learners.learner_interface import DataSetBatch, LearnerTask, LearntStudents
from simulate.learners.perceptron_convergence import is_mistake


def compute_perceptron_step(
    field: jax.Array, strength: jax.Array, squared_norm: jax.Array, parameter: jax.Array
) -> jax.Array:
    """Return the increase of a strength: 0 if the example is classified correctly, else 1."""
    return jnp.where(is_mistake(field), 1.0, 0.0)


def has_no_mistakes(state: CyclicStudent, is_example: jax.Array) -> jax.Array:
    """Return True if all examples are classified correctly."""
    return jnp.all((state.fields > 0) | ~is_example)


def learn(batch: DataSetBatch, task: LearnerTask) -> LearntStudents:
    """Train a perceptron on all data sets of a batch."""
    return learn_cyclically(batch, task, 0.0, compute_perceptron_step, has_no_mistakes, "no-errors")
