r"""The direct engine: weight vectors of N components that learn from inputs drawn one block at a time.

M inputs are drawn; one matrix product gives all their fields and one their inner products; the M steps are taken in
the space of fields (`simulate.kernels.field_steps`); one product updates the weights. This equals the
step-by-step simulation to rounding, with the N-dimensional work in matrix products.

Inputs of any distribution of `statmech.inputs` are drawn in float32, for any precision of the weights: drawing limits
this engine, and float64 normals cost five times as much. This truncates normals at 5.4 standard deviations. Where
angles do not determine the errors, those of students, vote and mean are measured on new inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simulate.kernels.field_steps import (
    Changes,
    Course,
    Record,
    changes_of,
    course_of,
    modulations,
    path_of_teacher,
)
from statmech.gaussian import Array
from statmech.inputs import Inputs
from statmech.parameters import Family, family_of
from statmech.programs import kept
from statmech.random_numbers import folded, normals, wrapped
from statmech.rules import Rule
from statmech.scenarios.online import Cell

TEST_INPUTS, TEST_PARTS = 4096, 16  # inputs on which errors are measured, and the parts they are drawn in
BLOCK = 16  # steps per block: fewer make thin matrix products, with more the inner products cost more than the inputs


Draw = Callable[[Array, int], Array]  # inputs of shape (M, N), from a key and M

NAME = "weight vectors at finite N (simulate.kernels.vectors)"


@dataclass(frozen=True)
class Program:
    """Static arguments of the compiled program; one is compiled for each."""

    rule: Family
    inputs: Inputs
    K: int
    N: int
    dtype: str
    drifting: bool  # whether the teacher moves


class Problem(NamedTuple):
    """Run-time arguments of a program: the rule's parameters, the label noise, initial coordinates, the inputs' table,
    and what changes.

    `start` (K, K+1) are the students' coordinates, or None to draw them.
    """

    parameters: dict[str, Array]
    flip: Array
    start: Array | None
    table: Array
    changes: Changes | None


class State(NamedTuple):
    """Teacher and students (K + 1, N), and the students' squared lengths (K,)."""

    vectors: Array
    squared_length: Array


def batch(K: int) -> int:
    """Seeds per unit of work, of a cell with K students."""
    return 4


def memory(cell: Cell, dtype: str) -> int:
    """Memory of one unit of work in bytes: the vectors, before and after a block, and the block's inputs twice.

    A teacher that drifts takes as many directions as inputs.
    """
    drawn = 2 * BLOCK if cell.drift > 0 else BLOCK
    return 2 * (cell.K + 1 + drawn) * cell.N * np.dtype(dtype).itemsize


def run(cell: Cell, dtype: str, key: np.ndarray, steps: np.ndarray, part: slice = slice(None)) -> Record:
    """Simulate a batch of seeds of a cell from a key (2,), or a part of it, recorded at `steps` (T,) steps."""
    keys = np.stack([folded(key, seed) for seed in range(batch(cell.K))[part]])
    program = Program(family_of(cell.rule), cell.inputs, cell.K, cell.N, dtype, cell.drift > 0)
    table = cell.inputs.table(cell.N)
    problem = Problem(cell.traced(dtype), np.float32(cell.flip), cell.coordinates, table, changes_of(cell))
    return Record(*_run(program, keys, problem, steps))


@kept
def _run(program: Program, keys: Array, problem: Problem, steps: Array) -> tuple[Array, ...]:
    """The record of all seeds: its parts, without errors where they are not measured."""
    # one seed after the other: a block of inputs of one seed fills a core's cache, several would not fit
    record = jax.lax.map(lambda key: _trajectory(program, key, problem, steps), wrapped(keys))
    return tuple(part for part in record if part is not None)


