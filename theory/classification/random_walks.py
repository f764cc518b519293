r"""Theory of margins whose summation stops early: decision errors, and fractions of evaluated features.

The margins are random walks that stop at a boundary (Pelossof & Ying, The Attentive Perceptron). The boundary's levels
and their errors for Brownian motion (n large) are in `statmech.classification.stopping_boundaries`. Steps are discrete:
a walk overshoots its boundary between two checks, so that all errors are slightly smaller. `exact_decision` handles
Gaussian steps and any check times. `approximate_decision` describes Brownian motion below a level that is raised by the
mean overshoot :math:`\rho\sqrt{\sigma^2 h}`, with :math:`\rho = -\zeta(1/2)/\sqrt{2\pi}` and checks of spacing h
(Siegmund, Sequential Analysis, 1985).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr

from statmech.classification.random_walks import Stopping, StoppingCell
from statmech.classification.stopping_boundaries import (
    GAUSSIAN_WALK_OVERSHOOT,
    PARTIAL_SUM_CUTOFF_DEVIATIONS,
    brownian_decision_error,
)
from statmech.errors import ScenarioError
from statmech.numerics.gaussian import make_composite_rule, normal_density

PANEL_NODES, PANEL_WIDTH = 8, 2.0  # the width is in standard deviations of a step
MAX_EXACT_CHECKS = 400  # exact densities then take at most a second
MIN_LEVEL_IN_STEP_STDS = 2.0  # standard deviations of a step: below, the overshoot approximation fails
SOURCE = "Gaussian walks, exact densities"
LINE_POINTS = 60  # each point takes milliseconds  # style: ok


class Decision(NamedTuple):
    """Probability of a decision error, and mean number of evaluated features."""

    error: float
    features: float


def mean_evaluated_fraction(tau: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> np.ndarray:
    r"""Return a walk's mean fraction of evaluated features, :math:`\langle\min(T, 1)\rangle` for first-passage time T.

    It is :math:`\int_0^1 P(T>s)\,ds`. By Wald's identity :math:`m\langle\min(T, 1)\rangle` is the mean of the walk at
    its end,

    .. math:: \tau\,\Phi(-a) + m\,\Phi(a) - (m+\tau)\,e^{2m\tau/\sigma^2}\,\Phi(b),
              \qquad a, b = \frac{\pm\tau-m}{\sigma},

    which suffers from cancellation if :math:`m\tau/\sigma^2` is small. In this case the integral is smooth.

    Parameters
    ----------
    tau : array_like
        Stopping level of the walk, 0 or more.
    mean, variance : array_like
        Mean and variance of the complete sum. Arguments broadcast.

    Returns
    -------
    array
        The fraction, from 0 to 1.

    Examples
    --------
    >>> mean_evaluated_fraction([0.5, 1.0, 4.0], 0.0, 1.0).round(4)
    array([0.5807, 0.8493, 1.    ])
    """
    tau, mean, variance = np.broadcast_arrays(*(np.asarray(v, float) for v in (tau, mean, variance)))
    drifts = np.abs(mean) * tau > variance / 2
    deviation, safe = np.sqrt(variance), np.where(drifts, mean, 1.0)
    image = np.exp(2 * safe * tau / variance + log_ndtr((-tau - safe) / deviation))
    a = (tau - safe) / deviation
    by_wald = (tau * ndtr(-a) + safe * ndtr(a) - (safe + tau) * image) / safe
    return np.where(drifts, by_wald, _integrate_evaluated_fraction(tau, np.where(drifts, 0.0, mean), variance))


def crossing_probability(tau: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> np.ndarray:
    r"""Return the probability that Brownian motion reaches the level :math:`\tau\ge0` before its end.

    .. math:: \Phi\!\left(\frac{m-\tau}\sigma\right) + e^{2m\tau/\sigma^2}\,\Phi\!\left(\frac{-\tau-m}\sigma\right)

    Parameters
    ----------
    tau : array_like
        Level, 0 or more.
    mean, variance : array_like
        Mean and variance of the complete sum.

    Returns
    -------
    array
        Probabilities, in the broadcast shape.

    Examples
    --------
    >>> float(crossing_probability(1.0, 0.0, 1.0).round(4))
    0.3173
    """
    tau, mean, variance = (np.asarray(v, float) for v in (tau, mean, variance))
    deviation = np.sqrt(variance)
    return ndtr((mean - tau) / deviation) + np.exp(2 * mean * tau / variance + log_ndtr((-tau - mean) / deviation))


def approximate_decision(
    tau: ArrayLike,
    spacing: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike,
    theta: ArrayLike = 0.0,
    slope: ArrayLike = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Approximate a walk's decision error and mean fraction of features for Gaussian steps and equal check intervals.

    The reflection principle is applied at the raised level. A walk that stops has overshot the level, and on average
    evaluated h/4 of the features more than Brownian motion: with drift :math:`\mu` the mean overshoot is
    :math:`\rho\sqrt{\sigma^2h}+\mu h/4` (Siegmund 1985). For :math:`\tau` of at least 2 standard deviations of a step
    the error is accurate to 0.3 % with 30 checks and 0.01 % with 300 checks, the fraction to 1e-3 and 3e-5.

    Parameters
    ----------
    tau : array_like
        Stopping level of the walk.
    spacing : array_like
        Spacing h of the checks, as a fraction of the features.
    mean, variance : array_like
        Mean and variance of the complete sum.
    theta : array_like
        Threshold of the decision: a walk that ends below it is an error if it stopped.
    slope : array_like
        Rise of the boundary from start to end. Arguments broadcast.

    Returns
    -------
    error, fraction : arrays

    Examples
    --------
    >>> [float(value.round(4)) for value in approximate_decision(0.9994, 1 / 784, 1.0, 1.0)]  # exact: 0.0091
    [0.0091, 0.6732]
    """
    tau, spacing, mean, variance = (np.asarray(v, float) for v in (tau, spacing, mean, variance))
    raised, drift = tau + GAUSSIAN_WALK_OVERSHOOT * np.sqrt(variance * spacing), mean - slope
    fraction = mean_evaluated_fraction(raised, drift, variance) + spacing / 4 * crossing_probability(
        raised, drift, variance
    )
    return brownian_decision_error(raised, drift, variance, np.subtract(theta, slope)), fraction


