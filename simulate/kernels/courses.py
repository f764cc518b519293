"""The rates of each step of a block: learning rate, drift, decay and probabilities of the tasks."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from statmech.numerics.gaussian import Array
from statmech.schedules import TimeDependence


class StepRates(NamedTuple):
    """The rates of a block's M steps, arrays (..., M) or (..., M, width).

    `width` is the number of batch elements. Without a step, drift and decay are 0.
    """

    eta: Array  # learning rate
    drift: Array  # delta/N, 1 minus the cosine of the teacher's rotation angle per step
    decay: Array  # decay/N, the fraction of the weights lost in a step
    decayed_fraction_before_step: Array  # fraction of the weights lost in earlier steps of the block
    task_probabilities: Array | None = None  # probabilities of several tasks (..., M, tasks)
    noise: Array | None = None  # flip rate or standard deviation of the noise, if it changes with time
    dropout: Array | None = None  # probability that a unit is silent, if it changes with time

    @property
    def decayed_fraction_in_block(self) -> Array:
        """The fraction of the weights lost in all M steps of the block."""
        return self.decayed_fraction_before_step[-1] + (1 - self.decayed_fraction_before_step[-1]) * self.decay[-1]


def compute_step_rates(
    changes: TimeDependence, eta: Array, N: Array, first: Array, active: Array, dtype: str
) -> StepRates:
    """Compute the rates of consecutive steps that start at step `first`.

    Parameters
    ----------
    changes, eta
        Changes with time, and the learning rate at t = 0: numbers, or arrays (width,).
    N
        Input dimension.
    first
        Number of the first step.
    active
        True where there is a step (..., M).
    dtype
        Precision of the result.
    """
    t, axis = (first + jnp.arange(active.size).reshape(active.shape)) / N, active.ndim - 1
    probabilities = changes.tasks and changes.tasks.at(t)
    noise, dropout = (change and change.value_at(t).astype(dtype) for change in (changes.noise, changes.dropout))
    t, active = (part.reshape(*part.shape, *[1] * jnp.ndim(changes.drift)) for part in (t, active))
    drift, decay = (jnp.where(active, rate / N, 0.0) for rate in (changes.drift, changes.decay))
    fading = jnp.cumsum(jnp.log1p(-decay), axis=axis)  # -inf after a step that loses all weights
    before = -jnp.expm1(jax.lax.slice_in_dim(fading, 0, -1, axis=axis))
    before = jnp.concatenate([jnp.zeros_like(jax.lax.slice_in_dim(decay, 0, 1, axis=axis)), before], axis=axis)
    rate, drift, decay, before = (part.astype(dtype) for part in (changes.schedule.rate(eta, t), drift, decay, before))
    return StepRates(rate, drift, decay, before, probabilities, noise, dropout)
