r"""Stationary states of networks with a residual error due to output noise, weight decay or too few units.

A student that can represent its teacher (:math:`K\ge M`, and each :math:`w_m` among the v) learns perfectly without
noise. With noise :math:`\sigma` the stationary state has a residual error, which for erf units, w = v = 1 and small
:math:`\eta` is

.. math:: \epsilon_g = \frac{\eta\sigma^2}{2\pi}\Big(K - M + \frac M{\sqrt3}\Big) + O(\eta^2)

(Goldt et al. 2019). Newton's method follows this state from perfect learning, as the noise grows from 0. Exchangeable
units stay exchangeable. So the method solves for one entry per orbit: an orbit is a set of entries of R, Q and v that
permutations of equal units exchange.

**Extra units.** For small fields the students without a partner affect the error only through :math:`\sum_k v_k h_k`.
In the state above, extra units with equal v are equal. With two or more extra units it is not stable: their differences
grow slowly (for K = 4, M = 2, :math:`\eta` = 0.2 and :math:`\sigma` = 0.1 at the rate 3.2e-4), until pairs of opposite
units grow without bound while the error falls. Runs stay near the unstable state for a time of order 1/rate.

Other states are found by Newton's method from the equations integrated to late times. A state is stable if the
eigenvalues of the Jacobian of all entries have no positive real parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.errors import ScenarioError, SolverError
from statmech.keys.initial_states import StudentUnits
from statmech.kinds.network import Network, NetworkCell
from statmech.numerics.gaussian import Array
from statmech.runtime.compiled_programs import fast_compiled_program, set_up_compilation_cache
from statmech.runtime.jax_and_blas_settings import use_cpu_double_precision
from statmech.runtime.operating_system import record_jax_use
from statmech.stores.dataset import make_empty_dataset
from theory.networks.order_parameter_equations import (
    NetworkSetting,
    NetworkSolverOptions,
    compute_generalization_error,
    compute_row_rates,
    make_network_setting,
    make_network_solver_options,
    pack_units,
    solve_cells,
    unpack_units,
)

if TYPE_CHECKING:
    import xarray as xr

LATE_START_TIMES = (100.0, 1000.0, 10_000.0)  # tried in turn until a stable state is found
MAX_STATIONARY_NEWTON_STEPS = 30
SINGULAR_VALUE_RTOL = 1e-13  # smaller singular values belong to a continuum of states
STATIONARY_NEWTON_TOL = 1e-13
MAX_SEARCH_DISTANCE = 0.5  # from the initial state of the search, relative to its size
MIN_NOISE_STEP_FRACTION = 1e-3  # relative to the noise variance
STABILITY_EIGENVALUE_TOL = 1e-11  # smaller growth rates are rounding errors


class StationaryNetwork(NamedTuple):
    """Order parameters of a stationary state, with the reason if it does not exist or is not stable."""

    units: StudentUnits | None
    rejection_reason: str = ""


def noise_floor(network: Network, stable: bool = True) -> xr.DataArray:
    r"""Compute the stationary generalization error of networks with noise and decay.

    With orthonormal erf teacher units, w = v = 1 and a fixed second layer the error is, for small rates,

    .. math:: \epsilon_g = \frac{\eta\sigma^2}{2\pi}\Big(K - M + \frac M{\sqrt3}\Big)

    In general it is the error at a root of the equations for R, Q and v (`theory.networks.stationary_states`), without
    a long integration. A student that can represent its teacher is assumed to have specialised. The state of other
    students depends on their start. Cells without a stable state have NaN: the attribute `absent` lists them with the
    reasons.

    Parameters
    ----------
    network : Network
        A network. Times and N do not matter.
    stable
        False to include unstable states, for example for K >= M + 2. Runs leave such states only slowly
        (`theory.networks.stationary_states`).

    Returns
    -------
    xarray.DataArray
        eps_g on the sweep axes.

    Raises
    ------
    ScenarioError
        For networks without equations, for inputs of unequal variance, and for dropout.

    Examples
    --------
    >>> from statmech import Network
    >>> floor = noise_floor(Network(network="erf", M=2, K=2, eta=[0.01, 0.2], noise=0.1, t=1))
    >>> (1e6 * floor).values.round(3)
    array([ 18.457, 401.875])
    """
    if not isinstance(network, Network):
        raise TypeError(f"noise_floor requires a statmech.Network, not {network!r}")
    if network.unsolved:
        raise ScenarioError([((), network.unsolved)])
    if not all(cell.inputs.isotropic for cell in network.cells()):
        raise ScenarioError([(("inputs",), "stationary states are supported for isotropic inputs only")])
    if any(cell.has_dropout for cell in network.cells()):
        raise ScenarioError([(("dropout",), "stationary states are supported for networks without dropout only")])
    record_jax_use()
    set_up_compilation_cache()
    floor = make_empty_dataset(network, seeds=None).eps_g.isel(t=0, drop=True).copy(deep=True)
    absent: dict[str, list[str]] = {}
    for cell in network.cells():
        state = find_stationary_state(cell)
        if state.units is None or (stable and state.rejection_reason):
            absent.setdefault(state.rejection_reason, []).append(cell.message_description)
        else:
            floor[cell.index] = compute_generalization_error(cell, state.units)
    counted = [f"{first}{f' and {len(more)} more' if more else ''}: {why}" for why, (first, *more) in absent.items()]
    return floor.assign_attrs(
        {"long_name": "stationary generalization error"} | _make_absent_attribute("; ".join(counted))
    )


def _make_absent_attribute(absent: str) -> dict[str, str]:
    return {"absent": absent} if absent else {}


def find_stationary_state(cell: NetworkCell) -> StationaryNetwork:
    """Find the stationary state of a network with noise or decay.

    The search starts from perfect learning if possible, otherwise from a solution at late times.
    """
    partner = _assign_students_to_teachers(cell)
    if partner is not None and (units := _follow_growing_noise(cell, partner)) is not None:
        return _check_stability(cell, units)
    return _find_state_from_late_times(cell)


def _find_state_from_late_times(cell: NetworkCell) -> StationaryNetwork:
    """Find a stationary state of a network near the solution of its equations at late times.

    Returns the first stable state found from any of the `LATE_START_TIMES`.
    """
    state = StationaryNetwork(None, "no stationary state was found")
    for time in LATE_START_TIMES:
        try:
            late = solve_cells([cell], [time])[0]
        except SolverError:
            return StationaryNetwork(None, "the equations cannot be integrated to late times")
        start = StudentUnits(*(part[-1] for part in late))
        units = _find_root_by_newton(cell, start, np.arange(len(pack_units(start))))
        state = state if units is None else _check_stability(cell, units)
        if not state.rejection_reason:
            break
    return state


def _assign_students_to_teachers(cell: NetworkCell) -> np.ndarray | None:
    """Assign a student unit of equal output weight to each teacher unit, for a stationary state without noise.

    Returns None if this is impossible.
    """
    if cell.sign or cell.decay > 0 or cell.K < cell.M or (cell.eta_v > 0 and cell.K > cell.M):
        return None
    v = _get_learnt_second_layer(cell)
    partner: list[int] = []
    for weight in cell.w:
        equal = [k for k in np.flatnonzero(v == weight) if k not in partner]
        if not equal:
            return None
        partner.append(int(equal[0]))
    return np.array(partner)


def _get_learnt_second_layer(cell: NetworkCell) -> np.ndarray:
    """Return the second-layer weights at perfect learning.

    A fixed second layer keeps its initial weights.
    """
    return cell.w if cell.eta_v > 0 else cell.units.v


def _find_entry_orbits(cell: NetworkCell, partner: np.ndarray) -> np.ndarray:
    """Group the entries (C,) of a stationary state into orbits under permutations of equivalent units.

    Equivalent units without a partner also have Q_kk = Q_kl.
    """
    size = cell.K * cell.M + cell.K * (cell.K + 1) // 2 + cell.K
    entry_indices = unpack_units(make_network_solver_options(cell), np.arange(size))
    pairs: list[tuple[int, int]] = []
    for students, teachers in _find_unit_exchanges(cell, partner):
        exchanged = StudentUnits(
            entry_indices.R[np.ix_(students, teachers)],
            entry_indices.Q[np.ix_(students, students)],
            entry_indices.v[students],
        )
        pairs += zip(pack_units(entry_indices), pack_units(exchanged), strict=True)
        k, l = np.flatnonzero(students != np.arange(cell.K))
        pairs += [(entry_indices.Q[k, k], entry_indices.Q[k, l])] if k not in partner else []
    orbit = np.arange(size)
    for first, second in pairs:
        orbit[orbit == max(orbit[first], orbit[second])] = min(orbit[first], orbit[second])
    return orbit


def _find_unit_exchanges(cell: NetworkCell, partner: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the permutations of units that exchange two equivalent units of a stationary state."""
    v, extra = _get_learnt_second_layer(cell), np.setdiff1d(np.arange(cell.K), partner)
    for k in extra:
        for l in extra[(extra > k) & (v[extra] == v[k])]:
            yield _make_exchange_permutation(cell.K, k, l), np.arange(cell.M)
    for m in range(cell.M):
        for n in range(m + 1, cell.M):
            teachers = _make_exchange_permutation(cell.M, m, n)
            if cell.w[m] == cell.w[n] and np.array_equal(cell.T[np.ix_(teachers, teachers)], cell.T):
                yield _make_exchange_permutation(cell.K, partner[m], partner[n]), teachers


