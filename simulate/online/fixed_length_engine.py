r"""Engines of one unit on the sphere, whose runs end at a cosine with the teacher.

**Chain.** With a restored length, the cosine R alone is a Markov chain at any N. With normals u and w and a chi
variable of N - 2 degrees,

.. math:: h = Ru + \sqrt{1-R^2}\,w, \qquad |\mathbf x|^2 = (u^2 + w^2 + \chi^2)/N, \qquad
          R \leftarrow \frac{R + (\eta/N)fu}{\sqrt{1 + 2(\eta/N)fh + (\eta/N)^2f^2N|\mathbf x|^2}} .

**Vectors.** The weights J and the teacher B are explicit vectors, and so are the inputs.

Runs take turns in the batch elements of a program: a run that has passed the threshold makes room for the next one, so
that a batch costs the mean time of its runs, not the longest one. Random numbers belong to a batch element and a block
of steps. A run depends on earlier runs of its batch only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.numerics.gaussian import Array
from statmech.numerics.random_numbers import BatchSlice, draw_chi, draw_normals_and_uniforms, fold_in, wrap_key_data
from statmech.parameters.parameter_fields import RealParameterFamily, get_real_parameter_family
from statmech.runtime.compiled_programs import WIDE_VECTOR_OPTIONS, CachedProgram
from statmech.students.label_teachers import EdgeLabels
from statmech.students.sphere_units import LearningTask

BATCH_RUNS = 256  # runs that take turns in the batch elements
BATCH_WIDTH = 32  # batch elements, unless times are recorded
CHAIN_BLOCK_STEPS, VECTOR_BLOCK_STEPS = 64, 8  # steps whose random numbers are drawn together
CHAIN_NAME = "the cosine with the teacher in its exact law at finite N (simulate.online.fixed_length_engine)"
VECTOR_NAME = "weight vectors of fixed length at finite N (simulate.online.fixed_length_engine)"


@dataclass(frozen=True)
class FixedLengthProgram:
    """Static arguments of the compiled program. One program is compiled for each combination."""

    unit: RealParameterFamily
    error: str
    num_edges: int  # 0 for outputs
    has_trial: bool
    is_even: bool  # R and -R are equivalent, and the threshold is one of |R|
    N: int  # 0 for the chain of R
    num_runs: int
    num_records: int
    has_threshold: bool

    @property
    def block_steps(self) -> int:
        """Steps whose random numbers are drawn together."""
        return VECTOR_BLOCK_STEPS if self.N else CHAIN_BLOCK_STEPS

    @property
    def width(self) -> int:
        """Batch elements: all runs if times are recorded, which run side by side."""
        return self.num_runs if self.num_records else min(BATCH_WIDTH, self.num_runs)

    @property
    def batch_slice(self) -> BatchSlice:
        """Slice of the batch elements, so that the random numbers do not depend on the number of runs."""
        return BatchSlice(jnp.uint32(0), self.width, BATCH_RUNS if self.num_records else BATCH_WIDTH)


class FixedLengthArguments(NamedTuple):
    """Run-time arguments of a program: numbers of the task, the learning rate, N, the threshold and the last step."""

    unit_parameters: dict[str, Array]
    edges: Array
    w: Array
    v: Array
    flip: Array
    noise: Array
    trial: Array
    eta: Array
    N: Array
    target: Array
    max_steps: Array


class RunState(NamedTuple):
    """State of the batch elements: cosines or vectors, runs, their steps and steps of passage, -1 before it.

    `next_run` is the first run that has not started, `block` the number of blocks done, and `results` has the steps of
    passage of finished runs. Its last entry collects elements without a run.
    """

    unit: Any
    run: Array
    steps: Array
    passed: Array
    next_run: Array
    block: Array
    results: Array


def simulate_runs(
    task: LearningTask,
    *,
    eta: float,
    N: int,
    target: float | None,
    is_even: bool,
    num_runs: int,
    key: np.ndarray,
    recorded_steps: np.ndarray,
    max_steps: int,
    uses_vectors: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Simulate runs of a unit on the sphere, and return their steps of passage (runs,) and cosines (runs, T).

    Parameters
    ----------
    task
        The unit, its teacher, its error and noise.
    eta, N
        Learning rate and input dimension.
    target, is_even
        The cosine that ends a run, or None, and whether it is the threshold of |R|.
    num_runs, key
        Number of runs, at most `BATCH_RUNS`, and data (2,) of their random key.
    recorded_steps
        Increasing numbers of steps (T,): R is recorded after these steps.
    max_steps
        Number of steps before a run is cut. Its step of passage is -1.
    uses_vectors
        Whether weights are simulated instead of R.
    """
    teacher = task.teacher
    program = FixedLengthProgram(
        get_real_parameter_family(task.unit),
        task.error,
        len(teacher.edges) if teacher else 0,
        task.trial is not None,
        is_even,
        N if uses_vectors else 0,
        num_runs,
        len(recorded_steps),
        target is not None,
    )
    numbers = (teacher.w if teacher else 1.0, task.v, task.flip, task.noise, task.trial or 0.0)
    w, v, flip, noise, trial = map(np.float64, numbers)
    arguments = FixedLengthArguments(
        unit_parameters={name: np.float64(getattr(task.unit, name)) for name in program.unit.real_parameter_names},
        edges=np.array(teacher.edges if teacher else (), float),
        w=w,
        v=v,
        flip=flip,
        noise=noise,
        trial=trial,
        eta=np.float64(eta),
        N=np.float64(N),
        target=np.float64(1.0 if target is None else target),
        max_steps=np.int64(max_steps),
    )
    passed, records = _simulate_program(program, key, arguments, np.asarray(recorded_steps, np.int64))
    return np.asarray(passed), np.asarray(records).T


