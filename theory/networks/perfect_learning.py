r"""The last stage of perfect learning, in the differences of student and teacher units.

As :math:`\epsilon_g\to0`, R and Q round to those of the teacher, and sums of averages cancel. With a teacher unit, or
0, for each student, :math:`\mathbf D_k = \mathbf J_k - \mathbf B_{s(k)}`, its field :math:`u_k`, and :math:`x_k(\tau) =
y_{s(k)} + \tau u_k`, a network without noise and decay whose v are the teacher's w has the error

.. math:: e = -\sum_a v_a\int_0^1 d\tau\,g'(x_a(\tau))\,u_a ,

all of whose terms are small. The products :math:`\rho_{km} = \mathbf D_k\cdot\mathbf B_m/N` and :math:`d_{kl} = \mathbf
D_k\cdot\mathbf D_l/N` follow

.. math:: \dot\rho_{km} = \eta\,\langle\delta_k y_m\rangle, \qquad
          \dot d_{kl} = \eta\,\langle\delta_k u_l + \delta_l u_k\rangle + \eta^2\langle\delta_k\delta_l\rangle ,

with integrals over :math:`\tau` of averages of two fields and two or four Gaussians: for erf units, with the covariance
matrix C of the x of n factors g', and those, :math:`c_u` and :math:`c_z`, of u and z with them,

.. math:: \langle g'(x_1)\cdots g'(x_n)\,u\,z\rangle = \Big(\frac2\pi\Big)^{n/2}
          \frac{C_{uz} - c_u^\mathsf{T}(1+C)^{-1}c_z}{\sqrt{\det(1+C)}} .

For linear units it is C_uz. What is integrated are the logarithms of the sizes of d and rho, and their directions, so
that relative digits are kept however small they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.activations import Erf, Linear
from statmech.numerics.gaussian import Array, legendre
from statmech.runtime.devices import double_precision
from statmech.runtime.programs import cached_program, filled_up
from statmech.scenarios.network import NetworkCell
from statmech.scenarios.network_matrices import Units
from theory.numerics.dormand_prince import integrate, padded

SMALL = 1e-3  # eps_g from which differences are integrated
CLOSE = 0.05  # the largest square of a difference at which they are
MAX_STEPS = 200_000
NODES = 6  # of each line integral: relative errors below 1e-12 where d < 1e-3
RTOL, ATOL = 1e-10, 1e-12


@dataclass(frozen=True)
class Near:
    """Static arguments: the teacher unit of each student, M for none, the number M, and whether units are linear."""

    unit: tuple[int, ...]
    M: int
    linear: bool


class Differences(NamedTuple):
    """rho (K, M, ...) and d (K, K, ...)."""

    rho: Array
    d: Array


class Products(NamedTuple):
    """Covariances (n, n, L) of y (M of them), one that is 0, and u (K of them)."""

    near: Near
    gram: Array

    def of(self, *fields: tuple[Array, Array, Array]) -> Array:
        """The covariances (n, n, ..., L) of fields b + tau u, each given by the places of b and u, and tau."""
        rows = [[self._of(one, other) for other in fields] for one in fields]
        shape = jnp.broadcast_shapes(*(entry.shape for row in rows for entry in row))
        return jnp.stack([jnp.stack([jnp.broadcast_to(entry, shape) for entry in row]) for row in rows])

    def _of(self, one: tuple[Array, Array, Array], other: tuple[Array, Array, Array]) -> Array:
        (b, u, s), (c, w, t) = one, other
        s, t = np.asarray(s)[..., None], np.asarray(t)[..., None]
        g = self.gram
        return g[b, c] + t * g[b, w] + s * g[u, c] + s * t * g[u, w]


def average(C: Array, linear: bool) -> Array:
    """The average of the last two fields times g' of the others, for covariances C (n + 2, n + 2, ...)."""
    n = len(C) - 2
    if linear:
        return C[n, n + 1]
    determinant = 1.0
    rows = [[C[i, j] + (1.0 if i == j < n else 0.0) for j in range(n + 2)] for i in range(n + 2)]
    for k in range(n):
        determinant = determinant * rows[k][k]
        for i in range(k + 1, n + 2):
            for j in range(k + 1, n + 2):
                rows[i][j] = rows[i][j] - _over(rows, i, j, k)
    return (2 / np.pi) ** (n / 2) * rows[n][n + 1] / jnp.sqrt(determinant)


def _over(rows: list[list[Array]], i: int, j: int, k: int) -> Array:
    """Return the term that eliminating k subtracts from the entry of i and j."""
    return rows[i][k] * rows[k][j] / rows[k][k]


