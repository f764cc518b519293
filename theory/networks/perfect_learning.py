r"""Last stage of perfect learning, in the differences between student and teacher units.

As :math:`\epsilon_g\to0`, R and Q round to their limits, and sums of averages cancel. Assign to each student k a
teacher unit s(k), or 0. Let :math:`\mathbf D_k = \mathbf J_k - \mathbf B_{s(k)}` with the field :math:`u_k`, and
:math:`x_k(\tau) = y_{s(k)} + \tau u_k`. Without noise and decay, a network whose v equal the teacher's w has the error

.. math:: e = -\sum_a v_a\int_0^1 d\tau\,g'(x_a(\tau))\,u_a ,

all of whose terms are small. The products :math:`\rho_{km} = \mathbf D_k\cdot\mathbf B_m/N` and :math:`d_{kl} = \mathbf
D_k\cdot\mathbf D_l/N` follow

.. math:: \dot\rho_{km} = \eta\,\langle\delta_k y_m\rangle, \qquad
          \dot d_{kl} = \eta\,\langle\delta_k u_l + \delta_l u_k\rangle + \eta^2\langle\delta_k\delta_l\rangle ,

with :math:`\delta_k = v_kg'(x_k(1))\,e`. For erf units a factor :math:`g'(x)=\sqrt{2/\pi}\,e^{-x^2/2}` leaves the
fields Gaussian: it multiplies the mass of their measure by :math:`\sqrt{2/\pi(1+c_{xx})}` and subtracts
:math:`c_{xa}c_{xb}/(1+c_{xx})` from their covariances :math:`c_{ab}`. For linear units it changes nothing. So with the
measures that contain the factor of student k, and the factors of k and l,

.. math:: \langle\delta_kz\rangle = v_k\langle e\,z\rangle_k, \qquad \langle\delta_k\delta_l\rangle =
          v_kv_l\langle e^2\rangle_{kl}, \qquad \epsilon_g = \tfrac12\langle e^2\rangle .

In each measure, e is a sum of u with one further factor. The integrated variables are the logarithms of the sizes of d
and rho, and their directions, so that arbitrarily small differences keep their relative accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.activations import Erf, Linear
from statmech.numerics.gaussian import Array, legendre
from statmech.runtime.devices import double_precision
from statmech.runtime.programs import quickly_compiled
from statmech.scenarios.network import NetworkCell
from statmech.scenarios.network_matrices import Units
from theory.networks.equations import LANES, identity_of
from theory.numerics.dormand_prince import integrate, padded
from theory.numerics.lanes import side_by_side, with_last_again

SMALL = 1e-3  # smaller eps_g are computed from differences
CLOSE = 0.05  # larger differences mean that the student has not specialised
MAX_STEPS = 200_000
NODES = 6  # per line integral: relative errors below 1e-12 where d < 1e-3
RTOL, ATOL = 1e-10, 1e-12


@dataclass(frozen=True)
class Near:
    """Static arguments: the numbers of student and teacher units, and whether units are linear.

    Students have the order of the teacher units that they learn, followed by students without a teacher unit.

    Students have the order of the teacher units that they learn; those that learn none are the last.
    """

    K: int
    M: int
    linear: bool

    @property
    def unit(self) -> np.ndarray:
        """The teacher unit of each student, or the index of the field that is 0."""
        return np.minimum(np.arange(self.K), self.M)

    @property
    def difference_index(self) -> np.ndarray:
        """The index of each student's u among the fields."""
        return self.M + 1 + np.arange(self.K)


class Differences(NamedTuple):
    """Products of differences: rho (K, M, ...) and d (K, K, ...)."""

    rho: Array
    d: Array


class Lane(NamedTuple):
    """Start and parameters of a batch element: initial time, rho and d, T (M, M), the second layer v (K,), and eta."""

    begin: Array
    differences: Differences
    T: Array
    v: Array
    eta: Array


class Measure(NamedTuple):
    """Gaussian measure of M fields y, a field that is 0, and K fields u.

    It has covariances (n, n, ..., L) and a mass (..., L).
    """

    C: Array
    mass: Array


def measure_of(near: Near, lane: Lane) -> Measure:
    """Return the distribution of the fields."""
    rho, d = lane.differences
    K, M, batch_size = near.K, near.M, rho.shape[-1]
    C = jnp.zeros((M + 1 + K, M + 1 + K, batch_size))
    C = C.at[:M, :M].set(lane.T).at[M + 1 :, :M].set(rho).at[:M, M + 1 :].set(jnp.swapaxes(rho, 0, 1))
    return Measure(C.at[M + 1 :, M + 1 :].set(d), jnp.ones(batch_size))


def times_slope(near: Near, measure: Measure, tau: np.ndarray) -> Measure:
    """Multiply a measure by g'(x_k) for each student k at each tau.

    Returns C (n, n, K, nodes, ...) and the mass (K, nodes, ...).
    """
    C, mass = measure
    onto = jnp.moveaxis(_on_line(near, C, tau), 2, 0)
    projection_factor, mass_factor = _slope(near, C, tau)
    return Measure(C[:, :, None, None] - onto[:, None] * onto * projection_factor, mass * mass_factor)


