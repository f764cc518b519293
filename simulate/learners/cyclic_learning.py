"""Learners that visit the examples in turn and may stop after any complete epoch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simulate.learners.learner_interface import DataSetBatch, LearnerTask, LearntStudents
from statmech.runtime.compiled_programs import cached_program
from statmech.students.learners import STOP_REASONS

StrengthStep = Callable[[jax.Array, jax.Array, jax.Array, jax.Array], jax.Array]
StopCondition = Callable[["CyclicStudent", jax.Array], jax.Array]


class CyclicStudent(NamedTuple):
    """One student: fields and strengths (P,), number of visits, and whether it has stopped."""

    fields: jax.Array
    strengths: jax.Array
    visits: jax.Array
    has_stopped: jax.Array


def run_epoch(
    state: CyclicStudent,
    gram: jax.Array,
    size: jax.Array,
    max_visits: jax.Array,
    parameter: jax.Array,
    move: StrengthStep,
    is_done: StopCondition,
) -> CyclicStudent:
    """Visit each example once, but end as soon as `max_visits` visits are reached.

    Parameters
    ----------
    state
        The student before.
    gram
        Gram matrix of the padded examples (P, P).
    size
        Number of examples, without padding.
    max_visits
        Number of visits before the run pauses.
    parameter
        Parameter of `move`.
    move
        Change of a strength, from field, strength, own norm and parameter.
    is_done
        True if the run stops, from the student and a mask of the examples.
    """
    first = state.visits % size  # an epoch that was interrupted by a recorded time is resumed

    def visit(index: jax.Array, student: CyclicStudent) -> CyclicStudent:
        goes = ~student.has_stopped & (index >= first) & (index < size) & (student.visits < max_visits)
        change = jnp.where(
            goes, move(student.fields[index], student.strengths[index], gram[index, index], parameter), 0.0
        )
        return CyclicStudent(
            fields=student.fields + change * gram[index],
            strengths=student.strengths.at[index].add(change),
            visits=student.visits + goes,
            has_stopped=student.has_stopped,
        )

    state = jax.lax.fori_loop(0, gram.shape[0], visit, state)
    complete = (state.visits > 0) & (state.visits % size == 0)
    return state._replace(has_stopped=state.has_stopped | (complete & is_done(state, jnp.arange(gram.shape[0]) < size)))


@cached_program
def learn_cyclic_batch(
    step_and_stop_condition: tuple[StrengthStep, StopCondition],
    gram: jax.Array,
    sizes: jax.Array,
    recorded_visits: jax.Array,
    parameter: jax.Array,
) -> tuple[jax.Array, ...]:
    """Train a cyclic learner on data sets, and return strengths (T, B, P), visits and stopped runs (T, B).

    Parameters
    ----------
    step_and_stop_condition
        `move` and `has_no_mistakes` of `run_epoch`.
    gram
        Gram matrices (B, P, P).
    sizes
        Numbers of examples (B,).
    recorded_visits
        Numbers of visits to record (B, T).
    parameter
        Parameter of `move`.
    """
    move, is_done = step_and_stop_condition
    strengths = jnp.zeros(gram.shape[:2], gram.dtype)
    zeros = jnp.zeros(len(gram), jnp.int64)
    start = CyclicStudent(strengths, strengths, zeros, zeros > 0)
    step = jax.vmap(partial(run_epoch, move=move, is_done=is_done), in_axes=(0, 0, 0, 0, None))

    def record(state: CyclicStudent, limit: jax.Array) -> tuple[CyclicStudent, tuple[jax.Array, ...]]:
        state = jax.lax.while_loop(
            lambda now: jnp.any(~now.has_stopped & (now.visits < limit)),
            lambda now: step(now, gram, sizes, limit, parameter),
            state,
        )
        return state, (state.strengths, state.visits, state.has_stopped)

    _, recorded = jax.lax.scan(record, start, recorded_visits.T)
    return recorded


def learn_cyclically(
    batch: DataSetBatch, task: LearnerTask, parameter: float, move: StrengthStep, is_done: StopCondition, stop_rule: str
) -> LearntStudents:
    """Train a cyclic learner on all data sets of a batch.

    Parameters
    ----------
    batch, task
        The data sets, and the task of the learner.
    parameter
        Parameter of `move`.
    move, is_done
        Change of a strength, and stop rule (see `run_epoch`).
    stop_rule
        Name of the stop rule, among `STOP_REASONS`.
    """
    recorded = learn_cyclic_batch(
        (move, is_done), batch.gram, batch.sizes, task.until, np.asarray(parameter, batch.gram.dtype)
    )
    strengths, visits, ended = (np.moveaxis(np.asarray(part), 0, 1) for part in recorded)
    stopped_by = np.where(ended, STOP_REASONS.index(stop_rule), STOP_REASONS.index("epochs"))
    return LearntStudents(strengths, None, visits, stopped_by, ended)
