r"""Batch AdaTron (Anlauf & Biehl 1989): coordinate ascent on the dual of maximum stability.

.. math:: x_\mu \leftarrow x_\mu + \max\{-x_\mu,\ \omega(1-e_\mu)/G_{\mu\mu}\}, \qquad e = Gx

in turn, from x = 0. A step sets the field of its example to 1 (for omega = 1; 0 < omega < 2), and keeps strengths
nonnegative. The fixed point has :math:`e_\mu \ge 1`, with equality where :math:`x_\mu > 0`: the perceptron of maximum
stability. The run stops when the gap (see `simulate.learners.minover`) certifies it.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from simulate.learners.cyclic_learning import CyclicStudent, learn_cyclically
from simulate.learners.learner_interface import DataSetBatch, LearnerTask, LearntStudents, bound_stability_gap


def compute_adatron_step(field: jax.Array, strength: jax.Array, squared_norm: jax.Array, omega: jax.Array) -> jax.Array:
    """Compute the change of one embedding strength."""
    return jnp.maximum(-strength, omega * (1 - field) / jnp.where(squared_norm > 0, squared_norm, 1.0))


@dataclass(frozen=True)
class GapStopCondition:
    """A stop condition that requires a stability gap within the tolerance."""

    tolerance: float

    def __call__(self, state: CyclicStudent, real: jax.Array) -> jax.Array:
        """Return True if the student's stability gap is at most the tolerance."""
        return bound_stability_gap(jnp.where(real, state.fields, jnp.inf), state.strengths) <= self.tolerance


def learn(batch: DataSetBatch, task: LearnerTask) -> LearntStudents:
    """Train AdaTron on all data sets of a batch."""
    return learn_cyclically(
        batch, task, task.learner.omega, compute_adatron_step, GapStopCondition(task.learner.tolerance), "gap"
    )
