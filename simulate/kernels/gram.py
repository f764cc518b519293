r"""The Gram engine: the exact distribution of the order parameters at finite N, at a cost per example independent of N.

For inputs :math:`\mathbf x\sim N(0, I/N)` seen once, only the span of :math:`\mathbf B, \mathbf J_1, \dots,
\mathbf J_K` matters. Let :math:`e_0 = \mathbf B/|\mathbf B|, e_1, \dots` be an orthonormal basis of it and C the
students' coordinates, :math:`\mathbf J_k/\sqrt N = \sum_i C_{ki}e_i`. The coordinates of :math:`\sqrt N\mathbf x` on
the n basis vectors are independent normals, and the remainder, orthogonal to all of them and of unknown but irrelevant
direction, has the length of a :math:`\chi_{N-n}` variable. Taking that direction as a new basis vector, an input is n
normals and one chi.
A block of M steps adds M axes (the m-th input has n + m normals before its chi, which has N - n - m degrees of freedom:
the Bartlett factor of the inputs' Wishart matrix); rotating axes 1, 2, ... among themselves, which changes neither the
teacher nor any inner product, an LQ decomposition reduces the students to K + 1 axes again.

A teacher that drifts turns after each input by a random direction, which is a normal vector like the input: a block has
2 M such vectors, and as many axes. Its path is in their span (`simulate.kernels.field_steps`), and at the block's end
the axes are rotated in one plane until the first is the teacher again.

Nothing is approximated: R, q, l have the same distribution as in `simulate.kernels.vectors`, fluctuations included, for
any N (coordinates beyond the N-th axis are zero). The state is the coordinates, not the Gram matrix, whose Cholesky
factor would lose half the digits as q -> 1 and all of them for identical students; here their rows stay identical.

For few students seeds are lanes, the last axis of one wide elementwise program (`_block_of_lanes`); for many students
they are the first axis of matrix products and LAPACK's QR (`_block_of_matrices`). The distribution is the same.
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

from simulate.kernels.field_steps import (
    Changes,
    Course,
    Record,
    changes_of,
    course_of,
    less,
    modulation,
    modulations,
    path_of_teacher,
)
from statmech.gaussian import Array
from statmech.inputs import Gaussian
from statmech.parameters import Family, family_of
from statmech.programs import kept
from statmech.random_numbers import Lanes, folded, normals_and_uniforms, wrapped
from statmech.rules import Rule
from statmech.scenarios.online import Cell

LANES = 32  # blocks whose random numbers are drawn together: drawn inside a block of lanes they are computed twice
MATRICES = 4  # the same for blocks of matrices, which are longer
MANY = 16  # number of students from which matrices are faster than lanes

DIVISIBLE = 3  # number of students up to which a part of a batch has the bits of the whole

STEP = 5e5  # a student's length times N over eta up to which float32 resolves a step (docs/gram_engine.md)

Draw = Callable[[Array, tuple[int, ...], tuple[int, ...]], tuple[Array, Array]]

NAME = "order parameters in their exact law at finite N (simulate.kernels.gram)"


def covers(cell: Cell) -> bool:
    """True if the engine is exact for a cell: if its inputs are Gaussian, with equal coordinates in every basis."""
    return isinstance(cell.inputs, Gaussian)


def batch(K: int) -> int:
    """Seeds per unit of work, of a cell with K students: enough to fill the lanes, few enough to stay in cache."""
    return 64 if K <= 10 else 16


def divisible(K: int) -> bool:
    """True if a part of a batch has the bits of the whole; for more students, products of the record differ."""
    return K <= DIVISIBLE


def block_steps(K: int, drifting: bool = False) -> int:
    """Steps per block: the LQ costs K^2 (K + M) per block, the growing basis M per step, 2 M if the teacher moves."""
    if K < MANY:
        return (1 if drifting else 2) if K == 1 else max(3, K // 2)
    return min(K, 64) // (2 if drifting else 1)


@dataclass(frozen=True)
class Program:
    """Static arguments of the compiled program; one is compiled for each."""

    rule: Family
    K: int
    M: int  # steps per block
    lanes: int  # seeds
    dtype: str
    batch: int  # seeds of the batch that they belong to
    drifting: bool  # whether the teacher moves

    @property
    def vectors(self) -> int:
        """Random vectors per block: the inputs, and as many directions in which the teacher turns."""
        return 2 * self.M if self.drifting else self.M


class Problem(NamedTuple):
    """Run-time arguments of a program: the key's words, the rule's parameters, the label noise, N, the first seed, and
    what changes."""

    key: Array
    parameters: dict[str, Array]
    flip: Array
    N: Array
    first: Array
    changes: Changes | None


def run(cell: Cell, dtype: str, key: np.ndarray, steps: np.ndarray, part: slice = slice(None)) -> Record:
    """Simulate a batch of seeds of a cell from a key (2,), or a part of it, recorded at `steps` (T,) steps."""
    K, size = cell.K, batch(cell.K)
    first, last, _ = part.indices(size)
    start, start_key = cell.coordinates, folded(key, 0)
    students = _initial(start_key, K, cell.N, size) if start is None else np.repeat(start[..., None], size, axis=-1)
    drifting = cell.drift > 0
    program = Program(family_of(cell.rule), K, block_steps(K, drifting), last - first, dtype, size, drifting)
    flip, N, changes = np.float32(cell.flip), np.float64(cell.N), changes_of(cell)
    problem = Problem(folded(key, 1), cell.traced(dtype), flip, N, np.uint32(first), changes)
    return Record(*_run(program, problem, students[..., first:last].astype(dtype), steps))


@kept
def _run(program: Program, problem: Problem, students: Array, steps: Array) -> tuple[Array, Array]:
    """The record of all seeds: parts along and across the teacher."""
    problem = problem._replace(key=wrapped(problem.key))
    rule, many = program.rule(**problem.parameters), program.K >= MANY
    block = partial(_block_of_matrices if many else _block_of_lanes, rule, problem.N.astype(program.dtype))
    together = MATRICES if many else LANES
    stride = program.M * together
    if many:
        students = jnp.moveaxis(students, -1, 0)

    def advance(carry: tuple[Array, Array], until: Array) -> tuple[tuple[Array, Array], Record]:
        students, done = carry

        def blocks(index: Array, students: Array) -> Array:
            first = done + index * stride
            randoms = _randoms(program, problem, jax.random.fold_in(problem.key, first), together)
            active = (first + jnp.arange(stride) < until).reshape(together, program.M)
            course = problem.changes and course_of(problem.changes, rule.eta, problem.N, first, active, program.dtype)
            return jax.lax.scan(block, students, (*randoms, active, course))[0]

        students = jax.lax.fori_loop(0, (until - done + stride - 1) // stride, blocks, students)
        return (students, until), _record(students if many else jnp.moveaxis(students, -1, 0))

    _, record = jax.lax.scan(advance, (students, jnp.zeros_like(steps[0])), steps)
    along, across, _ = record
    return jnp.swapaxes(along, 0, 1), jnp.swapaxes(across, 0, 1)


def _block_of_lanes(rule: Rule, N: Array, students: Array, xs: tuple[Any, ...]) -> tuple[Array, None]:
    """M steps: students (K, n, lanes) before and after. Sums are unrolled: XLA reduces inner axes number by number."""
    normals, chi, right, active, course = xs
    K, n, lanes = students.shape
    M, vectors = active.size, chi.shape[0]
    z = _rows(normals, chi, n)  # (vectors, n + vectors, lanes)
    seen = _sum(students[:, None, i] * z[None, :M, i] for i in range(n))
    inner = _sum(z[:, None, i] * z[None, :, i] for i in range(n + vectors)) / N
    teacher, path = path_of_teacher(z[:, 0], inner, course.drift, N) if vectors > M else (z[:, 0], None)
    fields = jnp.concatenate([teacher[None], seen])
    squared_length = _sum(students[:, i] ** 2 for i in range(n))
    right = jnp.where(active[:, None], right, 0.0)
    f, _ = modulations(rule, fields, inner[:M, :M], squared_length, right, N, course)
    wide = jnp.concatenate([students, jnp.zeros((K, vectors, lanes), students.dtype)], axis=1)
    gain = less(_sum(f[m, :, None] * z[m, None] for m in range(M)) / N, wide, course and course.lost)
    if path is not None:
        arrived = _sum(path[m + 1] * z[M + m] for m in range(M)).at[0].add(path[0])
        gain = gain + _turn(_dot, wide + gain, arrived)
    wide = wide + gain
    return jnp.concatenate([wide[:, :1], _lower(wide[:, 1:])], axis=1), None


def _turn(dot: Callable[[Array, Array], Array], students: Array, teacher: Array) -> Array:
    r"""What students (K, axes) gain when axes turn, in the teacher's plane, until the first is the teacher (axes,).

    With the teacher at :math:`\cos\psi\,e_0 + \sin\psi\,p`, coordinates gain :math:`\sin\psi\,c_p - (1 - \cos\psi)c_0`
    along :math:`e_0` and :math:`-\sin\psi\,c_0 - (1 - \cos\psi)c_p` along p. Arrays may have a trailing axis of lanes;
    `dot` multiplies coordinates (K, axes) by an axis.
    """
    sin = jnp.sqrt(jnp.sum(teacher[1:] ** 2, axis=0))
    p = teacher[1:] / jnp.where(sin > 0, sin, 1.0)
    norm = jnp.hypot(sin, teacher[0])  # 1, but for rounding
    sin, cos = sin / norm, teacher[0] / norm
    versine = jnp.where(cos > 0, sin**2 / (1 + jnp.abs(cos)), 1 - cos)  # of a small angle with all digits
    along, onto = students[:, 0], dot(students[:, 1:], p)
    first, across = sin * onto - versine * along, -sin * along - versine * onto
    return jnp.concatenate([first[:, None], across[:, None] * p], axis=1)


def _dot(rows: Array, axis: Array) -> Array:
    """Products of rows (K, axes, lanes) with one axis (axes, lanes)."""
    return _sum(rows[:, i] * axis[i] for i in range(len(axis)))


def _sum(terms: Iterable[Array]) -> Array:
    return reduce(add, terms)


def _block_of_matrices(rule: Rule, N: Array, students: Array, xs: tuple[Any, ...]) -> tuple[Array, None]:
    """M steps: students (seeds, K, n) before and after."""
    normals, chi, right, active, course = xs
    n, M, vectors = students.shape[2], active.size, chi.shape[0]
    z = _matrices(normals, chi, n)
    x = z[:, :M]
    seen = x[:, :, :n] @ jnp.swapaxes(students, 1, 2)
    inner = z @ jnp.swapaxes(z, 1, 2) / N
    teacher, path = z[:, :, 0], None
    if vectors > M:
        fields, path = path_of_teacher(teacher.T, jnp.moveaxis(inner, 0, -1), course.drift, N)
        teacher = fields.T
    squared_length = jnp.sum(students**2, axis=2)
    right = jnp.where(active[:, None], right, 0.0)
    f = _scanned_modulations(rule, teacher, seen, inner[:, :M, :M], squared_length, right, N, course)
    wide = jnp.pad(students, ((0, 0), (0, 0), (0, vectors)))
    gain = less(f @ x / N, wide, course and course.lost)
    if path is not None:
        arrived = jnp.einsum("ms,smi->si", path[1:], z[:, M:]).at[:, 0].add(path[0])
        gain = gain + jax.vmap(partial(_turn, jnp.matmul))(wide + gain, arrived)
    wide = wide + gain
    # one matrix at a time: a batched QR waits for threads of its own pool, and two units at once would wait forever
    upper = jax.lax.map(partial(jnp.linalg.qr, mode="r"), jnp.swapaxes(wide[:, :, 1:], 1, 2))
    return jnp.concatenate([wide[:, :, :1], jnp.swapaxes(upper, 1, 2)], axis=2), None


def _matrices(normals: Array, chi: Array, n: int) -> Array:
    """`_rows` for many steps, seeds first: (seeds, M, n + M)."""
    M = chi.shape[0]
    m, axis = jnp.arange(M)[:, None], jnp.arange(n + M)
    packed = jnp.moveaxis(normals, -1, 0)[:, jnp.minimum(m * n + m * (m - 1) // 2 + axis, normals.shape[0] - 1)]
    return jnp.where(axis < n + m, packed, jnp.where(axis == n + m, chi.T[:, :, None], 0.0))


def _scanned_modulations(
    rule: Rule,
    teacher: Array,
    seen: Array,
    inner: Array,
    squared_length: Array,
    right: Array,
    N: Array,
    course: Course | None,
) -> Array:
    """`modulations`, seeds first: (seeds, K, M). The loop with lanes last costs 15 to 50 % more at K >= 20."""

    def step(carry: tuple[Array, Array], xs: tuple[Array, ...]) -> tuple[tuple[Array, Array], None]:
        f, squared_length = carry
        m, teacher, h, inner, right, now = xs
        h = less(h, h, now and now.before) + jnp.einsum("skn,sn->sk", f, inner)  # f of the steps to come is zero
        norm = inner[:, m, None]
        new, squared_length = modulation(rule, teacher[:, None], h, norm, squared_length, right[:, None], N, now)
        return (less(f, f, now and now.decay).at[:, :, m].set(new), squared_length), None

    seeds, M, K = seen.shape
    xs = (jnp.arange(M), teacher.T, jnp.moveaxis(seen, 1, 0), jnp.moveaxis(inner, 1, 0), right, course)
    return jax.lax.scan(step, (jnp.zeros((seeds, K, M), seen.dtype), squared_length), xs)[0][0]


def _rows(normals: Array, chi: Array, n: int) -> Array:
    """The inputs' coordinates: row m consists of n + m normals, its chi, and zeros."""
    M, lanes = chi.shape
    rows, used = [], 0
    for m in range(M):
        zeros = jnp.zeros((M - m - 1, lanes), chi.dtype)
        rows.append(jnp.concatenate([normals[used : used + n + m], chi[m : m + 1], zeros]))
        used += n + m
    return jnp.stack(rows)


