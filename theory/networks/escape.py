r"""Escape times from the symmetric plateau for two student and two teacher units, at large but finite N.

From a symmetric start the equations stay symmetric: they never leave the plateau. In a run, random examples give a
variance V/N to the difference :math:`u = (R_{11}+R_{22}-R_{12}-R_{21})/2`, the only order parameter that is odd under
exchange of the students and odd under exchange of the teacher's units. With :math:`\dot u = a(t)\,u` to first order,
and a step that changes u by :math:`\Delta u/N`,

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

from dataclasses import replace
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from statmech.errors import ScenarioError
from statmech.numerics.gaussian import Array
from statmech.runtime.devices import use_cpu_double_precision
from statmech.runtime.forks import record_jax_use
from statmech.runtime.jax_cache import set_up_compilation_cache
from statmech.runtime.programs import cached_program
from statmech.scenarios.network import Network, NetworkCell
from statmech.scenarios.network_matrices import NetworkStart
from theory.networks.equations import (
    ATOL,
    MAX_STEPS,
    RTOL,
    NetworkSetting,
    NetworkSolverOptions,
    compute_row_rates,
    make_network_setting,
    make_network_solver_options,
    pack_units,
    solve_cells,
    unpack_units,
)
from theory.numerics.dormand_prince import integrate, pad_times

NODES_PER_UNIT_FIELD = 16  # per field; 24 nodes change c by only 7e-4
SPECIALISATION_DIFFERENCE_STEP = 1e-5  # for the growth rate of u
NUM_TIMES_TO_PLATEAU = 201  # spaced more densely at early times
FIRST_PLATEAU_TIME, MAX_PLATEAU_TIME_DOUBLINGS = (
    300.0,
    8,
)  # in units of 1/eta; doubled until the solution is on the plateau
GROWTH_RATE_TOL, MIN_NOISE_WEIGHT = (
    1e-9,
    1e-10,
)  # relative change of a between late times, and relative contribution to V
INITIAL_SPECIALISATION_U = 1e-6  # smaller u grow linearly
SYMMETRIC_EXPANSION_INDICES = np.array([0, 0, 0, 0, 1, 2, 1, 3, 3])  # expands (R, Q, C, v) to the rows of the state
SYMMETRIC_SELECTION_INDICES = np.array([0, 4, 5, 7])  # selects (R, Q, C, v) from the rows of the state
SPECIALISATION_DIRECTION = (
    np.array([1.0, -1.0, -1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]) / 2
)  # unit vector of u in the rows of the state


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
    equations, start, last = (
        make_network_solver_options(cell),
        pack_units(cell.units)[SYMMETRIC_SELECTION_INDICES, None],
        FIRST_PLATEAU_TIME / cell.eta,
    )
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
    """Integrate R, Q, C and v (T, 4, 1) from a symmetric start.

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
    """Compute the growth rate a of small deviations u at states (9, T)."""
    ahead, behind = (
        compute_row_rates(
            equations, setting, rows + sign * SPECIALISATION_DIFFERENCE_STEP * SPECIALISATION_DIRECTION[:, None]
        )
        for sign in (1, -1)
    )
    return SPECIALISATION_DIRECTION @ (ahead - behind) / (2 * SPECIALISATION_DIFFERENCE_STEP)


def _compute_noise_strength(cell: NetworkCell, state: np.ndarray) -> float:
    """Compute the noise strength D at one state (9,)."""
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
    """Find the first time with |u| >= `passed`, for a solution with u = exp(rate t) at early times."""
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
