r"""The Gram engine of inputs whose directions fall into groups of equal variance: exact at any N, like `gram`.

With :math:`\mathbf x_a\sim N(0, (l_a/N)I)` in group a of :math:`N_a` directions, only the spans of the parts
:math:`\mathbf B_a, \mathbf J_{1a}, \dots, \mathbf J_{Ka}` matter. In each group they have an orthonormal basis that
begins with :math:`\mathbf B_a/|\mathbf B_a|`, in which the input is K + 1 normals and one chi of :math:`N_a - K - 1`
degrees, all times :math:`\sqrt{l_a/N}`. Groups are coupled by the fields alone: with
:math:`\tau_a = |\mathbf B_a|/\sqrt N` and the coordinates :math:`C^a` of :math:`\mathbf J_{ka}/\sqrt N`,

.. math:: y = \sum_a\sqrt{l_a}\,\tau_az_{a0}, \qquad h_k = \sum_a\sqrt{l_a}\,C^a_k\cdot z_a, \qquad
          \mathbf x^m\cdot\mathbf x^n = \frac1N\sum_al_a\,z^m_a\cdot z^n_a .

So a block of steps is that of `gram` with one more axis, and each group is reduced by an LQ decomposition of its own.
Inputs around the centres of clusters have the mean :math:`c\,\tau_a` along the teacher's axis in place of 0, with c
from the learner (`Learner.centres`).
A teacher that drifts turns in all directions alike, whatever their variance: each group's axes are turned until the
first is the teacher's part there.

Lengths are Euclidean; what is recorded are the parts of the students along and across the teacher twice, as vectors and
as fields, in which :math:`\mathbf u\cdot\mathbf v` is :math:`\sum_al_a\,\mathbf u_a\cdot\mathbf v_a`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simulate.kernels.courses import course_of
from simulate.kernels.field_steps import less, modulations, path_of_teacher
from simulate.kernels.gram import add_up, block_steps, chi_variable, dot, input_rows, lower_factor, padded, turn
from simulate.kernels.learner import Learner, Record, State, Task
from statmech.modes import Modes, group_sizes
from statmech.numerics.gaussian import Array
from statmech.parameters import Family
from statmech.random_numbers import fold_in, folded, generators, normals_and_uniforms, wrapped
from statmech.runtime.programs import cached_program
from statmech.schedules import Changes

SEEDS = 32  # of a batch
BLOCKS = 8  # whose random numbers are drawn together

NAME = "order parameters in their exact law at finite N, group by group (simulate.kernels.gram_of_groups)"


@dataclass(frozen=True)
class Program:
    """Static arguments of the compiled program; one is compiled for each."""

    learner: Family
    K: int
    M: int  # steps per block
    groups: int
    dtype: str
    drifting: bool  # whether the teacher moves

    @property
    def vectors(self) -> int:
        """Random vectors per block: the inputs, and as many directions in which the teacher turns."""
        return 2 * self.M if self.drifting else self.M


class Arguments(NamedTuple):
    """Run-time arguments of a program: the key's words, the learner's parameters, N, and of each group the number of
    directions and the eigenvalue (groups,), and what changes."""

    key: Array
    parameters: dict[str, Array]
    N: Array
    sizes: Array
    variances: Array
    changes: Changes | None


class Carried(NamedTuple):
    """Students' coordinates (K, K + 1, groups, seeds), the teacher's lengths (groups, seeds), the learner's state."""

    students: Array
    teacher: Array
    state: State


def batch(K: int) -> int:
    """Seeds per unit of work, of K students."""
    return SEEDS


def run(task: Task, key: np.ndarray, steps: np.ndarray, part: slice = slice(None)) -> Record:
    """Simulate a batch of seeds of a task from a key (2,), recorded at `steps` (T,) steps, and return a part of it.

    The record has the students' parts along the teacher and across it, as vectors and as fields.
    """
    modes = task.inputs.modes(int(task.N))
    assert modes is not None
    sizes = group_sizes(modes.shares, int(task.N))
    program = Program(
        task.learner, task.K, block_steps(task.K, 1, task.drifting), len(sizes), task.dtype, task.drifting
    )
    teacher, students = _starts(task, modes, sizes, folded(key, 0))
    parameters, changes = task.numbers()
    state = jax.tree.map(lambda values: np.repeat(values[..., None], SEEDS, axis=-1), task.kept)
    carried = Carried(students.astype(task.dtype), teacher.astype(task.dtype), state)
    arguments = Arguments(folded(key, 1), parameters, np.float64(task.N), sizes, modes.variances, changes)
    made = _run(program, arguments, carried, padded(steps))
    along, across, along_field, across_field = (np.moveaxis(np.asarray(it), -1, 0)[part, : len(steps)] for it in made)
    return Record(along[..., None], across, None, None, along_field[..., None], across_field)


