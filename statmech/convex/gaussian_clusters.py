r"""Two Gaussian clusters of labelled inputs, and the errors of optimal classifiers.

A fraction :math:`\pi_+` of the inputs :math:`\mathbf x/\sqrt N` has the label y = +1. Around their centres both
clusters have the covariance :math:`\Sigma/N`. The eigenvalue :math:`\omega_a` of :math:`\Sigma` belongs to a fraction
:math:`\nu_a` of the directions.
The mean of all inputs is 0, so that cluster y has the centre

.. math:: y\,s_y\,\mathbf d, \qquad s_+ = 2(1-\pi_+), \qquad s_- = 2\pi_+, \qquad t_a = N|\mathbf d_a|^2,

with :math:`2\mathbf d` the difference of the centres, of squared length :math:`\Delta^2/N`, and
:math:`\sum_at_a = \Delta^2/4`.

**A classifier that knows the clusters** takes the side of a plane perpendicular to :math:`\Sigma^{-1}\mathbf d`. With
the separation :math:`\delta^2 = \sum_at_a/\omega_a`, half the distance of the clusters' fields in standard deviations,
the error of the best plane is

.. math:: \epsilon = \sum_y\pi_y\,\Phi\!\left(-\delta - \frac{y}{2\delta}\ln\frac{\pi_+}{\pi_-}\right) .

**The Bayes-optimal learner** knows everything but the direction of d in each group, and has P = alpha N examples. The
posterior of d is Gaussian: each example of cluster y contains d with the factor :math:`s_y`, whose mean square is
:math:`4\pi_+\pi_-`. The error is the same function of

.. math:: \delta^2 = \sum_a\frac{t_a}{\omega_a}\,\frac{k_a}{1 + k_a}, \qquad
          k_a = 4\pi_+\pi_-\alpha\,\frac{t_a}{\nu_a\omega_a} .

In equal clusters without structure this is Hebb's rule (Mignacco, Krzakala, Lu, Urbani & Zdeborova 2020).

**Separability**: by the theorem of `statmech.convex.separability`, students with a part parallel to
:math:`c\,\Sigma^{-1}\mathbf d` and a perpendicular part classify all examples correctly up to

.. math:: \frac1{\alpha_c} = \nu\min_{c, b}\,\Bigl\langle\bigl(\xi - c(s_y\delta + z) - yb\bigr)_+^2\Bigr\rangle,

with :math:`\nu` the fraction of directions with a nonzero variance within the clusters, b = 0 without an intercept, and
z, :math:`\xi` standard normal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from statmech.convex.losses import Loss
from statmech.convex.separability import find_minimiser_interval
from statmech.inputs.covariance_modes import Modes
from statmech.numerics.gaussian import normal_cdf, normal_density
from statmech.parameters.parameter_fields import parameter

CLUSTER_LABELS = np.array([1.0, -1.0])
INTERCEPT_TOL = 1e-14  # absolute, in standard deviations of the field


@dataclass(frozen=True)
class GaussianClusters:
    """Two Gaussian clusters with different centres and the same covariance."""

    label: ClassVar = "Gaussian clusters"
    equation: ClassVar = r"P(\mathbf x\,|\,y) = N(y s_y\sqrt{N}\,\mathbf d, \Sigma)"
    distance: float = parameter(2.0, "distance between the centres of two clusters", symbol=r"$\Delta$", above=0)
    positives: float = parameter(
        0.5, "fraction of the examples in the cluster of label +1", symbol=r"$\pi_+$", above=0, below=1
    )

    def combine_with_modes(self, modes: Modes | None) -> TwoClusters:
        """Return the two clusters, with the modes of structured inputs as their common covariance.

        Without modes (None) the clusters are isotropic.
        """
        isotropic = np.ones(1)
        variances, fractions, powers, ridge = (
            (isotropic, isotropic, isotropic, isotropic)
            if modes is None
            else (modes.variances, modes.shares, modes.teacher, modes.ridge)
        )
        assert powers is not None
        ridge = np.broadcast_to(ridge, variances.shape)
        return TwoClusters(self.positives, variances, fractions, self.distance**2 / 4 * powers, ridge)


CLUSTERS: dict[str, type[GaussianClusters]] = {"gaussian": GaussianClusters}


class TwoClusters(NamedTuple):
    """Two clusters: fraction of label +1 and, for each mode, omega, nu, t (this module) and the penalty factor."""

    positives: float
    mode_variances: np.ndarray
    shares: np.ndarray
    centre_powers: np.ndarray
    ridge: np.ndarray

    @property
    def drop_empty_modes(self) -> TwoClusters:
        """The clusters without the modes of zero variance and zero distance between the centres.

        A weight vector that minimises a loss has no component in the omitted directions.
        """
        is_present = (self.mode_variances > 0) | (self.centre_powers > 0)
        return TwoClusters(self.positives, *(part[is_present] for part in self[1:]))

    @property
    def weights(self) -> np.ndarray:
        """The fractions of the labels +1 and -1."""
        return np.array([self.positives, 1 - self.positives])

    @property
    def centre_distances(self) -> np.ndarray:
        """Distances s of the two centres from the mean input, in units of half their separation."""
        return 2 * (1 - self.weights)

    @property
    def is_balanced(self) -> bool:
        """True if each cluster contains half of the examples."""
        return self.positives == 0.5

    @property
    def rank(self) -> float:
        """The fraction of directions with a nonzero variance within the clusters."""
        return float(self.shares @ (self.mode_variances > 0))

    @property
    def separation(self) -> float:
        """Half the distance between the clusters' mean fields along the best direction, in standard deviations."""
        return self._compute_separation(np.ones_like(self.centre_powers))

    def compute_learnt_separation(self, alpha: float) -> float:
        """Return the separation that the Bayes-optimal learner reaches with alpha examples per input dimension."""
        precision = (
            np.prod(self.centre_distances) * alpha * self.centre_powers / (self.shares * self._nonzero_variances)
        )
        return self._compute_separation(precision / (1 + precision))

    @property
    def _nonzero_variances(self) -> np.ndarray:
        return np.where(self.mode_variances > 0, self.mode_variances, 1.0)

    def _compute_separation(self, known_fractions: np.ndarray) -> float:
        if np.any(self.centre_powers[self.mode_variances == 0] > 0):
            return np.inf
        return float(np.sqrt(np.sum(known_fractions * self.centre_powers / self._nonzero_variances)))


