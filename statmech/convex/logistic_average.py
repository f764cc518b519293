r"""The logistic function averaged over a normal field, to a relative accuracy of 1e-13 at every mean and variance.

.. math:: F(M, V) = \int Dt\,\sigma(M + \sqrt V\,t), \qquad \sigma(u) = \frac1{1+e^{-u}}

A logistic variable is a normal one of standard deviation 2k, where k has Kolmogorov's distribution of density f(k)
(Andrews & Mallows 1974). With :math:`s = V + 4k^2` its averages are positive sums over k, whatever V:

.. math:: F = \int dk\,f(k)\,\Phi(M/\sqrt s), \qquad
          F' = \int dk\,f(k)\,\frac{e^{-M^2/2s}}{\sqrt{2\pi s}}

(Monahan & Stefanski 1992). The density :math:`\mathrm{sech}(u/2)/2\pi` is a mixture, too, of variances
:math:`\pi^2T`, where T is the time at which Brownian motion leaves [-1, 1] (its Laplace transform is
:math:`\mathrm{sech}\sqrt{2\lambda}`). As :math:`\sigma(u) = e^{u/2}\,\mathrm{sech}(u/2)/2`, F has a form without
:math:`\Phi`, for which T must reach the farther the larger V:

.. math:: F = \int dT\,f(T)\,\sqrt{\frac\pi{2s}}\,\exp\frac{\pi^2T\,(V + 4M) - 4M^2}{8s}, \qquad s = V + \pi^2T.

In log k and log T the integrands are analytic in a strip, and the trapezoidal rule converges exponentially: `STEP`
leaves 2e-14. In the left tail, where large k would count, the reflection that follows from
:math:`\sigma(u) = e^u\sigma(-u)` leads back to the centre:

.. math:: F(M, V) = e^{M+V/2}\,F(-M-V, V).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

STEP = 0.12  # of log k, and half of that of log T
LEAST, MOST = 0.19, 5.0  # k beyond which its density is below 1e-13
FIRST, LAST = 0.12, 6.0  # roots of T, which suffice up to a V of
WIDE = 60.0


class LogisticAverage(NamedTuple):
    """The average at -|M|: its logarithm, the slope of that, and minus the curvature of that, all in M."""

    log: np.ndarray
    slope: np.ndarray
    bend: np.ndarray


def logistic_average(M: np.ndarray, V: np.ndarray) -> LogisticAverage:
    """The average and its derivatives at -|M|; arrays broadcast.

    >>> average = logistic_average(np.array([0.0, -2.0, -1000.0]), np.array(1.0))
    >>> average.log[:2].round(6)
    array([-0.693147, -1.861351])
    >>> average.slope.round(6)
    array([0.413242, 0.744604, 1.      ])
    """
    M, V = -np.abs(np.asarray(M, float)), np.asarray(V, float)
    tail = 2 * M < -V
    x = np.where(tail, -M - V, M)
    log, slope, bend = _between(x, V)
    return LogisticAverage(np.where(tail, M + V / 2, 0.0) + log, np.where(tail, 1 - slope, slope), bend)


def _between(x: np.ndarray, V: np.ndarray) -> LogisticAverage:
    """Compute the average at x itself, where x >= -V/2; beyond x = 0 slope and bend are exact to 1e-16 absolutely."""
    size, above = np.abs(x), x > 0
    top, below, density, steepness = _sums(size, V)
    scale = np.where(above, np.exp(top), 1.0)  # at x <= 0 all are multiples of exp(top), which may underflow
    F = np.where(above, 1 - scale * below, below)
    slope = scale * density / F
    second = -np.sign(x) * scale * steepness / F
    return LogisticAverage(np.log(F) + np.where(above, 0.0, top), slope, slope**2 - second)


def _sums(size: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, ...]:
    """A logarithm, and F, F' and |F''| over its exponential, at -size."""
    wide = WIDE < V
    if np.all(wide) or not np.any(wide):
        top = -0.5 * size**2 / (V + (4 * MOST**2 if np.all(wide) else (np.pi * LAST) ** 2))
        below = _by_tails(size, V, top) if np.all(wide) else _by_exit_times(size, V, top)
        return top, below, *_density(size, V, top)
    size, V = np.broadcast_arrays(size, V)
    sums = np.empty((4, *size.shape))
    for some in (WIDE < V, V <= WIDE):
        sums[:, some] = _sums(size[some], V[some])
    return tuple(sums)


def _by_tails(size: np.ndarray, V: np.ndarray, top: np.ndarray) -> np.ndarray:
    """F over exp(top), by tails of Gaussians, at any V."""
    from scipy.special import erfcx

    k, weight = _kolmogorov()
    scaled = size[..., None] / np.sqrt(V[..., None] + 4 * k * k)
    parts = weight * np.exp(-0.5 * scaled * scaled - top[..., None])
    return np.sum(0.5 * parts * erfcx(scaled / np.sqrt(2)), axis=-1)


def _by_exit_times(size: np.ndarray, V: np.ndarray, top: np.ndarray) -> np.ndarray:
    """F over exp(top), by exponentials alone, which take half the time."""
    T, weight = _exit_times()
    spread = V[..., None] + np.pi**2 * T
    square, linear = -0.5 / spread, -0.5 * np.pi**2 * T / spread
    height = np.log(weight / np.sqrt(spread)) - 0.25 * linear * V[..., None]
    exponent = (size[..., None] * square + linear) * size[..., None] + height - top[..., None]
    return np.sum(np.exp(exponent), axis=-1)


def _density(size: np.ndarray, V: np.ndarray, top: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """F' and |F''| at -size over exp(top)."""
    k, weight = _kolmogorov()
    spread = V[..., None] + 4 * k * k
    exponent = (size**2)[..., None] * (-0.5 / spread) - top[..., None]
    parts = np.exp(exponent) * (weight / np.sqrt(2 * np.pi * spread))
    return np.sum(parts, axis=-1), size * np.sum(parts / spread, axis=-1)


@cache
def _kolmogorov() -> tuple[np.ndarray, np.ndarray]:
    """Values of k and their weights, in proportion to k f(k): two series, of which one converges at once."""
    k = np.exp(np.arange(np.log(LEAST), np.log(MOST), STEP))
    n = np.arange(1, 12)[:, None]
    odd = ((2 * n - 1) * np.pi / k) ** 2 / 8
    small = np.sqrt(2 * np.pi) / k * np.sum((2 * odd - 1) * np.exp(-odd), axis=0)
    square = (n * k) ** 2
    large = 8 * np.sum(-((-1.0) ** n) * square * np.exp(-2 * square), axis=0)
    density = np.where(k < 1, small, large)
    return k, density / np.sum(density)


@cache
def _exit_times() -> tuple[np.ndarray, np.ndarray]:
    """Values of T and their weights, in proportion to T f(T), those of sech(u/2)/2 at V = 0."""
    T = np.exp(np.arange(2 * np.log(FIRST), 2 * np.log(LAST), 2 * STEP))
    n = np.arange(12)[:, None]
    odd, sign = 2 * n + 1, (-1.0) ** n
    small = np.sqrt(2 / (np.pi * T)) * np.sum(sign * odd * np.exp(-(odd**2) / (2 * T)), axis=0)
    large = 0.5 * np.pi * T * np.sum(sign * odd * np.exp(-((odd * np.pi) ** 2) * T / 8), axis=0)
    density = np.where(T < 1, small, large)
    return T, np.sqrt(np.pi / 2) * density / np.sum(density)
