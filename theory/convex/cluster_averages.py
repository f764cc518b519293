r"""Averages over the examples of two clusters for a learner that minimises a convex loss.

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

from statmech.convex.clusters import CLUSTER_LABELS, TwoClusters
from statmech.convex.losses import Loss
from statmech.numerics.gaussian import normal_density
from theory.convex.averages import FieldNodes, TrainingAverages, choose_gaussian_panel_edges, make_field_nodes


class ClusterStabilities(NamedTuple):
    """Distribution of the stabilities of fresh examples."""

    means: np.ndarray  # one per cluster (2, batch)
    Q: np.ndarray  # standard deviation (batch,)
    V: np.ndarray  # susceptibility (batch,)


class ClusterAverages(NamedTuple):
    """Averages A, B, C and E (4, batch), and their derivatives (4, 4, batch) with respect to m, b, ln Q and ln V."""

    values: np.ndarray
    slopes: np.ndarray


def average_over_clusters(loss: Loss, clusters: TwoClusters, stabilities: ClusterStabilities) -> ClusterAverages:
    """Compute A, B, C and E, averages over both clusters, with their derivatives.

    Parameters
    ----------
    loss
        A loss of stabilities.
    clusters
        The clusters.
    stabilities
        The distribution of the stabilities of fresh examples.
    """
    nodes, z, weight = _make_cluster_nodes(loss, stabilities)
    g, Q = nodes.g, np.tile(stabilities.Q, 2)
    d_dh, dh = weight * nodes.one_minus_dp_dh_weights, weight * nodes.h_weights
    free = dh - d_dh
    sums = nodes.sum_terms_per_batch_element(d_dh, dh * g * g, dh * g)
    by_mean = nodes.sum_terms_per_batch_element(d_dh * z, -2 * d_dh * g, -d_dh) / np.array([Q, 1 + 0 * Q, 1 + 0 * Q])
    by_Q = nodes.sum_terms_per_batch_element(d_dh * (z * z - 1), -2 * d_dh * g * z, -d_dh * z) * np.array(
        [1 + 0 * Q, Q, Q]
    )
    by_V = nodes.sum_terms_per_batch_element(-free * g * z, 2 * free * g * g, free * g) / np.array(
        [Q, 1 + 0 * Q, 1 + 0 * Q]
    )
    fractions, factors, y = clusters.weights, clusters.centre_distances, CLUSTER_LABELS
    # rows: A, B, C and E; columns: clusters
    average_weights = np.array([fractions, fractions, fractions * factors, fractions * y])
    cluster_terms = np.array([sums, by_mean, by_mean, by_Q, by_V]).reshape(5, 3, 2, -1)[:, [0, 1, 2, 2]]
    cluster_terms[1] *= factors[:, None]
    cluster_terms[2] *= y[:, None]
    values, *slopes = np.sum(average_weights[:, :, None] * cluster_terms, axis=2)
    return ClusterAverages(values, np.moveaxis(np.array(slopes), 0, 1))


def average_cluster_training_loss(
    loss: Loss, clusters: TwoClusters, stabilities: ClusterStabilities, reported_loss: Loss
) -> TrainingAverages:
    """Average the loss `reported_loss` and the label error over the training examples.

    Parameters
    ----------
    loss, clusters, stabilities
        As in `average_over_clusters`.
    reported_loss
        The loss to average.
    """
    nodes, _, weight = _make_cluster_nodes(loss, stabilities, include_flat=True)
    p = nodes.h + nodes.g
    sums = nodes.sum_terms_per_batch_element(
        weight * nodes.h_weights * reported_loss.value(p), weight * nodes.h_weights * (p < 0)
    ).reshape(2, 2, -1)
    return TrainingAverages(*np.sum(clusters.weights[:, None] * sums, axis=1))


def _make_cluster_nodes(
    loss: Loss, stabilities: ClusterStabilities, include_flat: bool = False
) -> tuple[FieldNodes, np.ndarray, np.ndarray]:
    """Make the quadrature nodes of both clusters.

    Returns the nodes, their distances from the mean in units of Q, and the densities at the nodes. The batch of
    the first cluster precedes the batch of the second.
    """
    means, Q, V = stabilities.means.ravel(), np.tile(stabilities.Q, 2), np.tile(stabilities.V, 2)
    nodes = make_field_nodes(loss, Q, V, (means / Q)[:, None] + choose_gaussian_panel_edges(loss), include_flat)
    z = (nodes.h - means[nodes.panel_batch_index, None]) / Q[nodes.panel_batch_index, None]
    return nodes, z, normal_density(z) / Q[nodes.panel_batch_index, None]
