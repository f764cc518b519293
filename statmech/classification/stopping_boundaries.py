r"""Stopping boundaries for the evaluation of a margin (Pelossof & Ying, The Attentive Perceptron).

A margin is a sum :math:`S_n = X_1+\dots+X_n` over n features, with mean m and variance :math:`\sigma^2`. To decide
only whether :math:`S_n<\theta`, evaluation may stop at the first partial sum :math:`S_i\ge\tau` and answer no. This is
a *decision error* if :math:`S_n<\theta` nevertheless. For independent steps and large n, the partial sums are Brownian
motion with drift, and the reflection principle gives, for :math:`\tau\ge\max(\theta, 0)`,

.. math:: P(\max_i S_i\ge\tau,\ S_n<\theta) = e^{2m\tau/\sigma^2}\,\Phi\!\left(\frac{\theta-2\tau-m}\sigma\right).

The boundaries, each with the target `error_rate`:

- `constant` solves this for :math:`\tau`: the error is `error_rate`.
- `brownian-bridge`, :math:`\tau = (\theta+\sqrt{\theta^2+2\sigma^2\ln(1/\epsilon_d)})/2`: a walk that ends at theta
  crosses with probability `error_rate`, whatever its drift. Walks that end below cross less often: it is conservative.
- `as-printed` is the paper's eq (4), :math:`\tau = (\theta-m+\sigma\,\Phi^{-1}(1-\epsilon_d))/2`, on the sums
  themselves. It misses its target for m > 0: the derivation standardises :math:`S_n` but not :math:`S_i`.
- `centred` compares the same level with the centred sums :math:`S_i - i\,m/n`, a walk without drift that must end
  below :math:`\theta-m`: the error is `error_rate` again, for :math:`\tau\ge\max(\theta-m,0)`.

**To add a boundary** write one class and one line in `BOUNDARIES`. Config keys, simulation, theory, tables and figures
follow. Its level may depend on `error_rate`, m, :math:`\sigma^2` and theta, and may rise linearly up to the end:

>>> class Cautious(Boundary):
...     label = "cautious"
...     def stopping_level(self, error_rate, mean, variance, theta):
...         return 2 * BrownianBridgeBoundary().stopping_level(error_rate, mean, variance, theta)
>>> BOUNDARIES["cautious"] = Cautious
>>> level = compute_stopping_level("brownian-bridge", 0.01, 1.0, 1.0)
>>> float(compute_stopping_level("cautious", 0.01, 1.0, 1.0) / level)
2.0
>>> del BOUNDARIES["cautious"]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr, ndtri

from statmech.errors import ScenarioError, SolverError, format_unknown_name
from statmech.numerics.root_finding import find_zeros

GAUSSIAN_WALK_OVERSHOOT = 0.5825971579390106  # -zeta(1/2)/sqrt(2 pi) standard deviations of a step (Siegmund 1985)
MIN_TARGET_ERROR_RATE = 1e-300  # 1/error_rate must be finite
MAX_LEVEL_NEWTON_STEPS = 50  # about eight usually suffice
PARTIAL_SUM_CUTOFF_DEVIATIONS = 9.0  # standard deviations; the Gaussian tail outside is negligible


@dataclass(frozen=True)
class Boundary(ABC):
    """A level that stops the evaluation of a margin. Subclasses define `label` and `stopping_level`."""

    label: ClassVar[str]  # shown in tables and legends
    equation: ClassVar[str] = ""  # LaTeX

    @abstractmethod
    def stopping_level(
        self, error_rate: np.ndarray, mean: np.ndarray, variance: np.ndarray, theta: np.ndarray
    ) -> np.ndarray:
        """Return the initial stopping level for arrays of the same shape. Negative levels count as 0.

        Parameters
        ----------
        error_rate : array
            Target error rates.
        mean, variance : array
            Means and variances of the full sums.
        theta : array
            Thresholds of the full sums.

        Returns
        -------
        array
            Levels, of the same shape.
        """

    def total_level_rise(self, mean: np.ndarray) -> np.ndarray:
        """Return the total rise of the level over all features, 0 by default.

        The level rises in proportion to the number of evaluated features.

        Parameters
        ----------
        mean : array
            Means of the full sums.

        Returns
        -------
        array
            Rises, of the same shape.
        """
        return np.zeros_like(mean)


class ConstantErrorBoundary(Boundary):
    """A constant level chosen to give the decision error `error_rate`."""

    label = "constant"
    equation = r"e^{2m\tau/\sigma^2}\,\Phi\!\left(\frac{\theta-2\tau-m}{\sigma}\right) = \epsilon_d"

    def stopping_level(
        self, error_rate: np.ndarray, mean: np.ndarray, variance: np.ndarray, theta: np.ndarray
    ) -> np.ndarray:
        return _solve_constant_level(error_rate, mean, np.sqrt(variance), theta)


class BrownianBridgeBoundary(Boundary):
    """A constant level that a walk ending at theta crosses with probability `error_rate`."""

    label = "Brownian bridge"
    equation = r"\tau = \tfrac12\left(\theta+\sqrt{\theta^2+2\sigma^2\ln(1/\epsilon_d)}\right)"

    def stopping_level(
        self, error_rate: np.ndarray, mean: np.ndarray, variance: np.ndarray, theta: np.ndarray
    ) -> np.ndarray:
        return (theta + np.sqrt(theta**2 + 2 * variance * np.log(1 / error_rate))) / 2


class UncentredBoundary(Boundary):
    """The threshold of the paper's equation (4), applied to the uncentred partial sums."""

    label = "as printed"
    equation = r"\tau = \tfrac12\left(\theta-m+\sigma\,\Phi^{-1}(1-\epsilon_d)\right)"

    def stopping_level(
        self, error_rate: np.ndarray, mean: np.ndarray, variance: np.ndarray, theta: np.ndarray
    ) -> np.ndarray:
        return (theta - mean - np.sqrt(variance) * ndtri(error_rate)) / 2


