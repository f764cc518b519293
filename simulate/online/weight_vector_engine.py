r"""The direct engine: N-dimensional weight vectors that learn from inputs drawn one block at a time.

M inputs are drawn; one matrix product gives all their fields and one their inner products; the M steps are taken in
the space of fields (`simulate.online.learning_steps`); one product updates the weights. This equals the
step-by-step simulation to rounding, with the N-dimensional work in matrix products.

Inputs of any distribution of `statmech.inputs.input_distributions` are drawn in float32, for any precision of the
weights: drawing limits this engine, and float64 normals cost five times as much. This truncates normals at 5.4 standard
deviations. Where angles do not determine the errors, the errors of students, vote and mean are measured on new inputs.
For inputs that are Gaussian axis by axis (`statmech.inputs.input_distributions.GroupedInputs`) the angles of fields
determine the errors: the angles of weights times the deviations of the axes. If the inputs define the teacher's power
in each group, the drawn teacher is scaled to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from operator import sub
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simulate.online.learning_steps import (
    EngineRecord,
    EngineTask,
    LearnerStateArrays,
    OnlineLearner,
    SignedRows,
    StepRates,
    add_previous_students,
    compute_averaging_weights,
    compute_block_modulations,
    compute_drifting_teacher_path,
    compute_step_rates,
    subtract_fraction,
)
from statmech.inputs.input_distributions import InputAxes, Inputs
from statmech.numerics.gaussian import Array
from statmech.numerics.random_numbers import draw_normals, fold_in_key_data, wrap_key_data
from statmech.parameters.parameter_fields import RealParameterFamily
from statmech.parameters.schedules_and_controls import TimeDependence
from statmech.runtime.compiled_programs import MULTI_THREAD_OPTIONS, CachedProgram

NUM_ERROR_INPUTS, NUM_ERROR_PARTS = 4096, 16  # drawn in parts to save memory
VECTOR_BLOCK_STEPS = 16  # a compromise between thin matrix products and the cost of inner products
# From this N, several threads share an operation. At smaller N, sharing costs CPU time without being faster.
MIN_MULTITHREADED_N = 30_000

InputSampler = Callable[[Array, int], Array]  # (key, M) -> inputs (M, N)

NAME = "weight vectors at finite N (simulate.online.weight_vector_engine)"


@dataclass(frozen=True)
class VectorProgram:
    """Static arguments of the compiled program.

    One program is compiled for each combination.
    """

    learner: RealParameterFamily
    inputs: Inputs
    K: int
    teachers: int
    N: int
    dtype: str
    drifting: bool  # whether the teacher moves
    examples: int = 1  # examples per step

    @property
    def block(self) -> int:
        """The number of steps per block."""
        return VECTOR_BLOCK_STEPS if self.examples == 1 else 1


class VectorArguments(NamedTuple):
    """Run-time arguments of a program.

    The learner's parameters, the students' coordinates (K, teachers + K) or None to draw them with the deviation
    `scale`, the learner's saved state, the inputs' table, changes with time, and the first averaged step, or None
    without averages of the students.
    """

    parameters: dict[str, Array]
    start: Array | None
    scale: Array
    initial_learner_state: LearnerStateArrays
    table: Array
    changes: TimeDependence | None
    first_averaged_step: Array | None = None


class VectorState(NamedTuple):
    """Vectors (teachers + K, N) of the teachers' basis and the students, and the learner's state.

    The teachers' basis consists of orthogonal vectors of length sqrt(N): the teacher itself if there is one.
    """

    vectors: Array
    state: LearnerStateArrays


def batch(K: int) -> int:
    """Return the number of seeds per unit of work, for K students."""
    return 4


def estimate_unit_bytes(
    K: int, teachers: int, N: float, dtype: str, drifting: bool = False, has_exact_errors: bool = True
) -> int:
    """Return the memory in bytes of one unit of work.

    XLA holds the inputs of a block three times, as drawn and as used.

    Parameters
    ----------
    K, teachers
        Numbers of students and teachers.
    N
        Input dimension.
    dtype
        Precision of the vectors.
    drifting
        True for drifting teachers, which need as many directions as inputs.
    has_exact_errors
        False if errors are measured on new inputs.
    """
    num_vectors, size = 2 * VECTOR_BLOCK_STEPS if drifting else VECTOR_BLOCK_STEPS, np.dtype(dtype).itemsize
    measured = 0 if has_exact_errors else size * NUM_ERROR_INPUTS // NUM_ERROR_PARTS
    return int(N * ((2 * size + 4) * num_vectors + 3 * (size + 4) * (K + teachers) + measured))


def run(task: EngineTask, key: np.ndarray, steps: np.ndarray, part: slice = slice(None)) -> EngineRecord:
    """Simulate the weight vectors of a batch of seeds, or a part of it, and record students at `steps` (T,).

    The random numbers derive from a key (2,).
    """
    keys = np.stack([fold_in_key_data(key, seed) for seed in range(batch(task.K))[part]])
    program = VectorProgram(
        task.learner, task.inputs, task.K, task.M, int(task.N), task.dtype, task.drifting, task.batch
    )
    table, scale = task.inputs.table(program.N), np.asarray(task.scale, task.dtype)
    parameters, changes = task.numbers()
    first_averaged_step = None if task.first_averaged_step is None else np.int64(task.first_averaged_step)
    problem = VectorArguments(
        parameters,
        task.initial_coordinates,
        scale,
        task.initial_learner_state,
        table,
        changes,
        first_averaged_step,
    )
    # slicing JAX arrays would compile programs
    results = jax.tree.map(np.asarray, _simulate_all_seeds(program, keys, problem, steps))
    parallel, perpendicular, state, measured, *fields = results
    return EngineRecord(parallel, perpendicular, next(iter(jax.tree.leaves(state)), None), measured, *fields)


@partial(CachedProgram, options=lambda program: [MULTI_THREAD_OPTIONS] if program.N >= MIN_MULTITHREADED_N else [])
def _simulate_all_seeds(program: VectorProgram, keys: Array, problem: VectorArguments, steps: Array) -> tuple[Any, ...]:
    """Simulate all seeds and return the arrays of their record."""
    # one seed after the other, because a block of inputs of one seed fills a core's cache
    return jax.lax.map(lambda key: _simulate_seed(program, key, problem, steps), wrap_key_data(keys))


def _simulate_seed(program: VectorProgram, key: Array, problem: VectorArguments, steps: Array) -> tuple[Any, ...]:
    """Simulate the weight vectors of one seed from its key."""
    draw = partial(_draw_inputs, program, problem.table)
    learner = program.learner(**problem.parameters, N=program.N)
    start_key, step_key, test_key = jax.random.split(key, 3)
    carried = _make_initial_state(program, start_key, learner, problem)

    def advance(carry: tuple[VectorState, Array], until: Array) -> tuple[tuple[VectorState, Array], tuple[Any, ...]]:
        carried, steps_done = carry

        def block(index: Array, carried: VectorState) -> VectorState:
            first = steps_done + index * program.block
            active = first + jnp.arange(program.block) < until
            averaged = None
            if problem.first_averaged_step is not None:
                averaged = active & (first + jnp.arange(program.block) >= problem.first_averaged_step)
            block_rates = problem.changes and compute_step_rates(
                problem.changes, learner.eta, np.float64(program.N), first, active, program.dtype
            )
            key = jax.random.fold_in(step_key, first)
            return (_advance_block if program.examples == 1 else _advance_batch_step)(
                program, learner, draw, key, carried, active, averaged, block_rates
            )

        carried = jax.lax.fori_loop(0, (until - steps_done + program.block - 1) // program.block, block, carried)
        return (carried, until), _make_record(program, learner, draw, jax.random.fold_in(test_key, until), carried)

    return jax.lax.scan(advance, (carried, jnp.zeros_like(steps[0])), steps)[1]


def _make_initial_state(
    program: VectorProgram, key: Array, learner: OnlineLearner, problem: VectorArguments
) -> VectorState:
    """Return the initial vectors of the teachers' basis and students, drawn or constructed from coordinates."""
    teachers, N, dtype = program.teachers, program.N, program.dtype
    learning = program.K if problem.first_averaged_step is None else program.K // 2
    vectors = jax.random.normal(key, (teachers + learning, N), dtype)
    axes = program.inputs.axes(N)
    if axes is not None and axes.powers is not None:
        teacher_vectors = vectors[:teachers] if teachers == 1 else _orthogonalise_in_groups(vectors[:teachers], axes)
        vectors = vectors.at[:teachers].set(_scale_to_group_powers(teacher_vectors, axes))
    if problem.start is None:
        vectors = vectors.at[:teachers].set(_orthogonalise(vectors[:teachers])).at[teachers:].multiply(problem.scale)
    else:
        basis = jnp.linalg.qr(vectors.T)[0].T * N**0.5
        vectors = jnp.concatenate([basis[:teachers], jnp.asarray(problem.start, dtype) @ basis])
    squared_length = jnp.sum(vectors[teachers:] ** 2, axis=1) / N
    vectors = jnp.pad(vectors, ((0, program.K - learning), (0, 0)))  # averages start at 0
    return VectorState(vectors, learner.start_block(problem.initial_learner_state, squared_length))


