"""Minimum and maximum of an array, in an order that XLA's CPU compiler vectorises: slices are compared first.

XLA's reductions process elements one by one: at 192 examples a MinOver update took 2.5 times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import jax
import jax.numpy as jnp

SLICES = 8  # array sizes must be multiples


def least(values: jax.Array) -> jax.Array:
    """Return the minimum of an array (n,).

    >>> float(least(jnp.arange(24.0)))
    0.0
    """
    return jnp.min(_folded(jnp.minimum, values))


def greatest(values: jax.Array) -> jax.Array:
    """Return the maximum of an array (n,)."""
    return jnp.max(_folded(jnp.maximum, values))


def first_least(values: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the minimum and its first index."""
    lowest = least(values)
    last = values.size - 1
    return lowest, least(jnp.where(values == lowest, jnp.arange(values.size), last))


def _folded(extreme: Callable[[jax.Array, jax.Array], jax.Array], values: jax.Array) -> jax.Array:
    return reduce(extreme, [*values.reshape(SLICES, -1)])