class CentredBoundary(UncentredBoundary):
    """The threshold of the paper's equation (4), applied to the centred partial sums."""

    label = "centred"
    equation = r"S_i - \frac{i\,m}{n} \ge \tfrac12\left(\theta-m+\sigma\,\Phi^{-1}(1-\epsilon_d)\right)"

    def total_level_rise(self, mean: np.ndarray) -> np.ndarray:
        return np.maximum(mean, 0.0)


BOUNDARIES: dict[str, type[Boundary]] = {
    "constant": ConstantErrorBoundary,
    "brownian-bridge": BrownianBridgeBoundary,
    "as-printed": UncentredBoundary,
    "centred": CentredBoundary,
}


def get_boundary(boundary: str | Boundary) -> Boundary:
    """Return the boundary with the given name, or a boundary object unchanged.

    Parameters
    ----------
    boundary
        The name of a boundary, or an object.

    Returns
    -------
    Boundary

    Raises
    ------
    ScenarioError
        If the name is unknown.

    Examples
    --------
    >>> get_boundary("centred").label
    'centred'
    """
    if isinstance(boundary, Boundary):
        return boundary
    if boundary not in BOUNDARIES:
        raise ScenarioError([(("boundary",), format_unknown_name(boundary, "a boundary", BOUNDARIES))])
    return BOUNDARIES[boundary]()


def compute_total_level_rise(boundary: str | Boundary, mean: ArrayLike) -> np.ndarray:
    """Return the total rise of a boundary's level: the mean of the full sum for `centred`, otherwise 0.

    Parameters
    ----------
    boundary
        The name of a boundary, or an object.
    mean : array_like
        Mean of the full sum.

    Returns
    -------
    array
        Rises, of the shape of `mean`.

    Examples
    --------
    >>> float(compute_total_level_rise("centred", 0.5)), float(compute_total_level_rise("constant", 0.5))
    (0.5, 0.0)
    """
    return get_boundary(boundary).total_level_rise(np.asarray(mean, float))


def get_check_positions(n: int, chunk: int) -> np.ndarray:
    """Return the numbers of evaluated features when the partial sum is compared with the level.

    Parameters
    ----------
    n : int
        Number of features.
    chunk : int
        Features between two checks.

    Returns
    -------
    array of int
        Increasing numbers, the last is n.

    Examples
    --------
    >>> get_check_positions(10, 4)
    array([ 4,  8, 10])
    """
    return np.append(np.arange(chunk, n, chunk), n)


def compute_stopping_level(
    boundary: str | Boundary, error_rate: ArrayLike, mean: ArrayLike, variance: ArrayLike, theta: ArrayLike = 0.0
) -> np.ndarray:
    r"""Return the level :math:`\tau\ge 0` of a stopping boundary for arguments that broadcast.

    Parameters
    ----------
    boundary : the name of a boundary, or an object
    error_rate : target probability of a decision error
    mean, variance : mean and variance of the full sums
    theta : threshold of the full sum

    Returns
    -------
    array
        Levels, of the broadcast shape.

    Raises
    ------
    ScenarioError
        If the name is unknown, error_rate is outside (0, 1/2) or a variance is not positive.

    Examples
    --------
    >>> [float(compute_stopping_level(name, 0.01, 1.0, 1.0).round(4)) for name in BOUNDARIES]
    [0.9994, 1.5174, 0.6632, 0.6632]
    """
    boundary_object = get_boundary(boundary)
    return np.maximum(
        boundary_object.stopping_level(*_check_boundary_arguments(error_rate, mean, variance, theta)), 0.0
    )