def _make_exchange_permutation(size: int, first: int, second: int) -> np.ndarray:
    order = np.arange(size)
    order[[first, second]] = order[[second, first]]
    return order


def _follow_growing_noise(cell: NetworkCell, partner: np.ndarray) -> StudentUnits | None:
    """Continue the stationary state of a network from zero noise to the noise of the cell."""
    J = np.zeros((cell.K, cell.M))  # coefficients of student units in terms of teacher units
    J[partner, np.arange(cell.M)] = 1.0
    units = StudentUnits(J @ cell.T, J @ cell.T @ J.T, _get_learnt_second_layer(cell))
    orbit = _find_entry_orbits(cell, partner)
    fraction, step = 0.0, 1.0
    while fraction < 1.0 and cell.noise > 0:
        target = min(1.0, fraction + step)
        new_units = _find_root_by_newton(replace(cell, noise=cell.noise * np.sqrt(target)), units, orbit)
        if new_units is not None:
            units, fraction = new_units, target
        elif (step := step / 2) < MIN_NOISE_STEP_FRACTION:
            return None
    return units


def _find_root_by_newton(cell: NetworkCell, units: StudentUnits, orbit: np.ndarray) -> StudentUnits | None:
    """Find a stationary state of a network near these order parameters by Newton's method, or return None.

    The entries of an orbit stay equal.
    """
    first, orbit_index = np.unique(orbit, return_index=True)[1], np.unique(orbit, return_inverse=True)[1]
    moving = first < len(pack_units(units)) - (cell.K if cell.eta_v == 0 else 0)
    start = rows = pack_units(units)
    for _ in range(MAX_STATIONARY_NEWTON_STEPS):
        rates, slope = _evaluate_rates_and_jacobian(cell, rows)
        merged = np.stack([slope[first][:, orbit_index == index].sum(axis=1) for index in range(first.size)], axis=1)
        change = np.zeros(first.size)
        if not (np.all(np.isfinite(merged)) and np.all(np.isfinite(rates))):
            return None
        change[moving] = np.linalg.lstsq(
            merged[np.ix_(moving, moving)], rates[first][moving], rcond=SINGULAR_VALUE_RTOL
        )[0]
        rows = rows - change[orbit_index]
        if not np.all(np.isfinite(rows)) or np.max(np.abs(rows - start)) > MAX_SEARCH_DISTANCE * (
            1 + np.max(np.abs(start))
        ):
            return None
        if np.max(np.abs(change)) <= STATIONARY_NEWTON_TOL * (1 + np.max(np.abs(rows))):
            return unpack_units(make_network_solver_options(cell), rows)
    return None


