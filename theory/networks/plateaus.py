r"""Symmetric plateaus of networks of erf units, and the critical learning rate for perfect learning.

**Plateau.** With orthonormal teacher units, w = v = 1 and :math:`R_{im} = R`, :math:`Q_{ii} = Q`, :math:`Q_{ij} = C`,
all student units resemble all teacher units equally. For :math:`\eta\to 0` the student units coincide, Q = C = M R^2,
and the derivative of :math:`\epsilon_g` in their direction vanishes:

.. math:: K^2(2M-1)\,R^4 + 2(K^2-M)\,R^2 - 1 = 0, \qquad\text{so } R^2 = \frac1{K(2K-1)} \text{ for } M = K .

For :math:`\eta > 0` there are two such fixed points: one with Q = C, and the plateau with Q > C, which runs approach.
Since :math:`\Delta = Q - C` never leaves 0, its rate is :math:`\Delta` times :math:`f = \int_0^1 \partial_\Delta
\dot\Delta(s\Delta)\,ds`. The plateau is the only nearby solution of f = 0 and :math:`\dot R = \dot C = 0`, and is
followed from :math:`\eta = 0`.

**Escape.** A deviation from a symmetric state decomposes into parts that permutations of the units do not mix. So the
eigenvalues of the full Jacobian in R and Q are the eigenvalues of few small matrices. The parts are the
symmetric entries themselves; :math:`a_i` with :math:`\sum_i a_i = 0` in the rows of R, in :math:`Q_{ii}` and in
:math:`Q_{ij}` (as :math:`a_i + a_j`); :math:`b_m` in the columns of R; :math:`a_i b_m` in R, which is specialisation;
and symmetric :math:`Q_{ij}` without diagonal and with vanishing row sums.

**Critical rate.** The same decomposition applies to perfect learning, K = M, R = Q = T, where student and teacher units
are permuted together. The rates are linear and quadratic in :math:`\eta`, so the Jacobian is
:math:`\eta(A + \eta B)`, and the critical rate is the smallest :math:`\eta` where an eigenvalue of A + eta B is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from statmech.activations import Erf
from statmech.errors import ScenarioError
from statmech.numerics.gaussian import Array, get_legendre_rule
from statmech.parameters import get_real_parameter_family
from statmech.runtime.devices import use_cpu_double_precision
from statmech.runtime.jax_cache import set_up_compilation_cache
from statmech.runtime.programs import fast_compiled_program
from statmech.scenarios.network_matrices import StudentUnits
from theory.networks.equations import (
    EntryIndices,
    EntryRates,
    NetworkSetting,
    NetworkSolverOptions,
    compute_entry_rates,
)

NODES_FOR_DELTA = 8  # for the integral over Delta
MAX_ETA_STEP, MIN_ETA_STEP = 0.25, 1e-4  # for continuation of the plateau in eta
PLATEAU_NEWTON_TOL = 1e-13
MAX_PLATEAU_NEWTON_STEPS = 12


@dataclass(frozen=True)
class Plateau:
    """Error, order parameters and growth rate of deviations at a symmetric fixed point."""

    eps_g: float
    R: float
    Q: float
    C: float
    escape_rate: float


def plateau(M: int, K: int, eta: float) -> Plateau:
    r"""Compute the symmetric plateau of K erf units that learn from M orthonormal erf units.

    .. math:: R_{im} = R, \quad Q_{ii} = Q, \quad Q_{ij} = C \ (i\ne j)

    All second-layer weights are 1. Students with equal starts (Q = C) stay at another fixed point with a larger error.
    For the equations see `theory.networks.plateaus`.

    Parameters
    ----------
    M, K : int
        Numbers of teacher and student units.
    eta : float
        Learning rate of the first layer, or 0 for the limit of small rates. The second layer is fixed.

    Returns
    -------
    Plateau
        Fixed point with `eps_g`, `R`, `Q`, `C` (NaN for K = 1) and `escape_rate`. The latter is the largest real part
        among the eigenvalues of the Jacobian of all entries: deviations grow as :math:`e^{\lambda t}`.

    Raises
    ------
    ScenarioError
        If the rate is too large for a plateau.

    Examples
    --------
    >>> found = plateau(M=2, K=2, eta=1.5)
    >>> round(found.eps_g, 10), round(found.escape_rate, 10)
    (0.0346277364, 0.0763639978)
    """
    _check_plateau_arguments(M=M, K=K, eta=eta)
    set_up_compilation_cache()
    with use_cpu_double_precision():
        values = _follow_plateau(K, M, float(eta))
        R, C, over = (float(value) for value in (values if K > 1 else (values[0], np.nan, values[1])))
        Q = C + over if K > 1 else over
        matrices = _compute_jacobian_blocks(
            NetworkSolverOptions(get_real_parameter_family(Erf()), K, M),
            _make_symmetric_units(K, M, values),
            _make_plateau_directions(K, M),
        )
        return Plateau(_compute_plateau_error(K, M, R, Q, C), R, Q, C, eta * _get_max_growth_rate(matrices, eta))


def critical_rate(K: int) -> float:
    r"""Compute the maximum learning rate for perfect learning of K orthonormal erf units by K erf units.

    All second-layer weights are 1. The result is the exact stability limit of R = Q = T, with all off-diagonal entries.
    The textbook formula :math:`\sqrt3\,\pi/(K + 3/\sqrt5 - 1)` neglects these entries: it is exact for K = 1, and 0.7 %
    and 0.5 % too high for K = 2 and 3.

    Parameters
    ----------
    K : int
        Number of units.

    Returns
    -------
    float

    Raises
    ------
    ScenarioError
        For K < 1.

    Examples
    --------
    >>> [round(critical_rate(K), 10) for K in (1, 2, 3)]
    [4.055778676, 2.3068276961, 1.6206745061]
    """
    from scipy.optimize import brentq

    _check_plateau_arguments(K=K)
    set_up_compilation_cache()
    learnt = StudentUnits(np.eye(K), np.eye(K), np.ones(K))
    with use_cpu_double_precision():
        matrices = _compute_jacobian_blocks(
            NetworkSolverOptions(get_real_parameter_family(Erf()), K, K), learnt, _make_perfect_state_directions(K)
        )
    above = np.sqrt(3) * np.pi / (K + 3 / np.sqrt(5) - 1)
    return float(brentq(partial(_get_max_growth_rate, matrices), 0.5 * above, 1.01 * above, xtol=1e-15, rtol=1e-15))


def _check_plateau_arguments(**numbers: float) -> None:
    """Raise `ScenarioError` if a number of units is less than 1 or a rate is negative."""
    for name, value in numbers.items():
        if name == "eta" and not 0 <= value < np.inf:
            raise ScenarioError([((name,), f"must be a number of at least 0, not {value}")])
        if name != "eta" and not (value == int(value) and value >= 1):
            raise ScenarioError([((name,), f"must be an integer of at least 1, not {value}")])


def _make_symmetric_units(K: int, M: int, values: Array) -> StudentUnits:
    """Make symmetric order parameters from R, C and Delta, or from R and Q for K = 1.

    The axes of the values become the last axes.
    """
    R, C, over = (values[0], values[1], values[2]) if K > 1 else (values[0], 0.0 * values[1], values[1])
    xp, shape = (jnp if isinstance(values, jax.Array) else np), np.shape(R)
    diagonal = np.eye(K).reshape(K, K, *[1] * len(shape))
    return StudentUnits(xp.broadcast_to(R, (K, M, *shape)), C + over * diagonal, xp.ones((K, *shape)))


def _make_noiseless_setting(M: int, eta: float, batch_size: int) -> NetworkSetting:
    """Make run-time arguments for orthonormal teacher units with w = 1.

    There is no noise, decay or dropout.
    """
    zero = np.zeros(batch_size)
    T = np.broadcast_to(np.eye(M)[..., None], (M, M, batch_size))
    return NetworkSetting({}, zero + eta, zero, zero, zero, zero, T, np.ones((M, batch_size)))


def _split_rates_by_eta_order(
    equations: NetworkSolverOptions, entries: EntryIndices, units: StudentUnits
) -> tuple[Array, Array]:
    """Compute the coefficients (n, L) of eta and eta^2 in the rates of selected entries of R and Q."""
    batch_size = units.R.shape[-1]
    forward, backward = (
        _join_overlap_rates(
            compute_entry_rates(equations, _make_noiseless_setting(equations.M, eta, batch_size), units, entries)
        )
        for eta in (1.0, -1.0)
    )
    return (forward - backward) / 2, (forward + backward) / 2


def _join_overlap_rates(entry_rates: EntryRates) -> Array:
    return jnp.concatenate([entry_rates.R, entry_rates.Q])


def _select_entries(K: int, R: list[tuple[int, int]], Q: list[tuple[int, int]], M: int) -> EntryIndices:
    """Select the entries of R and Q that exist for K student and M teacher units."""
    R, Q = [pair for pair in R if pair[0] < K and pair[1] < M], [pair for pair in Q if pair[1] < K]
    student, teacher = np.array(R, int).reshape(-1, 2).T
    first, second = np.array(Q, int).reshape(-1, 2).T
    return EntryIndices(student, teacher, first, second, np.zeros(0, int))


def _compute_plateau_residuals(equations: NetworkSolverOptions, values: Array, eta: Array) -> Array:
    """Compute the rates that vanish at the plateau, divided by eta.

    They are the rates of R and C and the function f, or the rates of R and Q for K = 1.
    """
    K, M = equations.K, equations.M
    entries = _select_entries(K, [(0, 0)], [(0, 0), (0, 1)], M)

    def entry_rates(values: Array) -> Array:
        first, second = _split_rates_by_eta_order(equations, entries, _make_symmetric_units(K, M, values))
        return first + eta * second

    if K == 1:
        return entry_rates(values[:, None])[:, 0]
    s, weights = get_legendre_rule(NODES_FOR_DELTA)
    nodes = jnp.stack([0 * s + values[0], 0 * s + values[1], s * values[2]])
    _, slope = jax.jvp(entry_rates, (nodes,), (jnp.asarray([0.0, 0.0, 1.0])[:, None] * jnp.ones(NODES_FOR_DELTA),))
    current = entry_rates(values[:, None])[:, 0]
    return jnp.stack([current[0], current[2], (slope[1] - slope[2]) @ weights])


@fast_compiled_program
def _compute_residuals_and_slopes(
    equations: NetworkSolverOptions, values: Array, eta: Array
) -> tuple[Array, Array, Array]:
    """Compute the rates that vanish at the plateau, and their derivatives with respect to values and eta."""

    def balance_twice(values: Array, eta: Array) -> tuple[Array, Array]:
        balance = _compute_plateau_residuals(equations, values, eta)
        return balance, balance

    (by_values, by_eta), balance = jax.jacfwd(balance_twice, argnums=(0, 1), has_aux=True)(values, eta)
    return balance, by_values, by_eta


def _follow_plateau(K: int, M: int, eta: float) -> np.ndarray:
    """Continue the plateau from eta = 0 to the given eta by Newton's method.

    Returns R, C and Delta, or R and Q for K = 1.
    """
    equations = NetworkSolverOptions(get_real_parameter_family(Erf()), K, M)
    square = (M - K**2 + np.sqrt((M - K**2) ** 2 + K**2 * (2 * M - 1))) / (K**2 * (2 * M - 1))
    values = np.array([np.sqrt(square), M * square, 0.0][: 3 if K > 1 else 2])
    current_eta, step = 0.0, MAX_ETA_STEP
    values = _find_fixed_point(equations, values, 0.0)
    while current_eta < eta:
        target = min(current_eta + step, eta)
        _, by_values, by_eta = map(np.asarray, _compute_residuals_and_slopes(equations, values, current_eta))
        guess = values - np.linalg.solve(by_values, by_eta) * (target - current_eta)
        new_values = _find_fixed_point(equations, guess, target)
        if np.all(np.isfinite(new_values)) and np.max(np.abs(new_values - guess)) < 0.1 * (1 + np.max(np.abs(values))):
            values, current_eta, step = new_values, target, min(2 * step, 4 * MAX_ETA_STEP)
        else:
            step /= 2
        if step < MIN_ETA_STEP:
            units = f"K = {K} erf units that learn from M = {M}"
            raise ScenarioError(
                [(("eta",), f"{units} have no symmetric plateau at eta = {eta:g}: it ends near {current_eta:.4g}")]
            )
    return values


def _find_fixed_point(equations: NetworkSolverOptions, values: np.ndarray, eta: float) -> np.ndarray:
    """Find a fixed point near these values by Newton's method, or return NaN if it does not converge."""
    for _ in range(MAX_PLATEAU_NEWTON_STEPS):
        balance, slope, _ = _compute_residuals_and_slopes(equations, values, eta)
        change = np.linalg.solve(np.asarray(slope), np.asarray(balance))
        values = values - change
        if not np.all(np.isfinite(values)):
            break
        if np.max(np.abs(change)) <= PLATEAU_NEWTON_TOL * (1 + np.max(np.abs(values))):
            return values
    return np.full(values.shape, np.nan)


