r"""Random numbers of the simulations, in float32, from a JAX key.

The generator is JAX's threefry. `jax.random` keeps one of the two words of each call, so that an array's numbers do not
depend on how it is distributed over devices; here a draw is on one device, and both words are kept. Normals come in
pairs, by Box and Muller: :math:`\sqrt{-2\ln u}\,(\cos\phi, \sin\phi)`. An angle :math:`\phi` within an eighth of a turn
of 0, a random sign of the cosine and a random swap of the two cover the circle, so that short Taylor series are exact
to rounding. On one core this draws two to three times as many normals per second as `jax.random.normal`
(`python benchmarks/engines.py limit`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.random.bit_generator import ISeedSequence

from statmech.numerics.gaussian import Array

EIGHTH = math.pi / 4
COSINE = [(-1) ** k * EIGHTH ** (2 * k) / math.factorial(2 * k) for k in range(5)]  # of cos(v pi/4), in v^2
SINE = [(-1) ** k * EIGHTH ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(5)]  # of sin(v pi/4) / v
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))  # of threefry's rounds, in turn


class Lanes(NamedTuple):
    """Adjacent lanes of the last axis of a draw: the first, how many, and of how many in all."""

    first: Array
    width: int
    of: int


def key_of(number: int) -> np.ndarray:
    """The words (2,) of `jax.random.key(number, impl="threefry2x32")`: on the host keys cost no compiling."""
    return np.array([number >> 32 & 0xFFFFFFFF, number & 0xFFFFFFFF], np.uint32)


def folded(key: np.ndarray, number: int | np.ndarray) -> np.ndarray:
    """The words (..., 2) of `jax.random.fold_in(key, number)`, which is also `jax.random.split(key, n)[number]`.

    Of several keys (n, 2) each is folded with a number below 2^32 of its own, or with the same.

    >>> folded(key_of(0), 1)
    array([ 928981903, 3453687069], dtype=uint32)
    """
    if key.size == 2:  # Python computes single words faster than NumPy
        number = int(np.squeeze(number))
        pair: Any = _threefry([int(part) for part in key.flat], number >> 32, number, _low_word)
        return np.array(pair, np.uint32).reshape(key.shape)
    return np.stack(_threefry(list(key.T), 0, np.asarray(number, np.uint32)), axis=-1)


def _low_word(number: int) -> int:
    return number & 0xFFFFFFFF


def _threefry(key: list[Any], x: Any, y: Any, word: Callable[[Any], Any] = lambda word: word) -> tuple[Any, Any]:
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011) of one pair of words, or of arrays of 32-bit words.

    `word` returns the low 32 bits of Python's integers, which do not overflow as arrays of words do.
    """
    keys = [*key, key[0] ^ key[1] ^ 0x1BD11BDA]
    x, y = word(x + keys[0]), word(y + keys[1])
    for group in range(5):
        for turn in ROTATIONS[group % 2]:
            x = word(x + y)
            y = word(y << turn | y >> 32 - turn) ^ x
        x = word(x + keys[(group + 1) % 3])
        y = word(y + keys[(group + 2) % 3] + group + 1)
    return x, y


def generators(keys: np.ndarray) -> Iterator[np.random.Generator]:
    """NumPy's generator `default_rng(low + 2**32 * high)` of each key (n, 2): many take a fifth of its time.

    >>> first, second = generators(np.array([[5, 0], [0, 1]], np.uint32))
    >>> first.random() == np.random.default_rng(5).random(), second.random() == np.random.default_rng(2**32).random()
    (True, True)
    """
    if len(keys) == 1:
        yield np.random.default_rng(int(keys[0, 0]) | int(keys[0, 1]) << 32)
    else:
        for state in _seeds(keys):
            yield np.random.Generator(np.random.PCG64(_Seed(state)))  # type: ignore[arg-type]


class _Seed(ISeedSequence):
    """A seed of NumPy's generators that has been computed before."""

    def __init__(self, words: np.ndarray):
        self.words = words

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray:
        return self.words


