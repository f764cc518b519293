r"""The average of the logistic function over a normal field, accurate to 1e-13 at every mean and variance.

.. math:: F(M, V) = \int Dt\,\sigma(M + \sqrt V\,t), \qquad \sigma(u) = \frac1{1+e^{-u}}

A logistic variable is a normal one of standard deviation 2k, where k has Kolmogorov's distribution of density f(k)
(Andrews & Mallows 1974). With :math:`s = V + 4k^2` its averages are positive sums over k, whatever V:

.. math:: F = \int dk\,f(k)\,\Phi(M/\sqrt s), \qquad
          F' = \int dk\,f(k)\,\frac{e^{-M^2/2s}}{\sqrt{2\pi s}}

(Monahan & Stefanski 1992). The density :math:`\mathrm{sech}(u/2)/2\pi` is also a mixture, of Gaussians of variance
:math:`\pi^2T`, where T is the exit time of Brownian motion from [-1, 1] (its Laplace transform is
:math:`\mathrm{sech}\sqrt{2\lambda}`). As :math:`\sigma(u) = e^{u/2}\,\mathrm{sech}(u/2)/2`, F has a form without
:math:`\Phi`. The range of T that this form needs grows with V:

.. math:: F = \int dT\,f(T)\,\sqrt{\frac\pi{2s}}\,\exp\frac{\pi^2T\,(V + 4M) - 4M^2}{8s}, \qquad s = V + \pi^2T.

In log k and log T the integrands are analytic in a strip, and the trapezoidal rule converges exponentially:
`LOG_K_NODE_SPACING` leaves an error of 2e-14. In the left tail, where large k would contribute, the reflection formula
that follows from :math:`\sigma(u) = e^u\sigma(-u)` maps the mean back to the centre:

.. math:: F(M, V) = e^{M+V/2}\,F(-M-V, V).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

LOG_K_NODE_SPACING = 0.12  # spacing of the nodes in log k, and half the spacing in log T
MIN_KOLMOGOROV_K, MAX_KOLMOGOROV_K = 0.19, 5.0  # outside this range, the density of k is below 1e-13
MIN_SQRT_T, MAX_SQRT_T = 0.12, 6.0  # range of sqrt(T) that suffices for variances V up to 60
MAX_EXIT_TIME_MIXTURE_VARIANCE = 60.0  # larger V would require larger T


class LogisticAverage(NamedTuple):
    """Logarithm of the average at -|M|, its derivative, and minus its second derivative with respect to M."""

    log: np.ndarray
    slope: np.ndarray
    minus_log_curvature: np.ndarray


def logistic_average(M: np.ndarray, V: np.ndarray) -> LogisticAverage:
    """Return the logarithm of the average at -|M| and its derivatives. The arrays broadcast.

    >>> average = logistic_average(np.array([0.0, -2.0, -1000.0]), np.array(1.0))
    >>> average.log[:2].round(6)
    array([-0.693147, -1.861351])
    >>> average.slope.round(6)
    array([0.413242, 0.744604, 1.      ])
    """
    M, V = -np.abs(np.asarray(M, float)), np.asarray(V, float)
    tail = 2 * M < -V
    x = np.where(tail, -M - V, M)
    log, slope, bend = _average_without_reflection(x, V)
    return LogisticAverage(np.where(tail, M + V / 2, 0.0) + log, np.where(tail, 1 - slope, slope), bend)


def _average_without_reflection(x: np.ndarray, V: np.ndarray) -> LogisticAverage:
    """Compute the average at x >= -V/2. At x > 0 the derivatives have an absolute error of 1e-16."""
    size, above = np.abs(x), x > 0
    log_scale, below, density, steepness = _sum_scale_mixture(size, V)
    scale = np.where(above, np.exp(log_scale), 1.0)  # at x <= 0 the factor exp(log_scale), which may underflow, cancels
    F = np.where(above, 1 - scale * below, below)
    slope = scale * density / F
    second = -np.sign(x) * scale * steepness / F
    return LogisticAverage(np.log(F) + np.where(above, 0.0, log_scale), slope, slope**2 - second)


def _sum_scale_mixture(size: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return log_scale, and F, F' and |F''| at -size divided by exp(log_scale)."""
    wide = MAX_EXIT_TIME_MIXTURE_VARIANCE < V
    if np.all(wide) or not np.any(wide):
        log_scale = -0.5 * size**2 / (V + (4 * MAX_KOLMOGOROV_K**2 if np.all(wide) else (np.pi * MAX_SQRT_T) ** 2))
        below = (
            _sum_kolmogorov_mixture(size, V, log_scale) if np.all(wide) else _sum_exit_time_mixture(size, V, log_scale)
        )
        return log_scale, below, *_sum_mixture_derivatives(size, V, log_scale)
    size, V = np.broadcast_arrays(size, V)
    sums = np.empty((4, *size.shape))
    for mask in (MAX_EXIT_TIME_MIXTURE_VARIANCE < V, V <= MAX_EXIT_TIME_MIXTURE_VARIANCE):
        sums[:, mask] = _sum_scale_mixture(size[mask], V[mask])
    return tuple(sums)