def products_of(near: Near, differences: Differences, T: Array) -> Products:
    """The covariances of y, 0 and u, from T (M, M, L)."""
    rho, d = differences
    K, M, lanes = len(near.unit), near.M, rho.shape[-1]
    gram = jnp.zeros((M + 1 + K, M + 1 + K, lanes))
    gram = gram.at[:M, :M].set(T).at[M + 1 :, :M].set(rho).at[:M, M + 1 :].set(jnp.swapaxes(rho, 0, 1))
    return Products(near, gram.at[M + 1 :, M + 1 :].set(d))


def rates(near: Near, differences: Differences, T: Array, v: Array, eta: Array) -> Differences:
    """Compute the time derivatives of rho and d.

    Parameters
    ----------
    near
        Static arguments.
    differences
        rho and d.
    T
        Gram matrix of the teacher units (M, M, L).
    v
        Second layer of the students (K, L).
    eta
        Learning rate (L,).
    """
    K, M = len(near.unit), near.M
    of, unit = products_of(near, differences, T), np.array(near.unit)
    s, weight = legendre(NODES)
    none = M  # a field that is 0
    k, a, z, node = np.ix_(range(K), range(K), [*range(M), *range(M + 1, M + 1 + K)], range(NODES))
    h, x = (unit[k], M + 1 + k, 1.0 + 0 * k), (unit[a], M + 1 + a, s[node])
    C = of.of(h, x, (M + 1 + a, none + 0 * a, 0.0 * a), (z, none + 0 * z, 0.0 * z))
    slopes = jnp.tensordot(average(C, near.linear), weight, ((3,), (0,)))  # (k, a, z, L)
    pull = -v[:, None] * jnp.sum(v[None, :, None] * slopes, axis=1)
    i, j = np.triu_indices(K)
    p, q, n, m = np.ix_(range(i.size), range(K * K), range(NODES), range(NODES))
    first, second = q // K, q % K
    ends = [(unit[e[p]], M + 1 + e[p], 1.0 + 0 * p) for e in (i, j)]
    lines = [(unit[b], M + 1 + b, s[at]) for b, at in ((first, n), (second, m))]
    u = [(M + 1 + b, none + 0 * b, 0.0 * b) for b in (first, second)]
    found = jnp.einsum("pqnml,n,m->pql", average(of.of(*ends, *lines, *u), near.linear), weight, weight)
    outer = (v[:, None] * v[None, :]).reshape(K * K, -1)
    squares = v[i] * v[j] * jnp.sum(outer * found, axis=1)
    spread = jnp.zeros_like(differences.d).at[i, j].set(squares).at[j, i].set(squares)
    inward = pull[:, M:]
    return Differences(eta * pull[:, :M], eta * (inward + jnp.swapaxes(inward, 0, 1)) + eta**2 * spread)


def error(near: Near, differences: Differences, T: Array, v: Array) -> Array:
    """The generalization error (L,)."""
    K, M, unit = len(near.unit), near.M, np.array(near.unit)
    s, weight = legendre(NODES)
    a, b, n, m = np.ix_(range(K), range(K), range(NODES), range(NODES))
    lines = [(unit[c], M + 1 + c, s[at]) for c, at in ((a, n), (b, m))]
    u = [(M + 1 + c, M + 0 * c, 0.0 * c) for c in (a, b)]
    C = products_of(near, differences, T).of(*lines, *u)
    found = jnp.einsum("abnml,n,m->abl", average(C, near.linear), weight, weight)
    return jnp.sum(v[:, None] * v[None, :] * found, axis=(0, 1)) / 2


def packed(differences: Differences) -> Array:
    """Logarithms of the sizes of d and of both, then d over the one and rho over the other, as rows (C, L)."""
    rho, d = differences
    K, lanes = len(d), d.shape[-1]
    sizes = _sizes(differences)
    return jnp.concatenate(
        [jnp.log(jnp.stack(sizes)), (d / sizes[0]).reshape(K * K, lanes), (rho / sizes[1]).reshape(-1, lanes)]
    )


def _sizes(differences: Differences) -> tuple[Array, Array]:
    rho, d = differences
    size = jnp.trace(d)
    return size, jnp.sqrt(size**2 + jnp.sum(rho**2, axis=(0, 1)))


def unpacked(near: Near, rows: Array) -> Differences:
    """The differences from rows."""
    K, M, lanes = len(near.unit), near.M, rows.shape[-1]
    d, rho = rows[2 : 2 + K * K].reshape(K, K, lanes), rows[2 + K * K :].reshape(K, M, lanes)
    return Differences(jnp.exp(rows[1]) * rho, jnp.exp(rows[0]) * d)


