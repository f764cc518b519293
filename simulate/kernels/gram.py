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

The change of the students in a step is defined by a learner (`simulate.kernels.learner`): perceptrons, or the units of
a network.

A step that averages b examples presents all examples to the same students (`_block_of_batch`). The part of the change
orthogonal to the basis is :math:`fG^\mathsf{T}`, with the students' f (K, b) and b normal vectors G. Its products are
:math:`PAA^\mathsf{T}P^\mathsf{T}` with the Cholesky factor P of :math:`ff^\mathsf{T}` and the Cholesky factor A of a
Wishart matrix: normals below the diagonal and K chis with N - n, N - n - 1, ... degrees of freedom on it, for any b.

A drifting teacher turns after each input towards a random direction, which is a normal vector like the input. A block
has 2 M such vectors and as many axes. The teacher's path lies in their span (`simulate.kernels.field_steps`). At the
block's end the axes are rotated in one plane until the first axis is the teacher again.

Nothing is approximated: order parameters have the same distribution as in `simulate.kernels.vectors`, fluctuations
included, for any N (coordinates beyond the N-th axis are zero). The state is the coordinates, not the Gram matrix,
whose Cholesky factor would lose half the digits as q -> 1 and all digits for identical students. Here the rows of
identical students stay identical.

For few students the seeds are batch elements on the last axis of one wide elementwise program (`_block_of_lanes`); the
length of this axis, seeds times tasks, is called `width`. For many students the seeds are the first axis of matrix
products and LAPACK's QR (`_block_of_matrices`). The distribution is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simulate.kernels.courses import Course, course_of
from simulate.kernels.field_steps import less, modulations, path_of_teacher
from simulate.kernels.learner import Learner, Record, State, Task
from statmech.inputs import Gaussian, Inputs
from statmech.numerics.gaussian import Array
from statmech.parameters import Family
from statmech.random_numbers import (
    Lanes,
    fold_in,
    folded,
    generators,
    normals_and_uniforms,
    normals_and_uniforms_at,
    wrapped,
)
from statmech.runtime.programs import QUICK, WHOLE_VECTORS, CachedProgram, filled_up
from statmech.schedules import Changes

LANES = 32  # numbers drawn inside a block of the elementwise program would be computed twice
MATRICES = 4  # fewer: blocks of matrices are longer
MANY = 16  # compared with K + teachers - 1; matrices are faster from here onwards
FEWEST = 32  # a program for fewer recorded times is not faster
DIVISIBLE = 3  # with more, a part of a batch does not reproduce all bits of the full batch

# Batch elements of a program that simulates several tasks side by side. WIDE applies where the bits do not depend on
# the width; with three students or a drifting teacher a last digit is rounded differently.
FULL, WIDE = 64, 256

# JAX 0.10's XLA rounds narrow and wide programs equally; with 0.12 some last digits differ
ANY_WIDTH = jax.__version_info__ < (0, 11)

# Up to this number of students, float32 sums over an axis take half as long if XLA does not use YNNPACK.
SUMMED = 10
OWN_SUMS = {"xla_cpu_experimental_ynn_fusion_type": ""}

# Up to this number of steps, compiling for speed takes longer than it saves. Used with up to DIVISIBLE students and one
# example per step: the bits of larger steps, and sometimes of more students, depend on the compiler's options.
SHORT = 1e5
IN_HALF_THE_TIME = QUICK | {"xla_backend_optimization_level": 1}  # steps take up to 1.7 times as long

STEP = 5e5  # float32 resolves a step up to this length * N / eta (docs/gram_engine.md)

NAME = "order parameters in their exact law at finite N (simulate.kernels.gram)"


def covers(inputs: Inputs) -> bool:
    """Return True if the engine is exact for these inputs.

    It is exact for Gaussian inputs with equal variances in every direction.
    """
    return isinstance(inputs, Gaussian)


def batch(K: int) -> int:
    """Return the number of seeds per unit of work, for K students.

    The number is large enough for vectorisation and small enough for the cache.
    """
    return 64 if K <= 10 else 16


def divisible(K: int, teachers: int = 1) -> bool:
    """Return True if part of a batch reproduces the full batch bit for bit.

    For more students the matrix products of the record depend on the batch.
    """
    return K + teachers - 1 <= DIVISIBLE


