r"""Stopping the evaluation of a margin early: decision errors and features saved (Pelossof & Ying).

A margin is a sum :math:`S_n = X_1+\dots+X_n` of n features' contributions, of mean m and variance :math:`\sigma^2`.
Who only wants to know whether :math:`S_n<\theta` may stop at the first partial sum :math:`S_i\ge\tau` and say no. That
is a *decision error* if yet :math:`S_n<\theta`. For independent steps and large n the partial sums are Brownian motion
with drift, and by reflection, for :math:`\tau\ge\max(\theta, 0)`,

.. math:: P(\max_i S_i\ge\tau,\ S_n<\theta) = e^{2m\tau/\sigma^2}\,\Phi\!\left(\frac{\theta-2\tau-m}\sigma\right).

Boundaries by name, each with the level delta that it promises:

- `constant` solves this for :math:`\tau`: the error is delta.
- `brownian-bridge`, :math:`\tau = (\theta+\sqrt{\theta^2+2\sigma^2\ln(1/\delta)})/2`: a walk that ends at theta crosses
  with probability delta, whatever its drift. Of those that end below fewer cross: it is careful.
- `as-printed` is the paper's eq (4), :math:`\tau = (\theta-m+\sigma\,\Phi^{-1}(1-\delta))/2`, on the sums themselves.
  It does not keep its promise where m > 0: the derivation standardises :math:`S_n` but not :math:`S_i`.
- `centred` is the same number held against the centred sums :math:`S_i - i\,m/n`, a walk without drift that must end
  below :math:`\theta-m`: the error is delta again, for :math:`\tau\ge\max(\theta-m,0)`.

Steps are discrete: a walk overshoots its boundary between two looks at it, so all errors are a little smaller than
these. `decision` counts looks exactly, for Gaussian steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize.elementwise import find_root
from scipy.special import log_ndtr, ndtr, ndtri
from scipy.stats import norm

from statmech.errors import ScenarioError, SolverError, not_known
from statmech.gaussian import legendre

BOUNDARIES = ("constant", "brownian-bridge", "as-printed", "centred")
REACH = 9.0  # standard deviations beyond which a Gaussian is nothing
PANEL_NODES, PANEL = 8, 2.0  # Gauss-Legendre nodes to a panel, and a panel's width in steps' standard deviations


class Decision(NamedTuple):
    """The probability of a decision error, and the mean number of features evaluated."""

    error: float
    features: float


def threshold(
    boundary: str, delta: ArrayLike, mean: ArrayLike, variance: ArrayLike, theta: ArrayLike = 0.0
) -> np.ndarray:
    r"""The level :math:`\tau` of a boundary, of the sums' mean and variance at their end; arguments broadcast.

    Never below 0, where a walk begins. Raises `ScenarioError` for an unknown name, delta outside (0, 1/2) or a variance
    that is not positive.

    >>> [float(threshold(name, 0.01, 1.0, 1.0).round(4)) for name in BOUNDARIES]
    [0.9994, 1.5174, 0.6632, 0.6632]
    """
    if boundary not in BOUNDARIES:
        raise ScenarioError([(("boundary",), not_known(boundary, "a boundary", BOUNDARIES))])
    delta, mean, variance, theta = _checked(delta, mean, variance, theta)
    deviation = np.sqrt(variance)
    if boundary == "constant":
        return _constant(delta, mean, deviation, theta)
    if boundary == "brownian-bridge":
        return np.maximum((theta + np.sqrt(theta**2 + 2 * variance * np.log(1 / delta))) / 2, 0.0)
    return np.maximum((theta - mean + deviation * ndtri(1 - delta)) / 2, 0.0)


def error(tau: ArrayLike, mean: ArrayLike, variance: ArrayLike, theta: ArrayLike = 0.0) -> np.ndarray:
    r"""The probability to cross :math:`\tau\ge 0` and yet end below :math:`\theta`, of Brownian motion with drift.

    For :math:`\tau<\theta` a walk may also cross and end between the two: :math:`P(S_n<\theta) - P(\max_i S_i<\tau)`.
    For `centred` sums give mean 0 and theta less the mean.

    >>> float(error(threshold("as-printed", 0.01, 1.0, 1.0), 1.0, 1.0).round(3))      # promised: 0.01
    0.038
    """
    tau, mean, variance, theta = np.broadcast_arrays(*(np.asarray(v, float) for v in (tau, mean, variance, theta)))
    deviation = np.sqrt(variance)
    below = np.minimum(tau, theta)
    reflected = np.exp(2 * mean * tau / variance + log_ndtr((below - 2 * tau - mean) / deviation))
    between = ndtr((theta - mean) / deviation) - ndtr((below - mean) / deviation)
    return reflected + between


def mean_share(tau: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> np.ndarray:
    r"""The mean share of the features that are evaluated, :math:`\langle\min(T, 1)\rangle` of the first passage T.

    It is :math:`\int_0^1 P(T>s)\,ds`, and by Wald's identity :math:`m\langle\min(T, 1)\rangle` is the mean of the walk
    where it ends,

    .. math:: \tau\,\Phi(-a) + m\,\Phi(a) - (m+\tau)\,e^{2m\tau/\sigma^2}\,\Phi(b),
              \qquad a, b = \frac{\pm\tau-m}{\sigma},

    which loses its digits where :math:`m\tau/\sigma^2` is small; there the integral is smooth.

    >>> mean_share([0.5, 1.0, 4.0], 0.0, 1.0).round(4)
    array([0.5807, 0.8493, 1.    ])
    """
    tau, mean, variance = np.broadcast_arrays(*(np.asarray(v, float) for v in (tau, mean, variance)))
    drifts = np.abs(mean) * tau > variance / 2
    deviation, safe = np.sqrt(variance), np.where(drifts, mean, 1.0)
    image = np.exp(2 * safe * tau / variance + log_ndtr((-tau - safe) / deviation))
    a = (tau - safe) / deviation
    by_wald = (tau * ndtr(-a) + safe * ndtr(a) - (safe + tau) * image) / safe
    return np.where(drifts, by_wald, _integrated_share(tau, np.where(drifts, 0.0, mean), variance))


def _integrated_share(tau: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """The integral over root = sqrt(s), on panels that halve towards 0, where a near boundary is crossed."""
    edges = np.append(0.0, 2.0 ** np.arange(-20, 1))
    x, weight = legendre(24)
    spans = np.diff(edges)[:, None]
    root = (edges[:-1, None] + spans * x).reshape(-1, *[1] * tau.ndim)
    at, width = mean * root**2, np.sqrt(variance) * root
    crossed = ndtr((at - tau) / width) + np.exp(2 * mean * tau / variance + log_ndtr((-tau - at) / width))
    return np.tensordot((spans * weight).ravel(), 2 * root * (1 - crossed), axes=(0, 0))


def decision(
    tau: float, looks: ArrayLike, mean: float, variance: float, theta: float = 0.0, slope: float = 0.0
) -> Decision:
    r"""Exactly for Gaussian steps: the walk is looked at after `looks` features, the last of them n, and stops at tau.

    `slope` is what the boundary has risen by at the end, m for `centred` sums. The density of the sums that have not
    crossed is carried from look to look on Gauss-Legendre panels; at n itself nothing is decided too early. Looks
    that are evenly spaced share one matrix. Raises `ScenarioError` for looks that do not increase.

    >>> found = decision(0.9994, np.arange(1, 785), mean=1.0, variance=1.0)
    >>> round(found.error, 4), round(found.features)      # Brownian motion: 0.0100 and 520
    (0.0091, 528)
    """
    looks = np.asarray(looks, float)
    if looks.ndim != 1 or not looks.size or not np.all(np.diff(looks, prepend=0) > 0):
        raise ScenarioError([(("looks",), "are the numbers of features seen so far, increasing")])
    shares = looks / looks[-1]
    drift = mean - slope  # seen from the boundary, which then stands still
    steps = np.diff(shares, prepend=0)
    surviving, features = 1.0, 0.0
    nodes, weights = _panels(min(0.0, drift) - REACH * np.sqrt(variance), tau, PANEL * np.sqrt(variance * steps.min()))
    density, kernels = None, {}
    for share, before in zip(steps[:-1], np.diff(looks, prepend=0)[:-1], strict=True):
        features += surviving * before
        if density is None:
            density = norm.pdf(nodes, drift * share, np.sqrt(variance * share))
        else:
            key = round(share, 12)
            if key not in kernels:
                kernels[key] = norm.pdf(nodes[:, None] - nodes, drift * share, np.sqrt(variance * share)) * weights
            density = kernels[key] @ density
        surviving = float(weights @ density)
    features += surviving * (looks[-1] - (looks[-2] if looks.size > 1 else 0))
    low = (theta - slope - drift * steps[-1] - (nodes if density is not None else 0.0)) / np.sqrt(variance * steps[-1])
    right = ndtr((theta - mean) / np.sqrt(variance))
    kept = float(weights @ (density * ndtr(low))) if density is not None else right
    return Decision(float(right - kept), float(features))


def _constant(delta: np.ndarray, mean: np.ndarray, deviation: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Where `error` is delta; 0 where it is smaller from the start."""
    start = error(0.0, mean, deviation**2, theta) <= delta
    high = np.maximum(theta, 0) + np.abs(mean) + 2 * REACH * deviation

    def off(
        tau: np.ndarray, delta: np.ndarray, mean: np.ndarray, deviation: np.ndarray, theta: np.ndarray
    ) -> np.ndarray:
        return np.log(np.maximum(error(tau, mean, deviation**2, theta), 1e-300) / delta)

    low = np.zeros_like(high)
    found = find_root(off, (low, np.where(start, 0.0, high)), args=(delta, mean, deviation, theta))
    if not np.all(found.success | start):
        raise SolverError("a constant boundary is not found: is delta below 1e-50?")
    return np.where(start, 0.0, found.x)


def _panels(low: float, high: float, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss-Legendre panels of about this width."""
    edges = np.linspace(low, high, max(2, int(np.ceil((high - low) / width)) + 1))
    x, weight = legendre(PANEL_NODES)
    spans = np.diff(edges)[:, None]
    return (edges[:-1, None] + spans * x).ravel(), (spans * weight).ravel()


def _checked(*given: ArrayLike) -> list[np.ndarray]:
    delta, mean, variance, theta = (np.asarray(value, float) for value in given)
    if not np.all((delta > 0) & (delta < 0.5)):
        raise ScenarioError([(("delta",), f"lies between 0 and 0.5, not {np.ravel(delta)[0]:g}")])
    if not np.all(variance > 0):
        raise ScenarioError([(("variance",), "must be greater than 0")])
    return list(np.broadcast_arrays(delta, mean, variance, theta))
