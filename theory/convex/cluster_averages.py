r"""Averages over the examples of two clusters, for a learner that minimises a convex loss.

The stability h of an unseen example with label y is normal of variance :math:`Q^2` around :math:`\mu_y = s_ym + yb`,
with b the intercept. With p the stability after training, and :math:`g = p - h`,

.. math:: A = \sum_y\pi_y\langle d\rangle_y, \qquad B = \sum_y\pi_y\langle g^2\rangle_y, \qquad
          C = \sum_y\pi_ys_y\langle g\rangle_y, \qquad E = \sum_y\pi_yy\,\langle g\rangle_y,
          \qquad d = 1 - \partial p/\partial h = -\partial g/\partial h .

The nodes of `theory.convex.averages` are shifted by the mean.

**Slopes.** For any f(h), :math:`\partial_\mu\langle f\rangle = \langle f'\rangle = \langle(h-\mu)f\rangle/Q^2` and
:math:`\partial_{\ln Q}\langle f\rangle = \langle(h-\mu)f'\rangle`. As d may jump, its averages use the forms without a
derivative of d. With respect to ln V at fixed h, :math:`\partial g = g\,(1-d)`, and
:math:`A = -\langle(h-\mu)g\rangle/Q^2`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from statmech.convex.clusters import LABELS, TwoClusters
from statmech.convex.losses import Loss
from statmech.numerics.gaussian import density
from theory.convex.averages import Nodes, Training, gaussian_edges, nodes_of


class Stabilities(NamedTuple):
    """Distribution of the stabilities of fresh examples."""

    means: np.ndarray  # means in both clusters (2, batch)
    Q: np.ndarray  # standard deviation (batch,)
    V: np.ndarray  # susceptibility (batch,)


class ClusterAverages(NamedTuple):
    """A, B, C and E (4, batch), and their derivatives (4, 4, batch) in m, b, ln Q and ln V."""

    values: np.ndarray
    slopes: np.ndarray


def of_clusters(loss: Loss, clusters: TwoClusters, at: Stabilities) -> ClusterAverages:
    """Compute the averages over both clusters.

    Parameters
    ----------
    loss
        A loss of stabilities.
    clusters
        The clusters.
    at
        The distribution of the stabilities of fresh examples.
    """
    nodes, z, weight = _nodes(loss, at)
    g, Q = nodes.g, np.tile(at.Q, 2)
    d_dh, dh = weight * nodes.d_dh, weight * nodes.dh
    free = dh - d_dh
    sums = nodes.sum_over_nodes(d_dh, dh * g * g, dh * g)
    by_mean = nodes.sum_over_nodes(d_dh * z, -2 * d_dh * g, -d_dh) / np.array([Q, 1 + 0 * Q, 1 + 0 * Q])
    by_Q = nodes.sum_over_nodes(d_dh * (z * z - 1), -2 * d_dh * g * z, -d_dh * z) * np.array([1 + 0 * Q, Q, Q])
    by_V = nodes.sum_over_nodes(-free * g * z, 2 * free * g * g, free * g) / np.array([Q, 1 + 0 * Q, 1 + 0 * Q])
    fractions, factors, y = clusters.weights, clusters.factors, LABELS
    # weights of the clusters in A, B, C and E
    average_weights = np.array([fractions, fractions, fractions * factors, fractions * y])
    cluster_terms = np.array([sums, by_mean, by_mean, by_Q, by_V]).reshape(5, 3, 2, -1)[:, [0, 1, 2, 2]]
    cluster_terms[1] *= factors[:, None]
    cluster_terms[2] *= y[:, None]
    values, *slopes = np.sum(average_weights[:, :, None] * cluster_terms, axis=2)
    return ClusterAverages(values, np.moveaxis(np.array(slopes), 0, 1))


def training_of_clusters(loss: Loss, clusters: TwoClusters, at: Stabilities, value: Loss) -> Training:
    """Average the loss `value` and the label error over the training examples.

    Parameters
    ----------
    loss, clusters, at
        As in `of_clusters`.
    value
        The loss to average.
    """
    nodes, _, weight = _nodes(loss, at, at_rest=True)
    p = nodes.h + nodes.g
    sums = nodes.sum_over_nodes(weight * nodes.dh * value.value(p), weight * nodes.dh * (p < 0)).reshape(2, 2, -1)
    return Training(*np.sum(clusters.weights[:, None] * sums, axis=1))


def _nodes(loss: Loss, at: Stabilities, at_rest: bool = False) -> tuple[Nodes, np.ndarray, np.ndarray]:
    """Return the nodes of both clusters, their distances from the mean in units of Q, and their densities.

    The batch of the first cluster is followed by the batch of the second.
    """
    means, Q, V = at.means.ravel(), np.tile(at.Q, 2), np.tile(at.V, 2)
    nodes = nodes_of(loss, Q, V, (means / Q)[:, None] + gaussian_edges(loss), at_rest)
    z = (nodes.h - means[nodes.lane, None]) / Q[nodes.lane, None]
    return nodes, z, density(z) / Q[nodes.lane, None]
