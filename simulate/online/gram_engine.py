r"""The Gram engine: the exact distribution of the order parameters at finite N, at a cost per example independent of N.

For inputs :math:`\mathbf x\sim N(0, I/N)` used once, only the span of the teacher's :math:`\mathbf B_m` and the
students' :math:`\mathbf J_k` matters. Let :math:`e_0, e_1, \dots` be an orthonormal basis of this span that starts
with an orthonormal basis of the teachers (:math:`e_0 = \mathbf B/|\mathbf B|` for one teacher), and C the students'
coordinates, :math:`\mathbf J_k/\sqrt N = \sum_i C_{ki}e_i`. The coordinates of :math:`\sqrt N\mathbf x` on the n basis
vectors are independent normals. The remainder is orthogonal to the basis. Its direction is unknown but irrelevant, and
its length is a :math:`\chi_{N-n}` variable. With that direction as a new basis vector, an input is n normals and a chi.
A block of M steps adds M axes (the m-th input has n + m normals before its chi, which has N - n - m degrees of freedom:
the Bartlett factor of the inputs' Wishart matrix). An LQ decomposition then reduces the students to K + T axes again:
it rotates the axes behind the T teacher axes, which changes neither a teacher nor any inner product.

The change of the students in a step is defined by a learner (`simulate.online.learning_steps`): perceptrons, or the
units of a network.

A step that averages b examples presents all examples to the same students (`_advance_batch_step`). The part of the
change orthogonal to the basis is :math:`fG^\mathsf{T}`, with the students' f (K, b) and b normal vectors G. Its
products are :math:`PAA^\mathsf{T}P^\mathsf{T}` with the Cholesky factor P of :math:`ff^\mathsf{T}` and the Cholesky
factor A of a Wishart matrix: normals below the diagonal and K chis with N - n, N - n - 1, ... degrees of freedom on it,
for any b.

A drifting teacher turns after each input towards a random direction, which is a normal vector like the input. A block
has 2 M such vectors and as many axes. The teacher's path lies in their span (`simulate.online.learning_steps`). At the
block's end the axes are rotated in one plane until the first axis is the teacher again.

Nothing is approximated: order parameters have the same distribution as in `simulate.online.weight_vector_engine`,
fluctuations included, for any N (coordinates beyond the N-th axis are zero). The state is the coordinates, not the Gram
matrix, whose Cholesky factor would lose half the digits as q -> 1 and all digits for identical students. Here the rows
of identical students stay identical.

For few students the seeds are batch elements on the last axis of one wide elementwise program (`_advance_block`); the
length of this axis, seeds times tasks, is called `width`. For many students the seeds are the first axis of matrix
products and LAPACK's QR (`_advance_block_by_matrices`). The distribution is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simulate.online.learning_steps import (
    AveragingWeights,
    EngineRecord,
    EngineTask,
    LearnerStateArrays,
    OnlineLearner,
    StepRates,
    add_previous_students,
    compute_averaging_weights,
    compute_block_modulations,
    compute_drifting_teacher_path,
    compute_step_rates,
    subtract_fraction,
)
from statmech.inputs.input_distributions import Inputs
from statmech.numerics.gaussian import Array
from statmech.numerics.random_numbers import (
    BatchSlice,
    draw_chi,
    draw_normals_and_uniforms,
    fold_in,
    fold_in_key_data,
    make_generators,
    wrap_key_data,
)
from statmech.parameters.parameter_fields import RealParameterFamily
from statmech.parameters.schedules_and_controls import TimeDependence
from statmech.runtime.compiled_programs import OLD_FUSION_OPTIONS, WIDE_VECTOR_OPTIONS, CachedProgram, pad_array_length

GRAM_BLOCKS_PER_DRAW = 32  # drawn together: XLA would compute numbers drawn inside a block twice
MATRIX_BLOCKS_PER_DRAW = 4  # fewer, because these blocks have more steps
MIN_UNITS_FOR_MATRICES = 16  # minimum of K + teachers - 1 for matrix products, which are then faster
MIN_RECORDED_TIMES_PER_PROGRAM = 32  # programs for fewer recorded times would not be faster
MAX_SPLIT_BATCH_STUDENTS = 3  # with more, part of a batch does not reproduce the full batch bit for bit

# Batch elements of a program that simulates several tasks. WIDE_BATCH_WIDTH requires results that do not depend on
# the width: with three students or a drifting teacher, last digits are rounded differently.
BATCH_WIDTH, WIDE_BATCH_WIDTH = 64, 256

# JAX 0.10's XLA rounds narrow and wide programs equally; with 0.12 some last digits differ
HAS_WIDTH_INDEPENDENT_BITS = jax.__version_info__ < (0, 11)

# Up to this number of students, float32 sums over an axis take half the time without YNNPACK.
MAX_STUDENTS_WITHOUT_YNNPACK = 10
NO_YNNPACK_COMPILER_OPTIONS = {"xla_cpu_experimental_ynn_fusion_type": ""}

# Up to this number of steps, an optimised program takes longer to compile than it saves. Applies with one example per
# step and up to MAX_DIVISIBLE_STUDENTS students: other results may depend on the compiler's options bit by bit.
MAX_FAST_COMPILE_STEPS = 1e5
FAST_COMPILE_OPTIONS = OLD_FUSION_OPTIONS | {"xla_backend_optimization_level": 1}  # steps take up to 1.7 times as long

MAX_FLOAT32_LENGTH_PER_STEP = 5e5  # maximum length * N / eta with steps that float32 resolves (docs/gram_engine.md)

NAME = "order parameters in their exact law at finite N (simulate.online.gram_engine)"


def supports_inputs(inputs: Inputs) -> bool:
    """Return True if the engine is exact for these inputs.

    It is exact for Gaussian inputs with equal variances in every direction.
    """
    return inputs.has_isotropic_normal_fields


def batch(K: int) -> int:
    """Return the number of seeds per unit of work, for K students.

    The number is large enough for vectorisation and small enough for the cache.
    """
    return 64 if K <= 10 else 16


def can_split_batch(K: int, teachers: int = 1) -> bool:
    """Return True if part of a batch reproduces the full batch bit for bit.

    For more students the matrix products of the record depend on the batch.
    """
    return K + teachers - 1 <= MAX_SPLIT_BATCH_STUDENTS


def choose_steps_per_block(K: int, teachers: int = 1, drifting: bool = False) -> int:
    """Choose the number of steps per block between LQ decompositions of the coordinates.

    The LQ decomposition costs K^2 (K + M) per block, the growing basis costs M per step, or 2 M if the teacher moves.
    """
    units = K + teachers - 1
    if units < MIN_UNITS_FOR_MATRICES:
        return (1 if drifting else 2) if units == 1 else max(3, units // 2)
    return min(units, 64) // (2 if drifting else 1)


@dataclass(frozen=True)
class GramProgram:
    """Static arguments of the compiled program.

    One program is compiled for each combination.
    """

    learner: RealParameterFamily
    K: int
    teachers: int
    M: int  # steps per block
    seeds_per_call: int  # seeds per call
    dtype: str
    batch: int  # seeds of the full batch
    drifting: bool  # whether the teacher moves
    tasks: int = 1  # tasks simulated side by side
    examples: int = 1  # examples per step
    fast_compile: bool = False  # whether to compile faster, for slower steps

    @property
    def vectors(self) -> int:
        """The number of random vectors per block: inputs, and random directions of a drifting teacher."""
        return 2 * self.M if self.drifting else self.M

    @property
    def uses_matrices(self) -> bool:
        """Whether steps use matrix products, with seeds on the first axis, not elementwise operations."""
        return self.examples == 1 and self.K + self.teachers > MIN_UNITS_FOR_MATRICES


class GramArguments(NamedTuple):
    """Run-time arguments of a program: key, parameters of the learner, N, the first seed and changes with time.

    Tasks side by side have one key each, and parameters and changes for each batch element. `first_averaged_step` is
    None without averages of the students.
    """

    key: Array
    parameters: dict[str, Array]
    N: Array
    first: Array
    changes: TimeDependence | None
    first_averaged_step: Array | None = None


def run(task: EngineTask, key: np.ndarray, steps: np.ndarray, part: slice = slice(None)) -> EngineRecord:
    """Simulate a batch of seeds of a task, or a part of it, and record the students at `steps` (T,).

    The random numbers derive from a key (2,).
    """
    return EngineRecord(
        *(part if part is None else part[0] for part in simulate_task_batches(task, key[None], steps, part))
    )


def simulate_task_batches(
    task: EngineTask,
    keys: np.ndarray,
    steps: np.ndarray,
    part: slice,
    side_by_side: int = 1,
    fast_compile: bool = False,
) -> EngineRecord:
    """Simulate the students' coordinates for several tasks like `run`, each from its own key (tasks, 2).

    The arrays of the record have the shape (tasks, seeds, ...).

    Parameters
    ----------
    task
        One task, or several that differ in numbers only. Several tasks need `side_by_side` > 1.
    keys, steps, part
        As in `run`.
    side_by_side
        Number of tasks that the program simulates side by side. Fewer tasks are padded to this number.
    fast_compile
        Whether the steps take less time than compiling for speed would. Steps of several examples are always compiled
        for speed, because they would round differently.
    """
    size, count, tasks = batch(task.K), len(steps), len(keys)
    first, last, _ = part.indices(size)
    width, blocks = last - first, choose_steps_per_block(task.K, task.M, task.drifting) if task.batch == 1 else 1
    fast_compile = fast_compile and task.batch == 1
    program = GramProgram(
        task.learner,
        task.K,
        task.M,
        blocks,
        width,
        task.dtype,
        size,
        task.drifting,
        side_by_side,
        task.batch,
        fast_compile,
    )
    students = _make_initial_students(task, fold_in_key_data(keys, 0), last)[..., first:].astype(task.dtype)
    keys = fold_in_key_data(keys, 1)
    # matrix products of many students depend on the number of recorded times in their last bits
    steps = steps if program.uses_matrices else pad_recorded_steps(steps)
    # the last task fills up the last call
    calls = np.minimum(np.arange(0, tasks, side_by_side)[:, None] + np.arange(side_by_side), tasks - 1)
    records = [
        _run_program(program, task, indices, keys[indices], students[indices], first, steps) for indices in calls
    ]
    return EngineRecord(*(np.concatenate(parts)[:tasks, :, :count] for parts in zip(*records, strict=True)))


def _run_program(
    program: GramProgram,
    task: EngineTask,
    indices: np.ndarray,
    keys: np.ndarray,
    students: np.ndarray,
    first_seed: int,
    steps: np.ndarray,
) -> list[np.ndarray]:
    """Run a program that simulates the coordinates of several tasks side by side, and return their record.

    The arrays of the record have the shape (tasks, seeds, ...).
    """
    alone, width = program.tasks == 1, program.seeds_per_call
    parameters, changes = task.numbers(indices[0] if alone else np.repeat(indices, width))
    keys = keys[0] if alone else keys
    students = np.moveaxis(students, 0, -2).reshape(*students.shape[1:3], -1)
    state = jax.tree.map(
        lambda values: np.repeat(values[..., None], students.shape[-1], axis=-1), task.initial_learner_state
    )
    first_averaged_step = None if task.first_averaged_step is None else np.int64(task.first_averaged_step)
    problem = GramArguments(keys, parameters, np.float64(task.N), np.uint32(first_seed), changes, first_averaged_step)
    # slicing JAX arrays would compile programs
    parts = map(np.asarray, _simulate_all_seeds(program, problem, students, state, steps))
    return [part.reshape(program.tasks, width, *part.shape[1:]) for part in parts]


def pad_recorded_steps(steps: np.ndarray) -> np.ndarray:
    """Pad recorded steps (T,) by repeating the last step, which costs no simulation time.

    One program then serves several numbers of recorded times.
    """
    return np.pad(
        steps, (0, pad_array_length(max(MIN_RECORDED_TIMES_PER_PROGRAM, len(steps))) - len(steps)), mode="edge"
    )


def choose_compiler_options(program: Any) -> list[dict[str, Any]]:
    """Return the compiler's options for a program of one of the Gram engines."""
    return [WIDE_VECTOR_OPTIONS] + (
        [NO_YNNPACK_COMPILER_OPTIONS]
        if program.dtype == "float32" and program.K <= MAX_STUDENTS_WITHOUT_YNNPACK
        else []
    )