def _trajectory(program: Program, key: Array, problem: Problem, steps: Array) -> Record:
    """One seed from its key."""
    rule, draw = program.rule(**problem.parameters), partial(_draw, program, problem.table)
    start_key, step_key, test_key = jax.random.split(key, 3)
    state = _initial(program, start_key, problem.start)

    def advance(carry: tuple[State, Array], until: Array) -> tuple[tuple[State, Array], Record]:
        state, done = carry

        def block(index: Array, state: State) -> State:
            first = done + index * BLOCK
            active = first + jnp.arange(BLOCK) < until
            course = problem.changes and course_of(
                problem.changes, rule.eta, np.float64(program.N), first, active, program.dtype
            )
            key = jax.random.fold_in(step_key, first)
            return _block(program, rule, draw, key, state, problem.flip, active, course)

        state = jax.lax.fori_loop(0, (until - done + BLOCK - 1) // BLOCK, block, state)
        return (state, until), _record(program, draw, jax.random.fold_in(test_key, until), state.vectors)

    return jax.lax.scan(advance, (state, jnp.zeros_like(steps[0])), steps)[1]


def _initial(program: Program, key: Array, start: Array | None) -> State:
    """The teacher, |B|^2 = N, and the students, drawn or at the coordinates `start`."""
    K, N, dtype = program.K, program.N, program.dtype
    vectors = jax.random.normal(key, (K + 1, N), dtype)
    if start is None:
        vectors = vectors.at[0].multiply(N**0.5 / jnp.linalg.norm(vectors[0]))
    else:
        basis = jnp.linalg.qr(vectors.T)[0].T * N**0.5
        vectors = jnp.concatenate([basis[:1], jnp.asarray(start, dtype) @ basis])
    return State(vectors, jnp.sum(vectors[1:] ** 2, axis=1) / N)


def _block(
    program: Program,
    rule: Rule,
    draw: Draw,
    key: Array,
    state: State,
    flip: Array,
    active: Array,
    course: Course | None,
) -> State:
    """BLOCK steps. The squared lengths are updated: summing them again costs more than both matrix products."""
    vectors, squared_length = state
    N, dtype, M = vectors.shape[1], vectors.dtype, active.size
    input_key, label_key = jax.random.split(key)
    x = draw(input_key, M)
    flipped = jax.random.uniform(label_key, (M,), jnp.float32) < flip
    right = jnp.where(active, jnp.where(flipped, -1.0, 1.0), 0.0).astype(dtype)
    fields, inner, moved = vectors @ x.T, x @ x.T, None
    if course and program.drifting:
        seen, moved = _moved(jax.random.fold_in(key, 2), vectors[0], x, fields[0], inner, course.drift)
        fields = fields.at[0].set(seen)
    f, squared_length = modulations(rule, fields, inner, squared_length, right, N, course)
    gain = jnp.pad(f.T, ((1, 0), (0, 0))) @ x  # the teacher, row 0, stays
    vectors = vectors + (gain if course is None else gain.at[1:].add(-course.lost * vectors[1:]))
    return State(vectors if moved is None else vectors.at[0].set(moved), squared_length)


def _moved(key: Array, teacher: Array, x: Array, fields: Array, inner: Array, drift: Array) -> tuple[Array, Array]:
    """The fields (M,) of a teacher that turns after each input, and where it arrives (N,)."""
    M, N = x.shape
    directions = (normals(key, (M, N)) / np.float32(N**0.5)).astype(x.dtype)
    between = directions @ x.T
    products = jnp.block([[inner, between.T], [between, directions @ directions.T]])
    fields, path = path_of_teacher(jnp.concatenate([fields, directions @ teacher]), products, drift, N)
    moved = path[0] * teacher + N**0.5 * (path[1:] @ (N**0.5 * directions))
    return fields, moved * (N**0.5 / jnp.linalg.norm(moved))  # so that rounding does not accumulate in its length


def _draw(program: Program, table: Array, key: Array, M: int) -> Array:
    return program.inputs.draw(key, M, program.N, table).astype(program.dtype)


def _record(program: Program, draw: Draw, key: Array, vectors: Array) -> Record:
    teacher, students, N = vectors[0], vectors[1:], vectors.shape[1]
    along = students @ teacher / N
    across = students - along[:, None] * teacher
    record = Record(along, across @ across.T / N)
    return record if program.inputs.exact else record._replace(measured=_measured(draw, key, teacher, students))


def _measured(draw: Draw, key: Array, teacher: Array, students: Array) -> Array:
    """Errors on new inputs, shape (K + 2,): those of the students, the vote and the mean."""

    def wrong(key: Array) -> Array:
        x = draw(key, TEST_INPUTS // TEST_PARTS)
        label, fields = jnp.sign(x @ teacher), x @ students.T
        vote, mean = jnp.sign(fields).sum(axis=1, keepdims=True), fields.sum(axis=1, keepdims=True)
        answers = jnp.sign(jnp.concatenate([fields, vote, mean], axis=1))
        return jnp.mean((1 - label[:, None] * answers) / 2, axis=0)  # a tie counts 1/2, the mean of a fair coin

    return jax.lax.map(wrong, jax.random.split(key, TEST_PARTS)).mean(axis=0)