def _scale_to_group_powers(vectors: Array, axes: InputAxes) -> Array:
    """Scale vectors (n, N) to the squared length N, with N times the given power in each group of axes."""
    assert axes.group is not None
    squares = jax.ops.segment_sum((vectors**2).T, axes.group, vectors.shape[1])[axes.group]  # (N, n)
    return vectors * jnp.sqrt(vectors.shape[1] * np.asarray(axes.powers, vectors.dtype)[:, None] / squares).T


def _orthogonalise_in_groups(vectors: Array, axes: InputAxes) -> Array:
    """Orthogonalise weight vectors (n, N) within each group that has at least n axes."""
    assert axes.group is not None
    wide = np.bincount(axes.group)[axes.group] >= len(vectors)
    orthogonal: list[Array] = []
    for vector in vectors:
        for previous in orthogonal:
            product, square = (
                jax.ops.segment_sum(part, axes.group, vector.size)[axes.group]
                for part in (vector * previous, previous**2)
            )
            vector = vector - jnp.where(wide, product / square, 0.0) * previous
        orthogonal.append(vector)
    return jnp.stack(orthogonal)


def _orthogonalise(vectors: Array) -> Array:
    """Return n orthogonal weight vectors (n, N) of length sqrt(N) that span the same space."""
    n, N = vectors.shape
    if n == 1:
        return vectors * (N**0.5 / jnp.linalg.norm(vectors[0]))
    return jnp.linalg.qr(vectors.T)[0].T * N**0.5