def _choose_gram_options(program: GramProgram) -> list[dict[str, Any]]:
    return choose_compiler_options(program) + ([FAST_COMPILE_OPTIONS] if program.fast_compile else [])


@partial(CachedProgram, options=_choose_gram_options)
def _simulate_all_seeds(
    program: GramProgram, problem: GramArguments, students: Array, state: LearnerStateArrays, steps: Array
) -> tuple[Array, ...]:
    """Simulate the students' coordinates for all seeds of a call, and return their record.

    The record has the students' components parallel and perpendicular to the teachers, and the learner's saved state.
    """
    problem = problem._replace(key=wrap_key_data(problem.key))
    by_matrices, N = program.uses_matrices, problem.N.astype(program.dtype)
    learner = program.learner(**problem.parameters, N=N, units=-1 if by_matrices else 0)
    of_many = _advance_block_by_matrices if by_matrices else _advance_block
    block = partial(of_many if program.examples == 1 else _advance_batch_step, learner, program.teachers)
    together = MATRIX_BLOCKS_PER_DRAW if by_matrices else GRAM_BLOCKS_PER_DRAW
    stride = program.M * together
    carried = students, state
    if by_matrices:
        carried = _move_seeds_first(carried)

    def advance(carry: tuple[Any, Array], until: Array) -> tuple[tuple[Any, Array], tuple[Any, ...]]:
        carried, steps_done = carry

        def blocks(index: Array, carried: Any) -> Any:
            first = steps_done + index * stride
            randoms = _draw_block_randoms(program, problem, learner, fold_in(problem.key, first), together)
            active = (first + jnp.arange(stride) < until).reshape(together, program.M)
            averaged = None
            if problem.first_averaged_step is not None:
                averaged = active & (first + jnp.arange(stride) >= problem.first_averaged_step).reshape(active.shape)
            block_rates = problem.changes and compute_step_rates(
                problem.changes, learner.eta, problem.N, first, active, program.dtype
            )
            return jax.lax.scan(block, carried, (*randoms, active, averaged, block_rates))[0]

        carried = jax.lax.fori_loop(0, (until - steps_done + stride - 1) // stride, blocks, carried)
        return (carried, until), _decompose_students(
            program.teachers, *(carried if by_matrices else _move_seeds_first(carried))
        )

    _, record = jax.lax.scan(advance, (carried, jnp.zeros_like(steps[0])), steps)
    return tuple(jnp.swapaxes(part, 0, 1) for part in record)


def _move_seeds_first(arrays: Any) -> Any:
    return jax.tree.map(lambda values: jnp.moveaxis(values, -1, 0), arrays)


def _advance_block(
    learner: OnlineLearner, teachers: int, carried: tuple[Array, LearnerStateArrays], xs: tuple[Any, ...]
) -> tuple[tuple[Array, LearnerStateArrays], None]:
    """Advance the students' coordinates (K, n, width) by M steps.

    Sums are unrolled: XLA reduces inner axes element by element.
    """
    (students, state), (normals, chi, noise, active, averaged, block_rates) = carried, xs
    K, n, width = students.shape
    M, vectors = active.size, chi.shape[0]
    z = make_input_rows(normals, chi, n)  # (vectors, n + vectors, width)
    learning = students if averaged is None else students[: K // 2]
    averaging = compute_averaging_weights(averaged, block_rates, learner.N)
    student_fields = add_in_order(learning[None, :, i] * z[:M, None, i] for i in range(n))
    inner = add_in_order(z[:, None, i] * z[None, :, i] for i in range(n + vectors)) / learner.N
    if vectors > M:
        fields, path = compute_drifting_teacher_path(z[:, 0], inner, block_rates.drift, learner.N)
        teacher = fields[:, None]
    else:
        teacher, path = jnp.swapaxes(learner.convert_to_teacher_values(jnp.swapaxes(z[:, :teachers], 0, 1)), 0, 1), None
    carry = learner.start_block(state, add_in_order(learning[:, i] ** 2 for i in range(n)))
    examples = learner.examples(noise, active)
    f, carry = compute_block_modulations(
        learner, teacher, student_fields, inner[:M, :M], carry, examples, block_rates, averaging
    )
    wide = jnp.concatenate([students, jnp.zeros((K, vectors, width), students.dtype)], axis=1)
    gain = add_in_order(f[m, :, None] * z[m, None] for m in range(M)) / learner.N
    gain = add_previous_students(gain, wide, block_rates, averaging)
    if path is not None:
        arrived = add_in_order(path[m + 1] * z[M + m] for m in range(M)).at[0].add(path[0])
        gain = gain + compute_rotation_gain(dot_rows_with_axis, wide + gain, arrived)
    wide = wide + gain
    students = jnp.concatenate([wide[:, :teachers], compute_lq_factor(wide[:, teachers:])], axis=1)
    return (students, learner.saved_state(carry)), None


def _advance_batch_step(
    learner: OnlineLearner, teachers: int, carried: tuple[Array, LearnerStateArrays], xs: tuple[Any, ...]
) -> tuple[tuple[Array, LearnerStateArrays], None]:
    """Advance the students' coordinates (K, n, width) by one step of several examples.

    All examples use the same students, and the step is the mean of their changes.
    """
    (students, state), (normals, chi, noise, active, _, block_rates) = carried, xs
    K, n, width = students.shape
    below = K * (K - 1) // 2
    z = normals[below:].reshape(n, -1, width)  # (n, examples, width)
    factor = make_input_rows(normals[:below], chi, 0)  # the lower triangular factor A
    fields = add_in_order(students[:, i, None] * z[i] for i in range(n))
    step_rates = jax.tree.map(lambda rates: rates[0], block_rates)
    carry = learner.start_block(state, add_in_order(students[:, i] ** 2 for i in range(n)))
    before, examples = jax.tree.map(lambda part: part[:, None], carry), learner.examples(noise, active)
    f, after = learner.step(
        before, learner.convert_to_teacher_values(z[:teachers]), fields, learner.N, examples, step_rates
    )
    f = f / z.shape[1]
    gain = subtract_fraction(
        jnp.sum(f[:, None] * z[None], axis=2) / learner.N,
        students,
        block_rates and block_rates.decayed_fraction_in_block,
    )
    perpendicular = compute_lq_factor(f)
    new = add_in_order(perpendicular[:, i, None] * factor[i] for i in range(K)) / learner.N
    wide = jnp.concatenate([students + gain, new], axis=1)
    students = jnp.concatenate([wide[:, :teachers], compute_lq_factor(wide[:, teachers:])], axis=1)
    return (students, learner.saved_state(jax.tree.map(lambda part: part.mean(1), after))), None


def compute_rotation_gain(dot: Callable[[Array, Array], Array], students: Array, teacher: Array) -> Array:
    r"""Compute the change (K, axes) of the students' coordinates when the axes rotate to the teacher.

    The axes rotate in the teacher's plane until the first axis is the teacher. With the teacher at :math:`\cos\psi\,e_0
    + \sin\psi\,p`, coordinates gain :math:`\sin\psi\,c_p - (1 - \cos\psi)c_0` along :math:`e_0` and
    :math:`-\sin\psi\,c_0 - (1 - \cos\psi)c_p` along p. Arrays may have a trailing axis of batch elements; `dot`
    multiplies coordinates (K, axes) by an axis.
    """
    sin = jnp.sqrt(jnp.sum(teacher[1:] ** 2, axis=0))
    p = teacher[1:] / jnp.where(sin > 0, sin, 1.0)
    norm = jnp.hypot(sin, teacher[0])  # 1 up to rounding
    sin, cos = sin / norm, teacher[0] / norm
    versine = jnp.where(cos > 0, sin**2 / (1 + jnp.abs(cos)), 1 - cos)  # small angles keep all digits
    parallel, onto = students[:, 0], dot(students[:, 1:], p)
    first, perpendicular = sin * onto - versine * parallel, -sin * parallel - versine * onto
    return jnp.concatenate([first[:, None], perpendicular[:, None] * p], axis=1)


def dot_rows_with_axis(rows: Array, axis: Array) -> Array:
    """Compute the inner products of rows (K, axes, width) and one axis (axes, width)."""
    return add_in_order(rows[:, i] * axis[i] for i in range(len(axis)))


def add_in_order(terms: Iterable[Array]) -> Array:
    """Add arrays one after the other, as an unrolled sum."""
    return reduce(add, terms)


def _advance_block_by_matrices(
    learner: OnlineLearner, teachers: int, carried: tuple[Array, LearnerStateArrays], xs: tuple[Any, ...]
) -> tuple[tuple[Array, LearnerStateArrays], None]:
    """Advance the students' coordinates (seeds, K, n) by M steps, with matrix products."""
    (students, state), (normals, chi, noise, active, averaged, block_rates) = carried, xs
    n, M, vectors = students.shape[2], active.size, chi.shape[0]
    z = _make_input_matrices(normals, chi, n)
    x = z[:, :M]
    learning = students if averaged is None else students[:, : students.shape[1] // 2]
    averaging = compute_averaging_weights(averaged, block_rates, learner.N)
    student_fields = x[:, :, :n] @ jnp.swapaxes(learning, 1, 2)
    inner = z @ jnp.swapaxes(z, 1, 2) / learner.N
    if vectors > M:
        fields, path = compute_drifting_teacher_path(
            z[:, :, 0].T, jnp.moveaxis(inner, 0, -1), block_rates.drift, learner.N
        )
        teacher = fields.T[:, :, None]
    else:
        teacher = jnp.moveaxis(learner.convert_to_teacher_values(jnp.moveaxis(x[:, :, :teachers], 2, 0)), 0, 2)
        path = None
    carry = learner.start_block(state, jnp.sum(learning**2, axis=2))
    examples = learner.examples(jax.tree.map(lambda values: values[..., None], noise), active)
    f, carry = _compute_modulations_seeds_first(
        learner, teacher, student_fields, inner[:, :M, :M], carry, examples, block_rates, averaging
    )
    wide = jnp.pad(students, ((0, 0), (0, 0), (0, vectors)))
    gain = add_previous_students(f @ x / learner.N, wide, block_rates, averaging, axis=1)
    if path is not None:
        arrived = jnp.einsum("ms,smi->si", path[1:], z[:, M:]).at[:, 0].add(path[0])
        gain = gain + jax.vmap(partial(compute_rotation_gain, jnp.matmul))(wide + gain, arrived)
    wide = wide + gain
    # one matrix at a time: a batched QR uses its own thread pool, where two simultaneous units would deadlock
    upper = jax.lax.map(partial(jnp.linalg.qr, mode="r"), jnp.swapaxes(wide[:, :, teachers:], 1, 2))
    students = jnp.concatenate([wide[:, :, :teachers], jnp.swapaxes(upper, 1, 2)], axis=2)
    return (students, learner.saved_state(carry)), None


def _make_input_matrices(normals: Array, chi: Array, n: int) -> Array:
    """Return the inputs' coordinates of `make_input_rows` with seeds first: (seeds, M, n + M)."""
    M = chi.shape[0]
    m, axis = jnp.arange(M)[:, None], jnp.arange(n + M)
    packed = jnp.moveaxis(normals, -1, 0)[:, jnp.minimum(m * n + m * (m - 1) // 2 + axis, normals.shape[0] - 1)]
    return jnp.where(axis < n + m, packed, jnp.where(axis == n + m, chi.T[:, :, None], 0.0))


def _compute_modulations_seeds_first(
    learner: OnlineLearner,
    teacher_fields: Array,
    student_fields: Array,
    inner: Array,
    carry: LearnerStateArrays,
    examples: Any,
    block_rates: StepRates | None,
    averaging: AveragingWeights | None,
) -> tuple[Array, LearnerStateArrays]:
    """Compute the modulations (seeds, K, M) of a Gram block like `compute_block_modulations`, with seeds first.

    A loop with the batch on the last axis takes 15 to 50 % longer for K >= 20.
    """

    def step(
        carry: tuple[Array, LearnerStateArrays], xs: tuple[Any, ...]
    ) -> tuple[tuple[Array, LearnerStateArrays], Array | None]:
        f, carry = carry
        m, y, h, inner, example, step_rates = xs
        h = subtract_fraction(h, h, step_rates and step_rates.decayed_fraction_before_step) + jnp.einsum(
            "skn,sn->sk", f, inner
        )  # later steps do not contribute: their f is still zero
        new, carry = learner.step(carry, y, h, inner[:, m, None], example, step_rates)
        new_students = subtract_fraction(f, f, step_rates and step_rates.decay).at[:, :, m].set(new)
        return (new_students, carry), new if averaging else None

    seeds, M, K = student_fields.shape
    xs = (
        jnp.arange(M),
        *(jnp.moveaxis(array, 1, 0) for array in (teacher_fields, student_fields, inner)),
        examples,
        block_rates,
    )
    start = jnp.zeros((seeds, K, M), student_fields.dtype), carry
    (f, carry), undecayed = jax.lax.scan(step, start, xs)
    if averaging is None or undecayed is None:
        return f, carry
    return jnp.concatenate([f, averaging.modulations * jnp.moveaxis(undecayed, 0, -1)], axis=1), carry


def make_input_rows(normals: Array, chi: Array, n: int) -> Array:
    """Return the inputs' coordinates, whose row m consists of n + m normals, a chi variable and zeros."""
    M, width = chi.shape
    rows, used = [], 0
    for m in range(M):
        zeros = jnp.zeros((M - m - 1, width), chi.dtype)
        rows.append(jnp.concatenate([normals[used : used + n + m], chi[m : m + 1], zeros]))
        used += n + m
    return jnp.stack(rows)


def compute_lq_factor(rows: Array) -> Array:
    """Compute the lower triangular factor L of rows = L Q, shape (K, K, width), by modified Gram-Schmidt.

    Q is not needed, and L is backward stable. A row in the span of the previous ones has a zero on the diagonal.
    """
    K = rows.shape[0]
    columns = []
    for k in range(K):
        norm = jnp.sqrt(jnp.sum(rows[0] ** 2, axis=0))
        axis = rows[0] / jnp.where(norm > 0, norm, 1.0)
        unrolled = rows.dtype == jnp.float32 and K > MAX_STUDENTS_WITHOUT_YNNPACK
        onto = dot_rows_with_axis(rows, axis) if unrolled else jnp.sum(rows * axis, axis=1)
        columns.append(jnp.concatenate([jnp.zeros((k, *norm.shape), rows.dtype), norm[None], onto[1:]]))
        rows = rows[1:] - onto[1:, None] * axis
    return jnp.stack(columns, axis=1)


def _draw_block_randoms(
    program: GramProgram, problem: GramArguments, learner: OnlineLearner, key: Array, blocks: int
) -> tuple[Array, Array, Any]:
    """Draw the normals, chi variables and learner's noise of several Gram blocks."""
    N, M, vectors, dtype = problem.N, program.M, program.vectors, program.dtype
    width = program.seeds_per_call * program.tasks
    key, chi_key = fold_in(key, 0), fold_in(key, 1)
    n = program.K + program.teachers
    if program.examples > 1:
        return _draw_batch_randoms(program, problem, learner, (key, chi_key), blocks)
    count = vectors * n + vectors * (vectors - 1) // 2
    axis = jnp.asarray([i for m in range(vectors) for i in range(n + m)])
    is_complete = program.seeds_per_call == program.batch and program.tasks == 1
    part = None if is_complete else BatchSlice(problem.first, program.seeds_per_call, program.batch)
    shapes = ((blocks, count + learner.normals_per_step * M, width), (blocks, learner.uniforms_per_step * M, width))
    all_normals, uniforms = draw_normals_and_uniforms(key, *shapes, part)
    normals, noise = all_normals[:, :count], learner.noise(all_normals[:, count:], uniforms, dtype)
    # a branch, because indexing by `axis` in the loop is four times slower
    exists = partial(jnp.where, (axis < N)[:, None])
    normals = jax.lax.cond(n + vectors > N, lambda z: exists(z, 0.0), lambda z: z, normals.astype(dtype))
    chi = draw_chi(chi_key, N - n - jnp.arange(vectors)[:, None], (blocks, vectors, width), part).astype(dtype)
    return normals, chi, noise


def _draw_batch_randoms(
    program: GramProgram, problem: GramArguments, learner: OnlineLearner, keys: tuple[Array, Array], blocks: int
) -> tuple[Array, Array, Any]:
    """Draw the normals, chi variables and learner's noise of Gram steps with several examples.

    The normals of the factor A come before the normals of the inputs; the chis belong to A.
    """
    K, b, width, dtype = program.K, program.examples, program.seeds_per_call * program.tasks, program.dtype
    n, below = K + program.teachers, K * (K - 1) // 2
    is_complete = program.seeds_per_call == program.batch and program.tasks == 1
    part = None if is_complete else BatchSlice(problem.first, program.seeds_per_call, program.batch)
    count = below + n * b
    shapes = ((blocks, count + learner.normals_per_step * b, width), (blocks, learner.uniforms_per_step * b, width))
    all_normals, uniforms = draw_normals_and_uniforms(keys[0], *shapes, part)
    noise = learner.noise(all_normals[:, count:], uniforms, dtype)
    degrees = problem.N - n - jnp.arange(K)[:, None]
    chi = draw_chi(keys[1], degrees, (blocks, K, width), part).astype(dtype)
    return all_normals[:, :count].astype(dtype), chi, noise


def _make_initial_students(task: EngineTask, keys: np.ndarray, num_seeds: int) -> np.ndarray:
    """Return the initial students of all tasks, an array (tasks, K, teachers + K, seeds). Averages start at 0."""
    learning = task.K if task.first_averaged_step is None else task.K // 2
    if task.initial_coordinates is not None:
        students = np.tile(task.initial_coordinates[..., None], (len(keys), 1, 1, num_seeds))
    else:
        students = _draw_student_coordinates(keys, learning, task.M, task.N, num_seeds) * task.scale
    return np.pad(students, ((0, 0), (0, task.K - learning), (0, task.K - learning), (0, 0)))


def _draw_student_coordinates(keys: np.ndarray, K: int, teachers: int, N: float, num_seeds: int) -> np.ndarray:
    """Draw students with N(0, 1) weights, as coordinates in the span of teachers and students.

    The K rows consist of normals and chi variables. NumPy draws them: a compiled program would take longer to load
    than to run.
    """
    rows = np.empty((len(keys), num_seeds, K, teachers + K))
    degrees = np.maximum(N - teachers - np.arange(K), 0).squeeze()  # a scalar if possible, for speed
    chi_squared = np.empty((len(keys), num_seeds, K))
    for rng, normals, squared in zip(make_generators(keys), rows, chi_squared, strict=True):
        normals[:] = rng.standard_normal((batch(K), K, teachers + K))[:num_seeds]
        squared[:] = rng.chisquare(degrees, (num_seeds, K))
    rows = np.tril(rows, teachers - 1)
    rows[..., np.arange(K), teachers + np.arange(K)] = np.sqrt(chi_squared)
    return np.moveaxis(rows, 1, -1) / np.sqrt(N)


def _decompose_students(teachers: int, students: Array, state: LearnerStateArrays) -> tuple[Array, ...]:
    """Return the components of students (seeds, K, n) along the teachers, their remaining Gram matrix, and the state.

    The components have the shape (seeds, K, teachers), the Gram matrix (seeds, K, K).
    """
    rest = students[:, :, teachers:]
    return students[:, :, :teachers], rest @ jnp.swapaxes(rest, -1, -2), *jax.tree.leaves(state)
