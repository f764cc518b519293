r"""Jacobian of the equations in modes for one student, or for equal students.

The rates in `theory.online.structured` are linear in the modes. Their coefficients depend on the state only through the
length of the weights and the overlaps of the fields. So the Jacobian consists of diagonal blocks and a matrix
:math:`UR` of rank 6 with the slopes of the coefficients, which are rows here. The slopes of averages are finite
differences, which are accurate enough for the iteration of an implicit method.
"""

from __future__ import annotations

import numpy as np

from theory.online.structured import ModeEquations, ModeState, RateCoefficients, StudentOverlaps

COEFFICIENT_DIFFERENCE_STEP = 1e-6  # relative


def compute_jacobian(equations: ModeEquations, t: float, values: np.ndarray) -> np.ndarray:
    """Compute the Jacobian (n, n) of `ModeEquations.rates` with respect to the state vector.

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
    teacher = equations.compute_teacher_modes(t)
    omega, nu, power, drift = equations.omega, equations.share, teacher.power, equations.drift
    state = equations.centre_delta(equations.unpack_state(values), power)
    weight, n, d = omega * power / (omega @ power), values.size, omega.size
    m_row, delta_rows, perpendicular_rows = 1, slice(2, 2 + d), slice(2 + d, 2 + 2 * d)
    pair_rows = slice(2 + 2 * d, n)
    delta, perpendicular, rho = state.delta[0], state.perpendicular[0], (state.m + state.delta[0])
    (gain, slope, noise, _), slopes = _differentiate_coefficients(equations, t, state, weight, n)
    pull = omega * (gain + slope * delta)
    shrink = drift * (1 - 2 * nu / power)

    growth = power @ (rho * pull) + slope * (perpendicular @ omega) + noise / 2 * (nu @ omega)
    growth_gradient = (power * rho) @ omega * slopes[0] + (
        (power * rho * omega) @ delta + perpendicular @ omega
    ) * slopes[1]
    growth_gradient += nu @ omega / 2 * slopes[2]
    growth_gradient[m_row] += power @ pull
    growth_gradient[delta_rows] += power * (pull + rho * omega * slope)
    growth_gradient[perpendicular_rows] += slope * omega
    square = power @ rho**2 + perpendicular.sum()
    growth = growth / square
    growth_gradient[m_row] -= 2 * growth * (power @ rho)
    growth_gradient[delta_rows] -= 2 * growth * power * rho
    growth_gradient[perpendicular_rows] -= growth
    growth_gradient /= square

    derivatives = np.zeros((n, n))
    derivatives[0] = growth_gradient
    rho_derivatives = np.outer(omega, slopes[0]) + np.outer(omega * delta, slopes[1])
    rho_derivatives[:, m_row] += shrink
    _add_to_diagonal(rho_derivatives[:, delta_rows], omega * slope + shrink)
    mean = weight @ rho_derivatives
    mean[delta_rows] += omega * teacher.power_rate / (omega @ power)
    derivatives[m_row] = mean - state.m * growth_gradient
    derivatives[m_row, m_row] -= growth
    derivatives[delta_rows] = rho_derivatives - mean - np.outer(delta, growth_gradient)
    _add_to_diagonal(derivatives[delta_rows, delta_rows], -growth)
    parts = [(perpendicular_rows, perpendicular, slopes[2]), (pair_rows, *state.pair_products, slopes[3])][
        : 2 if equations.has_pairs else 1
    ]
    for rows, part, source in parts:
        derivatives[rows] = (
            np.outer(2 * omega * part, slopes[1]) + np.outer(omega * nu, source) - np.outer(2 * part, growth_gradient)
        )
        _add_to_diagonal(derivatives[rows, rows], 2 * (omega * slope - growth))
        derivatives[rows, m_row] += 4 * drift * nu * rho
        _add_to_diagonal(derivatives[rows, delta_rows], 4 * drift * nu * rho)
    derivatives[:, delta_rows] += np.outer(
        derivatives[:, m_row] - derivatives[:, delta_rows].sum(axis=1), weight
    )  # because the rates centre delta
    return derivatives


def _add_to_diagonal(block: np.ndarray, values: np.ndarray) -> None:
    """Add values to the diagonal of a matrix view, in place."""
    block[np.diag_indices(len(block))] += values


def _differentiate_coefficients(
    equations: ModeEquations, t: float, state: ModeState, weight: np.ndarray, num_variables: int
) -> tuple[tuple[float, ...], np.ndarray]:
    """Return the coefficients (4,) of one student, and their derivatives (4, n) by finite differences."""
    omega, power = equations.omega, equations.compute_teacher_modes(t).power
    variance, d = omega @ power, omega.size
    fields = equations.compute_overlaps(omega, power, state)
    arguments = [state.log_length, *fields]
    rows = np.zeros((4, num_variables))
    rows[0, 0] = 1.0
    rows[1, 1], rows[1, 2 : 2 + d] = np.sqrt(variance), np.sqrt(variance) * weight
    rows[2:, 2 : 2 + d] = 2 * omega * power * (state.delta[0] - weight @ state.delta[0])
    rows[2, 2 + d : 2 + 2 * d] = omega
    rows[3, 2 + 2 * d :] = omega[: num_variables - 2 - 2 * d]

    def coefficients_at(point: list[np.ndarray]) -> np.ndarray:
        return _flatten_coefficients(equations.compute_coefficients(t, point[0], StudentOverlaps(*point[1:]), variance))

    first, derivatives = coefficients_at(arguments), np.zeros((4, num_variables))
    scale = np.hypot(fields.parallel, np.sqrt(fields.perpendicular))
    for index, (value, size) in enumerate(
        zip(arguments, (1.0, scale, fields.perpendicular, fields.perpendicular), strict=True)
    ):
        shifted = list(arguments)
        shifted[index] = (
            value - COEFFICIENT_DIFFERENCE_STEP * size
        )  # backward difference: cosines of pairs cannot exceed 1
        derivatives += np.outer((first - coefficients_at(shifted)) / (COEFFICIENT_DIFFERENCE_STEP * size), rows[index])
    return tuple(first), derivatives


def _flatten_coefficients(coefficients: RateCoefficients) -> np.ndarray:
    """Return the coefficients of one student as a vector.

    The coefficient of pairs is 0 without pairs.
    """
    return np.resize(np.concatenate([*coefficients[:3], coefficients.pair_noise, [0.0]]), 4)
