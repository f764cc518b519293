"""Random numbers of the simulations, in float32, from a JAX key.

The generator is JAX's own threefry. `jax.random` keeps one of the two words it makes a call, so that an array's
numbers do not depend on how it lies on several devices; here a draw lies on one, and both are kept. On one core that
is 270 million normals a second instead of 180 (`python benchmarks/engines.py limit`).
"""

from __future__ import annotations

import math

import numpy as np

from statmech.gaussian import Array


def bits(key: Array, count: int) -> Array:
    """Random 32-bit words, shape (count,)."""
    import jax
    import jax.numpy as jnp
    from jax.extend.random import threefry_2x32

    return threefry_2x32(jax.random.key_data(key), jnp.arange(count, dtype=np.uint32))


def signs(key: Array, shape: tuple[int, ...]) -> Array:
    """+1 or -1, a fair coin each."""
    count = math.prod(shape)
    words = bits(key, -(-count // 32))
    coins = (words[:, None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1)
    return (2 * coins.astype(np.float32) - 1).reshape(-1)[:count].reshape(shape)


def uniforms(key: Array, shape: tuple[int, ...]) -> Array:
    """Uniform in (-1, 1): the middles of 2^24 equal steps, so that neither end nor 0 is met.

    >>> import jax
    >>> bool(abs(uniforms(jax.random.key(0), (1000,))).max() < 1)
    True
    """
    steps = (bits(key, math.prod(shape)) >> np.uint32(8)).astype(np.int32).astype(np.float32)
    return (steps * np.float32(2.0**-23) + np.float32(2.0**-24 - 1)).reshape(shape)


def normals(key: Array, shape: tuple[int, ...]) -> Array:
    """Standard normals, to 5.4 standard deviations (all but 6e-8 of them)."""
    return normals_from(uniforms(key, shape))


def normals_from(uniform: Array) -> Array:
    """The normals of `uniforms`, by the inverse of the distribution function."""
    import jax

    return np.float32(2.0**0.5) * jax.lax.erf_inv(uniform)