def product_with_error(near: Near, measure: Measure, rows: Array, v: Array) -> Array:
    """Average e z (..., L) for a z with the covariances `rows` (n, ..., L) with the fields."""
    s, weight = legendre(NODES)
    C, unit, u = measure.C, near.unit, near.difference_index
    projection_factor, mass_factor = _slope(near, C, s)
    with_u = C[unit, u][:, None] + _beside(s, rows) * C[u, u][:, None]
    products = rows[u][:, None] - with_u * _on_line(near, rows, s) * projection_factor
    return -jnp.einsum("kl,s,ks...l->...l", v, weight, measure.mass * mass_factor * products)


def square_of_error(near: Near, measure: Measure, v: Array) -> Array:
    """Average the square of e (..., L)."""
    s, weight = legendre(NODES)
    on_lines = times_slope(near, measure, s)
    u = jnp.moveaxis(on_lines.C[near.difference_index, :, np.arange(near.K)], 1, 0)
    return -jnp.einsum("kl,s,ks...l->...l", v, weight, product_with_error(near, on_lines, u, v))


def _on_line(near: Near, rows: Array, tau: np.ndarray) -> Array:
    """Interpolate the rows (n, ...) of fields at x_k, giving (K, nodes, ...)."""
    return rows[near.unit][:, None] + _beside(tau, rows) * rows[near.difference_index][:, None]


def _slope(near: Near, C: Array, tau: np.ndarray) -> tuple[Array, Array]:
    """Return the factors of a slope g'(x_k), (K, nodes, ..., L).

    The first multiplies the terms that it subtracts from covariances, the second the mass.
    """
    unit, u, t = near.unit, near.difference_index, _beside(tau, C[0])
    variance = C[unit, unit][:, None] + t * (2 * C[unit, u][:, None] + t * C[u, u][:, None])
    if near.linear:
        return jnp.zeros_like(variance), jnp.ones_like(variance)
    return 1 / (1 + variance), jnp.sqrt(2 / np.pi / (1 + variance))


def _beside(tau: np.ndarray, rows: Array) -> np.ndarray:
    """Append axes to tau (nodes,) for all axes of rows (n, ...) except the first."""
    return tau.reshape(-1, *[1] * (rows.ndim - 1))


def rates(near: Near, lane: Lane) -> Differences:
    """Compute the time derivatives of rho and d."""
    M, v, eta, end = near.M, lane.v, lane.eta, np.ones(1)
    one_slope = jax.tree.map(lambda part: part[..., 0, :], times_slope(near, measure_of(near, lane), end))
    pull = v * product_with_error(near, Measure(one_slope.C[:, :, None], one_slope.mass), one_slope.C, v)  # (n, K, L)
    C, mass = times_slope(near, one_slope, end)
    i, j = np.triu_indices(near.K)
    squares = v[i] * v[j] * square_of_error(near, Measure(C[:, :, i, 0, j], mass[i, 0, j]), v)
    spread = jnp.zeros_like(lane.differences.d).at[i, j].set(squares).at[j, i].set(squares)
    towards_teachers, between_differences = jnp.swapaxes(pull[:M], 0, 1), pull[M + 1 :]
    return Differences(
        eta * towards_teachers, eta * (between_differences + jnp.swapaxes(between_differences, 0, 1)) + eta**2 * spread
    )


def error(near: Near, lane: Lane) -> Array:
    """Compute the generalization error (L,)."""
    return square_of_error(near, measure_of(near, lane), lane.v) / 2


def packed(differences: Differences) -> Array:
    """Pack differences into rows (C, L).

    The first two rows are the logarithms of the size of d and the joint size. Then follow d and rho divided by these
    sizes.
    """
    rho, d = differences
    K, batch_size = len(d), d.shape[-1]
    sizes = _sizes(differences)
    return jnp.concatenate(
        [jnp.log(jnp.stack(sizes)), (d / sizes[0]).reshape(K * K, batch_size), (rho / sizes[1]).reshape(-1, batch_size)]
    )


def _sizes(differences: Differences) -> tuple[Array, Array]:
    rho, d = differences
    size = jnp.trace(d)
    return size, jnp.sqrt(size**2 + jnp.sum(rho**2, axis=(0, 1)))


def unpacked(near: Near, rows: Array) -> Differences:
    """Return the differences from rows."""
    K, M, batch_size = near.K, near.M, rows.shape[-1]
    d, rho = rows[2 : 2 + K * K].reshape(K, K, batch_size), rows[2 + K * K :].reshape(K, M, batch_size)
    return Differences(jnp.exp(rows[1]) * rho, jnp.exp(rows[0]) * d)