@cached_program
def _run(program: Program, arguments: Arguments, carried: Carried, steps: Array) -> tuple[Array, ...]:
    """The record of all seeds, parts (T, ..., seeds)."""
    arguments = arguments._replace(key=wrapped(arguments.key))
    learner = program.learner(**arguments.parameters, N=arguments.N.astype(program.dtype), units=0)
    scale = jnp.sqrt(arguments.variances).astype(program.dtype)
    block = partial(_block, learner, scale)
    stride = program.M * BLOCKS

    def advance(carry: tuple[Carried, Array], until: Array) -> tuple[tuple[Carried, Array], tuple[Array, ...]]:
        carried, done = carry

        def blocks(index: Array, carried: Carried) -> Carried:
            first = done + index * stride
            randoms = _randoms(program, arguments, learner, fold_in(arguments.key, first))
            active = (first + jnp.arange(stride) < until).reshape(BLOCKS, program.M)
            course = arguments.changes and course_of(
                arguments.changes, learner.eta, arguments.N, first, active, program.dtype
            )
            return jax.lax.scan(block, carried, (*randoms, active, course))[0]

        carried = jax.lax.fori_loop(0, (until - done + stride - 1) // stride, blocks, carried)
        return (carried, until), (*_parts(carried, jnp.ones_like(scale)), *_parts(carried, scale))

    return jax.lax.scan(advance, (carried, jnp.zeros_like(steps[0])), steps)[1]


def _block(learner: Learner, scale: Array, carried: Carried, xs: tuple[Any, ...]) -> tuple[Carried, None]:
    """M steps."""
    (students, teacher, state), (normals, chi, noise, active, course) = carried, xs
    K, n, groups, seeds = students.shape
    M, vectors = active.size, chi.shape[0]
    z = input_rows(normals, chi, n).reshape(vectors, n + vectors, groups, seeds)
    z = jnp.concatenate([z[:M] * scale[:, None], z[M:]])  # directions in which the teacher turns have no variance
    centres = learner.centres(noise)
    if centres is not None:
        z = z.at[:M, 0].add(centres[:, None] * teacher)
    seen = jnp.sum(add_up(students[None, :, i] * z[:M, None, i] for i in range(n)), axis=-2)
    inner = jnp.sum(add_up(z[:, None, i] * z[None, :, i] for i in range(n + vectors)), axis=-2) / learner.N
    fields = jnp.sum(teacher * z[:, 0], axis=-2)
    path = None
    if vectors > M:
        fields, path = path_of_teacher(fields, inner, course.drift, learner.N)
    carry = learner.begin(state, jnp.sum(students**2, axis=(1, 2)))
    examples = learner.examples(noise, active)
    f, carry = modulations(learner, fields[:, None], seen, inner[:M, :M], carry, examples, course)
    wide = jnp.concatenate([students, jnp.zeros((K, vectors, groups, seeds), students.dtype)], axis=1)
    gain = add_up(f[m, :, None, None] * z[m, None] for m in range(M)) / learner.N
    wide = (wide + less(gain, wide, course and course.lost)).reshape(K, n + vectors, groups * seeds)
    if path is not None:
        arrived = add_up(path[m + 1] * z[M + m] for m in range(M)).at[0].add(path[0] * teacher)
        length = jnp.sqrt(jnp.sum(arrived**2, axis=0))
        arrived = arrived.at[0].add(jnp.where(length > 0, 0.0, 1.0)).reshape(n + vectors, groups * seeds)
        wide = wide + turn(dot, wide, arrived)
        teacher = length / jnp.sqrt(jnp.sum(length**2, axis=0))
    students = jnp.concatenate([wide[:, :1], lower_factor(wide[:, 1:])], axis=1).reshape(K, n, groups, seeds)
    return Carried(students, teacher, learner.kept(carry)), None


def _randoms(program: Program, arguments: Arguments, learner: Learner, key: Array) -> tuple[Array, Array, Any]:
    """Normals and chis (blocks, ..., groups times seeds) and the learner's noise of some blocks."""
    M, vectors, dtype, n = program.M, program.vectors, program.dtype, program.K + 1
    wide = program.groups * SEEDS
    axis = jnp.asarray([i for m in range(vectors) for i in range(n + m)])
    key, chi_key = fold_in(key, 0), fold_in(key, 1)
    shapes = (BLOCKS, len(axis), wide), (BLOCKS, learner.uniforms * M, SEEDS)
    normals, uniforms = normals_and_uniforms(key, *shapes)
    sizes = jnp.repeat(arguments.sizes, SEEDS)
    # a branch: a loop that looks up which axes exist is slower
    exists = partial(jnp.where, axis[:, None] < sizes)
    few = jnp.min(arguments.sizes) < n + vectors
    normals = jax.lax.cond(few, lambda z: exists(z, 0.0), lambda z: z, normals.astype(dtype))
    degrees = jnp.maximum(sizes - n - jnp.arange(vectors)[:, None], 0)
    chi = chi_variable(chi_key, degrees, (BLOCKS, vectors, wide)).astype(dtype)
    return normals, chi, learner.noise(uniforms[:, :0], uniforms, dtype)


def _parts(carried: Carried, scale: Array) -> tuple[Array, Array]:
    """Parts of students along (K, seeds) and across (K, K, seeds) the teacher, with groups scaled by `scale`."""
    students, teacher = carried.students * scale[:, None], carried.teacher * scale[:, None]
    square = jnp.sum(teacher**2, axis=0)
    share = jnp.sum(students[:, 0] * teacher, axis=1) / square
    rest = students.at[:, 0].add(-share[:, None] * teacher)
    return share * jnp.sqrt(square), jnp.einsum("kigs,ligs->kls", rest, rest)


def _starts(task: Task, modes: Modes, sizes: np.ndarray, key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The teacher's lengths (groups, seeds), and the students in the bases of the groups (K, K + 1, groups, seeds)."""
    [rng] = generators(key[None])
    teacher = np.sqrt(_teacher(modes, sizes, rng))
    drawn = np.stack([_drawn(rng, task.K, size) for size in sizes.tolist()], axis=2) / np.sqrt(task.N)
    if task.coordinates is None:
        return teacher, drawn * task.scale
    basis = _orthonormal(teacher, drawn)
    return teacher, np.einsum("kj,jigs->kigs", task.coordinates.reshape(task.K, -1), basis)


def _drawn(rng: np.random.Generator, K: int, size: int) -> np.ndarray:
    """K vectors of `size` normals (K, K + 1, seeds), in a basis of their span that begins with the teacher."""
    rows = np.tril(rng.standard_normal((SEEDS, K, K + 1)))
    degrees = size - 1 - np.arange(K)
    chi_squared = rng.chisquare(np.maximum(degrees, 1), (SEEDS, K))
    rows[..., np.arange(K), np.arange(1, K + 1)] = np.where(degrees > 0, np.sqrt(chi_squared), 0.0)
    rows[..., size:] = 0.0  # there are no more axes
    return np.moveaxis(rows, 0, -1)


def _teacher(modes: Modes, sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The teacher's squared lengths (groups, seeds), which add up to 1: those stated, or drawn without a preference."""
    if modes.teacher is not None and not np.allclose(modes.teacher, modes.shares, rtol=1e-12):
        return np.repeat(modes.teacher[:, None], SEEDS, axis=1)
    squares = rng.chisquare(sizes, (SEEDS, len(sizes))).T
    return squares / squares.sum(axis=0)


def _orthonormal(teacher: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The teacher and K drawn vectors, orthonormal in the space of all groups (K + 1, K + 1, groups, seeds)."""
    first = np.zeros_like(rows[:1])
    first[0, 0] = teacher
    basis: list[np.ndarray] = []
    for row in np.concatenate([first, rows]):
        for axis in basis:
            row = row - np.sum(row * axis, axis=(0, 1)) * axis
        basis.append(row / np.sqrt(np.sum(row**2, axis=(0, 1))))
    return np.stack(basis)