def compute_best_plane_error(separation: float, positives: float) -> float:
    """Return the error of the best plane between two clusters of a given separation.

    Parameters
    ----------
    separation : float
        Half the distance between the mean fields of the clusters, in standard deviations.
    positives : float
        Fraction of the examples in one of the clusters.

    Examples
    --------
    >>> round(compute_best_plane_error(1.0, 0.5), 10), compute_best_plane_error(0.0, 0.3)
    (0.1586552539, 0.3)
    """
    weights = np.array([positives, 1 - positives])
    if separation == 0:
        return float(weights.min())
    shift = CLUSTER_LABELS * np.log(positives / (1 - positives)) / (2 * separation)
    return float(weights @ normal_cdf(-separation - shift))


def compute_cluster_separability_threshold(clusters: TwoClusters, intercept: bool = False) -> float:
    """Compute the largest alpha where some student still classifies all examples correctly.

    Parameters
    ----------
    clusters : TwoClusters
        The clusters.
    intercept : bool
        True for students whose planes need not contain the mean of all inputs.

    Examples
    --------
    >>> far, near = (GaussianClusters(distance=distance).combine_with_modes(None) for distance in (2.0, 1e-3))
    >>> round(compute_cluster_separability_threshold(far), 6), round(compute_cluster_separability_threshold(near), 6)
    (3.700033, 2.0)
    """
    from scipy.optimize import brentq, minimize_scalar

    delta = clusters.separation
    if np.isinf(delta):
        return np.inf

    def find_best_offset(kappa: float) -> float:
        if not intercept or clusters.is_balanced:
            return 0.0
        bound = 2 * kappa + 10
        return float(
            brentq(lambda b: _compute_distance_offset_slope(clusters, kappa, b), -bound, bound, xtol=INTERCEPT_TOL)
        )

    def compute_distance(kappa: float) -> float:
        means = clusters.centre_distances * kappa + CLUSTER_LABELS * find_best_offset(kappa)
        perpendicular = 1 - (kappa / delta) ** 2
        return float(
            clusters.weights @ ((1 + means**2) * normal_cdf(-means) - means * normal_density(means)) / perpendicular
        )

    minimum = minimize_scalar(compute_distance, bounds=(0.0, delta), method="bounded", options={"xatol": 1e-10})
    return float(clusters.rank / minimum.fun)


def compute_cluster_interpolation_threshold(loss: Loss, clusters: TwoClusters, intercept: bool) -> float:
    """Compute the largest alpha where every example can still reach the minimum of a loss of stabilities.

    Parameters
    ----------
    loss, clusters
        A loss of stabilities, and the clusters.
    intercept : bool
        True for students with an intercept.
    """
    best = find_minimiser_interval(loss)
    if best is not None and best.low == best.high:
        return clusters.rank
    return (
        compute_cluster_separability_threshold(clusters, intercept) if best is None or np.isinf(best.high) else np.nan
    )


def _compute_distance_offset_slope(clusters: TwoClusters, kappa: float, b: float) -> float:
    """Return half the derivative of the squared distance with respect to the offset b."""
    means = clusters.centre_distances * kappa + CLUSTER_LABELS * b
    return float(clusters.weights @ (CLUSTER_LABELS * (means * normal_cdf(-means) - normal_density(means))))