def _sum_kolmogorov_mixture(size: np.ndarray, V: np.ndarray, log_scale: np.ndarray) -> np.ndarray:
    """Compute F / exp(log_scale) as a sum of Gaussian tail probabilities, for any V."""
    from scipy.special import erfcx

    k, weight = _make_kolmogorov_quadrature()
    scaled = size[..., None] / np.sqrt(V[..., None] + 4 * k * k)
    parts = weight * np.exp(-0.5 * scaled * scaled - log_scale[..., None])
    return np.sum(0.5 * parts * erfcx(scaled / np.sqrt(2)), axis=-1)


def _sum_exit_time_mixture(size: np.ndarray, V: np.ndarray, log_scale: np.ndarray) -> np.ndarray:
    """Compute F / exp(log_scale) from exponentials alone, in half the time of `_sum_kolmogorov_mixture`."""
    T, weight = _make_exit_time_quadrature()
    spread = V[..., None] + np.pi**2 * T
    square, linear = -0.5 / spread, -0.5 * np.pi**2 * T / spread
    height = np.log(weight / np.sqrt(spread)) - 0.25 * linear * V[..., None]
    exponent = (size[..., None] * square + linear) * size[..., None] + height - log_scale[..., None]
    return np.sum(np.exp(exponent), axis=-1)


def _sum_mixture_derivatives(size: np.ndarray, V: np.ndarray, log_scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute F' and |F''| at -size, divided by exp(log_scale)."""
    k, weight = _make_kolmogorov_quadrature()
    spread = V[..., None] + 4 * k * k
    exponent = (size**2)[..., None] * (-0.5 / spread) - log_scale[..., None]
    parts = np.exp(exponent) * (weight / np.sqrt(2 * np.pi * spread))
    return np.sum(parts, axis=-1), size * np.sum(parts / spread, axis=-1)


@cache
def _make_kolmogorov_quadrature() -> tuple[np.ndarray, np.ndarray]:
    """Return nodes k and weights proportional to k f(k).

    Depending on k, one of two series for the density f converges rapidly.
    """
    k = np.exp(np.arange(np.log(MIN_KOLMOGOROV_K), np.log(MAX_KOLMOGOROV_K), LOG_K_NODE_SPACING))
    n = np.arange(1, 12)[:, None]
    odd = ((2 * n - 1) * np.pi / k) ** 2 / 8
    small = np.sqrt(2 * np.pi) / k * np.sum((2 * odd - 1) * np.exp(-odd), axis=0)
    square = (n * k) ** 2
    large = 8 * np.sum(-((-1.0) ** n) * square * np.exp(-2 * square), axis=0)
    density = np.where(k < 1, small, large)
    return k, density / np.sum(density)


@cache
def _make_exit_time_quadrature() -> tuple[np.ndarray, np.ndarray]:
    """Return nodes T and weights proportional to T f(T), normalised to give sech(u/2)/2 at V = 0."""
    T = np.exp(np.arange(2 * np.log(MIN_SQRT_T), 2 * np.log(MAX_SQRT_T), 2 * LOG_K_NODE_SPACING))
    n = np.arange(12)[:, None]
    odd, sign = 2 * n + 1, (-1.0) ** n
    small = np.sqrt(2 / (np.pi * T)) * np.sum(sign * odd * np.exp(-(odd**2) / (2 * T)), axis=0)
    large = 0.5 * np.pi * T * np.sum(sign * odd * np.exp(-((odd * np.pi) ** 2) * T / 8), axis=0)
    density = np.where(T < 1, small, large)
    return T, np.sqrt(np.pi / 2) * density / np.sum(density)