def block_steps(K: int, teachers: int = 1, drifting: bool = False) -> int:
    """Return the number of steps per block.

    The LQ decomposition costs K^2 (K + M) per block, the growing basis costs M per step, or 2 M if the teacher moves.
    """
    units = K + teachers - 1
    if units < MANY:
        return (1 if drifting else 2) if units == 1 else max(3, units // 2)
    return min(units, 64) // (2 if drifting else 1)


@dataclass(frozen=True)
class Program:
    """Static arguments of the compiled program.

    One program is compiled for each combination.
    """

    learner: Family
    K: int
    teachers: int
    M: int  # steps per block
    lanes: int  # seeds of a call
    dtype: str
    batch: int  # seeds of the full batch
    drifting: bool  # whether the teacher moves
    tasks: int = 1  # tasks simulated side by side
    examples: int = 1  # examples per step
    short: bool = False  # compiled faster, runs slower

    @property
    def vectors(self) -> int:
        """Random vectors per block: the inputs, and the random directions of a drifting teacher."""
        return 2 * self.M if self.drifting else self.M

    @property
    def many(self) -> bool:
        """Whether seeds are the first axis of matrices, not the last axis of elementwise arrays."""
        return self.examples == 1 and self.K + self.teachers > MANY


class Arguments(NamedTuple):
    """Run-time arguments of a program: key, parameters of the learner, N, the first seed and changes with time.

    Tasks side by side have one key each, and parameters and changes for each batch element.

    Tasks side by side have one key each, and parameters and changes for each batch element.
    """

    key: Array
    parameters: dict[str, Array]
    N: Array
    first: Array
    changes: Changes | None


def run(task: Task, key: np.ndarray, steps: np.ndarray, part: slice = slice(None)) -> Record:
    """Simulate a batch of seeds of a task, or a part of it, and record `steps` (T,) numbers of steps.

    The random numbers derive from a key (2,).
    """
    return Record(*(part if part is None else part[0] for part in run_tasks(task, key[None], steps, part)))


def run_tasks(
    task: Task, keys: np.ndarray, steps: np.ndarray, part: slice, beside: int = 1, short: bool = False
) -> Record:
    """Simulate each of several tasks from its own key (tasks, 2), as `run` does.

    The arrays of the record have the shape (tasks, seeds, ...).

    Parameters
    ----------
    task
        One task, or several that differ in numbers only. Several tasks need `beside` > 1.
    keys, steps, part
        As in `run`.
    beside
        Number of tasks that the program simulates side by side. Fewer tasks are padded to this number.
    short
        Whether the steps take less time than compiling for speed would. Steps of several examples are always compiled
        for speed, because they would round differently.
    """
    size, count, tasks = batch(task.K), len(steps), len(keys)
    first, last, _ = part.indices(size)
    width, blocks = last - first, block_steps(task.K, task.M, task.drifting) if task.batch == 1 else 1
    short = short and task.batch == 1
    program = Program(
        task.learner, task.K, task.M, blocks, width, task.dtype, size, task.drifting, beside, task.batch, short
    )
    students = _starts(task, folded(keys, 0), last)[..., first:].astype(task.dtype)
    keys = folded(keys, 1)
    # with many students the last bits of the record's matrix products depend on the number of times
    steps = steps if program.many else padded(steps)
    calls = np.minimum(np.arange(0, tasks, beside)[:, None] + np.arange(beside), tasks - 1)  # padded with the last task
    records = [_call(program, task, indices, keys[indices], students[indices], first, steps) for indices in calls]
    return Record(*(np.concatenate(parts)[:tasks, :, :count] for parts in zip(*records, strict=True)))


def _call(
    program: Program,
    task: Task,
    some: np.ndarray,
    keys: np.ndarray,
    students: np.ndarray,
    first: int,
    steps: np.ndarray,
) -> list[np.ndarray]:
    """Call a program for some tasks, simulated side by side, and return their record.

    The arrays of the record have the shape (tasks, seeds, ...).
    """
    alone, width = program.tasks == 1, program.lanes
    parameters, changes = task.numbers(some[0] if alone else np.repeat(some, width))
    keys = keys[0] if alone else keys
    students = np.moveaxis(students, 0, -2).reshape(*students.shape[1:3], -1)
    state = jax.tree.map(lambda values: np.repeat(values[..., None], students.shape[-1], axis=-1), task.kept)
    problem = Arguments(keys, parameters, np.float64(task.N), np.uint32(first), changes)
    parts = map(np.asarray, _run(program, problem, students, state, steps))  # NumPy's slices compile nothing
    return [part.reshape(program.tasks, width, *part.shape[1:]) for part in parts]


def padded(steps: np.ndarray) -> np.ndarray:
    """Pad recorded steps (T,) by repeating the last, which takes no time.

    One program then serves several numbers of recorded times.
    """
    return np.pad(steps, (0, filled_up(max(FEWEST, len(steps))) - len(steps)), mode="edge")


def options(program: Any) -> list[dict[str, Any]]:
    """Return the compiler's options for a program of this engine, or of `simulate.kernels.gram_of_groups`."""
    return [WHOLE_VECTORS] + ([OWN_SUMS] if program.dtype == "float32" and program.K <= SUMMED else [])


def _options(program: Program) -> list[dict[str, Any]]:
    return options(program) + ([IN_HALF_THE_TIME] if program.short else [])


@partial(CachedProgram, options=_options)
def _run(program: Program, problem: Arguments, students: Array, state: State, steps: Array) -> tuple[Array, ...]:
    """Simulate all seeds and return their record.

    The record has the students' components parallel and perpendicular to the teachers, and the learner's saved state.
    """
    problem = problem._replace(key=wrapped(problem.key))
    by_matrices, N = program.many, problem.N.astype(program.dtype)
    learner = program.learner(**problem.parameters, N=N, units=-1 if by_matrices else 0)
    of_many = _block_of_matrices if by_matrices else _block_of_lanes
    block = partial(of_many if program.examples == 1 else _block_of_batch, learner, program.teachers)
    together = MATRICES if by_matrices else LANES
    stride = program.M * together
    carried = students, state
    if by_matrices:
        carried = _seeds_first(carried)

    def advance(carry: tuple[Any, Array], until: Array) -> tuple[tuple[Any, Array], tuple[Any, ...]]:
        carried, steps_done = carry

        def blocks(index: Array, carried: Any) -> Any:
            first = steps_done + index * stride
            randoms = _randoms(program, problem, learner, fold_in(problem.key, first), together)
            active = (first + jnp.arange(stride) < until).reshape(together, program.M)
            block_rates = problem.changes and course_of(
                problem.changes, learner.eta, problem.N, first, active, program.dtype
            )
            return jax.lax.scan(block, carried, (*randoms, active, block_rates))[0]

        carried = jax.lax.fori_loop(0, (until - steps_done + stride - 1) // stride, blocks, carried)
        return (carried, until), _record(program.teachers, *(carried if by_matrices else _seeds_first(carried)))

    _, record = jax.lax.scan(advance, (carried, jnp.zeros_like(steps[0])), steps)
    return tuple(jnp.swapaxes(part, 0, 1) for part in record)


def _seeds_first(arrays: Any) -> Any:
    return jax.tree.map(lambda values: jnp.moveaxis(values, -1, 0), arrays)


def _block_of_lanes(
    learner: Learner, teachers: int, carried: tuple[Array, State], xs: tuple[Any, ...]
) -> tuple[tuple[Array, State], None]:
    """Advance the students (K, n, width) by M steps.

    Sums are unrolled: XLA reduces inner axes element by element.
    """
    (students, state), (normals, chi, noise, active, block_rates) = carried, xs
    K, n, width = students.shape
    M, vectors = active.size, chi.shape[0]
    z = input_rows(normals, chi, n)  # (vectors, n + vectors, width)
    student_fields = add_up(students[None, :, i] * z[:M, None, i] for i in range(n))
    inner = add_up(z[:, None, i] * z[None, :, i] for i in range(n + vectors)) / learner.N
    if vectors > M:
        fields, path = path_of_teacher(z[:, 0], inner, block_rates.drift, learner.N)
        teacher = fields[:, None]
    else:
        teacher, path = jnp.swapaxes(learner.teachers(jnp.swapaxes(z[:, :teachers], 0, 1)), 0, 1), None
    carry = learner.begin(state, add_up(students[:, i] ** 2 for i in range(n)))
    examples = learner.examples(noise, active)
    f, carry = modulations(learner, teacher, student_fields, inner[:M, :M], carry, examples, block_rates)
    wide = jnp.concatenate([students, jnp.zeros((K, vectors, width), students.dtype)], axis=1)
    gain = less(
        add_up(f[m, :, None] * z[m, None] for m in range(M)) / learner.N, wide, block_rates and block_rates.lost
    )
    if path is not None:
        arrived = add_up(path[m + 1] * z[M + m] for m in range(M)).at[0].add(path[0])
        gain = gain + turn(dot, wide + gain, arrived)
    wide = wide + gain
    students = jnp.concatenate([wide[:, :teachers], lower_factor(wide[:, teachers:])], axis=1)
    return (students, learner.kept(carry)), None


def _block_of_batch(
    learner: Learner, teachers: int, carried: tuple[Array, State], xs: tuple[Any, ...]
) -> tuple[tuple[Array, State], None]:
    """Advance the students (K, n, width) by one step of several examples.

    All examples use the same students, and the step is the mean of their changes.
    """
    (students, state), (normals, chi, noise, active, block_rates) = carried, xs
    K, n, width = students.shape
    below = K * (K - 1) // 2
    z = normals[below:].reshape(n, -1, width)  # (n, examples, width)
    factor = input_rows(normals[:below], chi, 0)  # A, lower triangular
    fields = add_up(students[:, i, None] * z[i] for i in range(n))
    step_rates = jax.tree.map(lambda rates: rates[0], block_rates)
    carry = learner.begin(state, add_up(students[:, i] ** 2 for i in range(n)))
    before, examples = jax.tree.map(lambda part: part[:, None], carry), learner.examples(noise, active)
    f, after = learner.step(before, learner.teachers(z[:teachers]), fields, learner.N, examples, step_rates)
    f = f / z.shape[1]
    gain = less(jnp.sum(f[:, None] * z[None], axis=2) / learner.N, students, block_rates and block_rates.lost)
    perpendicular = lower_factor(f)
    new = add_up(perpendicular[:, i, None] * factor[i] for i in range(K)) / learner.N
    wide = jnp.concatenate([students + gain, new], axis=1)
    students = jnp.concatenate([wide[:, :teachers], lower_factor(wide[:, teachers:])], axis=1)
    return (students, learner.kept(jax.tree.map(lambda part: part.mean(1), after))), None


def turn(dot: Callable[[Array, Array], Array], students: Array, teacher: Array) -> Array:
    r"""Compute the gain (K, axes) of the students' coordinates when the axes rotate to the teacher.

    The axes rotate in the teacher's plane until the first axis is the teacher. With the teacher at :math:`\cos\psi\,e_0
    + \sin\psi\,p`, coordinates gain :math:`\sin\psi\,c_p - (1 - \cos\psi)c_0` along :math:`e_0` and
    :math:`-\sin\psi\,c_0 - (1 - \cos\psi)c_p` along p. Arrays may have a trailing axis of batch elements; `dot`
    multiplies coordinates (K, axes) by an axis.
    """
    sin = jnp.sqrt(jnp.sum(teacher[1:] ** 2, axis=0))
    p = teacher[1:] / jnp.where(sin > 0, sin, 1.0)
    norm = jnp.hypot(sin, teacher[0])  # 1, but for rounding
    sin, cos = sin / norm, teacher[0] / norm
    versine = jnp.where(cos > 0, sin**2 / (1 + jnp.abs(cos)), 1 - cos)  # small angles keep all digits
    parallel, onto = students[:, 0], dot(students[:, 1:], p)
    first, perpendicular = sin * onto - versine * parallel, -sin * parallel - versine * onto
    return jnp.concatenate([first[:, None], perpendicular[:, None] * p], axis=1)


def dot(rows: Array, axis: Array) -> Array:
    """Multiply rows (K, axes, width) by one axis (axes, width)."""
    return add_up(rows[:, i] * axis[i] for i in range(len(axis)))


def add_up(terms: Iterable[Array]) -> Array:
    """Add arrays one after the other, which unrolls the sum."""
    return reduce(add, terms)


def _block_of_matrices(
    learner: Learner, teachers: int, carried: tuple[Array, State], xs: tuple[Any, ...]
) -> tuple[tuple[Array, State], None]:
    """Advance the students (seeds, K, n) by M steps, with matrix products."""
    (students, state), (normals, chi, noise, active, block_rates) = carried, xs
    n, M, vectors = students.shape[2], active.size, chi.shape[0]
    z = _matrices(normals, chi, n)
    x = z[:, :M]
    student_fields = x[:, :, :n] @ jnp.swapaxes(students, 1, 2)
    inner = z @ jnp.swapaxes(z, 1, 2) / learner.N
    if vectors > M:
        fields, path = path_of_teacher(z[:, :, 0].T, jnp.moveaxis(inner, 0, -1), block_rates.drift, learner.N)
        teacher = fields.T[:, :, None]
    else:
        teacher, path = jnp.moveaxis(learner.teachers(jnp.moveaxis(x[:, :, :teachers], 2, 0)), 0, 2), None
    carry = learner.begin(state, jnp.sum(students**2, axis=2))
    examples = learner.examples(jax.tree.map(lambda values: values[..., None], noise), active)
    f, carry = _scanned_modulations(learner, teacher, student_fields, inner[:, :M, :M], carry, examples, block_rates)
    wide = jnp.pad(students, ((0, 0), (0, 0), (0, vectors)))
    gain = less(f @ x / learner.N, wide, block_rates and block_rates.lost)
    if path is not None:
        arrived = jnp.einsum("ms,smi->si", path[1:], z[:, M:]).at[:, 0].add(path[0])
        gain = gain + jax.vmap(partial(turn, jnp.matmul))(wide + gain, arrived)
    wide = wide + gain
    # one matrix at a time: a batched QR uses its own thread pool, where two simultaneous units would deadlock
    upper = jax.lax.map(partial(jnp.linalg.qr, mode="r"), jnp.swapaxes(wide[:, :, teachers:], 1, 2))
    students = jnp.concatenate([wide[:, :, :teachers], jnp.swapaxes(upper, 1, 2)], axis=2)
    return (students, learner.kept(carry)), None


def _matrices(normals: Array, chi: Array, n: int) -> Array:
    """Return the rows of `input_rows` for many steps, seeds first: (seeds, M, n + M)."""
    M = chi.shape[0]
    m, axis = jnp.arange(M)[:, None], jnp.arange(n + M)
    packed = jnp.moveaxis(normals, -1, 0)[:, jnp.minimum(m * n + m * (m - 1) // 2 + axis, normals.shape[0] - 1)]
    return jnp.where(axis < n + m, packed, jnp.where(axis == n + m, chi.T[:, :, None], 0.0))


def _scanned_modulations(
    learner: Learner,
    teacher: Array,
    seen: Array,
    inner: Array,
    carry: State,
    examples: Any,
    course: Course | None,
) -> tuple[Array, State]:
    """Compute modulations as `modulations` does, with seeds first: (seeds, K, M).

    A loop with the batch on the last axis takes 15 to 50 % longer for K >= 20.
    """

    def step(carry: tuple[Array, State], xs: tuple[Any, ...]) -> tuple[tuple[Array, State], None]:
        f, carry = carry
        m, y, h, inner, example, step_rates = xs
        h = less(h, h, step_rates and step_rates.before) + jnp.einsum(
            "skn,sn->sk", f, inner
        )  # f of later steps is zero
        new, carry = learner.step(carry, y, h, inner[:, m, None], example, step_rates)
        return (less(f, f, step_rates and step_rates.decay).at[:, :, m].set(new), carry), None

    seeds, M, K = seen.shape
    xs = (jnp.arange(M), *(jnp.moveaxis(array, 1, 0) for array in (teacher, seen, inner)), examples, course)
    return jax.lax.scan(step, (jnp.zeros((seeds, K, M), seen.dtype), carry), xs)[0]


def input_rows(normals: Array, chi: Array, n: int) -> Array:
    """Return the inputs' coordinates: row m consists of n + m normals, its chi, and zeros."""
    M, width = chi.shape
    rows, used = [], 0
    for m in range(M):
        zeros = jnp.zeros((M - m - 1, width), chi.dtype)
        rows.append(jnp.concatenate([normals[used : used + n + m], chi[m : m + 1], zeros]))
        used += n + m
    return jnp.stack(rows)


def lower_factor(rows: Array) -> Array:
    """Compute the lower triangular factor L of rows = L Q, shape (K, K, width), by modified Gram-Schmidt.

    Q is not needed, and L is backward stable. A row in the span of the previous ones has a zero on the diagonal.
    """
    K = rows.shape[0]
    columns = []
    for k in range(K):
        norm = jnp.sqrt(jnp.sum(rows[0] ** 2, axis=0))
        axis = rows[0] / jnp.where(norm > 0, norm, 1.0)
        unrolled = rows.dtype == jnp.float32 and K > SUMMED
        onto = dot(rows, axis) if unrolled else jnp.sum(rows * axis, axis=1)
        columns.append(jnp.concatenate([jnp.zeros((k, *norm.shape), rows.dtype), norm[None], onto[1:]]))
        rows = rows[1:] - onto[1:, None] * axis
    return jnp.stack(columns, axis=1)


def _randoms(
    program: Program, problem: Arguments, learner: Learner, key: Array, blocks: int
) -> tuple[Array, Array, Any]:
    """Draw the normals, chis and learner's noise of this number of blocks."""
    N, M, vectors, dtype = problem.N, program.M, program.vectors, program.dtype
    width = program.lanes * program.tasks
    key, chi_key = fold_in(key, 0), fold_in(key, 1)
    n = program.K + program.teachers
    if program.examples > 1:
        return _randoms_of_batch(program, problem, learner, (key, chi_key), blocks)
    count = vectors * n + vectors * (vectors - 1) // 2
    axis = jnp.asarray([i for m in range(vectors) for i in range(n + m)])
    is_complete = program.lanes == program.batch and program.tasks == 1
    part = None if is_complete else Lanes(problem.first, program.lanes, program.batch)
    shapes = ((blocks, count + learner.normals * M, width), (blocks, learner.uniforms * M, width))
    all_normals, uniforms = normals_and_uniforms(key, *shapes, part)
    normals, noise = all_normals[:, :count], learner.noise(all_normals[:, count:], uniforms, dtype)
    # a branch: the axes are not a plain range, and indexing them in the loop is four times slower
    exists = partial(jnp.where, (axis < N)[:, None])
    normals = jax.lax.cond(n + vectors > N, lambda z: exists(z, 0.0), lambda z: z, normals.astype(dtype))
    chi = chi_variable(chi_key, N - n - jnp.arange(vectors)[:, None], (blocks, vectors, width), part).astype(dtype)
    return normals, chi, noise


def _randoms_of_batch(
    program: Program, problem: Arguments, learner: Learner, keys: tuple[Array, Array], blocks: int
) -> tuple[Array, Array, Any]:
    """Draw the normals, chis and learner's noise of steps with several examples.

    The normals of the factor A come before the normals of the inputs; the chis belong to A.
    """
    K, b, width, dtype = program.K, program.examples, program.lanes * program.tasks, program.dtype
    n, below = K + program.teachers, K * (K - 1) // 2
    is_complete = program.lanes == program.batch and program.tasks == 1
    part = None if is_complete else Lanes(problem.first, program.lanes, program.batch)
    count = below + n * b
    shapes = ((blocks, count + learner.normals * b, width), (blocks, learner.uniforms * b, width))
    all_normals, uniforms = normals_and_uniforms(keys[0], *shapes, part)
    noise = learner.noise(all_normals[:, count:], uniforms, dtype)
    degrees = problem.N - n - jnp.arange(K)[:, None]
    chi = chi_variable(keys[1], degrees, (blocks, K, width), part).astype(dtype)
    return all_normals[:, :count].astype(dtype), chi, noise


def chi_variable(key: Array, degrees: Array, shape: tuple[int, ...], lanes: Lanes | None = None) -> Array:
    r"""Draw exact chi variables :math:`\chi_d = \sqrt{2\Gamma(d/2)}` by rejection (Marsaglia & Tsang 2000).

    `degrees` broadcasts to `shape`, an even number of elements. 0 or fewer degrees give 0, and one degree gives the
    modulus of a normal. All variables are proposed together. The few uncertain proposals are then tested, and proposed
    again, one per batch element at a time.
    """
    count = math.prod(shape)
    rows = count // shape[-1] if count // shape[-1] % 2 == 0 else 2
    degrees = jnp.broadcast_to(degrees, shape).reshape(rows, -1)
    x, u = (part.reshape(rows, -1) for part in normals_and_uniforms(fold_in(key, 0), shape, shape, lanes))
    value, certain, test_proposals = _proposed(x, u, degrees)
    many_uncertain = jnp.sum(~certain) > certain.shape[1]
    waiting = ~jax.lax.cond(many_uncertain, lambda: certain | test_proposals(), lambda: certain)

    def propose_again(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        attempt, value, waiting = state
        row = jnp.argmax(waiting, axis=0)  # the first waiting variable of each batch element
        x, u = normals_and_uniforms_at(key, attempt, row, rows, lanes)
        proposals, certain, test_proposals = _proposed(x, u, jnp.take_along_axis(degrees, row[None], axis=0)[0])
        # the same branch as for the first proposals, so that XLA rounds both equally
        is_accepted = jax.lax.cond(jnp.all(certain), lambda: certain, lambda: certain | test_proposals())
        is_new = waiting & is_accepted & (jnp.arange(rows)[:, None] == row)
        attempt = jnp.where(is_accepted, 0, attempt + 1).astype(np.uint32)
        return attempt, jnp.where(is_new, proposals, value), waiting & ~is_new

    state = (jnp.zeros(waiting.shape[1], np.uint32), value, waiting)
    value = jax.lax.while_loop(lambda state: jnp.any(state[2]), propose_again, state)[1]
    return jnp.where(degrees > 0, value, 0.0).reshape(shape)


def _proposed(x: Array, u: Array, degrees: Array) -> tuple[Array, Array, Callable[[], Array]]:
    """Return chi variables proposed from normals and uniforms, a mask of certain acceptance, and Marsaglia's test.

    With :math:`s` = `scale` x the test is u < exp(A), A = 3 `shift` (log(1 + s) - s + s^2/2 - s^3/3), and
    A >= -`shift` s^4 for |s| < 1/4: the expensive logarithms are almost never computed.
    """
    x, shift = x.astype(float), jnp.maximum(degrees, 2) / 2 - 1 / 3
    s = 1 / jnp.sqrt(9 * shift) * x
    w = s * (3 + s * (3 + s))  # (1 + s)^3 - 1
    proposals = jnp.where(degrees == 1, jnp.abs(x), jnp.sqrt(2 * shift * jnp.maximum(1 + w, 0.0)))
    certain = (degrees <= 1) | (jnp.abs(s) < 0.25) & (u < 1 - shift * s**4)  # nothing to reject up to one degree

    def test_proposals() -> Array:
        safe = jnp.where(w > -1, w, 0.0)
        return (w > -1) & (jnp.log(u) < x * x / 2 + shift * (jnp.log1p(safe) - safe))

    return proposals, certain, test_proposals


def _starts(task: Task, keys: np.ndarray, lanes: int) -> np.ndarray:
    """Return the initial students of all tasks, an array (tasks, K, teachers + K, seeds)."""
    if task.coordinates is not None:
        return np.tile(task.coordinates[..., None], (len(keys), 1, 1, lanes))
    return _drawn(keys, task.K, task.M, task.N, lanes) * task.scale


def _drawn(keys: np.ndarray, K: int, teachers: int, N: float, lanes: int) -> np.ndarray:
    """Draw students with N(0, 1) entries in the basis that they span with the teachers.

    The K rows consist of normals and chis. NumPy draws them: a compiled program would take longer to load than to run.

    Drawn by NumPy: a compiled program would take longer to load than this to run.
    """
    rows = np.empty((len(keys), lanes, K, teachers + K))
    degrees = np.maximum(N - teachers - np.arange(K), 0).squeeze()  # NumPy draws faster for a number than for an array
    chi_squared = np.empty((len(keys), lanes, K))
    for rng, normals, squared in zip(generators(keys), rows, chi_squared, strict=True):
        normals[:] = rng.standard_normal((batch(K), K, teachers + K))[:lanes]
        squared[:] = rng.chisquare(degrees, (lanes, K))
    rows = np.tril(rows, teachers - 1)
    rows[..., np.arange(K), teachers + np.arange(K)] = np.sqrt(chi_squared)
    return np.moveaxis(rows, 1, -1) / np.sqrt(N)


def _record(teachers: int, students: Array, state: State) -> tuple[Array, ...]:
    """Return the components of students (seeds, K, n) along the teachers, the Gram matrix of the rest, and the state.

    The components have the shape (seeds, K, teachers), the Gram matrix (seeds, K, K).
    """
    rest = students[:, :, teachers:]
    return students[:, :, :teachers], rest @ jnp.swapaxes(rest, -1, -2), *jax.tree.leaves(state)
