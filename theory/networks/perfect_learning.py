r"""Last stage of perfect learning in terms of differences between student and teacher units.

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

from statmech.keys.initial_states import StudentUnits
from statmech.kinds.network import NetworkCell
from statmech.numerics.gaussian import Array, get_legendre_rule
from statmech.runtime.compiled_programs import fast_compiled_program
from statmech.runtime.jax_and_blas_settings import use_cpu_double_precision
from statmech.students.activations import Erf, Linear
from theory.networks.order_parameter_equations import MAX_NETWORK_BATCH_SIZE, make_solution_key
from theory.numerics.batch_integration import integrate, pad_times, pad_with_last_member, solve_in_batches

MAX_REFINED_ERROR = 1e-3  # smaller eps_g are recomputed from differences
MAX_SQUARED_DIFFERENCE = 0.05  # students with larger differences have not specialised
MAX_STEPS = 200_000
NODES = 6  # per line integral; relative errors stay below 1e-12 for d < 1e-3
RTOL, ATOL = 1e-10, 1e-12


@dataclass(frozen=True)
class DifferenceEquations:
    """Static arguments: the numbers K and M of student and teacher units, and whether units are linear.

    Student units have the order of the teacher units that they learn, followed by student units without a teacher unit.
    """

    K: int
    M: int
    linear: bool

    @property
    def teacher_index(self) -> np.ndarray:
        """Index of the teacher unit that each student unit learns, or of the zero field."""
        return np.minimum(np.arange(self.K), self.M)

    @property
    def difference_index(self) -> np.ndarray:
        """Index of the difference field u of each student unit."""
        return self.M + 1 + np.arange(self.K)


class UnitDifferences(NamedTuple):
    """Overlaps of the difference vectors with the teacher, rho (K, M, ...), and with each other, d (K, K, ...)."""

    rho: Array
    d: Array


class DifferenceProblem(NamedTuple):
    """Initial time, initial differences, T (M, M), second layer v (K,) and eta of a batch element."""

    begin: Array
    differences: UnitDifferences
    T: Array
    v: Array
    eta: Array


class GaussianMeasure(NamedTuple):
    """Gaussian measure of M teacher fields y, a zero field, and K difference fields u.

    `C` contains the covariances (n, n, ..., L) and `mass` the total mass (..., L).
    """

    C: Array
    mass: Array


def make_field_measure(equations: DifferenceEquations, problem: DifferenceProblem) -> GaussianMeasure:
    """Make the Gaussian distribution of teacher fields and of small differences from the teacher."""
    rho, d = problem.differences
    K, M, batch_size = equations.K, equations.M, rho.shape[-1]
    C = jnp.zeros((M + 1 + K, M + 1 + K, batch_size))
    C = C.at[:M, :M].set(problem.T).at[M + 1 :, :M].set(rho).at[:M, M + 1 :].set(jnp.swapaxes(rho, 0, 1))
    return GaussianMeasure(C.at[M + 1 :, M + 1 :].set(d), jnp.ones(batch_size))


def multiply_by_slope(equations: DifferenceEquations, measure: GaussianMeasure, tau: np.ndarray) -> GaussianMeasure:
    """Multiply a measure of differences from the teacher by g'(x_k) for each student unit k and each tau.

    Returns C (n, n, K, nodes, ...) and the mass (K, nodes, ...).
    """
    C, mass = measure
    onto = jnp.moveaxis(_interpolate_rows(equations, C, tau), 2, 0)
    projection_factor, mass_factor = _compute_slope_factors(equations, C, tau)
    return GaussianMeasure(C[:, :, None, None] - onto[:, None] * onto * projection_factor, mass * mass_factor)


def average_product_with_error(
    equations: DifferenceEquations, measure: GaussianMeasure, rows: Array, v: Array
) -> Array:
    """Average the product of a small error e and a Gaussian z, given the covariances `rows` of z with the fields.

    `rows` has the shape (n, ..., L), and the result (..., L).
    """
    s, weight = get_legendre_rule(NODES)
    C, unit, u = measure.C, equations.teacher_index, equations.difference_index
    projection_factor, mass_factor = _compute_slope_factors(equations, C, s)
    with_u = C[unit, u][:, None] + _append_axes(s, rows) * C[u, u][:, None]
    products = rows[u][:, None] - with_u * _interpolate_rows(equations, rows, s) * projection_factor
    return -jnp.einsum("kl,s,ks...l->...l", v, weight, measure.mass * mass_factor * products)


def average_squared_error(equations: DifferenceEquations, measure: GaussianMeasure, v: Array) -> Array:
    """Average the square of a network's small error e over the fields, as an array (..., L)."""
    s, weight = get_legendre_rule(NODES)
    on_lines = multiply_by_slope(equations, measure, s)
    u = jnp.moveaxis(on_lines.C[equations.difference_index, :, np.arange(equations.K)], 1, 0)
    return -jnp.einsum("kl,s,ks...l->...l", v, weight, average_product_with_error(equations, on_lines, u, v))


