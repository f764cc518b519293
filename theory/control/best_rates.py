r"""Best time-dependent learning rate of a single perceptron, in closed form up to an integral.

Where g is proportional to a power of the student's length l, the averages at learning rate 1 and length 1, the response
D and :math:`F = \langle f^2\rangle`, depend on the angle :math:`\theta` alone, and so do the rates for
:math:`a = \eta/l` (for :math:`a = \eta` where f is proportional to l):

.. math:: \dot R = aD\sin^2\theta - \tfrac12a^2RF .

The state is a single number, so that choosing the best rate at every time is the optimal control,

.. math:: a^*(\theta) = \frac{D\sin^2\theta}{F\cos\theta}, \qquad
          \dot\theta = -\frac{D^2\sin^3\theta}{2F\cos\theta}, \qquad
          t(\theta) = \int_\theta^{\theta_0}\frac{2F\cos\phi}{D^2\sin^3\phi}\,d\phi .

The integral is smooth at :math:`\theta_0 = \pi/2` (R = 0), where :math:`a^*` diverges because the weights of such a
student carry no information. With :math:`u = \log\tan(\phi/2)`, :math:`d\phi = \sin\phi\,du`, the integrand is smooth
on the scale 1 down to any angle. Without flips

.. math:: \text{perceptron:}\quad t = \frac{2\theta}{\sin^2\theta} + 2\cot\theta - \pi, \qquad
          \text{hebb:}\quad \tan^2\theta = \frac\pi{2t}

from R = 0, so that :math:`(t+\pi)\,\epsilon_g\to4/\pi` up to :math:`t^{-4}` for the perceptron rule.

Where g does not depend on the length, the learning rate is :math:`\eta^* = a^*l`. Along the optimum the noise alone
lengthens the student by :math:`\cos\theta/\cos\theta_0`, and with the weight decay :math:`\nu`

.. math:: \eta^* = \frac{l_0}{\cos\theta_0}\,\frac{D\sin^2\theta}F
          \exp\Big(2\int_u^{u_0}\frac{\langle fu\rangle}D\,du' - \nu t\Big),

whose scale is free at R = 0: the larger the scale, the more the first examples outweigh a randomly drawn start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from statmech.errors import SolverError
from statmech.numerics.gaussian import get_legendre_rule
from statmech.order_parameters import angle_from_versine
from statmech.rules import Rule, RuleAverages
from statmech.runtime.devices import use_cpu_double_precision
from statmech.scenarios.online_student import OnlineCell
from theory.online.averages import compute_rule_averages
from theory.online.students import make_initial_students

LOG_ANGLE_PANEL_WIDTH, NODES_PER_LOG_ANGLE_PANEL = (
    0.25,
    16,
)  # width in u, and nodes per panel: the integral is exact to rounding
MIN_TABULATED_ANGLE = 1e-14
MAX_ANGLE_NEWTON_STEPS = 40  # three or four suffice in practice
LENGTH_POWER_TEST_LENGTHS = 0.25, 0.5, 1.0, 2.0
LENGTH_POWER_TEST_STABILITIES = np.linspace(-3.0, 3.0, 13)


class BestRates(NamedTuple):
    """Angle to the teacher, best rate and best learning rate of a student at each time (T,).

    The rate a is the learning rate over the student's length. The learning rate is given in units of its scale, which
    is the length over the cosine at t = 0 (1 where f scales with l).
    """

    theta: np.ndarray
    rate: np.ndarray
    eta: np.ndarray


def compute_best_rates(cell: OnlineCell, times: np.ndarray) -> BestRates:
    """Compute the angle and the best rates of a single student at the given times.

    Parameters
    ----------
    cell
        The cell with the rule, flip rate, weight decay and start. The equations do not include drift.
    times : array (T,)
        Times in any order.

    Returns
    -------
    BestRates
        Arrays (T,). The rate is infinite at R = 0.

    Raises
    ------
    SolverError
        If g is not proportional to a power of the student's length.
    """
    if (power := find_update_length_exponent(cell.rule)) is None:
        raise SolverError(
            f"{cell.message_description}: the best rate has no closed form, as g depends on the student's length"
        )
    start, times = float(np.squeeze(angle_from_versine(make_initial_students(cell).y))), np.asarray(times, float)
    edges = np.arange(np.log(np.tan(start / 2)), np.log(MIN_TABULATED_ANGLE), -LOG_ANGLE_PANEL_WIDTH)
    with use_cpu_double_precision():
        edge_times = np.concatenate(
            [[0.0], np.cumsum(_integrate_over_log_angle(_time_per_log_angle, cell, edges[1:], edges[:-1]))]
        )
        panel = np.clip(np.searchsorted(edge_times, times, side="right") - 1, 0, edges.size - 2)
        theta = _find_angles_at_elapsed_times(cell, edges[panel], times - edge_times[panel])
        unit_averages = _compute_unit_averages(cell, theta)
        growth = np.concatenate(
            [[0.0], np.cumsum(_integrate_over_log_angle(_log_length_per_log_angle, cell, edges[1:], edges[:-1]))]
        )[panel]
        growth = (
            growth
            + _integrate_over_log_angle(_log_length_per_log_angle, cell, np.log(np.tan(theta / 2)), edges[panel])
            - cell.decay * times
        )
    with np.errstate(divide="ignore"):
        eta = unit_averages.response * np.sin(theta) ** 2 / unit_averages.ff
        rate = eta / np.maximum(np.cos(theta), 0.0)
    return BestRates(theta, rate, rate if power else eta * np.exp(growth))


def find_update_length_exponent(rule: Rule) -> int | None:
    """Find the n in g(kappa, l) = l^n g(kappa, 1), or return None if there is no such n.

    >>> from statmech.rules import RULES
    >>> (
    ...     find_update_length_exponent(RULES["perceptron"]()),
    ...     find_update_length_exponent(RULES["adatron_textbook"]()),
    ...     find_update_length_exponent(RULES["bayes"]())
    ... )
    (0, 1, None)
    """
    rescaled_updates = [
        np.asarray(rule.g(LENGTH_POWER_TEST_STABILITIES, np.float64(length)), float) / length
        for length in LENGTH_POWER_TEST_LENGTHS
    ]
    return next((n for n in (0, 1) if all(_iterate_length_power_checks(rescaled_updates, n))), None)


def _iterate_length_power_checks(rescaled_updates: list[np.ndarray], power: int) -> Iterator[bool]:
    """Yield for each length whether g/l follows the power law through its value at the first length."""
    ratios = (np.array(LENGTH_POWER_TEST_LENGTHS) / LENGTH_POWER_TEST_LENGTHS[0]) ** (power - 1)
    return (
        np.allclose(update, ratio * rescaled_updates[0]) for update, ratio in zip(rescaled_updates, ratios, strict=True)
    )


def _compute_unit_averages(cell: OnlineCell, theta: np.ndarray) -> RuleAverages:
    """Compute the averages of a rule at learning rate 1 and length 1."""
    rule = replace(cell.rule, eta=1.0)
    parts = compute_rule_averages(rule, rule.has_closed_form, theta, np.ones_like(theta), np.float64(cell.flip))
    return RuleAverages(*(np.asarray(values) + 0 * theta for values in parts))


def _time_per_log_angle(cell: OnlineCell, u: np.ndarray) -> np.ndarray:
    """Return the time per unit change of u, -dt/du."""
    theta = 2 * np.arctan(np.exp(u))
    single = _compute_unit_averages(cell, theta)
    return 2 * single.ff * np.cos(theta) / (single.response * np.sin(theta)) ** 2


def _log_length_per_log_angle(cell: OnlineCell, u: np.ndarray) -> np.ndarray:
    """Return the growth of log l per unit change of u due to learning alone, without noise."""
    single = _compute_unit_averages(cell, 2 * np.arctan(np.exp(u)))
    return 2 * single.fu / single.response


def _integrate_over_log_angle(
    integrand: Callable[..., np.ndarray], cell: OnlineCell, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Integrate a function of u from low (n,) to high (n,).

    The integral of `_time_per_log_angle` is the time elapsed.
    """
    x, weight = get_legendre_rule(NODES_PER_LOG_ANGLE_PANEL)
    width = (high - low)[:, None]
    values = integrand(cell, (low[:, None] + width * x).reshape(-1)).reshape(len(low), NODES_PER_LOG_ANGLE_PANEL)
    return np.asarray((width * weight * values).sum(-1))


def _find_angles_at_elapsed_times(cell: OnlineCell, edge: np.ndarray, elapsed: np.ndarray) -> np.ndarray:
    """Find the angles (T,) from the times elapsed since the start of their panels (T,)."""
    u = edge - LOG_ANGLE_PANEL_WIDTH / 2
    for _ in range(MAX_ANGLE_NEWTON_STEPS):
        excess = _integrate_over_log_angle(_time_per_log_angle, cell, u, edge) - elapsed
        new_u = np.clip(u + excess / _time_per_log_angle(cell, u), edge - LOG_ANGLE_PANEL_WIDTH, edge - 1e-300)
        converged = np.max(np.abs(new_u - u), initial=0.0) <= 1e-15 * np.max(np.abs(u), initial=1.0)
        u = new_u
        if converged:
            break
    return np.where(elapsed == 0, 2 * np.arctan(np.exp(edge)), 2 * np.arctan(np.exp(u)))