def _advance_block(
    program: VectorProgram,
    learner: OnlineLearner,
    draw: InputSampler,
    key: Array,
    carried: VectorState,
    active: Array,
    averaged: Array | None,
    block_rates: StepRates | None,
) -> VectorState:
    """Advance the weight vectors of teachers and students by one block of steps.

    The learner's state is updated step by step: summing squared lengths again would cost more than both matrix
    products.
    """
    vectors, state = carried
    dtype, M, teachers = vectors.dtype, active.size, program.teachers
    input_key, label_key = jax.random.split(key)
    x = draw(input_key, M)
    noise = _draw_noise(learner, label_key, M, dtype)
    centres = learner.input_means(noise)
    if centres is not None:
        x = x + (centres[:, None] * vectors[0] / program.N).astype(dtype)
    fields, inner, end_teacher = vectors @ x.T, x @ x.T, None
    if block_rates and program.drifting:
        teacher_fields, end_teacher = _drift_teacher(
            jax.random.fold_in(key, 2), vectors[0], x, fields[0], inner, block_rates.drift
        )
        fields = fields.at[0].set(teacher_fields)
    averaging = compute_averaging_weights(averaged, block_rates, jnp.asarray(program.N, dtype))
    learning = program.K if averaging is None else program.K // 2
    y, h = learner.convert_to_teacher_values(fields[:teachers]), fields[teachers : teachers + learning]
    examples = learner.examples(noise, active)
    f, state = compute_block_modulations(learner, y.T, h.T, inner, state, examples, block_rates, averaging)
    gain = jnp.pad(f.T, ((teachers, 0), (0, 0))) @ x  # teachers do not learn
    if averaging is not None:
        gain = gain.at[teachers:].set(
            add_previous_students(gain[teachers:], vectors[teachers:], block_rates, averaging)
        )
    elif block_rates is not None:
        gain = gain.at[teachers:].add(-block_rates.decayed_fraction_in_block * vectors[teachers:])
    vectors = vectors + gain
    return VectorState(vectors if end_teacher is None else vectors.at[0].set(end_teacher), state)


def _advance_batch_step(
    program: VectorProgram,
    learner: OnlineLearner,
    draw: InputSampler,
    key: Array,
    carried: VectorState,
    active: Array,
    averaged: Array | None,
    block_rates: StepRates | None,
) -> VectorState:
    """Advance the weight vectors of students by one step of several examples.

    All examples use the same students, and the step is the mean of their changes.
    """
    vectors, state = carried
    teachers, count = program.teachers, program.examples
    input_key, label_key = jax.random.split(key)
    x, noise = draw(input_key, count), _draw_noise(learner, label_key, count, vectors.dtype)
    fields, step_rates = vectors @ x.T, jax.tree.map(lambda rates: rates[0], block_rates)
    before = jax.tree.map(lambda part: part[:, None], state)
    y = learner.convert_to_teacher_values(fields[:teachers])
    h = fields[teachers:]
    examples = learner.examples(noise, active)
    f, after = learner.step(before, y, h, jnp.sum(x * x, axis=1), examples, step_rates)
    gain = subtract_fraction(f @ x / count, vectors[teachers:], block_rates and block_rates.decayed_fraction_in_block)
    vectors = vectors.at[teachers:].add(gain)
    saved_state = learner.saved_state(jax.tree.map(lambda part: part.mean(1), after))
    return VectorState(vectors, learner.start_block(saved_state, jnp.sum(vectors[teachers:] ** 2, axis=1) / program.N))


