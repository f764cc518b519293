r"""Random numbers of the simulations, drawn in float32 from a JAX key.

The generator is JAX's threefry. `jax.random` keeps one of the two words of each call, so that an array's numbers do not
depend on its distribution over devices. Here, each draw is on one device, and both words are kept. Normals come in
pairs, by Box and Muller: :math:`\sqrt{-2\ln u}\,(\cos\phi, \sin\phi)`. An angle :math:`\phi` of at most an eighth of a
turn, a random sign of the cosine and a random swap of cosine and sine cover the circle, so that short Taylor series
have no error beyond rounding. On one core this draws two to three times as many normals per second as
`jax.random.normal` (`python benchmarks/engines.py limit`). Chi variables are exact, by rejection of proposals from
these normals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.random.bit_generator import ISeedSequence

from statmech.numerics.gaussian import Array

EIGHTH_TURN = math.pi / 4
# Taylor coefficients of cos(v pi/4) in powers of v^2
COSINE_TAYLOR_COEFFICIENTS = [(-1) ** k * EIGHTH_TURN ** (2 * k) / math.factorial(2 * k) for k in range(5)]
# Taylor coefficients of sin(v pi/4) / v in powers of v^2
SINE_TAYLOR_COEFFICIENTS = [(-1) ** k * EIGHTH_TURN ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(5)]
THREEFRY_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))  # bits; the two rows alternate after every four rounds


class BatchSlice(NamedTuple):
    """A slice of adjacent batch elements on the last axis of a draw: start, width and total number."""

    start: Array
    width: int
    full_batch_size: int


def make_key_data(number: int) -> np.ndarray:
    """Return the data (2,) of `jax.random.key(number, impl="threefry2x32")`, without compilation by JAX."""
    return np.array([number >> 32 & 0xFFFFFFFF, number & 0xFFFFFFFF], np.uint32)


def fold_in_key_data(key: np.ndarray, number: int | np.ndarray) -> np.ndarray:
    """Return the data (..., 2) of `jax.random.fold_in(key, number)`, equal to `jax.random.split(key, n)[number]`.

    Several keys (n, 2) are folded with one number each, below 2^32, or with a common number.

    >>> fold_in_key_data(make_key_data(0), 1)
    array([ 928981903, 3453687069], dtype=uint32)
    """
    if key.size == 2:  # Python computes single integers faster than NumPy
        number = int(np.squeeze(number))
        pair: Any = _threefry([int(part) for part in key.flat], number >> 32, number, lambda value: value & 0xFFFFFFFF)
        return np.array(pair, np.uint32).reshape(key.shape)
    return np.stack(_threefry(list(key.T), 0, np.asarray(number, np.uint32)), axis=-1)


def _threefry(
    key: list[Any], x: Any, y: Any, truncate: Callable[[Any], Any] = lambda number: number
) -> tuple[Any, Any]:
    """Compute Threefry-2x32 with 20 rounds (Salmon et al. 2011) for a pair of 32-bit words or arrays.

    `truncate` returns the low 32 bits of Python integers, which do not overflow as arrays do.
    """
    keys = [*key, key[0] ^ key[1] ^ 0x1BD11BDA]
    x, y = truncate(x + keys[0]), truncate(y + keys[1])
    for group in range(5):
        for turn in THREEFRY_ROTATIONS[group % 2]:
            x = truncate(x + y)
            y = truncate(y << turn | y >> 32 - turn) ^ x
        x = truncate(x + keys[(group + 1) % 3])
        y = truncate(y + keys[(group + 2) % 3] + group + 1)
    return x, y


def make_generators(keys: np.ndarray) -> Iterator[np.random.Generator]:
    """Yield NumPy's `default_rng(low + 2**32 * high)` for each key (n, 2), five times faster for many keys.

    >>> first, second = make_generators(np.array([[5, 0], [0, 1]], np.uint32))
    >>> first.random() == np.random.default_rng(5).random(), second.random() == np.random.default_rng(2**32).random()
    (True, True)
    """
    if len(keys) == 1:
        yield np.random.default_rng(int(keys[0, 0]) | int(keys[0, 1]) << 32)
    else:
        for state in _compute_seed_states(keys):
            yield np.random.Generator(np.random.PCG64(_PrecomputedSeed(state)))  # type: ignore[arg-type]


class _PrecomputedSeed(ISeedSequence):
    """A seed sequence with a precomputed state, for NumPy's generators."""

    def __init__(self, state: np.ndarray):
        self.words = state

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray:
        """Return the precomputed state, regardless of the requested size."""
        return self.words