def _interpolate_rows(equations: DifferenceEquations, rows: Array, tau: np.ndarray) -> Array:
    """Combine rows (n, ...) of the fields into rows of x_k (K, nodes, ...)."""
    return rows[equations.teacher_index][:, None] + _append_axes(tau, rows) * rows[equations.difference_index][:, None]


def _compute_slope_factors(equations: DifferenceEquations, C: Array, tau: np.ndarray) -> tuple[Array, Array]:
    """Compute the effect of a factor g'(x_k) on a measure of small differences, as arrays (K, nodes, ..., L).

    The first array scales the terms subtracted from the covariances, the second multiplies the mass.
    """
    unit, u, t = equations.teacher_index, equations.difference_index, _append_axes(tau, C[0])
    variance = C[unit, unit][:, None] + t * (2 * C[unit, u][:, None] + t * C[u, u][:, None])
    if equations.linear:
        return jnp.zeros_like(variance), jnp.ones_like(variance)
    return 1 / (1 + variance), jnp.sqrt(2 / np.pi / (1 + variance))


def _append_axes(tau: np.ndarray, rows: Array) -> np.ndarray:
    """Reshape tau (nodes,) to broadcast over all axes of rows (n, ...) except the first."""
    return tau.reshape(-1, *[1] * (rows.ndim - 1))


def compute_difference_rates(equations: DifferenceEquations, problem: DifferenceProblem) -> UnitDifferences:
    """Compute the time derivatives of rho and d, the differences of a network from its teacher."""
    M, v, eta, end = equations.M, problem.v, problem.eta, np.ones(1)
    one_slope = jax.tree.map(
        lambda part: part[..., 0, :], multiply_by_slope(equations, make_field_measure(equations, problem), end)
    )
    pull = v * average_product_with_error(
        equations, GaussianMeasure(one_slope.C[:, :, None], one_slope.mass), one_slope.C, v
    )  # (n, K, L)
    C, mass = multiply_by_slope(equations, one_slope, end)
    i, j = np.triu_indices(equations.K)
    squares = v[i] * v[j] * average_squared_error(equations, GaussianMeasure(C[:, :, i, 0, j], mass[i, 0, j]), v)
    spread = jnp.zeros_like(problem.differences.d).at[i, j].set(squares).at[j, i].set(squares)
    towards_teachers, between_differences = jnp.swapaxes(pull[:M], 0, 1), pull[M + 1 :]
    return UnitDifferences(
        eta * towards_teachers, eta * (between_differences + jnp.swapaxes(between_differences, 0, 1)) + eta**2 * spread
    )


def compute_error_from_differences(equations: DifferenceEquations, problem: DifferenceProblem) -> Array:
    """Compute the generalization error (L,) from the differences."""
    return average_squared_error(equations, make_field_measure(equations, problem), problem.v) / 2


def pack_differences(differences: UnitDifferences) -> Array:
    """Pack the differences of a network from its teacher into rows (C, L).

    The first two rows are the logarithms of two sizes, for d and for d and rho together. The other rows are d and
    rho divided by these sizes.
    """
    rho, d = differences
    K, batch_size = len(d), d.shape[-1]
    sizes = _compute_difference_scales(differences)
    return jnp.concatenate(
        [jnp.log(jnp.stack(sizes)), (d / sizes[0]).reshape(K * K, batch_size), (rho / sizes[1]).reshape(-1, batch_size)]
    )


def _compute_difference_scales(differences: UnitDifferences) -> tuple[Array, Array]:
    rho, d = differences
    size = jnp.trace(d)
    return size, jnp.sqrt(size**2 + jnp.sum(rho**2, axis=(0, 1)))


def unpack_differences(equations: DifferenceEquations, rows: Array) -> UnitDifferences:
    """Unpack the differences rho and d from rows (C, L)."""
    K, M, batch_size = equations.K, equations.M, rows.shape[-1]
    d, rho = rows[2 : 2 + K * K].reshape(K, K, batch_size), rows[2 + K * K :].reshape(K, M, batch_size)
    return UnitDifferences(jnp.exp(rows[1]) * rho, jnp.exp(rows[0]) * d)


def compute_difference_row_rates(equations: DifferenceEquations, problem: DifferenceProblem, rows: Array) -> Array:
    """Compute the time derivatives of the packed differences (C, L) of a network from its teacher."""
    differences = unpack_differences(equations, rows)
    change, (size, joint_size) = (
        compute_difference_rates(equations, problem._replace(differences=differences)),
        jnp.exp(rows[:2]),
    )
    K, batch_size = equations.K, rows.shape[-1]
    # recompute the sizes: with the sizes in the first two rows, rounding errors of the directions would grow
    true_size, true_joint_size = _compute_difference_scales(differences)
    growth = jnp.trace(change.d) / true_size
    joint_growth = (
        true_size * jnp.trace(change.d) + jnp.sum(differences.rho * change.rho, axis=(0, 1))
    ) / true_joint_size**2
    d = (change.d / size).reshape(K * K, batch_size) - growth * rows[2 : 2 + K * K]
    rho = (change.rho / joint_size).reshape(-1, batch_size) - joint_growth * rows[2 + K * K :]
    return jnp.concatenate([jnp.stack([growth, joint_growth]), d, rho])


