r"""The times at which two units that learn from two leave the symmetric plateau, for large but finite N.

From a symmetric start the equations stay symmetric: they never leave the plateau. In a run, examples at random give the
difference :math:`u = (R_{11}+R_{22}-R_{12}-R_{21})/2`, the only order parameter that is odd under exchange of the
students and odd under exchange of the teacher's units, a variance V/N. With :math:`\dot u = a(t)\,u` to first order,
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

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import cumulative_simpson, simpson, solve_ivp

from statmech.errors import ScenarioError
from statmech.scenarios.network import Network, NetworkCell
from statmech.scenarios.network_matrices import NetworkStart
from theory.networks import equations_of, field, packed, setting_of, solve_cells, unpacked

NODES = 16  # per field: c changes by 1e-3 with 28
PLACES = 141  # of times between the start and the plateau, denser at early ones
SETTLED, SMALL = 600.0, 1e-6  # time after which the plateau is reached, in units of 1/eta; u where linear growth ends
ROWS = np.array([0, 0, 0, 0, 1, 2, 1, 3, 3])  # of R, Q, C and v of a symmetric state in the state's rows
FIRST = np.array([0, 4, 5, 7])  # where each stands first
ODD = np.array([1.0, -1.0, -1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]) / 2  # the direction of u in the state's rows


class Escape(NamedTuple):
    """The rate and the shift c of the escape times."""

    rate: float
    shift: float


def escape(network: Network, passed: float = 0.25) -> Escape:
    r"""Predict the distribution of the times at which runs leave the symmetric plateau.

    .. math:: t_\text{esc} = \frac{\ln N}{2\lambda} - \frac{\ln|\xi|}{\lambda} + c, \qquad \xi\sim N(0,1)

    Parameters
    ----------
    network : Network
        M = 2 teacher units, K = 2 student units that start with equal, given overlaps; one value of each key but N.
    passed : float
        The value of :math:`|u|` at which a run has left the plateau.

    Returns
    -------
    Escape
        `rate`, :math:`\lambda`, and `shift`, c, in units of t.

    Raises
    ------
    ScenarioError
        For another number of units, for a start that distinguishes them or that is drawn, and for kinks.

    Examples
    --------
    >>> from statmech import Network
    >>> found = escape(Network(network="erf", eta=1.5, start={"Q": 0.25, "R": 0}, t=1))
    >>> round(found.rate, 6)
    0.076364
    """
    cell = _checked(network)
    times = SETTLED / cell.eta * np.linspace(0.0, 1.0, PLACES) ** 2
    rows = _course(cell, times)
    growth = _growth(cell, rows)
    rate = float(growth[-1])
    if not rate > 0:
        raise ScenarioError(
            [((), f"no unit leaves the symmetric state of {cell.described}: its growth rate is {rate:g}")]
        )
    gained = cumulative_simpson(growth - rate, x=times, initial=0.0)
    noise = np.array([_noise(cell, state) for state in rows.T])
    remaining = noise[-1] / (2 * rate) * np.exp(-2 * rate * times[-1])
    amplitude = simpson(noise * np.exp(2 * (gained[-1] - gained) - 2 * rate * times), x=times) + remaining
    shift = _passage(cell, rows[:, -1], rate, passed) - np.log(amplitude) / (2 * rate)
    return Escape(rate, float(shift))


def _checked(network: Network) -> NetworkCell:
    """The one parameter combination of a network whose escape can be predicted."""
    cell = next(iter(network.cells()))
    if {name for name in network.shape if name != "N"}:
        problem = "escape times are predicted for one value of each key but N"
    elif (cell.K, cell.M) != (2, 2):
        problem = f"escape times are predicted for K = 2 and M = 2, not {cell.K} and {cell.M}"
    elif cell.drawn or not network.symmetric or network.identical:
        problem = "escape times are predicted for student units that start with equal overlaps, but are not identical"
    elif np.ptp(cell.w) or cell.T[0, 0] != cell.T[1, 1]:
        problem = "escape times are predicted for teacher units with equal weights and lengths"
    elif cell.activation.kinks or network.unsolved:
        problem = network.unsolved or "escape times are predicted for activations without kinks"
    else:
        return cell
    raise ScenarioError([((), problem)])


def _course(cell: NetworkCell, times: np.ndarray) -> np.ndarray:
    """The rows (9, T) of the solution that starts symmetric, integrated as R, Q, C and v alone.

    In all variables the rounding of differences between the units would grow like these differences themselves.
    """
    equations, setting = equations_of(cell), setting_of([cell])
    with jax.enable_x64(True):
        change = jax.jit(lambda rows: field(equations, setting, rows[:, None])[:, 0])
        start = packed(cell.units)[FIRST]
        found = solve_ivp(
            lambda t, x: np.asarray(change(x[ROWS]))[FIRST],
            (0.0, times[-1]),
            start,
            "DOP853",
            times,
            rtol=1e-10,
            atol=1e-12,
        )
    return np.asarray(found.y[ROWS])


def _growth(cell: NetworkCell, rows: np.ndarray) -> np.ndarray:
    """a at each state of the rows (9, T)."""
    equations, setting = equations_of(cell), setting_of([cell] * rows.shape[1])
    with jax.enable_x64(True):
        direction = jnp.broadcast_to(ODD[:, None], rows.shape)
        change = jax.jvp(lambda at: field(equations, setting, at), (jnp.asarray(rows),), (direction,))[1]
    return np.asarray(ODD @ np.asarray(change))  # the rows of |ODD| = 1 change by u ODD


def _noise(cell: NetworkCell, state: np.ndarray) -> float:
    """D at one state (9,)."""
    x, weight = np.polynomial.hermite_e.hermegauss(NODES)
    weight = weight / weight.sum()
    R, Q, v = unpacked(equations_of(cell), state)
    gram = np.block([[cell.T, R.T], [R, Q]])
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    grid = np.stack([part.ravel() for part in np.meshgrid(*[x] * 4, indexing="ij")])
    chance = np.prod(np.meshgrid(*[weight] * 4, indexing="ij"), axis=0).ravel()
    y1, y2, h1, h2 = root @ grid
    (first, slope1), (second, slope2) = (cell.activation.both(h) for h in (h1, h2))
    taught = cell.w[0] * cell.activation.both(y1)[0] + cell.w[1] * cell.activation.both(y2)[0]
    squared = (taught - v[0] * first - v[1] * second) ** 2 + cell.sigma**2
    return float(cell.eta**2 / 4 * chance @ ((v[0] * slope1 - v[1] * slope2) ** 2 * squared * (y1 - y2) ** 2))


def _passage(cell: NetworkCell, plateau: np.ndarray, rate: float, passed: float) -> float:
    """The time at which the solution with u = exp(rate t) at early times passes the threshold."""
    R, Q, v = unpacked(equations_of(cell), plateau)
    start = NetworkStart.model_validate({"R": R + SMALL * ODD[:4].reshape(2, 2), "Q": Q, "v": v})
    times = np.linspace(0.0, 2 * np.log(1 / SMALL) / rate, 4001)
    solved = solve_cells([replace(cell, start=start)], times)[0].R
    u = np.abs(solved[:, 0, 0] + solved[:, 1, 1] - solved[:, 0, 1] - solved[:, 1, 0]) / 2
    at = int(np.argmax(u >= passed))
    if u[at] < passed:
        raise ScenarioError([((), f"no run of {cell.described} passes |u| = {passed:g}")])
    share = np.log(passed / u[at - 1]) / np.log(u[at] / u[at - 1])
    return float(times[at - 1] + share * (times[at] - times[at - 1]) + np.log(u[0]) / rate)