def _compute_seed_states(keys: np.ndarray) -> np.ndarray:
    """Compute the state (n, 4) that `numpy.random.SeedSequence` makes from each key."""
    hashed = _make_seed_hash(0x43B0D7E5, 0x931E8875)
    pool = [hashed(data) for data in (*keys.T, *np.zeros((2, len(keys)), np.uint32))]
    for source, target in permutations(range(4), 2):
        mixed: np.ndarray = np.uint32(0xCA01F9DD) * pool[target] - np.uint32(0x4973F715) * hashed(pool[source])
        pool[target] = mixed ^ mixed >> np.uint32(16)
    hashed = _make_seed_hash(0x8B51F9DD, 0x58F38DED)
    return np.stack([hashed(data) for data in (*pool, *pool)], axis=-1).view(np.uint64)


def _make_seed_hash(constant: int, factor: int) -> Callable[[np.ndarray], np.ndarray]:
    """Make O'Neill's seed_seq hash for arrays of 32-bit words, with a constant that changes at each call."""

    def hash_data(data: np.ndarray) -> np.ndarray:
        nonlocal constant
        data = data ^ np.uint32(constant)
        constant = constant * factor & 0xFFFFFFFF
        data = data * np.uint32(constant)
        return data ^ data >> np.uint32(16)

    return hash_data


def wrap_key_data(key_data: Array) -> Array:
    """Wrap key data (..., 2) as a JAX key or an array of keys."""
    import jax

    return jax.random.wrap_key_data(key_data, impl="threefry2x32")


def fold_in(key: Array, number: Array | int) -> Array:
    """Compute `jax.random.fold_in` for one key or keys (n,), without JAX's loop over the rounds."""
    import jax
    import jax.numpy as jnp

    key_data = jnp.moveaxis(jax.random.key_data(key), -1, 0)
    low = jnp.broadcast_to(jnp.asarray(number).astype(np.uint32), key.shape)
    return wrap_key_data(_threefry_pair(key_data, jnp.zeros_like(low), low, axis=-1))


def _threefry_pair(key: Array, x: Array, y: Array, axis: int = 0) -> Array:
    """Compute Threefry's two output words for each pair of counters, stacked on a new axis.

    The key data belong to one key, or to a separate key for each pair.
    """
    import jax
    import jax.numpy as jnp

    # without the barrier, XLA would recompute the rounds in every operation that uses the words
    return jax.lax.optimization_barrier(jnp.stack(_threefry([*key], x, y), axis=axis))