def _seeds(keys: np.ndarray) -> np.ndarray:
    """The words (n, 4) that `numpy.random.SeedSequence` makes of each key."""
    hashed = _hashing(0x43B0D7E5, 0x931E8875)
    pool = [hashed(data) for data in (*keys.T, *np.zeros((2, len(keys)), np.uint32))]
    for source, target in permutations(range(4), 2):
        mixed: np.ndarray = np.uint32(0xCA01F9DD) * pool[target] - np.uint32(0x4973F715) * hashed(pool[source])
        pool[target] = mixed ^ mixed >> np.uint32(16)
    hashed = _hashing(0x8B51F9DD, 0x58F38DED)
    return np.stack([hashed(data) for data in (*pool, *pool)], axis=-1).view(np.uint64)


def _hashing(constant: int, factor: int) -> Callable[[np.ndarray], np.ndarray]:
    """The hash of arrays of 32-bit words of O'Neill's seed_seq, another one at each call."""

    def hash_data(words: np.ndarray) -> np.ndarray:
        nonlocal constant
        words = words ^ np.uint32(constant)
        constant = constant * factor & 0xFFFFFFFF
        words = words * np.uint32(constant)
        return words ^ words >> np.uint32(16)

    return hash_data


def wrapped(words: Array) -> Array:
    """JAX's key, or array of keys, of words (..., 2)."""
    import jax

    return jax.random.wrap_key_data(words, impl="threefry2x32")


def fold_in(key: Array, number: Array | int) -> Array:
    """`jax.random.fold_in` of a key, or of each of several keys (n,), without JAX's loop over the rounds."""
    import jax
    import jax.numpy as jnp

    key_data = jnp.moveaxis(jax.random.key_data(key), -1, 0)
    low = jnp.broadcast_to(jnp.asarray(number).astype(np.uint32), key.shape)
    return wrapped(_words(key_data, jnp.zeros_like(low), low, axis=-1))


def _words(key: Array, x: Array, y: Array, axis: int = 0) -> Array:
    """Threefry's two words of each pair of counters, along a new axis, with the words of the key or of each one's."""
    import jax
    import jax.numpy as jnp

    # a barrier, or XLA computes the rounds again in each operation that uses the words
    return jax.lax.optimization_barrier(jnp.stack(_threefry([*key], x, y), axis=axis))


