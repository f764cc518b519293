r"""Order-parameter equations of two-layer networks that learn online, for N -> infinity.

A step changes the first layer by :math:`\eta\,\delta_k\mathbf x - (\nu/N)\,\mathbf J_k` with :math:`\delta_k =
v_k\,g'(h_k)\,e`, and the second by :math:`(\eta_v/N)\,g(h_k)\,e` (`statmech.scenarios.network`). Since
:math:`|\mathbf x|^2\to 1`, the products of weight vectors per N follow, in time t = steps/N,

.. math::

   \dot R_{im} &= \eta\,\langle\delta_i\,y_m\rangle - \nu R_{im}, \\
   \dot Q_{ij} &= \eta\,\langle\delta_i h_j + \delta_j h_i\rangle + \eta^2\langle\delta_i\delta_j\rangle - 2 \nu Q_{ij},
   \\
   \dot v_i &= \eta_v\,\langle g(h_i)\,e\rangle ,

where the noise only adds :math:`\sigma^2 v_iv_j\langle g'(h_i)g'(h_j)\rangle` to
:math:`\langle\delta_i\delta_j\rangle`. The averages over the normal fields with covariances R, Q and T are sums of
averages of the activation (`theory.networks.averages`). Parameter combinations with the same activation and numbers of
units form a batch along the last axis, of length L, and are integrated in parallel (`theory.numerics.dormand_prince`).

**Dropout.** With a new mask r on the student units for each example, :math:`r_iv_i` replaces :math:`v_i` in e and
:math:`\delta_i`, and :math:`r_ig(h_i)` replaces :math:`g(h_i)` in the last line. Averages are also over the masks: with
the weights c of all units in e and :math:`\rho = 1/(1-p)`,

.. math::

   \langle\delta_iy_m\rangle &= v_i\sum_a\rho^{\delta_{ia}}c_a I_3(i, m, a), \qquad
   \langle r_ig(h_i)\,e\rangle = \sum_a\rho^{\delta_{ia}}c_a I_2(i, a), \\
   \langle\delta_i\delta_j\rangle &= v_iv_j\Big[\sum_{ab}\rho^{n(ijab)}c_ac_b I_4(i, j, a, b)
   + \rho^{\delta_{ij}}\sigma^2\langle g'(h_i)g'(h_j)\rangle\Big],

where n is the number of students among i, j, a, b minus the number of different students.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.networks.lattice_averages import choose_smooth_lattice_spacing, ensure_gaussian_averages
from statmech.networks.network_error import generalization_error
from statmech.numerics.gaussian import Array
from statmech.parameters import RealParameterFamily, get_real_parameter_family
from statmech.runtime.devices import use_cpu_double_precision
from statmech.runtime.forks import record_jax_use
from statmech.runtime.programs import OLD_FUSION_OPTIONS, CachedProgram
from statmech.scenarios.network import NetworkCell
from statmech.scenarios.network_matrices import StudentUnits
from theory.networks.averages import (
    MAX_PARALLEL_AVERAGES,
    DropoutMasks,
    UnitFields,
    average_gradient_overlaps,
    average_gradient_products,
    average_outputs_times_error,
    average_slope_products,
)
from theory.numerics.dormand_prince import integrate
from theory.numerics.lanes import check_integration_complete, pad_with_last_member, solve_in_batches
from theory.numerics.pieces import integrate_in_pieces

RTOL, APPROXIMATE_RTOL, ATOL = 1e-11, 1e-9, 1e-13  # line integrals have errors of at least 1e-13
SCALAR_SETTING_NAMES = "eta", "eta_v", "noise", "decay", "dropout"
MAX_STEPS, MAX_APPROXIMATE_STEPS = 2_000_000, 20_000
MAX_NETWORK_BATCH_SIZE = 128


@dataclass(frozen=True)
class NetworkSolverOptions:
    """Static arguments of the compiled solver of a network.

    These are the activation, numbers of units, whether the teacher gives labels, the spacing of the field lattice for
    an activation without closed forms, and whether there is dropout.
    """

    activation: RealParameterFamily
    K: int
    M: int
    sign: bool = False
    lattice_spacing: float = 0.0
    dropout: bool = False

    @property
    def is_approximate(self) -> bool:
        """Whether averages are line integrals or lattice sums, which are slower and less accurate."""
        return bool(getattr(self.activation.kind, "kinks", ())) or self.lattice_spacing > 0


class NetworkSetting(NamedTuple):
    """Run-time arguments of the compiled solver of networks, with the batch as last axis.

    These are parameters of the activation, rates, noise, decay and dropout (L,), T (M, M, L), w (M, L), and the
    learning rate as a function of time (`statmech.controls.PiecewisePolynomial`) if it changes.
    """

    parameters: dict[str, Array]
    eta: Array
    eta_v: Array
    noise: Array
    decay: Array
    dropout: Array
    T: Array
    w: Array
    eta_polynomials: Any = None


class EntryIndices(NamedTuple):
    """Indices of the entries R[student, teacher], Q[first, second] and v[output] to differentiate in time."""

    student: np.ndarray
    teacher: np.ndarray
    first: np.ndarray
    second: np.ndarray
    output: np.ndarray


class EntryRates(NamedTuple):
    """Time derivatives of selected entries of R, Q and v, as arrays (n, L)."""

    R: Array
    Q: Array
    v: Array


def make_entry_indices(K: int, M: int) -> EntryIndices:
    """Return the indices of all entries of R, v and the upper triangle of Q."""
    student, teacher = (index.reshape(-1) for index in np.indices((K, M)))
    return EntryIndices(student, teacher, *np.triu_indices(K), np.arange(K))


def make_field_covariances(units: StudentUnits, T: Array) -> Array:
    """Make the covariance matrix (K + M, K + M, L) of all fields, with student units first."""
    students = jnp.concatenate([units.Q, units.R], axis=1)
    return jnp.concatenate([students, jnp.concatenate([jnp.swapaxes(units.R, 0, 1), T], axis=1)])


def make_network_fields(equations: NetworkSolverOptions, setting: NetworkSetting, units: StudentUnits) -> UnitFields:
    """Make the fields of all student and teacher units with their weights in the error.

    The order parameters R, Q and v in `units` have the batch as last axis.
    """
    w = jnp.sign(setting.w) if equations.sign else setting.w  # the label sgn(w g(y)) equals sgn(w) sgn(y)
    weights = jnp.concatenate([-units.v, w])
    averages = equations.activation(**setting.parameters)
    masks = DropoutMasks(1 / (1 - setting.dropout), equations.K) if equations.dropout else None
    return UnitFields(
        averages, make_field_covariances(units, setting.T), weights, equations.sign, equations.lattice_spacing, masks
    )


def compute_entry_rates(
    equations: NetworkSolverOptions, setting: NetworkSetting, units: StudentUnits, entries: EntryIndices
) -> EntryRates:
    """Compute the time derivatives of selected entries of R (K, M, L), Q (K, K, L) and v (K, L)."""
    fields = make_network_fields(equations, setting, units)
    R, Q, v = units
    student, teacher, i, j, output = entries
    towards_teachers = v[student] * average_gradient_overlaps(fields, student, equations.K + teacher)
    between_students = v[i] * average_gradient_overlaps(fields, i, j) + v[j] * average_gradient_overlaps(fields, j, i)
    noise_terms = (
        v[i]
        * v[j]
        * (average_gradient_products(fields, i, j) + setting.noise**2 * average_slope_products(fields, i, j))
    )
    return EntryRates(
        setting.eta * towards_teachers - setting.decay * R[student, teacher],
        setting.eta * between_students + setting.eta**2 * noise_terms - 2 * setting.decay * Q[i, j],
        setting.eta_v * average_outputs_times_error(fields, output),
    )


def pack_units(units: StudentUnits) -> Array:
    """Pack R, the upper triangle of Q, and v into rows (C, ...)."""
    R, Q, v = units
    return np.concatenate([R.reshape(-1, *R.shape[2:]), Q[np.triu_indices(len(Q))], v])


def unpack_units(equations: NetworkSolverOptions, rows: Array) -> StudentUnits:
    """Unpack R (K, M, ...), Q (K, K, ...) and v (K, ...) from rows (C, ...)."""
    K, M = equations.K, equations.M
    i, j = np.triu_indices(K)
    row_indices = np.zeros((K, K), int)
    row_indices[i, j] = row_indices[j, i] = K * M + np.arange(i.size)
    return StudentUnits(rows[: K * M].reshape(K, M, *rows.shape[1:]), rows[row_indices], rows[-K:])


def compute_row_rates(equations: NetworkSolverOptions, setting: NetworkSetting, rows: Array) -> Array:
    """Compute the time derivatives of the packed order parameters (C, L)."""
    entries = make_entry_indices(equations.K, equations.M)
    return jnp.concatenate(compute_entry_rates(equations, setting, unpack_units(equations, rows), entries))


def compute_rates_with_time(
    compute_rates: Callable[[NetworkSetting, Array], Array], setting: NetworkSetting, rows: Array
) -> Array:
    """Compute the time derivatives of the packed order parameters (C, L) at the current learning rate.

    If the learning rate is a function of time, the last row is the time.
    """
    if setting.eta_polynomials is None:
        return compute_rates(setting, rows)
    eta = jax.vmap(lambda polynomials, t: polynomials.value_at(t), -1)(setting.eta_polynomials, rows[-1])
    row_rates = compute_rates(setting._replace(eta=eta, eta_polynomials=None), rows[:-1])
    return jnp.concatenate([row_rates, jnp.ones_like(rows[-1:])])


def solve_with_time_row(
    solve: Callable[[Array], tuple[Array, Array]], setting: NetworkSetting, start: Array
) -> tuple[Array, Array]:
    """Solve with an additional row for the time if the learning rate is a function of time.

    `start` contains the packed order parameters (C, L).
    """
    if setting.eta_polynomials is None:
        return solve(start)
    rows, completed = solve(np.concatenate([start, np.zeros_like(start[:1])]))
    return rows[:, :-1], completed


@partial(CachedProgram, options=lambda equations: [] if equations.is_approximate else [OLD_FUSION_OPTIONS])
def solve_network_batch(
    equations: NetworkSolverOptions, setting: NetworkSetting, start: Array, times: Array, max_steps: Array
) -> tuple[Array, Array]:
    """Integrate the packed order parameters (T, C, L) of a batch of networks.

    Also returns a mask (L,) of the elements that have reached the last time.

    Parameters
    ----------
    equations, setting
        Static and run-time arguments.
    start
        The rows at t = 0 (C, L).
    times
        Recorded times (T,).
    max_steps
        Maximum number of steps.
    """
    atol, rtol = jnp.full((start.shape[0], 1), ATOL), APPROXIMATE_RTOL if equations.is_approximate else RTOL
    return integrate(
        partial(compute_rates_with_time, partial(compute_row_rates, equations), setting),
        start,
        times,
        rtol,
        atol,
        max_steps,
    )


def make_network_solver_options(cell: NetworkCell) -> NetworkSolverOptions:
    """Make the static arguments of the compiled solver from a cell."""
    spacing = 0.0 if cell.activation.has_closed_forms else choose_smooth_lattice_spacing(cell.activation)
    return NetworkSolverOptions(
        get_real_parameter_family(cell.activation), cell.K, cell.M, cell.sign, spacing, cell.has_dropout
    )


def make_network_setting(cells: Sequence[NetworkCell]) -> NetworkSetting:
    """Make the run-time arguments of the compiled solver from a batch of cells."""
    names = get_real_parameter_family(cells[0].activation).real_parameter_names
    parameters = {name: np.asarray([getattr(cell.activation, name) for cell in cells], float) for name in names}
    rates = {name: np.asarray([getattr(cell, name) for cell in cells], float) for name in SCALAR_SETTING_NAMES}
    T, w = (np.stack([getattr(cell, name) for cell in cells], axis=-1) for name in ("T", "w"))
    cell_polynomials = [cell.control_polynomials["eta"] for cell in cells if "eta" in cell.known_controls]
    eta_polynomials = (
        jax.tree.map(lambda *arrays: np.stack(arrays, axis=-1), *cell_polynomials) if cell_polynomials else None
    )
    return NetworkSetting(parameters, **rates, T=T, w=w, eta_polynomials=eta_polynomials)


def solve_cells(cells: Sequence[NetworkCell], times: Iterable[float]) -> list[StudentUnits]:
    """Solve for R (T, K, M), Q (T, K, K) and v (T, K) of each cell at each time.

    Raises `SolverError` if the integration stops early. Cells with the same activation and numbers of units are
    integrated in parallel. Cells that differ only in N share a solution.
    """
    record_jax_use()
    t = np.asarray(list(times), float)

    def program(index: int) -> tuple[NetworkSolverOptions, tuple[Any, ...]]:
        return make_network_solver_options(cells[index]), cells[index].control_segment_layout

    def solve_group(program: tuple[NetworkSolverOptions, Any], indices: list[int]) -> list[StudentUnits]:
        return _solve_with_one_program(program[0], [cells[index] for index in indices], t)

    with use_cpu_double_precision():
        return solve_in_batches(
            list(map(make_solution_key, cells)),
            program,
            lambda program: choose_network_batch_size(program[0]),
            solve_group,
        )


def compute_generalization_error(cell: NetworkCell, units: StudentUnits, T: Array | None = None) -> np.ndarray:
    """Compute a cell's generalization error from R (..., K, M), Q (..., K, K) and v (..., K).

    Small errors that rounding makes negative are set to 0. T (M, M) is the covariance of the teacher's fields, by
    default the matrix T of the cell.
    """
    T = cell.T if T is None else T
    error = generalization_error(
        ensure_gaussian_averages(cell.activation), T, cell.w, *units, output=cell.teacher.output
    )
    return np.maximum(error, 0.0)


def choose_network_batch_size(equations: NetworkSolverOptions) -> int:
    """Return the batch size as a power of two, smaller for cells with many averages."""
    if equations.lattice_spacing:
        return 1
    fields, pairs = equations.K + equations.M, equations.K * (equations.K + 1) // 2
    max_cells = max(1, 8 * MAX_PARALLEL_AVERAGES // (pairs * fields * (fields + 1) // 2))
    return min(MAX_NETWORK_BATCH_SIZE, 1 << (max_cells.bit_length() - 1))


def make_solution_key(cell: NetworkCell) -> tuple[Any, ...]:
    """Make a hashable key of everything that determines the solution of a cell."""
    numbers = cell.K, cell.M, *(getattr(cell, name) for name in SCALAR_SETTING_NAMES)
    return cell.name, *cell.activation_parameters.values(), *numbers, id(cell.teacher), id(cell.start), *cell.controls


def _solve_with_one_program(
    equations: NetworkSolverOptions, cells: Sequence[NetworkCell], times: np.ndarray
) -> list[StudentUnits]:
    """Solve cells with one compiled program.

    Cells and times are padded to common sizes.
    """
    padded_cells = pad_with_last_member(cells)
    start = np.stack([pack_units(cell.units) for cell in padded_cells], axis=-1)
    max_steps = np.int64(MAX_APPROXIMATE_STEPS if equations.is_approximate else MAX_STEPS)

    def solve(begin: float, start: Array, times: Array) -> tuple[Array, Array]:
        setting = make_network_setting([cell.after(begin) for cell in padded_cells])
        return solve_with_time_row(
            lambda rows: solve_network_batch(equations, setting, rows, times, max_steps), setting, start
        )

    rows, completed = integrate_in_pieces(solve, cells[0].edges or (0.0,), start, times)
    rows = np.moveaxis(rows, -1, 0)[: len(cells)]
    check_integration_complete(cells, rows, completed, times[-1])
    return [
        StudentUnits(*(np.moveaxis(part, -1, 0) for part in unpack_units(equations, cell_rows.T))) for cell_rows in rows
    ]