def draw_uint32(key: Array, count: int, batch: BatchSlice | None = None) -> Array:
    """Draw random 32-bit words (count,), for a slice of a batch the same as in the full batch.

    The batch elements of several keys (n,) are adjacent.
    """
    import jax
    import jax.numpy as jnp
    from jax.extend.random import threefry_2x32

    counters = jnp.arange(count // key.size, dtype=np.uint32)
    if batch:
        counters = (
            counters // batch.width * batch.full_batch_size + counters % batch.width + batch.start.astype(np.uint32)
        )
    key_data = jax.random.key_data(key)
    if batch is None or not key.ndim:
        return jax.lax.platform_dependent(key_data, counters, cpu=_threefry_unrolled, default=threefry_2x32)
    # pairs as in `_threefry_unrolled`, with all batch elements on the last axis, which is the only fast axis
    pairs = jnp.tile(counters.reshape(2, -1, batch.width), key.size)
    return jnp.concatenate(
        [part.reshape(-1) for part in _threefry_pair(jnp.repeat(key_data.T, batch.width, axis=1), *pairs)]
    )


def _threefry_unrolled(key: Array, counters: Array) -> Array:
    """Compute `threefry_2x32` with unrolled rounds: twice as fast on a CPU as JAX's loop over the rounds."""
    import jax.numpy as jnp

    x, y = jnp.pad(counters, (0, counters.size % 2)).reshape(2, -1)
    # with concatenation instead of reshaping, XLA rounds the normals in the same way as for JAX's words
    return jnp.concatenate([*_threefry_pair(key, x, y)])[: counters.size]


def draw_signs(key: Array, shape: tuple[int, ...]) -> Array:
    """Draw +1 or -1 with equal probability."""
    count = math.prod(shape)
    bits_32 = draw_uint32(key, -(-count // 32))
    coins = (bits_32[:, None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1)
    return (2 * coins.astype(np.float32) - 1).reshape(-1)[:count].reshape(shape)


def draw_normals(key: Array, shape: tuple[int, ...]) -> Array:
    """Draw standard normals, truncated at 5.9 standard deviations (probability 4e-9)."""
    return draw_normals_and_uniforms(key, shape, (0,))[0]


def draw_normals_and_uniforms(
    key: Array, shape: tuple[int, ...], uniform: tuple[int, ...], batch: BatchSlice | None = None
) -> tuple[Array, Array]:
    """Draw standard normals of one shape and uniforms in (0, 1) of another shape.

    A common draw saves half a second of compilation. A slice of a batch gets the same numbers as in a draw of the full
    batch if both shapes have an even number of elements per batch element.

    >>> import jax
    >>> x, u = draw_normals_and_uniforms(jax.random.key(0), (3, 1000), (2,))
    >>> x.shape, bool(abs(x.mean()) < 0.1)
    ((3, 1000), True)
    """
    count = math.prod(shape)
    pairs = -(-count // 2)
    bits_32 = draw_uint32(key, 2 * pairs + math.prod(uniform), batch)
    # half the shape of the normals if possible: XLA is four times slower with other shapes
    half = (shape[0] // 2, *shape[1:]) if shape[0] % 2 == 0 else (pairs,)
    normal_pairs = _box_muller(bits_32[:pairs].reshape(half), bits_32[pairs : 2 * pairs].reshape(half))
    return normal_pairs.reshape(-1)[:count].reshape(shape), _uniform_from_bits(bits_32[2 * pairs :]).reshape(uniform)


def draw_normal_and_uniform_at(
    key: Array, number: Array, row: Array, rows: int, batch: BatchSlice | None = None
) -> tuple[Array, Array]:
    """Draw one normal and one uniform per batch element, the same as in the draw of a full array.

    The full array is `draw_normals_and_uniforms(fold_in(key, number), shape, shape)`.

    Parameters
    ----------
    key
        The key, or keys (n,) with adjacent batch elements.
    number, row
        The number to fold into the key, and the row of `shape`: integers (batch,) for each batch element.
    rows
        The number of rows of `shape` (..., batch), the product of all axes but the last. It must be even.
    batch
        Slice of the batch, as for `draw_normals_and_uniforms`.
    """
    import jax
    import jax.numpy as jnp

    first, width, total = batch or (np.uint32(0), row.size, row.size)
    key_data = jnp.repeat(jax.random.key_data(key).reshape(-1, 2).T, row.size // key.size, axis=1)
    batch_index = jnp.arange(row.size, dtype=np.uint32) % np.uint32(width) + first.astype(np.uint32)
    folded_key = _threefry_pair(key_data, jnp.zeros_like(number), number)
    half = rows // 2  # the first half of the rows holds the first normal of each pair
    pair_rows = (row % half).astype(np.uint32) + np.array([[0], [half]], np.uint32)
    x, y = (pairs * np.uint32(total) + batch_index for pairs in (pair_rows, pair_rows + np.uint32(rows)))
    (radial, angular), uniforms = _threefry_pair(folded_key, x, y)
    cosine_normals, sine_normals = jnp.split(_box_muller(radial, angular), 2)
    return jnp.where(row < half, cosine_normals, sine_normals), _uniform_from_bits(jnp.where(row < half, *uniforms))


def _box_muller(radial: Array, angular: Array) -> Array:
    """Transform pairs of words to normals by Box-Muller: the first normals of all pairs, then the second."""
    import jax.numpy as jnp

    radius = jnp.sqrt(np.float32(-2) * jnp.log(_uniform_from_bits(radial)))
    v = 2 * _uniform_from_bits(angular) - 1
    cosine = radius * _evaluate_polynomial(COSINE_TAYLOR_COEFFICIENTS, v * v)
    sine = radius * v * _evaluate_polynomial(SINE_TAYLOR_COEFFICIENTS, v * v)
    cosine = jnp.where(angular & np.uint32(1), cosine, -cosine)  # low bits are free: `_uniform_from_bits` discards them
    swap = (angular & np.uint32(2)) > 0
    return jnp.concatenate([jnp.where(swap, sine, cosine), jnp.where(swap, cosine, sine)])


def _uniform_from_bits(bits_32: Array) -> Array:
    """Map words to the midpoints of 2^24 equal intervals of (0, 1), never to 0 or 1."""
    steps = (bits_32 >> np.uint32(8)).astype(np.int32).astype(np.float32)
    return steps * np.float32(2.0**-24) + np.float32(2.0**-25)


def _evaluate_polynomial(coefficients: list[float], x: Array) -> Array:
    """Evaluate a polynomial in float32 by Horner's scheme, to transform random words to normals."""
    total = np.float32(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * x + np.float32(coefficient)
    return total


def draw_chi(key: Array, degrees: Array, shape: tuple[int, ...], batch_part: BatchSlice | None = None) -> Array:
    r"""Draw exact chi variables :math:`\chi_d = \sqrt{2\Gamma(d/2)}` by rejection (Marsaglia & Tsang 2000).

    `degrees` broadcasts to `shape`, an even number of elements. 0 or fewer degrees give 0, and one degree gives the
    modulus of a normal. All variables are proposed together. The few uncertain proposals are then tested, and proposed
    again, one per batch element at a time.
    """
    import jax
    import jax.numpy as jnp

    count = math.prod(shape)
    rows = count // shape[-1] if count // shape[-1] % 2 == 0 else 2
    degrees = jnp.broadcast_to(degrees, shape).reshape(rows, -1)
    x, u = (part.reshape(rows, -1) for part in draw_normals_and_uniforms(fold_in(key, 0), shape, shape, batch_part))
    value, certain, test_proposals = _propose_chi(x, u, degrees)
    many_uncertain = jnp.sum(~certain) > certain.shape[1]
    waiting = ~jax.lax.cond(many_uncertain, lambda: certain | test_proposals(), lambda: certain)

    def propose_again(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        attempt, value, waiting = state
        row = jnp.argmax(waiting, axis=0)  # the first waiting variable of each batch element
        x, u = draw_normal_and_uniform_at(key, attempt, row, rows, batch_part)
        proposals, certain, test_proposals = _propose_chi(x, u, jnp.take_along_axis(degrees, row[None], axis=0)[0])
        # branches like the first proposals, so that XLA rounds both equally
        is_accepted = jax.lax.cond(jnp.all(certain), lambda: certain, lambda: certain | test_proposals())
        is_new = waiting & is_accepted & (jnp.arange(rows)[:, None] == row)
        attempt = jnp.where(is_accepted, 0, attempt + 1).astype(np.uint32)
        return attempt, jnp.where(is_new, proposals, value), waiting & ~is_new

    state = (jnp.zeros(waiting.shape[1], np.uint32), value, waiting)
    value = jax.lax.while_loop(lambda state: jnp.any(state[2]), propose_again, state)[1]
    return jnp.where(degrees > 0, value, 0.0).reshape(shape)


def _propose_chi(x: Array, u: Array, degrees: Array) -> tuple[Array, Array, Callable[[], Array]]:
    """Propose chi variables, and return them with a mask of certain acceptance and Marsaglia's test.

    With :math:`s` = `scale` x the test is u < exp(A), A = 3 `shift` (log(1 + s) - s + s^2/2 - s^3/3), and
    A >= -`shift` s^4 for |s| < 1/4: the expensive logarithms are almost never computed.
    """
    import jax.numpy as jnp

    x, shift = x.astype(float), jnp.maximum(degrees, 2) / 2 - 1 / 3
    s = 1 / jnp.sqrt(9 * shift) * x
    w = s * (3 + s * (3 + s))  # (1 + s)^3 - 1
    proposals = jnp.where(degrees == 1, jnp.abs(x), jnp.sqrt(2 * shift * jnp.maximum(1 + w, 0.0)))
    certain = (degrees <= 1) | (jnp.abs(s) < 0.25) & (u < 1 - shift * s**4)  # one degree is always accepted

    def test_proposals() -> Array:
        safe = jnp.where(w > -1, w, 0.0)
        return (w > -1) & (jnp.log(u) < x * x / 2 + shift * (jnp.log1p(safe) - safe))

    return proposals, certain, test_proposals