@fast_compiled_program
def solve_errors_from_differences(
    equations: DifferenceEquations, problem: DifferenceProblem, times: Array, max_steps: Array
) -> tuple[Array, Array]:
    """Integrate the differences of a batch of networks from their teachers, and return eps_g (T, L).

    Also returns a mask (L,) of the elements that have reached the last time.

    Parameters
    ----------
    equations, problem
        Static and run-time arguments.
    times
        Recorded times (T,).
    max_steps
        Maximum number of steps.
    """
    rows = pack_differences(problem.differences)
    atol = jnp.full((rows.shape[0], 1), ATOL)
    values, completed = integrate(
        partial(compute_difference_row_rates, equations, problem), rows, times, RTOL, atol, max_steps, problem.begin
    )
    return jax.lax.map(
        lambda rows: compute_error_from_differences(
            equations, problem._replace(differences=unpack_differences(equations, rows))
        ),
        values,
    ), completed


def refine_small_errors(
    cells: Sequence[NetworkCell], units: Sequence[StudentUnits], errors: Sequence[Array], times: Array
) -> list[Array]:
    """Recompute small generalization errors (T,) of networks that have almost learnt their teachers.

    Differences are used after the first recorded time with a small error. Errors do not change for cells with noise,
    decay, dropout or functions of time, for cells that change their second layer, and for cells that have not
    specialised.
    """
    refined, problems = list(errors), dict[int, DifferenceProblem]()
    for index, (cell, cell_units, error) in enumerate(zip(cells, units, errors, strict=True)):
        first = int(np.argmax(error < MAX_REFINED_ERROR)) if np.any(error < MAX_REFINED_ERROR) else len(times)
        if first < len(times) - 1 and (
            problem := _make_difference_problem(cell, StudentUnits(*(part[first] for part in cell_units)), times[first])
        ):
            problems[index] = problem
    small_errors = solve_in_batches(
        list(problems),
        lambda index: make_solution_key(cells[index]),
        lambda index: DifferenceEquations(cells[index].K, cells[index].M, type(cells[index].activation) is Linear),
        lambda _: MAX_NETWORK_BATCH_SIZE,
        lambda near, indices: _solve_with_one_program(near, [problems[index] for index in indices], times),
    )
    for (index, problem), small in zip(problems.items(), small_errors, strict=True):
        if small is not None:
            refined[index] = np.where(times > problem.begin, small, errors[index])
    return refined


def _solve_with_one_program(
    equations: DifferenceEquations, problems: list[DifferenceProblem], times: Array
) -> list[Array | None]:
    """Compute the small generalization errors (T,) of networks with one compiled program.

    The result is None for an element that does not reach the last time.
    """
    padded_problems = pad_with_last_member(problems)
    problem = jax.tree.map(lambda *parts: np.stack(parts, axis=-1), *padded_problems)
    with use_cpu_double_precision():
        errors, completed = map(
            np.asarray, solve_errors_from_differences(equations, problem, pad_times(times), np.int64(MAX_STEPS))
        )
    return [errors[: len(times), index] if completed[index] else None for index in range(len(problems))]


def _make_difference_problem(cell: NetworkCell, units: StudentUnits, begin: float) -> DifferenceProblem | None:
    """Make the initial differences of a network from its teacher, from order parameters at time `begin`.

    Returns None unless the equations apply and all differences are small.
    """
    linear = type(cell.activation) is Linear
    changing = (
        cell.noise > 0 or cell.decay > 0 or cell.eta_v > 0 or cell.sign or cell.has_dropout or bool(cell.controls)
    )
    if changing or cell.K < cell.M or not (linear or type(cell.activation) is Erf):
        return None
    order: list[int] = []
    for m in range(cell.M):
        candidates = [k for k in range(cell.K) if k not in order and units.v[k] == cell.w[m]]
        if not candidates:
            return None
        order.append(max(candidates, key=lambda k: units.R[k, m]))
    order += [k for k in range(cell.K) if k not in order]
    differences = _compute_differences(
        cell.T, StudentUnits(units.R[order], units.Q[np.ix_(order, order)], units.v[order])
    )
    small = np.all(np.diagonal(differences.d) < MAX_SQUARED_DIFFERENCE) and np.trace(differences.d) > 0
    return (
        DifferenceProblem(np.float64(begin), differences, cell.T, cell.units.v[order], np.float64(cell.eta))
        if small
        else None
    )


def _compute_differences(T: np.ndarray, units: StudentUnits) -> UnitDifferences:
    """Compute rho and d for student units in the order of the teacher units that they have almost learnt."""
    K, M = units.R.shape
    assignment = np.eye(K, M)  # rows: student units; columns: assigned teacher units
    cross = units.R @ assignment.T
    return UnitDifferences(units.R - assignment @ T, units.Q - cross - cross.T + assignment @ T @ assignment.T)