def _check_stability(cell: NetworkCell, units: StudentUnits) -> StationaryNetwork:
    """Check that a stationary state of a network is stable and has a positive overlap matrix."""
    _, slope = _evaluate_rates_and_jacobian(cell, pack_units(units))
    moving = len(slope) - (cell.K if cell.eta_v == 0 else 0)
    gram = np.block([[units.Q, units.R], [units.R.T, cell.T]])
    if np.linalg.eigvalsh(gram)[0] < -1e-9 * np.max(gram):
        return StationaryNetwork(None, "no stationary state was found")
    growth = np.max(np.linalg.eigvals(slope[:moving, :moving]).real)
    return StationaryNetwork(units, "the stationary state is not stable" if growth > STABILITY_EIGENVALUE_TOL else "")


def _evaluate_rates_and_jacobian(cell: NetworkCell, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with use_cpu_double_precision():
        rates, slope = _compute_rates_and_jacobian(
            make_network_solver_options(cell), make_network_setting([cell]), rows
        )
        return np.asarray(rates), np.asarray(slope)


@fast_compiled_program
def _compute_rates_and_jacobian(
    equations: NetworkSolverOptions, setting: NetworkSetting, rows: Array
) -> tuple[Array, Array]:
    """Compute the rates of a network's order parameters (C,) and their Jacobian (C, C) for a stationary state."""

    def state_rates(rows: Array) -> Array:
        return compute_row_rates(equations, setting, rows[:, None])[:, 0]

    columns = jax.lax.map(lambda change: jax.jvp(state_rates, (rows,), (change,))[1], jnp.eye(rows.size), batch_size=16)
    return state_rates(rows), columns.T
