r"""The Gram engine for inputs with groups of directions of equal variance, exact at any N like `gram`.

With :math:`\mathbf x_a\sim N(0, (l_a/N)I)` in group a of :math:`N_a` directions, only the spans of the parts
:math:`\mathbf B_{ma}` of M teachers and :math:`\mathbf J_{ka}` of K students matter. In each group these parts have an
orthonormal basis that starts with a basis of the teachers' parts. In this basis the input is n = M + K normals and one
chi with :math:`N_a - n` degrees, all times :math:`\sqrt{l_a/N}`. Groups are coupled by the fields alone. Let
:math:`\tau^a_m` be the coordinates of a vector of the teachers' basis, divided by :math:`\sqrt N`, and :math:`C^a_k`
the coordinates of :math:`\mathbf J_{ka}/\sqrt N`. Then

.. math:: y_m = \sum_a\sqrt{l_a}\,\tau^a_m\cdot z_a, \qquad h_k = \sum_a\sqrt{l_a}\,C^a_k\cdot z_a, \qquad
          \mathbf x^m\cdot\mathbf x^n = \frac1N\sum_al_a\,z^m_a\cdot z^n_a .

So a block of steps is the same as in `gram` with one more axis. Each group is reduced by its own LQ decomposition; a
group of at most n directions keeps a basis of all its directions, without a decomposition. Inputs around the centres of
clusters have the mean :math:`c\,\tau^a` instead of 0, with c from the learner (`Learner.input_means`). A drifting
teacher turns equally in all directions, whatever their variance: each group's axes are rotated until the first axis is
the teacher's part in that group.

Lengths are Euclidean. The students' components parallel and perpendicular to the teachers are recorded twice: as
vectors, and as fields with :math:`\mathbf u\cdot\mathbf v = \sum_al_a\,\mathbf u_a\cdot\mathbf v_a`.

**Initial teachers and students.** In the basis of its span in a group of :math:`N_a` directions, a vector drawn after n
others has n normals and, on the next axis, a chi with :math:`N_a - n` degrees; coordinates above the :math:`N_a`-th
are 0. Teachers are orthonormal in the space of all groups. Without a preferred direction they are such vectors,
orthonormalised. With given powers :math:`T_a` their parts have the length :math:`\sqrt{T_a}` in each group, and are
perpendicular in each group with at least as many directions as teachers (as in `simulate.online.weight_vector_engine`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simulate.online.gram_engine import (
    add_in_order,
    choose_compiler_options,
    choose_steps_per_block,
    compute_lq_factor,
    compute_rotation_gain,
    dot_rows_with_axis,
    make_input_rows,
    pad_recorded_steps,
)
from simulate.online.learning_steps import (
    EngineRecord,
    EngineTask,
    LearnerStateArrays,
    OnlineLearner,
    compute_block_modulations,
    compute_drifting_teacher_path,
    compute_step_rates,
    subtract_fraction,
)
from statmech.inputs.covariance_modes import Modes, compute_group_sizes
from statmech.numerics.gaussian import Array
from statmech.numerics.random_numbers import (
    draw_chi,
    draw_normals_and_uniforms,
    fold_in,
    fold_in_key_data,
    make_generators,
    wrap_key_data,
)
from statmech.parameters.parameter_fields import RealParameterFamily
from statmech.parameters.schedules_and_controls import TimeDependence
from statmech.runtime.compiled_programs import CachedProgram

GROUP_BATCH_SEEDS = 32  # more seeds do not fit into the cache
GROUP_BLOCKS_PER_DRAW = 8  # drawn together: XLA would compute numbers drawn inside a block twice
NULL_FIELD_EPSILONS = 100  # machine epsilons: a smaller independent part of a teacher's field is rounding error
NAME = "order parameters in their exact law at finite N, group by group (simulate.online.grouped_gram_engine)"


class GroupStart(NamedTuple):
    """Coordinates of teachers and students in the bases of groups.

    An orthonormal basis of M teachers (M, M, groups, seeds), which spans the first axes of each group, and K students
    (K, M + K, groups, seeds).
    """

    teachers: np.ndarray
    students: np.ndarray


def draw_group_start(task: EngineTask, modes: Modes, sizes: np.ndarray, seeds: int, key: np.ndarray) -> GroupStart:
    """Draw the initial teachers and students of a task, as coordinates in each group of axes.

    Parameters
    ----------
    task
        The task.
    modes
        Modes of its inputs, one for each group.
    sizes
        Numbers of directions (groups,).
    seeds
        Number of seeds.
    key
        Key (2,) of the random numbers.
    """
    [rng] = make_generators(key[None])
    teachers = _draw_teacher_basis(modes, sizes, task.M, seeds, rng)
    rows = np.stack(
        [_draw_group_vectors(rng, task.K, task.M, size, seeds) for size in sizes.tolist()], axis=2
    ) / np.sqrt(task.N)
    if task.initial_coordinates is None:
        return GroupStart(teachers, rows * task.scale)
    first = np.pad(teachers, ((0, 0), (0, task.K), (0, 0), (0, 0)))
    basis = _orthonormalise(np.concatenate([first, rows]))
    return GroupStart(teachers, np.einsum("kj,jigs->kigs", task.initial_coordinates.reshape(task.K, -1), basis))


def _draw_group_vectors(
    rng: np.random.Generator, num_vectors: int, num_previous: int, dimension: int, seeds: int
) -> np.ndarray:
    """Draw normal vectors of a group, as coordinates in the basis of these and earlier vectors.

    The result (number, after + number, seeds) adds `num_vectors` vectors of dimension `dimension` to `num_previous`
    earlier vectors.
    """
    rows = np.tril(rng.standard_normal((seeds, num_vectors, num_previous + num_vectors)), num_previous - 1)
    degrees = dimension - num_previous - np.arange(num_vectors)
    chi_squared = rng.chisquare(np.maximum(degrees, 1), (seeds, num_vectors))
    rows[..., np.arange(num_vectors), num_previous + np.arange(num_vectors)] = np.where(
        degrees > 0, np.sqrt(chi_squared), 0.0
    )
    rows[..., dimension:] = 0.0  # a group of `size` directions has no further axes
    return np.moveaxis(rows, 0, -1)


def _draw_teacher_basis(modes: Modes, sizes: np.ndarray, M: int, seeds: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the teachers' basis (M, M, groups, seeds), with the given powers or without a preferred direction."""
    powers = modes.teacher
    if powers is not None and np.allclose(powers, modes.shares, rtol=1e-12):
        powers = None
    if M == 1:
        squares = _draw_group_powers(sizes, seeds, rng) if powers is None else np.repeat(powers[:, None], seeds, axis=1)
        return np.sqrt(squares)[None, None]
    parts = [_draw_group_vectors(rng, M, 0, size, seeds) for size in sizes.tolist()]
    if powers is not None:
        orthogonal = np.repeat(np.eye(M)[..., None], seeds, axis=2)
        parts = [orthogonal if size >= M else part for size, part in zip(sizes.tolist(), parts, strict=True)]
        parts = [
            part * np.sqrt(power / np.sum(part**2, axis=1))[:, None] for power, part in zip(powers, parts, strict=True)
        ]
    return _orthonormalise(np.stack(parts, axis=2))