@partial(CachedProgram, options=lambda program: [WIDE_VECTOR_OPTIONS])
def _simulate_program(
    program: FixedLengthProgram, key: Array, arguments: FixedLengthArguments, recorded_steps: Array
) -> tuple[Array, Array]:
    """Simulate all runs, and return their steps of passage (runs,) and cosines (T, runs)."""
    keys = tuple(fold_in(wrap_key_data(key), number) for number in (0, 1))
    teacher = EdgeLabels(tuple(arguments.edges[i] for i in range(program.num_edges)), arguments.w)
    task = LearningTask(
        program.unit(**arguments.unit_parameters),
        teacher if program.num_edges else None,
        arguments.v,
        program.error,
        arguments.flip,
        arguments.noise,
        arguments.trial if program.has_trial else None,
    )
    width = program.width
    unit = _draw_start(program, arguments, fold_in(keys[0], 0))
    state = RunState(
        unit,
        jnp.arange(width),
        jnp.zeros(width, np.int64),
        jnp.where(_has_passed(program, arguments, unit), 0, -1),
        jnp.int64(width),
        jnp.int64(0),
        jnp.full(program.num_runs + 1, -1, np.int64),
    )
    block = partial(_advance_block, program, task, arguments, keys[1])

    def record(state: RunState, stop: Array) -> tuple[RunState, Array]:
        """Advance runs that are side by side to a recorded step, and return their cosines."""
        state = jax.lax.while_loop(
            lambda state: state.steps[0] < stop, lambda state: block(state, stop - state.steps[0]), state
        )
        return state, _compute_cosine(program, state.unit)

    state, records = jax.lax.scan(record, state, recorded_steps)
    if program.has_threshold:
        state = jax.lax.while_loop(
            lambda state: jnp.any(state.run < program.num_runs),
            lambda state: _replace_finished_runs(program, arguments, keys[0], block(state, program.block_steps)),
            _replace_finished_runs(program, arguments, keys[0], state),
        )
    return state.results[:-1], records


def _compute_cosine(program: FixedLengthProgram, unit: Any) -> Array:
    """Return the cosines (width,) of units with their teachers."""
    if not program.N:
        return unit
    weights, teacher = unit
    return jnp.sum(weights * teacher, axis=0) / program.N


def _has_passed(program: FixedLengthProgram, arguments: FixedLengthArguments, unit: Any) -> Array:
    """Return True for units (width,) whose cosine has reached the threshold."""
    R = _compute_cosine(program, unit)
    return (jnp.abs(R) if program.is_even else R) >= arguments.target


def _draw_start(program: FixedLengthProgram, arguments: FixedLengthArguments, key: Array) -> Any:
    """Draw random directions of the units: cosines (width,), or weights and teachers (N, width)."""
    width, part = program.width, program.batch_slice
    if program.N:
        normals = draw_normals_and_uniforms(key, (2, program.N, width), (0,), part)[0].astype(float)
        weights, teacher = normals * jnp.sqrt(program.N / jnp.sum(normals**2, axis=1, keepdims=True))
        return weights, teacher
    a = draw_normals_and_uniforms(fold_in(key, 0), (2, width), (0,), part)[0][0].astype(float)
    chi = draw_chi(fold_in(key, 1), arguments.N - 1, (2, width), part)[0]
    return a / jnp.sqrt(a * a + chi * chi)


