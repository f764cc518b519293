r"""Order-parameter equations of networks for inputs of unequal variance, in the limit N -> infinity.

In the directions of mode a (`statmech.inputs.covariance_modes`) inputs have variance :math:`l_a/N`. A fraction
:math:`\nu_a` of all directions belongs to the mode, and a fraction :math:`T_a` of the squared length of each teacher
unit. Projected on these directions, weight vectors have the products per N :math:`R^a_{im}`, :math:`Q^a_{ij}` and
:math:`T_aT_{mn}`, together :math:`G^a`, and fields have the covariances

.. math:: H = \sum_a l_aG^a .

A step changes the first layer by :math:`f_i\mathbf x`, :math:`f_i = \eta v_ig'(h_i)\,e` (`statmech.kinds.network`),
and f depends on the fields alone. So Stein's lemma closes the equations: with the averages of
`theory.networks.order_parameter_equations` at the covariances H, all units in one list and
:math:`A_{ib} = \langle\partial f_i/\partial x_b\rangle`,

.. math::

   \dot R^a_{im} &= l_a\,(AG^a)_{im} - \nu R^a_{im}, \\
   \dot Q^a_{ij} &= l_a\left[(AG^a)_{ij} + (AG^a)_{ji} + \nu_a\langle f_if_j\rangle\right] - 2\nu Q^a_{ij}, \\
   \dot v_i &= \eta_v\,\langle g(h_i)\,e\rangle .

Except for their parts parallel to the teacher, students start isotropic: :math:`R^a = T_aR` and, with
:math:`P = RT^{-1}R^T`, :math:`Q^a = T_aP + \nu_a(Q - P)`. For a single mode these are the equations of
`theory.networks.order_parameter_equations`. Yoshida & Okada (2019) derive the equations for erf units.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from statmech.inputs.covariance_modes import Modes, condense_modes
from statmech.keys.initial_states import StudentUnits
from statmech.kinds.network import NetworkCell
from statmech.numerics.gaussian import Array
from statmech.runtime.compiled_programs import cached_program
from statmech.runtime.jax_and_blas_settings import use_cpu_double_precision
from statmech.runtime.operating_system import record_jax_use
from theory.networks.order_parameter_equations import (
    APPROXIMATE_RTOL,
    ATOL,
    MAX_APPROXIMATE_STEPS,
    MAX_STEPS,
    RTOL,
    NetworkSetting,
    NetworkSolverOptions,
    average_gradient_derivatives,
    average_gradient_products,
    average_outputs_times_error,
    average_slope_products,
    choose_network_batch_size,
    make_network_fields,
    make_network_setting,
    make_network_solver_options,
    make_solution_key,
)
from theory.numerics.batch_integration import (
    check_integration_complete,
    integrate,
    pad_times,
    pad_with_last_member,
    solve_in_batches,
)


class ModeParameters(NamedTuple):
    """Variances l, fractions nu and teacher powers T_a of the modes of each batch element, as arrays (d, L)."""

    variances: Array
    shares: Array
    teacher: Array


class WeightAndFieldUnits(NamedTuple):
    """Order parameters of a cell's weights and of its fields at all times, and T (M, M) of the teacher's fields."""

    weights: StudentUnits
    fields: StudentUnits
    T: np.ndarray


def get_condensed_modes(cell: NetworkCell) -> Modes:
    """Return the modes of a cell's inputs, merged to the smallest equivalent number."""
    modes = cell.inputs.modes(cell.N)
    assert modes is not None  # scenarios without modes are rejected earlier
    return condense_modes(modes)


def make_initial_mode_units(cell: NetworkCell, modes: Modes) -> StudentUnits:
    """Make the initial R (d, K, M) and Q (d, K, K) of a network in all modes, and v (K,)."""
    assert modes.teacher is not None
    R, Q, v = cell.units
    parallel = R @ np.linalg.pinv(cell.T, hermitian=True) @ R.T
    T_a, nu = modes.teacher[:, None, None], modes.shares[:, None, None]
    return StudentUnits(T_a * R, T_a * parallel + nu * (Q - parallel), v)


