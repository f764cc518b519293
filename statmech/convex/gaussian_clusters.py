r"""Two Gaussian clusters of labelled inputs: their centres, variances and separation.

A fraction :math:`\pi_+` of the inputs :math:`\mathbf x/\sqrt N` has the label y = +1. Around their centres both
clusters have the covariance :math:`\Sigma/N`. The eigenvalue :math:`\omega_a` of :math:`\Sigma` belongs to a fraction
:math:`\nu_a` of the directions.
The mean of all inputs is 0, so that cluster y has the centre

.. math:: y\,s_y\,\mathbf d, \qquad s_+ = 2(1-\pi_+), \qquad s_- = 2\pi_+, \qquad t_a = N|\mathbf d_a|^2,

with :math:`2\mathbf d` the difference of the centres, of squared length :math:`\Delta^2/N`, and
:math:`\sum_at_a = \Delta^2/4`. The separation :math:`\delta = (\sum_at_a/\omega_a)^{1/2}` is half the distance of
the clusters' fields in standard deviations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from statmech.inputs.covariance_modes import Modes
from statmech.parameters.parameter_fields import parameter

CLUSTER_LABELS = np.array([1.0, -1.0])


@dataclass(frozen=True)
class GaussianClusters:
    """Two Gaussian clusters with different centres and the same covariance."""

    label: ClassVar = "Gaussian clusters"
    equation: ClassVar = r"P(\mathbf x\,|\,y) = N(y s_y\sqrt{N}\,\mathbf d, \Sigma)"
    distance: float = parameter(2.0, "distance between the cluster centres", symbol=r"$\Delta$", above=0)
    positives: float = parameter(0.5, "fraction of examples with label +1", symbol=r"$\pi_+$", above=0, below=1)

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
        return self.compute_separation(np.ones_like(self.centre_powers))

    @property
    def nonzero_variances(self) -> np.ndarray:
        """Variances of the modes, with 1 instead of 0."""
        return np.where(self.mode_variances > 0, self.mode_variances, 1.0)

    def compute_separation(self, known_fractions: np.ndarray) -> float:
        """Return the separation of the clusters if only a fraction of each mode's centre is known."""
        if np.any(self.centre_powers[self.mode_variances == 0] > 0):
            return np.inf
        return float(np.sqrt(np.sum(known_fractions * self.centre_powers / self.nonzero_variances)))
