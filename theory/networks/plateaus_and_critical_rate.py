r"""Symmetric plateaus of networks of erf units, their escape times, and the critical rate for perfect learning.

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

**Escape times** are predicted for two student and two teacher units, at large but finite N. From a symmetric start the
equations stay symmetric: they never leave the plateau. In a run, random examples give a variance V/N to the difference
:math:`u = (R_{11}+R_{22}-R_{12}-R_{21})/2`, the only order parameter that is odd under exchange of the students and odd
under exchange of the teacher's units. With :math:`\dot u = a(t)\,u` to first order, and a step that changes u by
:math:`\Delta u/N`,

.. math:: \dot V = 2aV + D, \qquad D = \langle(\Delta u)^2\rangle
          = \frac{\eta^2}4\big\langle(\delta_1-\delta_2)^2(y_1-y_2)^2\big\rangle .

On the plateau a becomes its rate :math:`\lambda`, and :math:`V\to A^2e^{2\lambda t}`. A run with the normal number
:math:`\xi` then follows the solution of the equations with :math:`u\to e^{\lambda(t-t_0)}` at early times, where
:math:`e^{-\lambda t_0} = A|\xi|/\sqrt N`. If this solution, with :math:`t_0=0`, passes the threshold at :math:`t^*`,

.. math:: t_\text{esc} = \frac{\ln N}{2\lambda} - \frac{\ln|\xi|}{\lambda} + c, \qquad
          c = t^* - \frac{\ln A}{\lambda}.

D is computed by Gauss-Hermite quadrature over the four fields.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.errors import ScenarioError
from statmech.keys.initial_states import NetworkStart, StudentUnits
from statmech.kinds.network import Network, NetworkCell
from statmech.numerics.gaussian import Array, get_legendre_rule
from statmech.parameters.parameter_fields import get_real_parameter_family
from statmech.runtime.compiled_programs import cached_program, fast_compiled_program, set_up_compilation_cache
from statmech.runtime.jax_and_blas_settings import use_cpu_double_precision
from statmech.runtime.operating_system import record_jax_use
from statmech.students.activations import Erf
from theory.networks.order_parameter_equations import (
    ATOL,
    MAX_STEPS,
    RTOL,
    EntryIndices,
    NetworkSetting,
    NetworkSolverOptions,
    compute_entry_rates,
    compute_row_rates,
    make_network_setting,
    make_network_solver_options,
    pack_units,
    solve_cells,
    unpack_units,
)
from theory.numerics.batch_integration import integrate, pad_times

NODES_PER_UNIT_FIELD = 16  # 24 nodes change c by only 7e-4
SPECIALISATION_DIFFERENCE_STEP = 1e-5  # for the growth rate of u
NUM_TIMES_TO_PLATEAU = 201  # spaced more densely at early times
# in units of 1/eta; doubled until the solution is on the plateau
FIRST_PLATEAU_TIME = 300.0
MAX_PLATEAU_TIME_DOUBLINGS = 8
# relative change of a between late times, and relative contribution to V
GROWTH_RATE_TOL = 1e-9
MIN_NOISE_WEIGHT = 1e-10
INITIAL_SPECIALISATION_U = 1e-6  # smaller u grow linearly
SYMMETRIC_EXPANSION_INDICES = np.array([0, 0, 0, 0, 1, 2, 1, 3, 3])  # expands (R, Q, C, v) to the rows of the state
SYMMETRIC_SELECTION_INDICES = np.array([0, 4, 5, 7])  # selects (R, Q, C, v) from the rows of the state
# unit vector of u in the rows of the state
SPECIALISATION_DIRECTION = np.array([1.0, -1.0, -1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]) / 2
NODES_FOR_DELTA = 8
MAX_ETA_STEP, MIN_ETA_STEP = 0.25, 1e-4  # for continuation of the plateau in eta
PLATEAU_NEWTON_TOL = 1e-13
MAX_PLATEAU_NEWTON_STEPS = 12
OverlapDirection = tuple[np.ndarray, np.ndarray]  # perturbations of R (K, M) and Q (K, K)
# entries that determine a direction, and the directions of each invariant subspace
InvariantSubspaceDirections = tuple[EntryIndices, list[list[OverlapDirection]]]


class Escape(NamedTuple):
    """Rate lambda and shift c of the distribution of escape times."""

    rate: float
    shift: float


def escape(network: Network, passed: float = 0.25) -> Escape:
    r"""Predict the distribution of escape times from the symmetric plateau.

    .. math:: t_\text{esc} = \frac{\ln N}{2\lambda} - \frac{\ln|\xi|}{\lambda} + c, \qquad \xi\sim N(0,1)

    Parameters
    ----------
    network : Network
        A network with M = 2 teacher units and K = 2 student units that start with equal, given overlaps. Only N may
        have several values.
    passed : float
        The threshold of :math:`|u|` for a run that has left the plateau.

    Returns
    -------
    Escape
        `rate`, :math:`\lambda`, and `shift`, c, in units of t.

    Raises
    ------
    ScenarioError
        For other numbers of units, for random starts, for starts that distinguish the units, for activations with
        kinks, and for dropout.

    Examples
    --------
    >>> from statmech import Network
    >>> found = escape(Network(network="erf", eta=1.5, start={"Q": 0.25, "R": 0}, t=1))
    >>> round(found.rate, 6)
    0.076364
    """
    from scipy.integrate import cumulative_simpson, simpson  # slow to import

    cell = _get_escaping_cell(network)
    record_jax_use()
    set_up_compilation_cache()
    solution = _solve_to_plateau(cell)
    rate, times = solution.growth_rates[-1], solution.times
    gained = cumulative_simpson(solution.growth_rates - rate, x=times, initial=0.0)
    fading = np.exp(2 * (gained[-1] - gained) - 2 * rate * times)
    noise = np.array(
        [
            _compute_noise_strength(cell, state) if counts else 0.0
            for state, counts in zip(solution.rows.T, fading > MIN_NOISE_WEIGHT, strict=True)
        ]
    )
    amplitude = simpson(noise * fading, x=times)
    shift = _find_passage_time(cell, solution.rows[:, -1], rate, passed) - np.log(amplitude) / (2 * rate)
    return Escape(float(rate), float(shift))


class SymmetricSolution(NamedTuple):
    """Times (T,), state rows (9, T) and growth rates a (T,) of a solution from a symmetric start."""

    times: np.ndarray
    rows: np.ndarray
    growth_rates: np.ndarray


def _solve_to_plateau(cell: NetworkCell) -> SymmetricSolution:
    """Integrate a symmetric solution until it reaches the plateau, where the growth rate is constant."""
    equations = make_network_solver_options(cell)
    start = pack_units(cell.units)[SYMMETRIC_SELECTION_INDICES, None]
    last = FIRST_PLATEAU_TIME / cell.eta
    setting = make_network_setting([cell])
    for _ in range(MAX_PLATEAU_TIME_DOUBLINGS):
        times = last * np.linspace(0.0, 1.0, NUM_TIMES_TO_PLATEAU) ** 3
        with use_cpu_double_precision():
            recorded = np.asarray(
                _integrate_symmetric_state(equations, setting, start, pad_times(times), np.int64(MAX_STEPS))
            )
            rows = recorded[:NUM_TIMES_TO_PLATEAU, :, 0].T[SYMMETRIC_EXPANSION_INDICES]
            growth = np.asarray(
                _compute_growth_rates(equations, make_network_setting([cell] * NUM_TIMES_TO_PLATEAU), rows)
            )
        if abs(growth[-1] - growth[-2]) < GROWTH_RATE_TOL * abs(growth[-1]):
            break
        last *= 2
    if not growth[-1] > 0:
        problem = f"no unit leaves the symmetric state of {cell.message_description}: its growth rate is {growth[-1]:g}"
        raise ScenarioError([((), problem)])
    return SymmetricSolution(times, rows, growth)


def _get_escaping_cell(network: Network) -> NetworkCell:
    """Return the single cell of a network, or raise `ScenarioError` if its escape times have no prediction."""
    cell = next(iter(network.cells()))
    if {name for name in network.shape if name != "N"}:
        problem = "escape times are predicted for a single value of every key except N"
    elif (cell.K, cell.M) != (2, 2):
        problem = f"escape times are predicted for K = 2 and M = 2, not K = {cell.K} and M = {cell.M}"
    elif cell.drawn or not network.has_symmetric_start or network.has_identical_start:
        problem = "escape times are predicted for student units that start with equal overlaps, but are not identical"
    elif np.ptp(cell.w) or cell.T[0, 0] != cell.T[1, 1]:
        problem = "escape times are predicted for teacher units with equal weights and lengths"
    elif not cell.inputs.isotropic:
        problem = "escape times are predicted for isotropic inputs"
    elif cell.has_dropout:
        problem = "escape times are predicted for networks without dropout"
    elif cell.activation.kinks or network.unsolved:
        problem = network.unsolved or "escape times are predicted for activations without kinks"
    else:
        return cell
    raise ScenarioError([((), problem)])


@cached_program
def _integrate_symmetric_state(
    equations: NetworkSolverOptions, setting: NetworkSetting, start: Array, times: Array, max_steps: Array
) -> Array:
    """Integrate R, Q, C and v (T, 4, 1) of a network from a symmetric start to its plateau.

    With all order parameters, rounding differences between the units would grow like true differences.
    """
    atol = jnp.full((len(start), 1), ATOL)
    return integrate(
        lambda x: compute_row_rates(equations, setting, x[SYMMETRIC_EXPANSION_INDICES])[SYMMETRIC_SELECTION_INDICES],
        start,
        times,
        RTOL,
        atol,
        max_steps,
    )[0]


@cached_program
def _compute_growth_rates(equations: NetworkSolverOptions, setting: NetworkSetting, rows: Array) -> Array:
    """Compute the growth rate a of small deviations u from the plateau at states (9, T)."""
    ahead, behind = (
        compute_row_rates(
            equations, setting, rows + sign * SPECIALISATION_DIFFERENCE_STEP * SPECIALISATION_DIRECTION[:, None]
        )
        for sign in (1, -1)
    )
    return SPECIALISATION_DIRECTION @ (ahead - behind) / (2 * SPECIALISATION_DIFFERENCE_STEP)


def _compute_noise_strength(cell: NetworkCell, state: np.ndarray) -> float:
    """Compute the noise strength D of the deviation u from the plateau at one state (9,)."""
    x, weight = np.polynomial.hermite_e.hermegauss(NODES_PER_UNIT_FIELD)
    weight = weight / weight.sum()
    R, Q, v = unpack_units(make_network_solver_options(cell), state)
    gram = np.block([[cell.T, R.T], [R, Q]])
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    grid = np.stack([part.ravel() for part in np.meshgrid(*[x] * 4, indexing="ij")])
    chance = np.prod(np.meshgrid(*[weight] * 4, indexing="ij"), axis=0).ravel()
    y1, y2, h1, h2 = root @ grid
    (first, slope1), (second, slope2) = (cell.activation.both(h) for h in (h1, h2))
    taught = cell.w[0] * cell.activation.both(y1)[0] + cell.w[1] * cell.activation.both(y2)[0]
    squared = (taught - v[0] * first - v[1] * second) ** 2 + cell.noise**2
    return float(cell.eta**2 / 4 * chance @ ((v[0] * slope1 - v[1] * slope2) ** 2 * squared * (y1 - y2) ** 2))


def _find_passage_time(cell: NetworkCell, plateau: np.ndarray, rate: float, passed: float) -> float:
    """Find the first time with |u| >= `passed` after the plateau, for u = exp(rate t) at early times."""
    R, Q, v = unpack_units(make_network_solver_options(cell), plateau)
    start = NetworkStart.model_validate(
        {"R": R + INITIAL_SPECIALISATION_U * SPECIALISATION_DIRECTION[:4].reshape(2, 2), "Q": Q, "v": v}
    )
    times = np.linspace(0.0, 2 * np.log(1 / INITIAL_SPECIALISATION_U) / rate, 4001)
    overlaps = solve_cells([replace(cell, start=start)], times)[0].R
    u = np.abs(overlaps[:, 0, 0] + overlaps[:, 1, 1] - overlaps[:, 0, 1] - overlaps[:, 1, 0]) / 2
    index = int(np.argmax(u >= passed))
    if u[index] < passed:
        raise ScenarioError(
            [((), f"|u| does not reach {passed:g} for {cell.message_description}: use a smaller threshold")]
        )
    fraction = np.log(passed / u[index - 1]) / np.log(u[index] / u[index - 1])
    return float(times[index - 1] + fraction * (times[index] - times[index - 1]) + np.log(u[0]) / rate)


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
    For the equations see `theory.networks.plateaus_and_critical_rate`.

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
    r"""Compute the maximum learning rate that lets K erf units converge to perfect learning.

    The teacher has K orthonormal erf units, and all second-layer weights are 1. The result is the exact stability limit
    of R = Q = T, with all off-diagonal entries. The textbook formula :math:`\sqrt3\,\pi/(K + 3/\sqrt5 - 1)`
    neglects these entries: it is exact for K = 1, and 0.7 % and 0.5 % too high for K = 2 and 3.

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
    """Make the symmetric order parameters of a plateau from R, C and Delta, or from R and Q for K = 1.

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
    """Compute the coefficients (n, L) of eta and eta^2 in the rates of R and Q near a fixed point."""
    batch_size = units.R.shape[-1]
    settings = (_make_noiseless_setting(equations.M, eta, batch_size) for eta in (1.0, -1.0))
    rates = (compute_entry_rates(equations, setting, units, entries) for setting in settings)
    forward, backward = (jnp.concatenate([entry_rates.R, entry_rates.Q]) for entry_rates in rates)
    return (forward - backward) / 2, (forward + backward) / 2


def _select_entries(K: int, R: list[tuple[int, int]], Q: list[tuple[int, int]], M: int) -> EntryIndices:
    """Select the entries of R and Q at a plateau that exist for K student and M teacher units."""
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
    """Find the plateau near these values by Newton's method, or return NaN if it does not converge."""
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
    """Return a symmetric perturbation with zero diagonal and zero row sums, or zeros for K < 4."""
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
    """Select a linearly independent subset of the directions of perturbations."""
    independent: list[OverlapDirection] = []
    for direction in part:
        rows = [np.concatenate([matrix.ravel() for matrix in candidate]) for candidate in [*independent, direction]]
        if np.linalg.matrix_rank(np.array(rows)) == len(rows):
            independent.append(direction)
    return independent


def _get_max_growth_rate(matrices: list[tuple[np.ndarray, np.ndarray]], eta: float) -> float:
    """Return the largest real part of the eigenvalues of A + eta B over all invariant subspaces."""
    return max(float(np.max(np.linalg.eigvals(A + eta * B).real)) for A, B in matrices)
