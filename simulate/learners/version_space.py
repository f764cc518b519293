r"""A Markov chain that samples the version space uniformly.

The version space is a cone, :math:`\mathbf w\cdot\mathbf z^\mu > 0` for all :math:`\mu`. Points that are uniform in its
intersection with the unit ball have uniform directions, so the chain samples such points, one coordinate after another:
given all others, :math:`w_j` is uniform on the interval allowed by the examples and the ball. It is drawn from this
interval in one step of ten. In all other steps it is reflected at the interval's middle, which preserves the uniform
distribution and lets the chain continue in one direction (overrelaxation: half the autocorrelation time at N = 200).
With the fields stored that costs one column of z, O(P), so a sweep over all N coordinates costs as much as a single
step along a random direction. The chain starts at the perceptron of maximum stability; the first tenth of its sweeps is
discarded.
"""

from __future__ import annotations

from math import ceil

import jax
import jax.numpy as jnp
import numpy as np

from simulate.learners import max_stability
from simulate.learners.learner_interface import (
    DataSetBatch,
    LearnerTask,
    LearntStudents,
    at_once,
    get_unpadded_examples,
    one_by_one,
)
from simulate.learners.minover import vectorised_max, vectorised_min
from statmech.numerics.random_numbers import wrap_key_data
from statmech.runtime.compiled_programs import cached_program

DISCARDED_SWEEP_FRACTION = 0.1  # sweeps before the first recorded student, relative to all sweeps
REFLECTION_PROBABILITY = 0.9  # the other steps draw the coordinate at random

ChainState = tuple[jax.Array, jax.Array, jax.Array]  # a student w (N,), its fields (P,), |w|^2


def compute_chain_state(w: jax.Array, columns: jax.Array) -> ChainState:
    """Return the state of a chain at the student w, with recomputed fields.

    `columns` is z transposed, (N, P), with zeros for padding.
    """
    return w, jnp.where(jnp.any(columns != 0, axis=0), w @ columns, 1.0), w @ w


def sweep_coordinates(walk: ChainState, key: jax.Array, columns: jax.Array) -> ChainState:
    """Update all coordinates of a student in one sweep through its version space."""
    uniform, kind = jax.random.uniform(key, (2, walk[0].size), columns.dtype)

    def draw(j: jax.Array, state: ChainState) -> ChainState:
        w, fields, length2 = state
        column, old_value = columns[j], w[j]
        # changing the coordinate by -1 / ratio makes a field vanish
        steepest = vectorised_max(column / fields)
        flattest = vectorised_min(column / fields)
        low = jnp.where(steepest > 0, -1 / steepest, -jnp.inf)
        high = jnp.where(flattest < 0, -1 / flattest, jnp.inf)
        ball = jnp.sqrt(jnp.maximum(1 - (length2 - old_value**2), 0.0))
        low = jnp.minimum(jnp.maximum(low, -ball - old_value), 0.0)  # keeps the student inside despite rounding
        high = jnp.maximum(jnp.minimum(high, ball - old_value), 0.0)
        change = jnp.where(kind[j] < REFLECTION_PROBABILITY, low + high, low + uniform[j] * (high - low))
        return w.at[j].add(change), fields + change * column, length2 + change * (2 * old_value + change)

    return jax.lax.fori_loop(0, uniform.size, draw, walk)


@cached_program
def run_chains(
    sweeps: tuple[int, int, int], keys: jax.Array, columns: jax.Array, start: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Run the Markov chain of each data set, and return students (blocks, N) and cosines of sweeps with the start.

    `sweeps` are the number of discarded sweeps, the number of blocks, and the number of sweeps per block.
    """
    forget, blocks, sweeps_per_block = sweeps

    def run(key: jax.Array, columns: jax.Array, start: jax.Array) -> tuple[jax.Array, jax.Array]:
        def record_sweep(walk: ChainState, number: jax.Array) -> tuple[ChainState, jax.Array]:
            w, fields, length2 = sweep_coordinates(walk, jax.random.fold_in(key, number), columns)
            return (w, fields, length2), w @ start / jnp.sqrt(length2)

        def block(w: jax.Array, numbers: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
            (w, _, _), cosines = jax.lax.scan(record_sweep, compute_chain_state(w, columns), numbers)
            return w, (w, cosines)

        w, _ = block(start * 0.9, jnp.arange(forget))
        numbers = forget + jnp.arange(blocks * sweeps_per_block).reshape(blocks, sweeps_per_block)
        _, (students, cosines) = jax.lax.scan(block, w, numbers)
        return students, cosines.reshape(-1)

    students, cosines = jax.vmap(run)(wrap_key_data(keys), columns, start)
    return students, cosines


def autocorrelation_time(series: np.ndarray) -> float:
    r"""Compute the integrated autocorrelation time of a Markov chain, :math:`1 + 2\sum_{k\le M}\rho_k`.

    M is at least 5 autocorrelation times (Sokal 1997). The result is infinite if the series is too short.
    """
    n, deviation = len(series), series - series.mean()
    spectrum = np.abs(np.fft.rfft(deviation, 2 * n)) ** 2
    correlation = np.fft.irfft(spectrum)[:n]
    if not correlation[0] > 0:
        return np.inf
    times = 2 * np.cumsum(correlation / correlation[0]) - 1
    window = np.flatnonzero(np.arange(n) >= 5 * times)
    return float(times[window[0]]) if window.size else np.inf


def sample_version_space(
    batch: DataSetBatch, task: LearnerTask, num_students: int, num_sweeps: int, min_autocorrelation_times: float
) -> LearntStudents:
    """Draw students of each data set from one Markov chain.

    An empty version space has no students. A chain has converged if it is long enough and all its students are inside
    the version space despite rounding.

    Parameters
    ----------
    batch, task
        The data sets, and the task of the learner.
    num_students
        Number of students per data set.
    num_sweeps
        Length of the chain, in sweeps over all coordinates.
    min_autocorrelation_times
        Length of a converged chain in autocorrelation times of the cosine with its start.
    """
    strengths, exists = one_by_one(batch, max_stability.compute_max_stability_strengths)
    B, P, N = batch.z.shape
    start, columns = np.zeros((B, N)), np.zeros((B, N, P))
    for index in map(int, np.flatnonzero(exists)):
        w = strengths[index, : batch.sizes[index]] @ get_unpadded_examples(batch, index)
        start[index], columns[index] = w / np.linalg.norm(w), batch.z[index].T
    start[~exists, 0] = 1.0  # any direction: the chains of these data sets are not used
    forget = ceil(DISCARDED_SWEEP_FRACTION * num_sweeps)
    sweeps_per_student = ceil((num_sweeps - forget) / num_students)
    w, cosines = map(
        np.asarray, run_chains((forget, num_students, sweeps_per_student), task.words[:, :2], columns, start)
    )
    mixed = np.array([len(c) >= min_autocorrelation_times * autocorrelation_time(c) for c in cosines])
    inside = np.array([np.all(get_unpadded_examples(batch, index) @ w[index].T > 0) for index in range(B)])
    return at_once(task.until, exists, students=w, stop_reason="sampled", converged=mixed & inside)