def _draw_noise(learner: OnlineLearner, key: Array, count: int, dtype: Any) -> Any:
    """Draw the learner's noise of `count` examples for the engine of weight vectors."""
    uniforms = jax.random.uniform(key, (learner.uniforms_per_step * count,), jnp.float32)
    # keeps the normals independent of the uniforms
    noise_key = jax.random.fold_in(key, 0) if learner.uniforms_per_step else key
    return learner.noise(draw_normals(noise_key, (learner.normals_per_step * count,)), uniforms, dtype)


def _drift_teacher(
    key: Array, teacher: Array, x: Array, fields: Array, inner: Array, drift: Array
) -> tuple[Array, Array]:
    """Compute the fields (M,) of a teacher that turns after each input, and its final position (N,)."""
    M, N = x.shape
    directions = (draw_normals(key, (M, N)) / np.float32(N**0.5)).astype(x.dtype)
    cross_products = directions @ x.T
    products = jnp.block([[inner, cross_products.T], [cross_products, directions @ directions.T]])
    fields, path = compute_drifting_teacher_path(jnp.concatenate([fields, directions @ teacher]), products, drift, N)
    end_teacher = path[0] * teacher + N**0.5 * (path[1:] @ (N**0.5 * directions))
    # the length is restored, because rounding would accumulate
    return fields, end_teacher * (N**0.5 / jnp.linalg.norm(end_teacher))


def _draw_inputs(program: VectorProgram, table: Array, key: Array, M: int) -> Array:
    return program.inputs.draw(key, M, program.N, table).astype(program.dtype)


def _make_record(
    program: VectorProgram, learner: OnlineLearner, draw: InputSampler, key: Array, carried: VectorState
) -> tuple[Any, ...]:
    basis, students = carried.vectors[: program.teachers], carried.vectors[program.teachers :]
    parallel, perpendicular = _compute_overlaps(basis, students)
    measured = None if program.inputs.has_errors_given_by_angles else _measure_errors(draw, key, basis[0], students)
    parts = parallel, perpendicular, learner.saved_state(carried.state), measured
    if isinstance(program.inputs, SignedRows):
        return *parts, None, None, None, students
    if not program.inputs.has_field_variables:
        return parts
    return *parts, *(
        _decompose_student_fields if learner.errors_need_field_variances else _compute_teacher_field_overlaps
    )(program, basis, students)


def _compute_overlaps(basis: Array, students: Array) -> tuple[Array, Array]:
    """Return the students' components (K, teachers) along a basis, and the Gram matrix (K, K) of the rest."""
    N = basis.shape[1]
    parallel = [students @ axis / N for axis in basis]
    perpendicular = reduce(sub, (part[:, None] * axis for part, axis in zip(parallel, basis, strict=True)), students)
    return jnp.stack(parallel, axis=1), perpendicular @ perpendicular.T / N


def _compute_teacher_field_overlaps(program: VectorProgram, basis: Array, students: Array) -> tuple[Array, Array]:
    """Return the components of the students' fields along the teacher's field, and the covariances of the rest.

    There is one teacher.
    """
    deviation = jnp.asarray(program.inputs.table(program.N), basis.dtype)
    field_axis = basis[0] * deviation
    return _compute_overlaps(field_axis[None] * (program.N**0.5 / jnp.linalg.norm(field_axis)), students * deviation)


def _decompose_student_fields(program: VectorProgram, basis: Array, students: Array) -> tuple[Array, Array, Array]:
    """Decompose the students' fields along axes that span the fields of the teachers' basis.

    Returns the components, the covariances of the rest, and the coordinates of the basis on these axes.
    """
    deviation, root = jnp.asarray(program.inputs.table(program.N), basis.dtype), program.N**0.5
    axes, coordinates = jnp.linalg.qr((basis * deviation).T)
    return *_compute_overlaps(axes.T * root, students * deviation), coordinates.T / root


def _measure_errors(draw: InputSampler, key: Array, teacher: Array, students: Array) -> Array:
    """Measure the errors (K + 2,) of the students' weight vectors, their vote and their mean on new inputs."""

    def wrong(key: Array) -> Array:
        x = draw(key, NUM_ERROR_INPUTS // NUM_ERROR_PARTS)
        label, fields = jnp.sign(x @ teacher), x @ students.T
        vote, mean = jnp.sign(fields).sum(axis=1, keepdims=True), fields.sum(axis=1, keepdims=True)
        answers = jnp.sign(jnp.concatenate([fields, vote, mean], axis=1))
        return jnp.mean((1 - label[:, None] * answers) / 2, axis=0)  # a tie counts 1/2, like a fair coin

    return jax.lax.map(wrong, jax.random.split(key, NUM_ERROR_PARTS)).mean(axis=0)