def _compute_plateau_error(K: int, M: int, R: float, Q: float, C: float) -> float:
    """Compute eps_g at the plateau in closed form."""
    off_diagonal = K * (K - 1) * np.arcsin(C / (1 + Q)) if K > 1 else 0.0
    students = K * np.arcsin(Q / (1 + Q)) + off_diagonal
    return float((students + M * np.pi / 6 - 2 * K * M * np.arcsin(R / np.sqrt(2 * (1 + Q)))) / np.pi)


OverlapDirection = tuple[np.ndarray, np.ndarray]  # perturbations of R (K, M) and Q (K, K)
InvariantSubspaceDirections = tuple[
    EntryIndices, list[list[OverlapDirection]]
]  # entries that determine a direction, and the directions of each invariant subspace


def _make_plateau_directions(K: int, M: int) -> InvariantSubspaceDirections:
    """Make directions that span the invariant subspaces of perturbations of a symmetric state."""
    zero_R, off, ones = np.zeros((K, M)), 1 - np.eye(K), np.ones((K, M))
    a, b = _make_opposite_pair(K), _make_opposite_pair(M)
    zero_Q = np.zeros((K, K))
    rows = [(np.outer(a, ones[0]), zero_Q), (zero_R, np.diag(a)), (zero_R, off * (a[:, None] + a))]
    parts = [
        [(ones, zero_Q), (zero_R, np.eye(K)), (zero_R, off)],
        rows,
        [(np.outer(ones[:, 0], b), zero_Q)],
        [(np.outer(a, b), zero_Q)],
        [(zero_R, _make_zero_row_sum_matrix(K))],
    ]
    return _select_entries(K, [(0, 0)], [(0, 0), (0, 1), (0, 2)], M), parts