def _integrate_evaluated_fraction(tau: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Integrate over root = sqrt(s), on panels that shrink towards 0 to resolve a walk's crossing of a close level."""
    nodes, weight = make_composite_rule(np.append(0.0, 2.0 ** np.arange(-20, 1)), 24)
    root = nodes.reshape(-1, *[1] * tau.ndim)
    drift, width = mean * root**2, np.sqrt(variance) * root
    crossed = crossing_probability(tau, drift, width**2)
    return np.tensordot(weight, 2 * root * (1 - crossed), axes=(0, 0))


def exact_decision(
    tau: float, looks: ArrayLike, mean: float, variance: float, theta: float = 0.0, slope: float = 0.0
) -> Decision:
    r"""Compute the exact decision error and mean number of features of a walk with Gaussian steps.

    The density of the sums that have not crossed is propagated from check to check on Gauss-Legendre panels. A decision
    at the last check is never too early. Equally spaced checks share one matrix.

    Parameters
    ----------
    tau : float
        Stopping level of the walk.
    looks : array_like (L,)
        Increasing numbers of features. The sum is compared with the level after each of these, and the last is n.
    mean, variance : float
        Mean and variance of the complete sum.
    theta : float
        Threshold that the complete sum is compared with.
    slope : float
        Rise of the boundary from start to end, m for `centred` sums.

    Returns
    -------
    Decision

    Raises
    ------
    ScenarioError
        For `looks` that do not increase.

    Examples
    --------
    >>> result = exact_decision(0.9994, np.arange(1, 785), mean=1.0, variance=1.0)
    >>> round(result.error, 4), round(result.features)      # Brownian motion: 0.0100 and 520
    (0.0091, 528)
    """
    looks = np.asarray(looks, float)
    if looks.ndim != 1 or not looks.size or not np.all(np.diff(looks, prepend=0) > 0):
        raise ScenarioError([(("looks",), "must be increasing numbers of features, the first above 0")])
    drift = mean - slope  # relative to the boundary, which is then constant
    steps = np.diff(looks / looks[-1], prepend=0)
    surviving, features = 1.0, 0.0
    nodes, weights = _make_panels(
        min(0.0, drift) - PARTIAL_SUM_CUTOFF_DEVIATIONS * np.sqrt(variance),
        tau,
        PANEL_WIDTH * np.sqrt(variance * steps.min()),
    )
    alive, kernels = None, {}
    for step, count in zip(steps[:-1].tolist(), np.diff(looks, prepend=0)[:-1].tolist(), strict=True):
        features += surviving * count
        if alive is None:
            width = np.sqrt(variance * step)
            alive = normal_density((nodes - drift * step) / width) / width
        else:
            key = round(step, 12)
            if key not in kernels:
                kernels[key] = _make_kernel(nodes, weights, drift * step, np.sqrt(variance * step))
            alive = kernels[key](alive)
        surviving = float(weights @ alive)
    features += surviving * (looks[-1] - (looks[-2] if looks.size > 1 else 0))
    low = (theta - slope - drift * steps[-1] - (nodes if alive is not None else 0.0)) / np.sqrt(variance * steps[-1])
    right = ndtr((theta - mean) / np.sqrt(variance))
    undecided_errors = float(weights @ (alive * ndtr(low))) if alive is not None else right
    return Decision(max(float(right - undecided_errors), 0.0), float(features))  # clip negative rounding errors


class TransitionKernel(NamedTuple):
    """Transition densities of a step between the nodes of a panel and its neighbours."""

    surviving_density: np.ndarray  # density before a step at all nodes, a view of an array padded with zeros
    density_windows: np.ndarray  # (panels, neighbouring nodes), views of the padded array
    transition_matrix: np.ndarray  # (neighbouring nodes, nodes), common to all panels because their widths are equal

    def __call__(self, alive: np.ndarray) -> np.ndarray:
        """Propagate the density at all nodes by one step."""
        self.surviving_density[:] = alive
        return (np.ascontiguousarray(self.density_windows) @ self.transition_matrix).ravel()


def _make_kernel(nodes: np.ndarray, weights: np.ndarray, mean: float, deviation: float) -> TransitionKernel:
    """Make a walk's transition kernel between panels at distances up to `PARTIAL_SUM_CUTOFF_DEVIATIONS`."""
    width, cutoff = nodes[PANEL_NODES] - nodes[0], PARTIAL_SUM_CUTOFF_DEVIATIONS * deviation
    before, after = (max(0, int(np.ceil((cutoff + side * mean) / width)) + 1) for side in (1, -1))
    first, panels = nodes[:PANEL_NODES], np.arange(-before, after + 1)
    sources = np.add.outer(width * panels, first).ravel()
    densities = normal_density((first - sources[:, None] - mean) / deviation) / deviation
    padded = np.zeros(nodes.size + (panels.size - 1) * PANEL_NODES)
    windows = np.lib.stride_tricks.sliding_window_view(padded, sources.size)[::PANEL_NODES]
    alive = padded[before * PANEL_NODES :][: nodes.size]
    return TransitionKernel(alive, windows, densities * np.tile(weights[:PANEL_NODES], panels.size)[:, None])


def _make_panels(low: float, high: float, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of Gauss-Legendre panels of approximately this width."""
    return make_composite_rule(np.linspace(low, high, max(2, int(np.ceil((high - low) / width)) + 1)), PANEL_NODES)


def solve(scenario: Stopping, cells: Sequence[StoppingCell]) -> Iterator[dict[str, np.ndarray]]:
    """Return the theoretical variables of each cell.

    `decision_error` and `features` hold for the scenario's own boundary checks: exactly for up to 400 checks, and to
    1e-4 by the overshoot approximation for more checks. They are NaN where this approximation fails, for levels below
    two standard deviations of a step. `decision_error_brownian` and `features_brownian` are the limit of infinitely
    many checks.
    """
    return (compute_variables(cell) for cell in cells)


def compute_variables(cell: StoppingCell) -> dict[str, np.ndarray]:
    """Return the variables of a cell's walks, for sums of variance 1."""
    # drift and theta are relative to the level
    tau = cell.tau
    drift = cell.mean - cell.boundary_rise
    theta = cell.theta - cell.boundary_rise
    decided = _compute_decision(cell)
    return {
        "decision_error": np.asarray(decided.error),
        "features": np.asarray(decided.features / cell.N),
        "decision_error_brownian": brownian_decision_error(tau, drift, 1.0, theta),
        "features_brownian": mean_evaluated_fraction(tau, drift, 1.0),
    }


def _compute_decision(cell: StoppingCell) -> Decision:
    spacing = cell.chunk / cell.N
    if cell.check_positions.size <= MAX_EXACT_CHECKS:
        return exact_decision(cell.tau, cell.check_positions, cell.mean, 1.0, cell.theta, cell.boundary_rise)
    if cell.tau < MIN_LEVEL_IN_STEP_STDS * np.sqrt(spacing):
        return Decision(np.nan, np.nan)
    limit = approximate_decision(cell.tau, spacing, cell.mean, 1.0, cell.theta, cell.boundary_rise)
    return Decision(float(limit[0]), cell.N * float(limit[1]))