def bits(key: Array, count: int, lanes: Lanes | None = None) -> Array:
    """Random 32-bit words, shape (count,); those of some lanes, as they are among all.

    Several keys (n,) have their lanes side by side.
    """
    import jax
    import jax.numpy as jnp
    from jax.extend.random import threefry_2x32

    counters = jnp.arange(count // key.size, dtype=np.uint32)
    if lanes:
        counters = counters // lanes.width * lanes.of + counters % lanes.width + lanes.first.astype(np.uint32)
    key_data = jax.random.key_data(key)
    if lanes is None or not key.ndim:
        return jax.lax.platform_dependent(key_data, counters, cpu=_paired, default=threefry_2x32)
    # pairs as in `_paired`, with all lanes in the last axis, which alone is computed fast
    pairs = jnp.tile(counters.reshape(2, -1, lanes.width), key.size)
    return jnp.concatenate([part.reshape(-1) for part in _words(jnp.repeat(key_data.T, lanes.width, axis=1), *pairs)])


def _paired(key: Array, counters: Array) -> Array:
    """Return what `threefry_2x32` returns, in half of its time on a CPU, where JAX loops over the rounds."""
    import jax.numpy as jnp

    x, y = jnp.pad(counters, (0, counters.size % 2)).reshape(2, -1)
    # joined, not reshaped: XLA then rounds normals as it rounds those of JAX's words
    return jnp.concatenate([*_words(key, x, y)])[: counters.size]


def signs(key: Array, shape: tuple[int, ...]) -> Array:
    """+1 or -1 with equal probability."""
    count = math.prod(shape)
    bits_32 = bits(key, -(-count // 32))
    coins = (bits_32[:, None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1)
    return (2 * coins.astype(np.float32) - 1).reshape(-1)[:count].reshape(shape)


def normals(key: Array, shape: tuple[int, ...]) -> Array:
    """Standard normals, truncated at 5.9 standard deviations (4e-9 of a normal's probability is beyond)."""
    return normals_and_uniforms(key, shape, (0,))[0]


def normals_and_uniforms(
    key: Array, shape: tuple[int, ...], uniform: tuple[int, ...], lanes: Lanes | None = None
) -> tuple[Array, Array]:
    """Standard normals of one shape and uniforms in (0, 1) of another: one draw, as each compiles for half a second.

    Some lanes get the numbers that they have among all, if both shapes have a multiple of 2 elements in each lane.

    >>> import jax
    >>> x, u = normals_and_uniforms(jax.random.key(0), (3, 1000), (2,))
    >>> x.shape, bool(abs(x.mean()) < 0.1)
    ((3, 1000), True)
    """
    count = math.prod(shape)
    pairs = -(-count // 2)
    bits_32 = bits(key, 2 * pairs + math.prod(uniform), lanes)
    # in the shape of half the normals, if there is one: XLA is four times slower in a shape that cuts across theirs
    half = (shape[0] // 2, *shape[1:]) if shape[0] % 2 == 0 else (pairs,)
    normal_pairs = _box_muller(bits_32[:pairs].reshape(half), bits_32[pairs : 2 * pairs].reshape(half))
    return normal_pairs.reshape(-1)[:count].reshape(shape), _uniform(bits_32[2 * pairs :]).reshape(uniform)


def normals_and_uniforms_at(
    key: Array, number: Array, row: Array, rows: int, lanes: Lanes | None = None
) -> tuple[Array, Array]:
    """One normal and one uniform of each lane, of those of `normals_and_uniforms(fold_in(key, number), shape, shape)`.

    Parameters
    ----------
    key
        The key, or several (n,) with their lanes side by side.
    number, row
        What the key is folded with, and the row of `shape`: whole numbers of each lane (lanes,).
    rows
        The number of rows of `shape` (..., lanes), all axes but the last together; it is even.
    lanes
        Those of `normals_and_uniforms`.
    """
    import jax
    import jax.numpy as jnp

    first, width, total = lanes or (np.uint32(0), row.size, row.size)
    key_data = jnp.repeat(jax.random.key_data(key).reshape(-1, 2).T, row.size // key.size, axis=1)
    batch_index = jnp.arange(row.size, dtype=np.uint32) % np.uint32(width) + first.astype(np.uint32)
    folded_key = _words(key_data, jnp.zeros_like(number), number)
    half = rows // 2  # the rows of the first normals of all pairs
    pair_rows = (row % half).astype(np.uint32) + np.array([[0], [half]], np.uint32)
    x, y = (pairs * np.uint32(total) + batch_index for pairs in (pair_rows, pair_rows + np.uint32(rows)))
    (radial, angular), uniforms = _words(folded_key, x, y)
    cosine_normals, sine_normals = jnp.split(_box_muller(radial, angular), 2)
    return jnp.where(row < half, cosine_normals, sine_normals), _uniform(jnp.where(row < half, *uniforms))


def _box_muller(radial: Array, angular: Array) -> Array:
    """Two normals per pair of words: the first of all pairs, then the second."""
    import jax.numpy as jnp

    radius = jnp.sqrt(np.float32(-2) * jnp.log(_uniform(radial)))
    v = 2 * _uniform(angular) - 1
    cosine, sine = radius * _series(COSINE, v * v), radius * v * _series(SINE, v * v)
    cosine = jnp.where(angular & np.uint32(1), cosine, -cosine)  # the low bits, which _uniform does not use
    swap = (angular & np.uint32(2)) > 0
    return jnp.concatenate([jnp.where(swap, sine, cosine), jnp.where(swap, cosine, sine)])


def _uniform(words: Array) -> Array:
    """The midpoints of 2^24 equal intervals of (0, 1): neither 0 nor 1 occurs, also after rounding."""
    steps = (words >> np.uint32(8)).astype(np.int32).astype(np.float32)
    return steps * np.float32(2.0**-24) + np.float32(2.0**-25)


def _series(coefficients: list[float], x: Array) -> Array:
    total = np.float32(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * x + np.float32(coefficient)
    return total