def _make_perfect_state_directions(K: int) -> InvariantSubspaceDirections:
    """Make directions that span the invariant subspaces of perturbations of perfect learning."""
    zero, off, a = np.zeros((K, K)), 1 - np.eye(K), _make_opposite_pair(K)
    sums, rotation = off * (a[:, None] + a), np.zeros((K, K))
    rotation[:3, :3] = np.array([[0, 1, -1], [-1, 0, 1], [1, -1, 0]]) if K > 2 else 0.0
    columns = [off * a[:, None], off * a]
    parts = [
        [(np.eye(K), zero), (off, zero), (zero, np.eye(K)), (zero, off)],
        [(np.diag(a), zero), *((column, zero) for column in columns), (zero, np.diag(a)), (zero, sums)],
        [(_make_zero_row_sum_matrix(K), zero), (zero, _make_zero_row_sum_matrix(K))],
        [(rotation, zero)],
    ]
    return _select_entries(K, [(0, 0), (0, 1), (1, 0), (0, 2), (2, 0)], [(0, 0), (0, 1), (0, 2)], K), parts


def _make_opposite_pair(n: int) -> np.ndarray:
    """Return the vector (1, -1, 0, ..., 0), or zeros for n = 1."""
    return np.array([1.0, -1.0, *[0.0] * n])[:n] * (n > 1)


