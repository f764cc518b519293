r"""Averages of penalised weights over a Gaussian field, for the saddle-point equations of the weights.

A weight minimises :math:`\tfrac12(\hat V + \lambda_2)w^2 + \lambda_1|w| - bw` in a field
:math:`b = \hat m w^* + \sqrt{\hat q}\,\xi`, so that w is the soft threshold of b, over :math:`D = \hat V+\lambda_2`:

.. math:: V = P(|b| > \lambda_1)/D, \qquad m = \langle w^*w\rangle, \qquad l^2 = \langle w^2\rangle .

Without an l1 norm these averages are :math:`1/D,\ \hat m/D,\ (\hat m^2+\hat q)/D^2`. For a Gaussian
:math:`b\sim N(\mu,\Delta^2)` the averages of the soft threshold are, with :math:`k_\pm = (\pm\mu-\lambda_1)/\Delta`,

.. math:: \langle\mathrm{soft}'\rangle = \Phi(k_+)+\Phi(k_-), \quad
          \langle\mathrm{soft}\rangle = \Delta[\psi_1(k_+)-\psi_1(k_-)], \quad
          \langle\mathrm{soft}^2\rangle = \Delta^2[\psi_2(k_+)+\psi_2(k_-)],

:math:`\psi_1(k) = \varphi(k)+k\Phi(k)`, :math:`\psi_2(k) = (1+k^2)\Phi(k)+k\varphi(k)`. If the teacher's weights are a
mixture of Gaussians, so is b, and :math:`\langle w^*\,\mathrm{soft}\rangle` follows from Stein's lemma.

A linear teacher has :math:`\hat m = \hat V`, and only :math:`\langle(w-w^*)^2\rangle` matters. With
:math:`c = b - \mathrm{soft}(b)`, which is b clipped to :math:`\pm\lambda_1`,
:math:`D(w-w^*) = \sqrt{\hat q}\,\xi - c - \lambda_2w^*`; its mean square has no large terms that cancel.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from statmech.convex.weights import WeightDistribution
from statmech.numerics.gaussian import normal_cdf, normal_density

LOG_DIFFERENCE_STEP = 1e-3  # gives fourth-order differences an error of 1e-12


def compute_label_unknown_logs(
    weights: WeightDistribution | None, q: np.ndarray, m: np.ndarray, l1: np.ndarray
) -> np.ndarray:
    """Compute ln tan(theta), ln(D Q) and ln(D V) (3, batch) from the conjugate order parameters q and m.

    Pass None as `weights` if the penalty has no l1 norm.
    """
    if weights is None:
        return np.array([0.5 * np.log(q) - np.log(m), 0.5 * np.log(m**2 + q), 0 * q])
    alive = overlap = square = 0 * q
    for fraction, mean, variance in weights.pieces:
        width = np.sqrt(m**2 * variance + q)
        survival, drift, power = _compute_soft_threshold_moments(m * mean, width, l1)
        alive, square = alive + fraction * survival, square + fraction * power
        overlap = overlap + fraction * (mean * drift + variance * m * survival)
    return np.array([0.5 * np.log(square - overlap**2) - np.log(overlap), 0.5 * np.log(square), np.log(alive)])


def compute_output_unknown_logs(
    weights: WeightDistribution | None, V: np.ndarray, q: np.ndarray, l1: np.ndarray, l2: np.ndarray
) -> np.ndarray:
    """Compute the logarithms (2, batch) of the mean square of D (w - w*) and of D V.

    Parameters
    ----------
    weights
        Distribution of the teacher's weights, or None if the penalty has no l1 norm.
    V, q
        The conjugate order parameters V = m and q (batch,).
    l1, l2
        Factors of the l1 norm and of half the squared length (batch,).
    """
    if weights is None:
        return np.array([np.log(l2**2 + q), 0 * q])
    alive, square = 0 * q, l2**2
    for fraction, mean, variance in weights.pieces:
        width = np.sqrt(V**2 * variance + q)
        survival, drift, _ = _compute_soft_threshold_moments(V * mean, width, l1)
        alive = alive + fraction * survival
        pull = mean * (V * mean - drift) + variance * V * (1 - survival)
        square = square + fraction * (
            q * (2 * survival - 1) + _compute_clipped_mean_square(V * mean, width, l1, survival) + 2 * l2 * pull
        )
    return np.array([np.log(square), np.log(alive)])


def differentiate_by_logs(function: Callable[[np.ndarray], np.ndarray], logs: np.ndarray) -> np.ndarray:
    """Differentiate a function of k logarithms by fourth-order differences, as an array (outputs, k, batch)."""
    steps = np.array([1, -1, 2, -2])[:, None] * LOG_DIFFERENCE_STEP * np.eye(len(logs))[:, None]
    up, down, far_up, far_down = np.moveaxis(function(logs[:, None, None] + steps[..., None]), 1, 0)
    return (8 * (up - down) - far_up + far_down) / (12 * LOG_DIFFERENCE_STEP)


def _compute_soft_threshold_moments(
    mean: np.ndarray, width: np.ndarray, l1: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Average the slope, value and square of the soft-thresholding function over a normal variable."""
    up, down = (mean - l1) / width, (-mean - l1) / width
    right, left = normal_cdf(up), normal_cdf(down)
    first = up * right + normal_density(up) - down * left - normal_density(down)
    second = (1 + up**2) * right + up * normal_density(up) + (1 + down**2) * left + down * normal_density(down)
    return right + left, width * first, width**2 * second


def _compute_clipped_mean_square(
    mean: np.ndarray, width: np.ndarray, l1: np.ndarray, outside: np.ndarray
) -> np.ndarray:
    """Compute the mean square of a normal variable clipped to [-l1, l1]."""
    low, high = (-l1 - mean) / width, (l1 - mean) / width
    inside = mean**2 * (normal_cdf(high) - normal_cdf(low)) + 2 * mean * width * (
        normal_density(low) - normal_density(high)
    )
    return l1**2 * outside + inside + width**2 * (_integrate_gaussian_square(high) - _integrate_gaussian_square(low))


def _integrate_gaussian_square(k: np.ndarray) -> np.ndarray:
    r"""Compute :math:`\int_0^k x^2\varphi(x)\,dx` without cancellation at small k."""
    from scipy.special import gammainc

    values: np.ndarray = 0.5 * np.sign(k) * gammainc(1.5, 0.5 * k * k)
    return values