def brownian_decision_error(tau: ArrayLike, mean: ArrayLike, variance: ArrayLike, theta: ArrayLike = 0.0) -> np.ndarray:
    r"""Return the probability that a Brownian motion crosses :math:`\tau\ge 0` and ends below :math:`\theta`.

    The motion has a drift. For :math:`\tau<\theta` it may also cross and end between the two levels:
    :math:`P(S_n<\theta) - P(\max_i S_i<\tau)`. For `centred` sums pass the mean 0 and theta minus the mean.

    Parameters
    ----------
    tau : array_like
        Level, 0 or more.
    mean, variance : array_like
        Mean and variance of the full sum.
    theta : array_like
        Threshold of the full sum.

    Returns
    -------
    array
        Probabilities, of the broadcast shape.

    Examples
    --------
    >>> level = compute_stopping_level("as-printed", 0.01, 1.0, 1.0)         # target: 0.01
    >>> float(brownian_decision_error(level, 1.0, 1.0).round(3))
    0.038
    """
    tau, mean, variance, theta = np.broadcast_arrays(*(np.asarray(v, float) for v in (tau, mean, variance, theta)))
    deviation = np.sqrt(variance)
    lower_level = np.minimum(tau, theta)
    reflected = np.exp(2 * mean * tau / variance + log_ndtr((lower_level - 2 * tau - mean) / deviation))
    between_levels = ndtr((theta - mean) / deviation) - ndtr((lower_level - mean) / deviation)
    return reflected + between_levels


def _solve_constant_level(
    error_rate: np.ndarray, mean: np.ndarray, deviation: np.ndarray, theta: np.ndarray
) -> np.ndarray:
    """Find the boundary's level with decision error `error_rate`, or 0 where level 0 already has a smaller error."""
    variance, lowest = deviation**2, np.maximum(theta, 0.0)
    bridge = (theta + np.sqrt(theta**2 - 2 * variance * np.log(error_rate))) / 2  # bounds the root from above
    tau, log_target, drift = np.zeros_like(mean) + bridge, np.log(error_rate), 2 * mean / variance
    for _ in range(MAX_LEVEL_NEWTON_STEPS):
        z = (theta - 2 * tau - mean) / deviation
        log_tail = log_ndtr(z)
        log_error = 2 * mean * tau / variance + log_tail
        hazard = np.exp(-(z**2) / 2 - log_tail) / np.sqrt(2 * np.pi)
        step = (log_target - log_error) / (drift - 2 * hazard / deviation)
        # log error is concave: Newton's steps stay above the root if one exists above the lowest level
        tau = np.maximum(tau + step, lowest)
        if ((np.abs(step) <= 1e-14 * deviation) | (tau == lowest)).all():
            break
    is_lowest = tau <= lowest
    if is_lowest.any():
        tau = np.asarray(tau)
        tau[is_lowest] = _solve_level_below_theta(
            *(np.asarray(values)[is_lowest] for values in (error_rate, mean, deviation, theta))
        )
    return tau


def _solve_level_below_theta(
    error_rate: np.ndarray, mean: np.ndarray, deviation: np.ndarray, theta: np.ndarray
) -> np.ndarray:
    """Return the boundary's constant levels (n,) below theta, or 0 where level 0 already has a smaller error."""
    lowest = np.maximum(theta, 0.0)
    start = brownian_decision_error(0.0, mean, deviation**2, theta) <= error_rate
    if start.all():
        return np.zeros_like(lowest)

    def log_ratio(
        tau: np.ndarray, error_rate: np.ndarray, mean: np.ndarray, deviation: np.ndarray, theta: np.ndarray
    ) -> np.ndarray:
        return np.log(np.maximum(brownian_decision_error(tau, mean, deviation**2, theta), 1e-300) / error_rate)

    ends = np.zeros_like(lowest), np.where(start, 0.0, lowest)
    solution = find_zeros(log_ratio, *ends, (error_rate, mean, deviation, theta))
    if not np.all(solution.success | start):
        raise SolverError("no constant boundary was found: is error_rate below 1e-50?")
    return np.where(start, 0.0, solution.x)


def _check_boundary_arguments(*values: ArrayLike) -> list[np.ndarray]:
    """Check a boundary's error rate, mean, variance and theta, and return them as broadcast arrays."""
    error_rate, mean, variance, theta = (np.asarray(value, float) for value in values)
    if not ((error_rate >= MIN_TARGET_ERROR_RATE) & (error_rate < 0.5)).all():
        raise ScenarioError(
            [(("error_rate",), f"must lie between {MIN_TARGET_ERROR_RATE:g} and 0.5, not {np.ravel(error_rate)[0]:g}")]
        )
    if not (variance > 0).all():
        raise ScenarioError([(("variance",), "must be greater than 0")])
    numbers = [error_rate, mean, variance, theta]
    return list(np.broadcast_arrays(*numbers)) if any(array.ndim for array in numbers) else numbers