def field(near: Near, lane: Lane, rows: Array) -> Array:
    """Compute the time derivative of the rows (C, L) of `packed`."""
    differences = unpacked(near, rows)
    change, (size, joint_size) = rates(near, lane._replace(differences=differences)), jnp.exp(rows[:2])
    K, batch_size = near.K, rows.shape[-1]
    # sizes of the unpacked differences: with the sizes in the first two rows, rounding of the directions would grow
    true_size, true_joint_size = _sizes(differences)
    growth = jnp.trace(change.d) / true_size
    joint_growth = (
        true_size * jnp.trace(change.d) + jnp.sum(differences.rho * change.rho, axis=(0, 1))
    ) / true_joint_size**2
    d = (change.d / size).reshape(K * K, batch_size) - growth * rows[2 : 2 + K * K]
    rho = (change.rho / joint_size).reshape(-1, batch_size) - joint_growth * rows[2 + K * K :]
    return jnp.concatenate([jnp.stack([growth, joint_growth]), d, rho])


@quickly_compiled
def solve_near(near: Near, lane: Lane, times: Array, most: Array) -> tuple[Array, Array]:
    """Integrate rho and d for a batch along the last axis.

    Returns eps_g (T, L), and True for the elements that have reached the last time.

    Parameters
    ----------
    near, lane
        Static and run-time arguments.
    times
        Recorded times (T,).
    most
        Maximum number of steps.
    """
    rows = packed(lane.differences)
    atol = jnp.full((rows.shape[0], 1), ATOL)
    values, completed = integrate(partial(field, near, lane), rows, times, RTOL, atol, most, lane.begin)
    return jax.lax.map(lambda rows: error(near, lane._replace(differences=unpacked(near, rows))), values), completed


def continued(
    cells: Sequence[NetworkCell], units: Sequence[Units], errors: Sequence[Array], times: Array
) -> list[Array]:
    """Return the generalization errors (T,) of cells, using differences where the errors are small.

    Differences are used after the first recorded time with a small error. Errors do not change for cells with noise,
    decay, dropout or functions of time, for cells that change their second layer, and for cells that have not
    specialised.
    """
    refined, problems = list(errors), dict[int, Lane]()
    for index, (cell, cell_units, error) in enumerate(zip(cells, units, errors, strict=True)):
        first = int(np.argmax(error < SMALL)) if np.any(error < SMALL) else len(times)
        if first < len(times) - 1 and (
            problem := _lane(cell, Units(*(part[first] for part in cell_units)), times[first])
        ):
            problems[index] = problem
    small_cells, starts = [cells[index] for index in problems], list(problems.values())
    small_errors = side_by_side(
        list(map(identity_of, small_cells)),
        lambda index: Near(small_cells[index].K, small_cells[index].M, type(small_cells[index].activation) is Linear),
        lambda _: LANES,
        lambda near, indices: _solve_together(near, [starts[index] for index in indices], times),
    )
    for (index, problem), small in zip(problems.items(), small_errors, strict=True):
        if small is not None:
            refined[index] = np.where(times > problem.begin, small, errors[index])
    return refined


def _solve_together(near: Near, lanes: list[Lane], times: Array) -> list[Array | None]:
    """Compute the errors (T,) of batch elements that share one program.

    The errors are None for an element that does not reach the last time.
    """
    padded_problems = with_last_again(lanes)
    problem = jax.tree.map(lambda *parts: np.stack(parts, axis=-1), *padded_problems)
    with double_precision():
        errors, completed = map(np.asarray, solve_near(near, problem, padded(times), np.int64(MAX_STEPS)))
    return [errors[: len(times), index] if completed[index] else None for index in range(len(lanes))]


def _lane(cell: NetworkCell, units: Units, begin: float) -> Lane | None:
    """Return a cell's batch element from its units at a time.

    Returns None unless these equations hold and all differences are small.
    """
    linear = type(cell.activation) is Linear
    changing = cell.noise > 0 or cell.decay > 0 or cell.eta_v > 0 or cell.sign or cell.drops or bool(cell.controls)
    if changing or cell.K < cell.M or not (linear or type(cell.activation) is Erf):
        return None
    order: list[int] = []
    for m in range(cell.M):
        candidates = [k for k in range(cell.K) if k not in order and units.v[k] == cell.w[m]]
        if not candidates:
            return None
        order.append(max(candidates, key=lambda k: units.R[k, m]))
    order += [k for k in range(cell.K) if k not in order]
    differences = _differences(cell.T, Units(units.R[order], units.Q[np.ix_(order, order)], units.v[order]))
    small = np.all(np.diagonal(differences.d) < CLOSE) and np.trace(differences.d) > 0
    return Lane(np.float64(begin), differences, cell.T, cell.units.v[order], np.float64(cell.eta)) if small else None


def _differences(T: np.ndarray, units: Units) -> Differences:
    """Return rho and d of students in the order of the teacher units that they learn."""
    K, M = units.R.shape
    assignment = np.eye(K, M)  # the teacher unit of each student
    cross = units.R @ assignment.T
    return Differences(units.R - assignment @ T, units.Q - cross - cross.T + assignment @ T @ assignment.T)