def _replace_finished_runs(
    program: FixedLengthProgram, arguments: FixedLengthArguments, key: Array, state: RunState
) -> RunState:
    """Store the results of finished runs, and start the next runs in their batch elements."""
    finished = (state.passed >= 0) | (state.steps >= arguments.max_steps)

    def replace_runs(state: RunState) -> RunState:
        results = state.results.at[jnp.where(finished, state.run, program.num_runs)].set(
            jnp.where(state.run < program.num_runs, state.passed, -1)
        )
        order = jnp.cumsum(finished) - 1
        run = jnp.where(finished, jnp.minimum(state.next_run + order, program.num_runs), state.run)
        start = _draw_start(program, arguments, fold_in(key, state.block + 1))
        unit = jax.tree.map(lambda new, old: jnp.where(finished, new, old), start, state.unit)
        started = jnp.where(_has_passed(program, arguments, unit), 0, -1)
        return RunState(
            unit,
            run,
            jnp.where(finished, 0, state.steps),
            jnp.where(finished, started, state.passed),
            state.next_run + jnp.sum(finished),
            state.block,
            results,
        )

    return jax.lax.cond(jnp.any(finished), replace_runs, lambda state: state, state)


def _advance_block(
    program: FixedLengthProgram,
    task: LearningTask,
    arguments: FixedLengthArguments,
    key: Array,
    state: RunState,
    limit: Array | int,
) -> RunState:
    """Advance all runs by one block of steps, or by the first `limit` steps of the block."""
    block_key = fold_in(key, state.block)
    draws = _draw_block(program, arguments, block_key)

    def step(carry: tuple[Any, Array], xs: tuple[Array, tuple[Array, ...]]) -> tuple[tuple[Any, Array], None]:
        unit, passed = carry
        index, examples = xs
        new = (_step_vectors if program.N else _step_chain)(task, arguments, unit, *examples)
        unit = jax.tree.map(lambda new, old: jnp.where(index < limit, new, old), new, unit)
        passes = (passed < 0) & _has_passed(program, arguments, unit)
        return (unit, jnp.where(passes, state.steps + index + 1, passed)), None

    count = program.block_steps
    (unit, passed), _ = jax.lax.scan(step, (state.unit, state.passed), (jnp.arange(count), draws))
    return state._replace(
        unit=unit, passed=passed, steps=state.steps + jnp.minimum(count, limit), block=state.block + 1
    )


def _draw_block(program: FixedLengthProgram, arguments: FixedLengthArguments, key: Array) -> tuple[Array, ...]:
    """Draw the examples of a block: inputs or their components, noise and uniforms, one row per step."""
    steps, width, part = program.block_steps, program.width, program.batch_slice
    rows = program.N + program.N % 2 if program.N else 2
    shapes = (steps, rows + 2, width), (steps, 2, width)
    normals, uniforms = draw_normals_and_uniforms(fold_in(key, 0), *shapes, part)
    normals = normals.astype(float)
    noise, coin = normals[:, rows], uniforms[:, 0]
    if program.N:
        return normals[:, : program.N], noise, coin
    chi = draw_chi(fold_in(key, 1), arguments.N - 2, (steps, width), part)
    return normals[:, 0], normals[:, 1], chi, noise, coin


def _compute_teacher_value(
    task: LearningTask, arguments: FixedLengthArguments, u: Array, noise: Array, coin: Array
) -> Array:
    """Return the noisy label or output of teachers with fields u (width,)."""
    if task.teacher is None:
        return task.unit.both(u)[0] + arguments.noise * noise
    label = task.teacher.label(u)
    return jnp.where(coin < arguments.flip, -label, label)


def _step_chain(
    task: LearningTask, arguments: FixedLengthArguments, R: Array, u: Array, w: Array, chi: Array, *randoms: Array
) -> Array:
    """Return the cosines (width,) after one step of the chain."""
    h = R * u + jnp.sqrt(1 - R * R) * w
    square = u * u + w * w + chi * chi
    f = task.compute_change(_compute_teacher_value(task, arguments, u, *randoms), h, square / arguments.N)
    change = arguments.eta / arguments.N * f
    new = (R + change * u) / jnp.sqrt(1 + 2 * change * h + change * change * square)
    return jnp.clip(new, -1.0, 1.0)


def _step_vectors(
    task: LearningTask, arguments: FixedLengthArguments, unit: tuple[Array, Array], inputs: Array, *randoms: Array
) -> tuple[Array, Array]:
    """Return the weights and teachers (N, width) after one step with inputs sqrt(N) x (N, width)."""
    weights, teacher = unit
    x = inputs / jnp.sqrt(arguments.N)
    u, h = jnp.sum(teacher * x, axis=0), jnp.sum(weights * x, axis=0)
    y = _compute_teacher_value(task, arguments, u, *randoms)
    longer = weights + arguments.eta * task.compute_change(y, h, jnp.sum(x * x, axis=0)) * x
    return longer * jnp.sqrt(arguments.N / jnp.sum(longer**2, axis=0)), teacher