def _draw_group_powers(sizes: np.ndarray, seeds: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the squared lengths (groups, seeds) of a random unit vector's parts in the groups."""
    squares = rng.chisquare(sizes, (seeds, len(sizes))).T
    return squares / squares.sum(axis=0)


def _orthonormalise(rows: np.ndarray) -> np.ndarray:
    """Orthonormalise rows (n, axes, groups, seeds) one after the other, in the space of all groups."""
    basis: list[np.ndarray] = []
    for row in rows:
        for axis in basis:
            row = row - np.sum(row * axis, axis=(0, 1)) * axis
        basis.append(row / np.sqrt(np.sum(row**2, axis=(0, 1))))
    return np.stack(basis)


@dataclass(frozen=True)
class GroupProgram:
    """Static arguments of the compiled program.

    One program is compiled for each combination.
    """

    learner: RealParameterFamily
    K: int
    teachers: int
    M: int  # steps per block
    groups: int
    dtype: str
    drifting: bool  # whether the teacher moves

    @property
    def vectors(self) -> int:
        """The number of random vectors per block: inputs, and random directions of a drifting teacher."""
        return 2 * self.M if self.drifting else self.M


class GroupArguments(NamedTuple):
    """Run-time arguments of a program.

    The random key, the learner's parameters, N, the number of directions and the eigenvalue of each group (groups,),
    and changes with time.
    """

    key: Array
    parameters: dict[str, Array]
    N: Array
    sizes: Array
    group_variances: Array
    changes: TimeDependence | None


class GroupBlockState(NamedTuple):
    """Coordinates of students and teachers, and the learner's state.

    Students have the shape (K, M + K, groups, seeds). The teachers' basis (M, M, groups, seeds) uses the first axes of
    the groups.
    """

    students: Array
    teacher_basis: Array
    state: LearnerStateArrays


def batch(K: int) -> int:
    """Return the number of seeds per unit of work, for K students."""
    return GROUP_BATCH_SEEDS


def run(task: EngineTask, key: np.ndarray, steps: np.ndarray, part: slice = slice(None)) -> EngineRecord:
    """Simulate a batch of seeds of a task group by group, and return a part of it, recorded at `steps` (T,).

    The random numbers derive from a key (2,). The record has the students' components parallel and perpendicular to the
    teachers, as vectors and as fields.
    """
    modes = task.inputs.modes(int(task.N))
    assert modes is not None
    sizes = compute_group_sizes(modes.shares, int(task.N))
    blocks = choose_steps_per_block(task.K, task.M, task.drifting)
    program = GroupProgram(task.learner, task.K, task.M, blocks, len(sizes), task.dtype, task.drifting)
    teachers, students = draw_group_start(task, modes, sizes, GROUP_BATCH_SEEDS, fold_in_key_data(key, 0))
    parameters, changes = task.numbers()
    state = jax.tree.map(
        lambda values: np.repeat(values[..., None], GROUP_BATCH_SEEDS, axis=-1), task.initial_learner_state
    )
    carried = GroupBlockState(students.astype(task.dtype), teachers.astype(task.dtype), state)
    arguments = GroupArguments(
        fold_in_key_data(key, 1), parameters, np.float64(task.N), sizes, modes.variances, changes
    )
    results = _simulate_all_seeds(program, arguments, carried, pad_recorded_steps(steps))
    arrays = jax.tree.map(lambda array: np.moveaxis(np.asarray(array), -1, 0)[part, : len(steps)], results)
    (parallel, perpendicular, _), fields, saved_state = arrays
    return EngineRecord(parallel, perpendicular, next(iter(jax.tree.leaves(saved_state)), None), None, *fields)


@partial(CachedProgram, options=choose_compiler_options)
def _simulate_all_seeds(
    program: GroupProgram, arguments: GroupArguments, carried: GroupBlockState, steps: Array
) -> tuple[Any, ...]:
    """Simulate all seeds in groups of axes of equal variance, and return their record (T, ..., seeds).

    The record has the students as vectors, the students as fields, and the learner's saved state.
    """
    arguments = arguments._replace(key=wrap_key_data(arguments.key))
    learner = program.learner(**arguments.parameters, N=arguments.N.astype(program.dtype), units=0)
    scale = jnp.sqrt(arguments.group_variances).astype(program.dtype)
    block = partial(_advance_group_block, learner, scale, jnp.repeat(arguments.sizes, GROUP_BATCH_SEEDS))
    stride = program.M * GROUP_BLOCKS_PER_DRAW

    def advance(
        carry: tuple[GroupBlockState, Array], until: Array
    ) -> tuple[tuple[GroupBlockState, Array], tuple[Any, ...]]:
        carried, steps_done = carry

        def blocks(index: Array, carried: GroupBlockState) -> GroupBlockState:
            first = steps_done + index * stride
            randoms = _draw_group_randoms(program, arguments, learner, fold_in(arguments.key, first))
            active = (first + jnp.arange(stride) < until).reshape(GROUP_BLOCKS_PER_DRAW, program.M)
            block_rates = arguments.changes and compute_step_rates(
                arguments.changes, learner.eta, arguments.N, first, active, program.dtype
            )
            return jax.lax.scan(block, carried, (*randoms, active, block_rates))[0]

        carried = jax.lax.fori_loop(0, (until - steps_done + stride - 1) // stride, blocks, carried)
        return (carried, until), (
            _decompose_students(carried, jnp.ones_like(scale)),
            _decompose_students(carried, scale),
            carried.state,
        )

    return jax.lax.scan(advance, (carried, jnp.zeros_like(steps[0])), steps)[1]


def _advance_group_block(
    learner: OnlineLearner, scale: Array, sizes: Array, carried: GroupBlockState, xs: tuple[Any, ...]
) -> tuple[GroupBlockState, None]:
    """Advance students and teachers by M steps in each group of axes."""
    (students, teachers, state), (normals, chi, noise, active, block_rates) = carried, xs
    K, n, groups, seeds = students.shape
    M, vectors, first = active.size, chi.shape[0], len(teachers)
    z = make_input_rows(normals, chi, n).reshape(vectors, n + vectors, groups, seeds)
    z = jnp.concatenate([z[:M] * scale[:, None], z[M:]])  # a drifting teacher's random directions have equal variances
    centres = learner.input_means(noise)
    if centres is not None:
        z = z.at[:M, :first].add(centres[:, None, None] * teachers[0])
    student_fields = sum_over_groups(students[None, :, i] * z[:M, None, i] for i in range(n))
    inner = sum_over_groups(z[:, None, i] * z[None, :, i] for i in range(n + vectors)) / learner.N
    fields = sum_over_groups(teachers[:, None, i] * z[None, :, i] for i in range(first))
    path = None
    if vectors > M:
        turned, path = compute_drifting_teacher_path(fields[0], inner, block_rates.drift, learner.N)
        fields = turned[None]
    carry = learner.start_block(state, jnp.sum(students**2, axis=(1, 2)))
    examples = learner.examples(noise, active)
    y = jnp.swapaxes(learner.convert_to_teacher_values(fields), 0, 1)
    f, carry = compute_block_modulations(learner, y, student_fields, inner[:M, :M], carry, examples, block_rates)
    wide = jnp.concatenate([students, jnp.zeros((K, vectors, groups, seeds), students.dtype)], axis=1)
    gain = add_in_order(f[m, :, None, None] * z[m, None] for m in range(M)) / learner.N
    wide = (wide + subtract_fraction(gain, wide, block_rates and block_rates.decayed_fraction_in_block)).reshape(
        K, n + vectors, groups * seeds
    )
    if path is not None:
        arrived = add_in_order(path[m + 1] * z[M + m] for m in range(M)).at[0].add(path[0] * teachers[0, 0])
        length = jnp.sqrt(jnp.sum(arrived**2, axis=0))
        arrived = arrived.at[0].add(jnp.where(length > 0, 0.0, 1.0)).reshape(n + vectors, groups * seeds)
        wide = wide + compute_rotation_gain(dot_rows_with_axis, wide, arrived)
        teachers = (length / jnp.sqrt(jnp.sum(length**2, axis=0)))[None, None]
    reduced = jnp.concatenate([wide[:, :first], compute_lq_factor(wide[:, first:])], axis=1)
    # in groups of up to n directions the basis is complete: there are no further axes
    students = jnp.where(sizes > n, reduced, wide[:, :n]).reshape(K, n, groups, seeds)
    return GroupBlockState(students, teachers, learner.saved_state(carry)), None


def sum_over_groups(terms: Iterable[Array]) -> Array:
    """Sum terms (..., groups, seeds), one per axis, over all axes and groups."""
    return jnp.sum(add_in_order(terms), axis=-2)


def _draw_group_randoms(
    program: GroupProgram, arguments: GroupArguments, learner: OnlineLearner, key: Array
) -> tuple[Array, Array, Any]:
    """Draw normals and chi variables (blocks, ..., groups * seeds), and the learner's noise."""
    M, vectors, dtype, n = program.M, program.vectors, program.dtype, program.K + program.teachers
    wide = program.groups * GROUP_BATCH_SEEDS
    axis = jnp.asarray([i for m in range(vectors) for i in range(n + m)])
    key, chi_key = fold_in(key, 0), fold_in(key, 1)
    # rows of the learner's noise, which has one column per seed
    rows = -(-learner.normals_per_step * M // program.groups)
    shapes = (
        (GROUP_BLOCKS_PER_DRAW, len(axis) + rows, wide),
        (GROUP_BLOCKS_PER_DRAW, learner.uniforms_per_step * M, GROUP_BATCH_SEEDS),
    )
    all_normals, uniforms = draw_normals_and_uniforms(key, *shapes)
    normals = all_normals[:, : len(axis)]
    of_noise = all_normals[:, len(axis) :].reshape(GROUP_BLOCKS_PER_DRAW, -1, GROUP_BATCH_SEEDS)
    sizes = jnp.repeat(arguments.sizes, GROUP_BATCH_SEEDS)
    # a branch, because indexing by `axis` in the loop is slower
    exists = partial(jnp.where, axis[:, None] < sizes)
    has_small_groups = jnp.min(arguments.sizes) < n + vectors
    normals = jax.lax.cond(has_small_groups, lambda z: exists(z, 0.0), lambda z: z, normals.astype(dtype))
    degrees = jnp.maximum(sizes - n - jnp.arange(vectors)[:, None], 0)
    chi = draw_chi(chi_key, degrees, (GROUP_BLOCKS_PER_DRAW, vectors, wide)).astype(dtype)
    return normals, chi, learner.noise(of_noise[:, : learner.normals_per_step * M], uniforms, dtype)


def _decompose_students(carried: GroupBlockState, scale: Array) -> tuple[Array, Array, Array]:
    """Decompose the students of all groups into components along the teachers' axes and a perpendicular rest.

    Groups are scaled by `scale`. Returns the components (K, M, seeds), the Gram matrix (K, K, seeds) of the rest, and
    the coordinates (M, M, seeds) of the teachers' basis on these axes.
    """
    students, teachers = carried.students * scale[:, None], carried.teacher_basis * scale[:, None]
    number = len(teachers)
    axes: list[tuple[Array, Array]] = []
    coordinates = jnp.zeros((number, number, students.shape[-1]), students.dtype)
    for m, axis in enumerate(teachers):
        total_square = jnp.sum(axis**2, axis=(0, 1))
        for index, basis_axis in [*enumerate(axes)] * 2:  # repeated because rounding matters if the fields are similar
            axis, part = _subtract_projection(axis, *basis_axis)
            coordinates = coordinates.at[m, index].add(part)
        square = jnp.sum(axis**2, axis=(0, 1))
        square = jnp.where(
            square > (NULL_FIELD_EPSILONS * jnp.finfo(square.dtype).eps) ** 2 * total_square, square, 0.0
        )
        coordinates = coordinates.at[m, m].set(jnp.sqrt(square))
        axes.append((axis, square))
    rest, parallel = students[:, :number], []
    for basis_axis in axes:
        rest, part = _subtract_projection(rest, *basis_axis)
        parallel.append(part)
    rest = students.at[:, :number].set(rest)
    return jnp.stack(parallel, axis=1), jnp.einsum("kigs,ligs->kls", rest, rest), coordinates


def _subtract_projection(vectors: Array, axis: Array, square: Array) -> tuple[Array, Array]:
    """Subtract from vectors (..., M, groups, seeds) their projections onto an axis of this squared length.

    Returns the rest and the components along the axis, which are 0 for an axis of length 0.
    """
    coefficient = jnp.sum(vectors * axis, axis=(-3, -2)) / jnp.where(square > 0, square, 1.0)
    coefficient = jnp.where(square > 0, coefficient, 0.0)
    return vectors - coefficient[..., None, None, :] * axis, coefficient * jnp.sqrt(square)
