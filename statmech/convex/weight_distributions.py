r"""Distributions of a teacher's weights: mixtures of Gaussians with mean square 1.

A mixture is a list of pieces (share, mean, variance), :math:`p_i, \mu_i, \tau_i`, which define the drawing and all
functions below. Data of precision s on a weight w amount to a field r, normal of mean s w and variance s. The posterior
is a mixture,

.. math:: P(w|r) \propto P(w)\,e^{rw - sw^2/2}: \qquad
          \pi_i \propto p_i\,N_i(r), \quad N_i = N(r; s\mu_i, s + s^2\tau_i), \quad
          a_i = \frac{\mu_i + \tau_i r}{1+s\tau_i}, \quad v_i = \frac{\tau_i}{1+s\tau_i},

with shares :math:`\pi_i`, means :math:`a_i` and variances :math:`v_i`. The mean squared error of the posterior mean is
the average posterior variance. The mutual information of w and r is the information between r and the piece, plus the
information within the piece:

.. math:: \Delta(s) &= \sum_i p_i v_i + \sum_{i<j}\int dr\,p_i N_i\,\pi_j\,(a_i - a_j)^2, \\
          \mathcal I(s) &= \tfrac12\sum_i p_i\ln(1+s\tau_i) - \sum_i p_i\ln p_i + \sum_i\int dr\,p_i N_i\ln\pi_i,

related by :math:`d\mathcal I/ds = \Delta/2` (Guo, Shamai & Verdu 2005). All terms of the error are positive, so that it
has a small relative error even where it is as small as the :math:`e^{-s/2}` of binary weights.

**To add a distribution** write one class with `pieces` and one line in `WEIGHT_DISTRIBUTIONS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, NamedTuple

import numpy as np

from statmech.numerics.gaussian import GAUSSIAN_CUTOFF, Array, make_composite_rule, normal_density
from statmech.parameters.parameter_fields import parameter

NODES = 24  # per panel
GAUSSIAN_PANEL_EDGES = np.linspace(-GAUSSIAN_CUTOFF, GAUSSIAN_CUTOFF, 11)  # in standard deviations
# distances from a zero of the log odds, in units of 1 / slope
LOG_ODDS_PANEL_EDGES = np.array([-40.0, -20.0, -10.0, -4.0, 0.0, 4.0, 10.0, 20.0, 40.0])
FIELD_PRECISION_BOUNDS = 1e-60, 1e60  # replace precisions of 0 and infinity in divisors


class MixtureComponent(NamedTuple):
    """A Gaussian component of a mixture, or an atom if its variance is 0."""

    share: float
    mean: float
    variance: float


@dataclass(frozen=True)
class WeightDistribution(ABC):
    """A distribution of weights with mean square 1. Subclasses define `label` and `pieces`."""

    label: ClassVar[str]
    equation: ClassVar[str] = ""
    cites: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def pieces(self) -> tuple[MixtureComponent, ...]:
        """The Gaussian components of the mixture, with shares that sum to 1."""

    @property
    def continuous_fraction(self) -> float:
        """The fraction of weights that come from components with nonzero variance."""
        return float(sum(piece.share for piece in self.pieces if piece.variance > 0))

    def posterior(self, r: np.ndarray, precision: Array) -> tuple[np.ndarray, np.ndarray]:
        """Return posterior means and variances of weights, given fields r (...) of this precision."""
        fraction, centre, spread = self._compute_component_posteriors(r, precision)
        variance_between = sum(
            fraction[i] * fraction[j] * (centre[i] - centre[j]) ** 2 for i, j in self._component_pairs
        )
        return np.sum(fraction * centre, axis=0), np.sum(fraction * spread, axis=0) + variance_between

    def mse(self, precision: np.ndarray) -> np.ndarray:
        """Return the mean squared error of the posterior mean, at each precision (L,)."""
        s = np.clip(precision, *FIELD_PRECISION_BOUNDS)
        error = np.sum([p * tau / (1 + s * tau) for p, _, tau in self.pieces], axis=0)
        if not self._component_pairs:
            return error
        r, weight = self._make_overlap_quadrature(s)
        fraction, centre, _ = self._compute_component_posteriors(r, s[..., None])
        joint = self._compute_joint_density(r, s[..., None])
        variance_between = sum(joint[i] * fraction[j] * (centre[i] - centre[j]) ** 2 for i, j in self._component_pairs)
        return np.minimum(error + np.sum(weight * variance_between, axis=-1), 1.0)  # rounding may exceed the prior

    def mutual_information(self, precision: np.ndarray) -> np.ndarray:
        """Return the mutual information of a weight and its field, in nats, at each precision (L,)."""
        s = np.clip(precision, *FIELD_PRECISION_BOUNDS)
        information_within = np.sum([0.5 * p * np.log1p(s * tau) for p, _, tau in self.pieces], axis=0)
        if not self._component_pairs:
            return information_within
        from scipy.special import xlogy

        r, weight = self._make_overlap_quadrature(s)
        fraction, *_ = self._compute_component_posteriors(r, s[..., None])
        unknown = np.sum(
            weight * np.sum(xlogy(self._compute_joint_density(r, s[..., None]), fraction), axis=0), axis=-1
        )
        return information_within - sum(p * np.log(p) for p, *_ in self.pieces) + unknown

    @property
    def _component_pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(len(self.pieces)), 2))

    def _compute_component_posteriors(self, r: np.ndarray, s: Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return posterior shares, means and variances (pieces, ...) of a mixture of weights at fields r."""
        fraction, mean, variance = self._get_component_columns(r)
        widened = 1 + s * variance
        log = np.log(fraction / np.sqrt(widened)) + (variance * r * r + 2 * mean * r - s * mean * mean) / (2 * widened)
        odds = np.exp(log - np.max(log, axis=0))
        return odds / np.sum(odds, axis=0), (mean + variance * r) / widened, variance / widened

    def _compute_joint_density(self, r: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Return the joint density (pieces, ...) of the field r and a piece."""
        fraction, mean, variance = self._get_component_columns(r)
        deviation = np.sqrt(s + s * s * variance)
        return fraction / deviation * normal_density((r - s * mean) / deviation)

    def _get_component_columns(self, r: np.ndarray) -> np.ndarray:
        """Return shares, means and variances, each (pieces, 1, ...) to broadcast with r."""
        return np.array(self.pieces).T.reshape(3, -1, *[1] * np.ndim(r))

    def _make_overlap_quadrature(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return fields (L, n) and weights for integrals where several pieces of a mixture contribute."""
        edges = np.concatenate(
            [_compute_overlap_edges(s, self.pieces[i], self.pieces[j]) for i, j in self._component_pairs]
        )
        return make_composite_rule(np.sort(edges, axis=0), NODES)

    def draw(self, rng: np.random.Generator, N: int) -> np.ndarray:
        """Draw weights (N,), scaled so that their mean square is exactly 1."""
        fraction, mean, variance = np.array(self.pieces).T
        piece_index = rng.choice(len(fraction), size=N, p=fraction)
        w = mean[piece_index] + np.sqrt(variance[piece_index]) * rng.standard_normal(N)
        if not np.any(w):  # all sparse weights happen to be 0: make one nonzero
            w[rng.integers(N)] = 1.0
        return w * np.sqrt(N / (w @ w))


def _compute_overlap_edges(s: np.ndarray, first: MixtureComponent, second: MixtureComponent) -> np.ndarray:
    r"""Return panel edges (p, L) where two pieces of a mixture contribute: :math:`N_iN_j/P \le \sqrt{N_iN_j/4p_ip_j}`.

    The bound is a Gaussian in r. In its units x, the log odds :math:`ax^2 + bx + c` change rapidly near
    their zeros.
    """
    (m, v), (m2, v2) = ((s * piece.mean, s + s * s * piece.variance) for piece in (first, second))
    centre, scale = (m * v2 + m2 * v) / (v + v2), np.sqrt(2 * v * v2 / (v + v2))
    a, b = (v - v2) / (v + v2), scale * ((m - centre) / v - (m2 - centre) / v2)
    c = (
        np.log(first.share / second.share * np.sqrt(v2 / v))
        - (centre - m) ** 2 / (2 * v)
        + (centre - m2) ** 2 / (2 * v2)
    )
    slope = np.sqrt(np.maximum(b * b - 4 * a * c, 1e-30))
    sum_ = -0.5 * (b + np.copysign(slope, b))
    with np.errstate(divide="ignore", over="ignore"):
        zeros = np.stack([sum_ / a, c / sum_])
    near = zeros + np.multiply.outer(LOG_ODDS_PANEL_EDGES, 1 / slope)[:, None]
    x = np.concatenate([np.multiply.outer(GAUSSIAN_PANEL_EDGES, np.ones_like(s)), near.reshape(-1, *s.shape)])
    return centre + scale * np.clip(x, -GAUSSIAN_CUTOFF, GAUSSIAN_CUTOFF)


@dataclass(frozen=True)
class Gauss(WeightDistribution):
    """Normal weights."""

    label: ClassVar = "Gaussian"
    equation: ClassVar = r"w \sim N(0, 1)"

    pieces: ClassVar = (MixtureComponent(1.0, 0.0, 1.0),)


@dataclass(frozen=True)
class Binary(WeightDistribution):
    """Weights of +1 and -1."""

    label: ClassVar = "binary"
    equation: ClassVar = r"w = \pm 1"

    pieces: ClassVar = (MixtureComponent(0.5, -1.0, 0.0), MixtureComponent(0.5, 1.0, 0.0))


@dataclass(frozen=True)
class Sparse(WeightDistribution):
    """Normal weights with probability rho, otherwise 0."""

    label: ClassVar = "sparse"
    equation: ClassVar = r"w \sim (1-\rho)\,\delta_0 + \rho\,N(0, 1/\rho)"
    rho: float = parameter(0.2, "fraction of nonzero weights", symbol=r"$\rho$", above=0, at_most=1)

    @property
    def pieces(self) -> tuple[MixtureComponent, ...]:
        normal = MixtureComponent(self.rho, 0.0, 1 / self.rho)
        return (normal,) if self.rho == 1 else (MixtureComponent(1 - self.rho, 0.0, 0.0), normal)


WEIGHT_DISTRIBUTIONS: dict[str, type[WeightDistribution]] = {"gauss": Gauss, "binary": Binary, "sparse": Sparse}