def _lower(rows: Array) -> Array:
    """The lower triangular factor L of rows = L Q, shape (K, K, lanes), by modified Gram-Schmidt.

    Q is not needed, and L is backward stable. A row in the span of the previous ones has a zero on the diagonal.
    """
    K = rows.shape[0]
    columns = []
    for k in range(K):
        norm = jnp.sqrt(jnp.sum(rows[0] ** 2, axis=0))
        axis = rows[0] / jnp.where(norm > 0, norm, 1.0)
        onto = jnp.sum(rows * axis, axis=1)
        columns.append(jnp.concatenate([jnp.zeros((k, *norm.shape), rows.dtype), norm[None], onto[1:]]))
        rows = rows[1:] - onto[1:, None] * axis
    return jnp.stack(columns, axis=1)


def _randoms(program: Program, problem: Problem, key: Array, blocks: int) -> tuple[Array, Array, Array]:
    """Normals, chis and label signs of this number of blocks."""
    N, M, vectors, lanes, dtype = problem.N, program.M, program.vectors, program.lanes, program.dtype
    key, chi_key = jax.random.split(key)
    n = program.K + 1
    count = vectors * n + vectors * (vectors - 1) // 2
    axis = jnp.asarray([i for m in range(vectors) for i in range(n + m)])
    whole = lanes == program.batch
    draw = partial(normals_and_uniforms, lanes=None if whole else Lanes(problem.first, lanes, program.batch))
    normals, u = draw(key, (blocks, count, lanes), (blocks, M, lanes))
    # a branch: the axes are not a plain range, and a loop that looks them up is four times slower
    exists = partial(jnp.where, (axis < N)[:, None])
    normals = jax.lax.cond(n + vectors > N, lambda z: exists(z, 0.0), lambda z: z, normals.astype(dtype))
    chi = chi_variable(chi_key, N - n - jnp.arange(vectors)[:, None], (blocks, vectors, lanes), draw).astype(dtype)
    return normals, chi, jnp.where(u < problem.flip, -1.0, 1.0).astype(dtype)