def _make_zero_row_sum_matrix(K: int) -> np.ndarray:
    """Return a symmetric matrix with zero diagonal and zero row sums, or zeros for K < 4."""
    a, b = np.zeros(K), np.zeros(K)
    if K > 3:
        a[:2], b[2:4] = [1, -1], [1, -1]
    return np.outer(a, b) + np.outer(b, a)


def _compute_jacobian_blocks(
    equations: NetworkSolverOptions, units: StudentUnits, state_directions: InvariantSubspaceDirections
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Compute A and B of the Jacobian eta (A + eta B) in each invariant subspace."""
    entries, parts = state_directions
    bases = [_select_independent_basis(part) for part in parts]
    directions = [direction for basis in bases for direction in basis]
    dR, dQ = (np.stack(part, axis=-1) for part in zip(*directions, strict=True))
    num_directions = len(directions)
    state = [np.broadcast_to(np.asarray(part)[..., None], (*np.shape(part), num_directions)) for part in units]
    slopes = _differentiate_rates((equations, tuple(map(tuple, entries))), *state, dR, dQ)
    values = np.concatenate([dR[entries.student, entries.teacher], dQ[entries.first, entries.second]])
    blocks, first = [], 0
    for basis in bases:
        columns = slice(first, first := first + len(basis))
        if basis:
            block = [np.linalg.lstsq(values[:, columns], np.asarray(slope)[:, columns])[0] for slope in slopes]
            blocks.append((block[0], block[1]))
    return blocks


@fast_compiled_program
def _differentiate_rates(
    static_arguments: tuple[NetworkSolverOptions, tuple[tuple[int, ...], ...]],
    R: Array,
    Q: Array,
    v: Array,
    dR: Array,
    dQ: Array,
) -> tuple[Array, ...]:
    equations, entries = static_arguments
    indices = EntryIndices(*(np.array(part, int) for part in entries))
    slopes: tuple[Array, ...] = jax.jvp(
        lambda R, Q: _split_rates_by_eta_order(equations, indices, StudentUnits(R, Q, v)), (R, Q), (dR, dQ)
    )[1]
    return slopes


def _select_independent_basis(part: list[OverlapDirection]) -> list[OverlapDirection]:
    """Select a linearly independent subset of the directions."""
    independent: list[OverlapDirection] = []
    for direction in part:
        rows = [np.concatenate([matrix.ravel() for matrix in candidate]) for candidate in [*independent, direction]]
        if np.linalg.matrix_rank(np.array(rows)) == len(rows):
            independent.append(direction)
    return independent


def _get_max_growth_rate(matrices: list[tuple[np.ndarray, np.ndarray]], eta: float) -> float:
    """Return the largest real part of the eigenvalues of A + eta B over all invariant subspaces."""
    return max(float(np.max(np.linalg.eigvals(A + eta * B).real)) for A, B in matrices)
