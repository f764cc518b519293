r"""What stopping the evaluation of a margin early saves and costs (Pelossof & Ying, The Attentive Perceptron).

The levels and their errors for Brownian motion, n large, stand in `statmech.boundaries`. Steps are discrete: a walk
overshoots its boundary between two looks at it, so all errors are a little smaller than these. `decision` counts looks
exactly, for Gaussian steps; `many_looks` is Brownian motion under a level that is raised by the mean overshoot,
:math:`\rho\sqrt{\sigma^2 h}` with :math:`\rho = -\zeta(1/2)/\sqrt{2\pi}` and looks h apart (Siegmund, Sequential
Analysis, 1985).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import log_ndtr, ndtr

from statmech.boundaries import BOUNDARIES as BOUNDARIES
from statmech.boundaries import OVERSHOOT, REACH
from statmech.boundaries import error as error
from statmech.boundaries import threshold as threshold
from statmech.errors import ScenarioError
from statmech.gaussian import composite_legendre, density

PANEL_NODES, PANEL = 8, 2.0  # Gauss-Legendre nodes to a panel, and a panel's width in steps' standard deviations


class Decision(NamedTuple):
    """The probability of a decision error, and the mean number of features evaluated."""

    error: float
    features: float


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


def crossing(tau: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> np.ndarray:
    r"""The probability that Brownian motion reaches :math:`\tau\ge0` before its end.

    >>> float(crossing(1.0, 0.0, 1.0).round(4))
    0.3173
    """
    tau, mean, variance = (np.asarray(v, float) for v in (tau, mean, variance))
    deviation = np.sqrt(variance)
    return ndtr((mean - tau) / deviation) + np.exp(2 * mean * tau / variance + log_ndtr((-tau - mean) / deviation))


def many_looks(
    tau: ArrayLike,
    apart: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike,
    theta: ArrayLike = 0.0,
    slope: ArrayLike = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Decision error, and share of the features, of Gaussian steps with looks a share `apart` of the features apart.

    Reflection at the raised level. A walk that stops has seen the overshoot, and on average h/4 of the features more
    than Brownian motion: with drift :math:`\mu` the mean overshoot is :math:`\rho\sqrt{\sigma^2h}+\mu h/4`. With 30
    looks the error is right to 0.3 %, with 300 to 0.01 %, the share to 1e-3 and 3e-5, where :math:`\tau` is 2 steps'
    deviations or more. Arguments broadcast.

    >>> [float(value.round(4)) for value in many_looks(0.9994, 1 / 784, 1.0, 1.0)]     # `decision`: 0.0091, 528 of 784
    [0.0091, 0.6732]
    """
    tau, apart, mean, variance = (np.asarray(v, float) for v in (tau, apart, mean, variance))
    raised, drift = tau + OVERSHOOT * np.sqrt(variance * apart), mean - slope
    share = mean_share(raised, drift, variance) + apart / 4 * crossing(raised, drift, variance)
    return error(raised, drift, variance, np.subtract(theta, slope)), share


def _integrated_share(tau: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """The integral over root = sqrt(s), on panels that halve towards 0, where a near boundary is crossed."""
    nodes, weight = composite_legendre(np.append(0.0, 2.0 ** np.arange(-20, 1)), 24)
    root = nodes.reshape(-1, *[1] * tau.ndim)
    at, width = mean * root**2, np.sqrt(variance) * root
    crossed = crossing(tau, at, width**2)
    return np.tensordot(weight, 2 * root * (1 - crossed), axes=(0, 0))


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
    alive, kernels = None, {}
    for share, before in zip(steps[:-1], np.diff(looks, prepend=0)[:-1], strict=True):
        features += surviving * before
        if alive is None:
            width = np.sqrt(variance * share)
            alive = density((nodes - drift * share) / width) / width
        else:
            key = round(share, 12)
            if key not in kernels:
                kernels[key] = _kernel(nodes, weights, drift * share, np.sqrt(variance * share))
            alive = kernels[key] @ alive
        surviving = float(weights @ alive)
    features += surviving * (looks[-1] - (looks[-2] if looks.size > 1 else 0))
    low = (theta - slope - drift * steps[-1] - (nodes if alive is not None else 0.0)) / np.sqrt(variance * steps[-1])
    right = ndtr((theta - mean) / np.sqrt(variance))
    kept = float(weights @ (alive * ndtr(low))) if alive is not None else right
    return Decision(max(float(right - kept), 0.0), float(features))  # rounding may make nothing of it less than that


def _kernel(nodes: np.ndarray, weights: np.ndarray, mean: float, deviation: float) -> sparse.csr_array:
    """What a step makes of a density on the nodes: nothing further away than a Gaussian reaches."""
    first, last = (np.searchsorted(nodes, nodes - mean + side * REACH * deviation) for side in (-1, 1))
    first, last = np.maximum(first - 1, 0), np.minimum(last + 1, nodes.size)  # and one more: rounding decides below
    count = np.maximum(last - first, 0)
    rows = np.repeat(np.arange(nodes.size), count)
    columns = np.arange(rows.size) - np.repeat(np.cumsum(count) - count - first, count)
    near = np.abs(nodes[rows] - nodes[columns] - mean) <= REACH * deviation
    rows, columns = rows[near], columns[near]
    values = density((nodes[rows] - nodes[columns] - mean) / deviation) / deviation
    return sparse.csr_array((values * weights[columns], (rows, columns)), shape=(nodes.size, nodes.size))


def _panels(low: float, high: float, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss-Legendre panels of about this width."""
    return composite_legendre(np.linspace(low, high, max(2, int(np.ceil((high - low) / width)) + 1)), PANEL_NODES)
