"""Least and greatest of an array, in an order that XLA's CPU compiler vectorises: slices against each other first.

Its own reductions take one element after the other: at 192 examples a MinOver update took 2.5 times as long with them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import jax
import jax.numpy as jnp

SLICES = 8  # the size of an array is a multiple of it


def least(values: jax.Array) -> jax.Array:
    """The least value of an array (n,).

    >>> float(least(jnp.arange(24.0)))
    0.0
    """
    return jnp.min(_folded(jnp.minimum, values))


def greatest(values: jax.Array) -> jax.Array:
    """The greatest value of an array (n,)."""
    return jnp.max(_folded(jnp.maximum, values))


def first_least(values: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The least value and its first index."""
    lowest = least(values)
    last = values.size - 1
    return lowest, least(jnp.where(values == lowest, jnp.arange(values.size), last))


def _folded(smaller: Callable[[jax.Array, jax.Array], jax.Array], values: jax.Array) -> jax.Array:
    return reduce(smaller, [*values.reshape(SLICES, -1)])