def sum_modes_to_field_overlaps(mode_parameters: ModeParameters, units: StudentUnits) -> StudentUnits:
    """Compute the field covariances R (K, M, L) and Q (K, K, L) as sums over modes."""

    def sum_modes(part: Array) -> Array:
        return jnp.sum(mode_parameters.variances[:, None, None] * part, axis=0)

    return StudentUnits(sum_modes(units.R), sum_modes(units.Q), units.v)


def compute_mode_rates(
    equations: NetworkSolverOptions, setting: NetworkSetting, mode_parameters: ModeParameters, units: StudentUnits
) -> StudentUnits:
    """Compute the time derivatives of R (d, K, M, L) and Q (d, K, K, L) in all modes, and of v (K, L)."""
    K = equations.K
    (R, Q, v), (l, nu, power) = units, (part[:, None, None] for part in mode_parameters)
    field_power = jnp.sum(mode_parameters.variances * mode_parameters.teacher, axis=0)
    fields = make_network_fields(
        equations, setting._replace(T=field_power * setting.T), sum_modes_to_field_overlaps(mode_parameters, units)
    )
    students, (i, j) = np.arange(K), np.triu_indices(K)
    A = setting.eta * v[:, None] * average_gradient_derivatives(fields, students)
    noise_terms = (
        setting.eta**2
        * v[i]
        * v[j]
        * (average_gradient_products(fields, i, j) + setting.noise**2 * average_slope_products(fields, i, j))
    )
    pair_indices = np.zeros((K, K), int)
    pair_indices[i, j] = pair_indices[j, i] = np.arange(i.size)
    towards_teachers = jnp.einsum("ibl,abml->aiml", A[:, :K], R) + power * jnp.einsum(
        "inl,nml->iml", A[:, K:], setting.T
    )
    between_students = jnp.einsum("ibl,abjl->aijl", A[:, :K], Q) + jnp.einsum("inl,ajnl->aijl", A[:, K:], R)
    return StudentUnits(
        l * towards_teachers - setting.decay * R,
        l * (between_students + jnp.swapaxes(between_students, 1, 2) + nu * noise_terms[pair_indices])
        - 2 * setting.decay * Q,
        setting.eta_v * average_outputs_times_error(fields, students),
    )


def pack_mode_units(units: StudentUnits) -> Array:
    """Pack R and the upper triangles of Q of all modes, and v, into rows (C, ...)."""
    R, Q, v = units
    i, j = np.triu_indices(Q.shape[1])
    xp = np if isinstance(R, np.ndarray) else jnp
    batch_shape = v.shape[1:]
    return xp.concatenate([R.reshape(-1, *batch_shape), Q[:, i, j].reshape(-1, *batch_shape), v])


def unpack_mode_units(equations: NetworkSolverOptions, modes: int, rows: Array) -> StudentUnits:
    """Unpack R (d, K, M, ...) and Q (d, K, K, ...) of all modes, and v (K, ...), from rows (C, ...)."""
    K, M, batch_shape = equations.K, equations.M, rows.shape[1:]
    i, j = np.triu_indices(K)
    pair_indices = np.zeros((K, K), int)
    pair_indices[i, j] = pair_indices[j, i] = np.arange(i.size)
    end = modes * K * M
    Q = rows[end:-K].reshape(modes, i.size, *batch_shape)
    return StudentUnits(rows[:end].reshape(modes, K, M, *batch_shape), Q[:, pair_indices], rows[-K:])