def field(near: Near, rows: Array, T: Array, v: Array, eta: Array) -> Array:
    """Compute the time derivative of the rows.

    Parameters
    ----------
    near
        Static arguments.
    rows
        The state (C, L), see `packed`.
    T, v, eta
        Teacher units, second layer and learning rate, as in `rates`.
    """
    at = unpacked(near, rows)
    change, (size, both) = rates(near, at, T, v, eta), jnp.exp(rows[:2])
    K, lanes = len(at.d), rows.shape[-1]
    # of the sizes of what the rows stand for: with those of the first two rows, rounding of the directions would grow
    own, both_own = _sizes(at)
    growth = jnp.trace(change.d) / own
    of_both = (own * jnp.trace(change.d) + jnp.sum(at.rho * change.rho, axis=(0, 1))) / both_own**2
    d = (change.d / size).reshape(K * K, lanes) - growth * rows[2 : 2 + K * K]
    rho = (change.rho / both).reshape(-1, lanes) - of_both * rows[2 + K * K :]
    return jnp.concatenate([jnp.stack([growth, of_both]), d, rho])


@cached_program
def solve_near(
    near: Near, start: Differences, T: Array, v: Array, eta: Array, times: Array, most: Array
) -> tuple[Array, ...]:
    """Integrate rho (T, K, M, L) and d (T, K, K, L), with eps_g (T, L) and True for lanes that reach the last time.

    Parameters
    ----------
    near, start
        Static arguments, and rho and d at the first time.
    T, v, eta
        Teacher units, second layer and learning rate, as in `rates`.
    times
        Recorded times (T,).
    most
        Largest number of steps.
    """
    rows = packed(start)
    atol = jnp.full((rows.shape[0], 1), ATOL)
    values, completed = integrate(lambda rows: field(near, rows, T, v, eta), rows, times, RTOL, atol, most)
    found = jax.vmap(lambda value: unpacked(near, value))(values)
    errors = jax.lax.map(lambda one: error(near, one, T, v), found)
    return *found, errors, completed


def continued(
    cells: Sequence[NetworkCell], units: Sequence[Units], errors: Sequence[Array], times: Array
) -> list[Array]:
    """The generalization errors (T,) of cells, from differences after the first recorded time at which they are small.

    Those of cells that have noise, decay, dropout or functions of time, change their second layer, or have not
    specialised, stay as they are.
    """
    found, groups = list(errors), dict[tuple[Near, int], list[int]]()
    for at, (cell, own, error) in enumerate(zip(cells, units, errors, strict=True)):
        first = int(np.argmax(error < SMALL)) if np.any(error < SMALL) else len(times)
        if first < len(times) - 1 and (near := _near(cell, Units(*(part[first] for part in own)))) is not None:
            groups.setdefault((near, first), []).append(at)
    for (near, first), members in groups.items():
        later = np.asarray(times[first + 1 :], float) - times[first]
        lanes = [*members, *[members[-1]] * (filled_up(len(members)) - len(members))]
        differences = [_differences(cells[at], units[at], near, first) for at in lanes]
        start = Differences(*(np.stack(part, axis=-1) for part in zip(*differences, strict=True)))
        T, v = (
            np.stack(part, axis=-1) for part in zip(*((cells[at].T, cells[at].units.v) for at in lanes), strict=True)
        )
        eta = np.array([cells[at].eta for at in lanes])
        with double_precision():
            *_, small, completed = solve_near(near, start, T, v, eta, padded(later), np.int64(MAX_STEPS))
        for lane, at in enumerate(members):
            if completed[lane]:
                found[at] = np.concatenate([errors[at][: first + 1], np.asarray(small)[: later.size, lane]])
    return found


def _near(cell: NetworkCell, units: Units) -> Near | None:
    """The unit of each student, if these equations hold and all differences are small; else None."""
    linear = type(cell.activation) is Linear
    changing = cell.noise > 0 or cell.decay > 0 or cell.eta_v > 0 or cell.sign or cell.drops or bool(cell.controls)
    if changing or cell.K < cell.M or not (linear or type(cell.activation) is Erf):
        return None
    unit = np.full(cell.K, cell.M)
    for m in range(cell.M):
        k = int(np.argmax(np.where((units.v == cell.w[m]) & (unit == cell.M), units.R[:, m], -np.inf)))
        if units.v[k] != cell.w[m] or unit[k] < cell.M:
            return None
        unit[k] = m
    near = Near(tuple(int(m) for m in unit), cell.M, linear)
    d = _differences(cell, Units(*(part[None] for part in units)), near, 0).d
    return near if np.all(np.diagonal(d) < CLOSE) and np.trace(d) > 0 else None


def _differences(cell: NetworkCell, units: Units, near: Near, at: int) -> Differences:
    """rho and d at one of the recorded times."""
    T = np.pad(cell.T, ((0, 1), (0, 1)))
    unit, R = np.array(near.unit), np.pad(units.R[at], ((0, 0), (0, 1)))
    cross = R[:, unit]
    return Differences(R[:, : cell.M] - T[unit, : cell.M], units.Q[at] - cross - cross.T + T[np.ix_(unit, unit)])
