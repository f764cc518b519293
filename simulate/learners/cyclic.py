"""Learners that visit the examples in turn and may end after any whole epoch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simulate.learners.examples import Batch
from simulate.learners.interface import Learnt, Task
from statmech.learners import STOPPED_BY

Move = Callable[[jax.Array, jax.Array, jax.Array, jax.Array], jax.Array]
Done = Callable[["State", jax.Array], jax.Array]


class State(NamedTuple):
    """One student: fields and strengths (P,), examples visited, whether it has ended."""

    fields: jax.Array
    strengths: jax.Array
    visits: jax.Array
    ended: jax.Array


def epoch(
    state: State, gram: jax.Array, size: jax.Array, until: jax.Array, parameter: jax.Array, move: Move, done: Done
) -> State:
    """One visit of each example, unless the run has ended or reached `until`; both may happen within an epoch."""
    first = state.visits % size  # an epoch that was cut by a moment of recording goes on from there

    def visit(at: jax.Array, now: State) -> State:
        goes = ~now.ended & (at >= first) & (at < size) & (now.visits < until)
        change = jnp.where(goes, move(now.fields[at], now.strengths[at], gram[at, at], parameter), 0.0)
        return State(
            fields=now.fields + change * gram[at],
            strengths=now.strengths.at[at].add(change),
            visits=now.visits + goes,
            ended=now.ended,
        )

    state = jax.lax.fori_loop(0, gram.shape[0], visit, state)
    whole = (state.visits > 0) & (state.visits % size == 0)
    return state._replace(ended=state.ended | (whole & done(state, jnp.arange(gram.shape[0]) < size)))


@partial(jax.jit, static_argnames=("move", "done"))
def run(
    gram: jax.Array, sizes: jax.Array, until: jax.Array, parameter: jax.Array, move: Move, done: Done
) -> tuple[jax.Array, ...]:
    """All data sets of a batch: strengths (T, B, P), visits and whether it has ended (T, B)."""
    strengths = jnp.zeros(gram.shape[:2], gram.dtype)
    none = jnp.zeros(len(gram), jnp.int64)
    start = State(strengths, strengths, none, none > 0)
    one = jax.vmap(partial(epoch, move=move, done=done), in_axes=(0, 0, 0, 0, None))

    def record(state: State, limit: jax.Array) -> tuple[State, tuple[jax.Array, ...]]:
        state = jax.lax.while_loop(
            lambda now: jnp.any(~now.ended & (now.visits < limit)),
            lambda now: one(now, gram, sizes, limit, parameter),
            state,
        )
        return state, (state.strengths, state.visits, state.ended)

    _, recorded = jax.lax.scan(record, start, until.T)
    return recorded


def learn_in_turn(batch: Batch, task: Task, parameter: float, move: Move, done: Done, by: str) -> Learnt:
    """The task of a cyclic learner whose runs, when `done`, have stopped `by`."""
    recorded = run(batch.gram, batch.sizes, task.until, np.asarray(parameter, batch.gram.dtype), move=move, done=done)
    strengths, visits, ended = (np.moveaxis(np.asarray(part), 0, 1) for part in recorded)
    stopped_by = np.where(ended, STOPPED_BY.index(by), STOPPED_BY.index("epochs"))
    return Learnt(strengths, None, visits, stopped_by, ended)