@cached_program
def solve_mode_batch(
    equations: NetworkSolverOptions,
    setting: NetworkSetting,
    mode_parameters: ModeParameters,
    start: Array,
    times: Array,
    max_steps: Array,
) -> tuple[Array, Array]:
    """Integrate the packed order parameters (T, C, L) of a batch of networks with modes.

    Also returns a mask (L,) of the elements that have reached the last time.

    Parameters
    ----------
    equations, setting, mode_parameters
        Static and run-time arguments.
    start
        The rows at t = 0 (C, L).
    times
        Recorded times (T,).
    max_steps
        Maximum number of steps.
    """
    modes = mode_parameters.variances.shape[0]

    def field(rows: Array) -> Array:
        return pack_mode_units(
            compute_mode_rates(equations, setting, mode_parameters, unpack_mode_units(equations, modes, rows))
        )

    atol, rtol = jnp.full((start.shape[0], 1), ATOL), APPROXIMATE_RTOL if equations.is_approximate else RTOL
    return integrate(field, start, times, rtol, atol, max_steps)


def solve_cells(cells: Sequence[NetworkCell], times: Iterable[float]) -> list[WeightAndFieldUnits]:
    """Solve for the order parameters of networks with inputs of unequal variance at each time.

    Raises `SolverError` if the integration stops early. Cells with the same activation and numbers of units and modes
    are integrated in parallel.
    """
    record_jax_use()
    t = np.asarray(list(times), float)
    with use_cpu_double_precision():
        return solve_in_batches(
            [(cell, get_condensed_modes(cell)) for cell in cells],
            lambda member: _make_mode_solution_key(member[0]),
            lambda member: (make_network_solver_options(member[0]), member[1].variances.size),
            lambda program: choose_network_batch_size(program[0]),
            lambda program, members: _solve_with_one_program(program[0], members, t),
        )


def _make_mode_solution_key(cell: NetworkCell) -> tuple[object, ...]:
    """Make a hashable key of everything that determines the solution of a cell."""
    return *make_solution_key(cell), cell.inputs, cell.N if cell.inputs.modes_depend_on_N else None


def _solve_with_one_program(
    equations: NetworkSolverOptions, members: Sequence[tuple[NetworkCell, Modes]], times: np.ndarray
) -> list[WeightAndFieldUnits]:
    """Solve networks with inputs of unequal variance by one compiled program.

    Cells and times are padded to common sizes.
    """
    padded_members = pad_with_last_member(members)
    cells, modes = zip(*padded_members, strict=True)
    start = np.stack([pack_mode_units(make_initial_mode_units(*member)) for member in padded_members], axis=-1)
    directions = ModeParameters(
        *(np.stack([getattr(cell_modes, name) for cell_modes in modes], axis=-1) for name in ModeParameters._fields)
    )
    max_steps = MAX_APPROXIMATE_STEPS if equations.is_approximate else MAX_STEPS
    setting = make_network_setting(cells)
    recorded, completed = map(
        np.asarray,
        solve_mode_batch(equations, setting, directions, start, pad_times(times, start.size), np.int64(max_steps)),
    )
    rows = np.moveaxis(recorded[: times.size], -1, 0)[: len(members)]
    check_integration_complete(cells, rows, completed, times[-1])
    return [_sum_mode_solution(equations, *member, cell_rows) for member, cell_rows in zip(members, rows, strict=True)]


def _sum_mode_solution(
    equations: NetworkSolverOptions, cell: NetworkCell, modes: Modes, rows: np.ndarray
) -> WeightAndFieldUnits:
    """Sum the packed order parameters (T, C) of a network over its modes."""
    R, Q, v = unpack_mode_units(equations, modes.variances.size, rows.T)
    assert modes.teacher is not None

    def sum_modes(weights: np.ndarray) -> StudentUnits:
        R_of_all, Q_of_all = (np.moveaxis(np.tensordot(weights, part, 1), -1, 0) for part in (R, Q))
        return StudentUnits(R_of_all, Q_of_all, v.T)

    field_power = float(modes.variances @ modes.teacher)
    return WeightAndFieldUnits(
        sum_modes(np.ones_like(modes.variances)), sum_modes(modes.variances), field_power * cell.T
    )