def chi_variable(key: Array, degrees: Array, shape: tuple[int, ...], draw: Draw = normals_and_uniforms) -> Array:
    r"""Chi variables, exactly: :math:`\chi_d = \sqrt{2\Gamma(d/2)}` by Marsaglia & Tsang's rejection (2000).

    `degrees` broadcasts to `shape`; 0 degrees (or fewer) give 0, and one is the modulus of a normal.
    """
    shift = jnp.maximum(degrees, 2) / 2 - 1 / 3
    scale = 1 / jnp.sqrt(9 * shift)

    def propose(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        attempt, value, waiting = state
        x, u = draw(jax.random.fold_in(key, attempt), shape, shape)
        x = x.astype(float)
        s = scale * x
        w = s * (3 + s * (3 + s))  # (1 + s)^3 - 1
        # accept u < exp(A), A = 3 shift (log(1 + s) - s + s^2/2 - s^3/3) >= -0.84 shift s^4 if |s| < 1/8: at
        # large N this accepts all, and logarithms, which cost more than everything else, are almost never computed
        certain = (jnp.abs(s) < 0.125) & (u < 1 - 0.84 * shift * s**4)
        accepted = jax.lax.cond(jnp.all(certain), lambda: certain, lambda: certain | _accepted(u, x, w, shift))
        accepted |= degrees == 1  # chi is the modulus of a normal: nothing to reject
        drawn = jnp.where(degrees == 1, jnp.abs(x), jnp.sqrt(2 * shift * jnp.maximum(1 + w, 0.0)))
        value = jnp.where(waiting & accepted, drawn, value)
        return attempt + 1, value, waiting & ~accepted

    state = (jnp.uint32(0), jnp.zeros(shape), jnp.broadcast_to(degrees > 0, shape))
    return jax.lax.while_loop(lambda state: jnp.any(state[2]), propose, state)[1]


def _accepted(u: Array, x: Array, w: Array, shift: Array) -> Array:
    """Marsaglia and Tsang's acceptance test."""
    safe = jnp.where(w > -1, w, 0.0)
    return (w > -1) & (jnp.log(u) < x * x / 2 + shift * (jnp.log1p(safe) - safe))


def _initial(key: np.ndarray, K: int, N: float, lanes: int) -> np.ndarray:
    """Students with N(0, 1) entries: K rows of normals, with chis, in the basis that they span with the teacher.

    Drawn by NumPy: a compiled program would take longer to load than this to run.
    """
    rng = np.random.default_rng(key)
    rows = np.tril(rng.standard_normal((lanes, K, K + 1)))
    degrees = np.maximum(N - 1 - np.arange(K), 0)
    rows[:, np.arange(K), 1 + np.arange(K)] = np.sqrt(rng.chisquare(degrees, (lanes, K)))
    return np.moveaxis(rows, 0, -1) / np.sqrt(N)


def _record(students: Array) -> Record:
    """Parts of students (seeds, K, n) along (seeds, K) and across (seeds, K, K) the teacher."""
    rest = students[:, :, 1:]
    return Record(students[:, :, 0], rest @ jnp.swapaxes(rest, -1, -2))
