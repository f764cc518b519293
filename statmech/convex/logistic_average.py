r"""The logistic function averaged over a normal field, to a relative accuracy of 1e-13 at every mean and variance.

.. math:: F(M, V) = \int Dt\,\sigma(M + \sqrt V\,t), \qquad \sigma(u) = \frac1{1+e^{-u}}

A logistic variable is a normal one of standard deviation 2k, where k has Kolmogorov's distribution of density f(k)
(Andrews & Mallows 1974), so that all its averages are positive sums over k, whatever V:

.. math:: F = \int dk\,f(k)\,\Phi\!\left(\frac M{s_k}\right), \qquad
          F' = \int dk\,f(k)\,\frac{\varphi(M/s_k)}{s_k}, \qquad s_k^2 = V + 4k^2

(Monahan & Stefanski 1992). In log k the integrand is analytic in a strip, and the trapezoidal rule converges
exponentially: `STEP` leaves 2e-14. In the left tail, where large k would count, the reflection that follows from
:math:`\sigma(u) = e^u\sigma(-u)` leads back to the centre:

.. math:: F(M, V) = e^{M+V/2}\,F(-M-V, V).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

STEP, LEAST, MOST = 0.12, 0.19, 5.0  # of log k, and the range of k: beyond it f is below 1e-13


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
    """The same at x itself, where x >= -V/2; beyond x = 0 slope and bend are exact to 1e-16 absolutely."""
    top, below, density, steepness = _sums(-np.abs(x), V)
    above = x > 0
    scale = np.where(above, np.exp(top), 1.0)  # at x <= 0 all are multiples of exp(top), which may underflow
    F = np.where(above, 1 - scale * below, below)
    slope = scale * density / F
    second = -np.sign(x) * scale * steepness / F
    return LogisticAverage(np.log(F) + np.where(above, 0.0, top), slope, slope**2 - second)


def _sums(x: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A logarithm, and F, F' and |F''| over its exponential, at x <= 0."""
    from scipy.special import erfcx

    k, share = _kolmogorov()
    variance = V[..., None] + 4 * k * k
    scaled = x[..., None] / np.sqrt(variance)
    exponent = -0.5 * scaled * scaled
    top = exponent[..., -1]
    parts = share * np.exp(exponent - top[..., None])
    density = parts / np.sqrt(2 * np.pi * variance)
    below = np.sum(0.5 * parts * erfcx(-scaled / np.sqrt(2)), axis=-1)
    return top, below, np.sum(density, axis=-1), -x * np.sum(density / variance, axis=-1)


@cache
def _kolmogorov() -> tuple[np.ndarray, np.ndarray]:
    """Values of k and their shares, in proportion to k f(k): two series, of which one converges at once."""
    k = np.exp(np.arange(np.log(LEAST), np.log(MOST), STEP))
    n = np.arange(1, 12)[:, None]
    odd = ((2 * n - 1) * np.pi / k) ** 2 / 8
    small = np.sqrt(2 * np.pi) / k * np.sum((2 * odd - 1) * np.exp(-odd), axis=0)
    square = (n * k) ** 2
    large = 8 * np.sum(-((-1.0) ** n) * square * np.exp(-2 * square), axis=0)
    density = np.where(k < 1, small, large)
    return k, density / np.sum(density)
