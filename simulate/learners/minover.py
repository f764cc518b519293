r"""MinOver: repeated addition of the example of smallest stability with strength 1 (Krauth & Mezard 1987).

.. math:: \mu = \mathrm{argmin}_\nu\,\kappa^\nu, \quad \kappa^\nu = \mathbf w\cdot\xi^\nu S^\nu/|\mathbf w|; \qquad
          \mathbf w \leftarrow \mathbf w + \xi^\mu S^\mu/N

from w = 0; of equal stabilities the first is used. With the fields :math:`e = Gx` an update is a minimum over e and a
row of G.

**Stopping.** For any strengths :math:`x\ge 0` the largest stability is at most
:math:`|\sum_\mu x_\mu\mathbf z^\mu|/\sum_\mu x_\mu` (the minimum is below the mean with weights x), so that

.. math:: gap = 1 - \min_\mu e_\mu\,\sum_\mu x_\mu\Big/\sum_\mu x_\mu e_\mu

bounds the relative distance of a student's stability from the optimum. "Converged" means that this gap is certified.
The patience rules monitor other quantities: `stability-patience` the smallest stability before each update;
`field-patience`, the code of the assignment's appendix, the smallest field :math:`\min_\mu e_\mu`, which is 0 at w = 0,
negative until all examples are right and then grows with \|w\| without bound: it stops at update P + 1, or never.

**Minima.** The minimum and maximum of an array are found slice by slice, so that XLA vectorises the comparisons on a
CPU. XLA's reductions process elements one by one: at 192 examples an update took 2.5 times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simulate.learners.learner_interface import DataSetBatch, LearnerTask, LearntStudents, bound_stability_gap
from statmech.runtime.compiled_programs import cached_program
from statmech.students.learners import STOP_REASONS

UPDATES_PER_CHECK = 64  # the check for active runs of a batch is expensive
NUM_EXTREME_SLICES = 8  # must divide the size of every array


def vectorised_min(values: jax.Array) -> jax.Array:
    """Return the minimum of an array (n,).

    >>> float(vectorised_min(jnp.arange(24.0)))
    0.0
    """
    return jnp.min(_reduce_slices(jnp.minimum, values))


def vectorised_max(values: jax.Array) -> jax.Array:
    """Return the maximum of an array (n,)."""
    return jnp.max(_reduce_slices(jnp.maximum, values))


def find_first_min(values: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the minimum and its first index."""
    lowest = vectorised_min(values)
    last = values.size - 1
    return lowest, vectorised_min(jnp.where(values == lowest, jnp.arange(values.size), last))


def _reduce_slices(extreme: Callable[[jax.Array, jax.Array], jax.Array], values: jax.Array) -> jax.Array:
    return reduce(extreme, [*values.reshape(NUM_EXTREME_SLICES, -1)])


class MinOverStudent(NamedTuple):
    """One student: fields and strengths (P,), the squared length N|w|^2, and the memory of the stop rule."""

    fields: jax.Array
    strengths: jax.Array
    squared_length: jax.Array
    updates: jax.Array
    best_watched_value: jax.Array
    updates_since_best: jax.Array
    stopped: jax.Array


def update_minover_student(
    state: MinOverStudent, gram: jax.Array, size: jax.Array, max_updates: jax.Array, stop: str
) -> MinOverStudent:
    """Make one MinOver update, unless the run has stopped or reached `max_updates` updates.

    Parameters
    ----------
    state
        The student before.
    gram
        Gram matrix of the padded examples (P, P).
    size
        Number of examples, without padding.
    max_updates
        Number of updates before the run pauses.
    stop
        Stop rule of `MinOver`.
    """
    is_active = ~state.stopped & (state.updates < max_updates)
    min_field, index = find_first_min(state.fields)
    best, waited = state.best_watched_value, state.updates_since_best
    if stop != "epochs":
        if stop == "stability-patience":
            watched = jnp.where(state.squared_length > 0, min_field * jax.lax.rsqrt(state.squared_length), -jnp.inf)
            grown = watched > best
        else:
            watched, grown = min_field, min_field >= best
        best = jnp.where(is_active & grown, watched, best)
        waited = jnp.where(is_active, jnp.where(grown, 0, waited + 1), waited)
    return MinOverStudent(
        fields=state.fields + jnp.where(is_active, gram[index], 0.0),
        strengths=state.strengths.at[index].add(jnp.where(is_active, 1.0, 0.0)),
        squared_length=state.squared_length + jnp.where(is_active, 2 * min_field + gram[index, index], 0.0),
        updates=state.updates + is_active,
        best_watched_value=best,
        updates_since_best=waited,
        stopped=state.stopped | (waited >= size),
    )


@cached_program
def learn_minover_batch(
    stop: str, gram: jax.Array, sizes: jax.Array, recorded_updates: jax.Array
) -> tuple[jax.Array, ...]:
    """Add examples of smallest stability, and return strengths (T, B, P), gaps, updates and stopped runs (T, B)."""
    B, P, _ = gram.shape
    fields = jnp.where(jnp.arange(P) < sizes[:, None], 0.0, jnp.inf).astype(gram.dtype)  # inf: never the minimum
    zeros, counts = jnp.zeros(B, gram.dtype), jnp.zeros(B, jnp.int64)
    start = MinOverStudent(fields, jnp.zeros_like(fields), zeros, counts, zeros - jnp.inf, counts, counts > 0)
    step = jax.vmap(partial(update_minover_student, stop=stop))

    def record(state: MinOverStudent, limit: jax.Array) -> tuple[MinOverStudent, tuple[jax.Array, ...]]:
        state = jax.lax.while_loop(
            lambda now: jnp.any(~now.stopped & (now.updates < limit)),
            lambda now: jax.lax.fori_loop(0, UPDATES_PER_CHECK, lambda _, one: step(one, gram, sizes, limit), now),
            state,
        )
        return state, (
            state.strengths,
            jax.vmap(bound_stability_gap)(state.fields, state.strengths),
            state.updates,
            state.stopped,
        )

    _, recorded = jax.lax.scan(record, start, recorded_updates.T)
    return recorded


def learn(batch: DataSetBatch, task: LearnerTask) -> LearntStudents:
    """Train MinOver on all data sets of a batch."""
    learner = task.learner
    recorded = learn_minover_batch(learner.stop, batch.gram, batch.sizes, task.until)
    strengths, gaps, updates, stopped = (np.moveaxis(np.asarray(part), 0, 1) for part in recorded)
    stopped_by = np.where(stopped, STOP_REASONS.index(learner.stop), STOP_REASONS.index("epochs"))
    return LearntStudents(strengths, None, updates, stopped_by, gaps <= learner.within)
