r"""Jacobian of the equations in modes for one student, or for equal students.

The rates in `theory.online.structured` are linear in the modes. Their coefficients depend on the state only through the
length of the weights and the overlaps of the fields. So the Jacobian consists of diagonal blocks and a matrix
:math:`UR` of rank 6 with the slopes of the coefficients, which are rows here. The slopes of averages are finite
differences, which are accurate enough for the iteration of an implicit method.
"""

from __future__ import annotations

import numpy as np

from theory.online.structured import Coefficients, Equations, Overlaps, State

STEP = 1e-6  # relative


def jacobian(equations: Equations, t: float, values: np.ndarray) -> np.ndarray:
    """Compute the derivative (n, n) of `Equations.rates` with respect to the state's vector.

    There must be a single distinct student.

    Parameters
    ----------
    equations
        The equations.
    t
        Time.
    values
        The state's vector (n,).
    """
    teacher = equations.teacher(t)
    omega, nu, power, drift = equations.omega, equations.share, teacher.power, equations.drift
    state = equations.centred(equations.state(values), power)
    weight, n, d = omega * power / (omega @ power), values.size, omega.size
    at_m, at_delta, at_across = 1, slice(2, 2 + d), slice(2 + d, 2 + 2 * d)
    at_between = slice(2 + 2 * d, n)
    delta, across, rho = state.delta[0], state.across[0], (state.m + state.delta[0])
    (gain, slope, noise, _), slopes = _slopes(equations, t, state, weight, n)
    pull = omega * (gain + slope * delta)
    shrink = drift * (1 - 2 * nu / power)

    growth = power @ (rho * pull) + slope * (across @ omega) + noise / 2 * (nu @ omega)
    of_growth = (power * rho) @ omega * slopes[0] + ((power * rho * omega) @ delta + across @ omega) * slopes[1]
    of_growth += nu @ omega / 2 * slopes[2]
    of_growth[at_m] += power @ pull
    of_growth[at_delta] += power * (pull + rho * omega * slope)
    of_growth[at_across] += slope * omega
    square = power @ rho**2 + across.sum()
    growth = growth / square
    of_growth[at_m] -= 2 * growth * (power @ rho)
    of_growth[at_delta] -= 2 * growth * power * rho
    of_growth[at_across] -= growth
    of_growth /= square

    found = np.zeros((n, n))
    found[0] = of_growth
    moved = np.outer(omega, slopes[0]) + np.outer(omega * delta, slopes[1])
    moved[:, at_m] += shrink
    _diagonal(moved[:, at_delta], omega * slope + shrink)
    mean = weight @ moved
    mean[at_delta] += omega * teacher.rate / (omega @ power)
    found[at_m] = mean - state.m * of_growth
    found[at_m, at_m] -= growth
    found[at_delta] = moved - mean - np.outer(delta, of_growth)
    _diagonal(found[at_delta, at_delta], -growth)
    parts = [(at_across, across, slopes[2]), (at_between, *state.between, slopes[3])][: 2 if equations.paired else 1]
    for at, part, source in parts:
        found[at] = np.outer(2 * omega * part, slopes[1]) + np.outer(omega * nu, source) - np.outer(2 * part, of_growth)
        _diagonal(found[at, at], 2 * (omega * slope - growth))
        found[at, at_m] += 4 * drift * nu * rho
        _diagonal(found[at, at_delta], 4 * drift * nu * rho)
    found[:, at_delta] += np.outer(found[:, at_m] - found[:, at_delta].sum(axis=1), weight)  # as delta is centred
    return found


def _diagonal(block: np.ndarray, values: np.ndarray) -> None:
    """Add values to the diagonal of a view."""
    block[np.diag_indices(len(block))] += values


def _slopes(
    equations: Equations, t: float, state: State, weight: np.ndarray, n: int
) -> tuple[tuple[float, ...], np.ndarray]:
    """Return the coefficients of one student (4,), and their derivatives (4, n) with respect to the state's vector."""
    omega, power = equations.omega, equations.teacher(t).power
    variance, d = omega @ power, omega.size
    fields = equations.overlaps(omega, power, state)
    where = [state.log_length, *fields]
    rows = np.zeros((4, n))
    rows[0, 0] = 1.0
    rows[1, 1], rows[1, 2 : 2 + d] = np.sqrt(variance), np.sqrt(variance) * weight
    rows[2:, 2 : 2 + d] = 2 * omega * power * (state.delta[0] - weight @ state.delta[0])
    rows[2, 2 + d : 2 + 2 * d] = omega
    rows[3, 2 + 2 * d :] = omega[: n - 2 - 2 * d]

    def at(point: list[np.ndarray]) -> np.ndarray:
        return _numbers(equations.coefficients(t, point[0], Overlaps(*point[1:]), variance))

    first, found = at(where), np.zeros((4, n))
    scale = np.hypot(fields.along, np.sqrt(fields.across))
    for index, (value, size) in enumerate(zip(where, (1.0, scale, fields.across, fields.across), strict=True)):
        moved = list(where)
        moved[index] = value - STEP * size  # towards smaller cosines of pairs, which are at most 1
        found += np.outer((first - at(moved)) / (STEP * size), rows[index])
    return tuple(first), found


def _numbers(coefficients: Coefficients) -> np.ndarray:
    """Return the coefficients of one student as a vector.

    The coefficient of pairs is 0 without pairs.
    """
    return np.resize(np.concatenate([*coefficients[:3], coefficients.common, [0.0]]), 4)
