r"""Thresholds in alpha: separability of a teacher's labels, interpolation, and existence of a minimum of the loss.

**Separability.** Below this threshold a decreasing loss has no minimum. Let :math:`v = yu` be the teacher's field times
its label, of density :math:`2\varphi(v)p(v)`, and let a student be t times the teacher plus a perpendicular part. It
classifies all of P = alpha N examples correctly if the perpendicular part can lift all stabilities
:math:`tv^\mu - \xi^\mu` to 0 or more: a cone of P dimensions meets a random subspace of N - 1 dimensions as long as its
distance from the point :math:`tv - \xi` is smaller,

.. math:: \frac1{\alpha_c} = \min_{t\ge0}\,\langle(\xi - tv)_+^2\rangle
         = \min_t \int 2\varphi(v)p(v)\left[(1+t^2v^2)\Phi(-tv) - tv\varphi(tv)\right]dv

(Candes & Sur 2020, eq 3, there with an intercept and for the logit teacher). The average is convex in t, with the
minimum where :math:`\langle v\,[\varphi(tv) - tv\,\Phi(-tv)]\rangle = 0`. Without a signal (t = 0) alpha_c is 2. It is
infinite if all labels agree with the teacher.

Where inputs contain only a fraction S of the variance of the teacher's field (`statmech.inputs.covariance_modes`), v is
the field of this part, in units of its deviation, and the rest is noise: :math:`p(v)` is the probability of y = 1 for a
normal field of mean :math:`\sqrt Sv` and variance 1 - S. The spectrum of the inputs is irrelevant, because a linear map
leaves separability unchanged. If inputs vary only in a fraction `rank` of the directions, alpha_c is multiplied by
`rank`.

**Two Gaussian clusters** (`statmech.convex.gaussian_clusters`): by the same theorem, students with a part parallel to
:math:`c\,\Sigma^{-1}\mathbf d` and a perpendicular part classify all examples correctly up to

.. math:: \frac1{\alpha_c} = \nu\min_{c, b}\,\Bigl\langle\bigl(\xi - c(s_y\delta + z) - yb\bigr)_+^2\Bigr\rangle,

with :math:`\nu` the fraction of directions with a nonzero variance within the clusters, b = 0 without an intercept, and
z, :math:`\xi` standard normal.

**Vanishing penalty.** As lambda tends to 0 below the interpolation threshold, all examples can reach the minimum of the
loss. Then V grows as 1/lambda, p is the point of the minimising set closest to h, and the learner has the smallest
penalty among all weights that reach the minimum. The equations equal the equations of a loss that is infinite outside
the set (`ZeroLossInterval`), at lambda = 1, with lambda V instead of V. With the square loss this learner is the
pseudo-inverse, with the hinge loss the perceptron of maximum stability, and with an l1 norm basis pursuit. Above the
threshold the equations hold at lambda = 0. A loss that decreases everywhere (logistic, exponential) has no minimum
below its threshold: the length of the weights diverges.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from statmech.convex.gaussian_clusters import CLUSTER_LABELS, TwoClusters
from statmech.convex.losses import Loss, convert_to_stability_loss, find_minimiser_interval
from statmech.convex.teachers import LabelTeacher, Teacher
from statmech.numerics.gaussian import GAUSSIAN_CUTOFF, make_clipped_composite_rule, normal_cdf, normal_density

INTERCEPT_TOL = 1e-14  # absolute, in standard deviations of the field
MAX_LOG_TEACHER_RATIO = 60.0  # a minimum at a larger ln t means that all labels agree with the teacher


@cache
def compute_separability_threshold(teacher: LabelTeacher, signal: float = 1.0, rank: float = 1.0) -> float:
    """Compute the separability threshold of a teacher's labels: the largest alpha where some student makes no errors.

    It is infinite for labels without noise.

    Parameters
    ----------
    teacher
        The dependence of labels on the teacher's field.
    signal
        The fraction S of the variance of the teacher's field that the inputs contain.
    rank
        The fraction of the directions with a nonzero input variance.

    Examples
    --------
    >>> from statmech.convex.teachers import ProbitTeacher, SignTeacher
    >>> (
    ...     round(compute_separability_threshold(SignTeacher(), signal=0.7), 10),
    ...     round(compute_separability_threshold(ProbitTeacher((0.3 / 0.7) ** 0.5)), 10)
    ... )
    (3.4118566491, 3.4118566491)
    """
    from scipy.optimize import brentq

    if teacher.uninformative_setting:
        return 2.0 * rank
    if _compute_squared_distance_slope(MAX_LOG_TEACHER_RATIO / 2, teacher, signal) < 0:
        return np.inf
    log_t = brentq(
        _compute_squared_distance_slope,
        -MAX_LOG_TEACHER_RATIO,
        MAX_LOG_TEACHER_RATIO / 2,
        args=(teacher, signal),
        xtol=1e-13,
        rtol=1e-14,
    )
    v, weight = _make_label_field_quadrature(teacher, np.exp(log_t), signal)
    tv = np.exp(log_t) * v
    return rank * float(1 / np.sum(weight * ((1 + tv**2) * normal_cdf(-tv) - tv * normal_density(tv))))


def _compute_squared_distance_slope(log_t: float, teacher: LabelTeacher, signal: float) -> float:
    """Return half the derivative of the squared distance with respect to t, which increases with t."""
    t = np.exp(log_t)
    v, weight = _make_label_field_quadrature(teacher, t, signal)
    return -float(np.sum(weight * v * (normal_density(t * v) - t * v * normal_cdf(-t * v))))


def _make_label_field_quadrature(teacher: LabelTeacher, t: float, signal: float) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes v and weights on panels cut where the teacher's sigmoid and the functions of tv change."""
    edge_widths = np.array([0.5, 1.5, 4.0, 10.0])
    rest = np.array([1 - signal])
    widths = [float(teacher.width(rest)[0]) / np.sqrt(signal), 1 / t, 1.0]
    edges = np.concatenate([scale * edge_widths for scale in widths])
    v, weight = make_clipped_composite_rule(np.concatenate([-edges, [-GAUSSIAN_CUTOFF, 0.0, GAUSSIAN_CUTOFF], edges]))
    p = teacher.probability(v) if signal == 1 else teacher.right(np.sqrt(signal) * v, rest)
    return v, 2 * weight * normal_density(v) * p


def compute_interpolation_threshold(loss: Loss, teacher: Teacher, signal: float = 1.0, rank: float = 1.0) -> float:
    """Compute the interpolation threshold of a teacher: the largest alpha where all examples reach the minimum loss.

    Parameters
    ----------
    loss, teacher
        The loss, as a function of stabilities or residuals, and the teacher.
    signal, rank
        The fraction of the variance of the teacher's field that the inputs contain, and the fraction of the
        directions with a nonzero input variance.
    """
    best = find_minimiser_interval(loss)
    if best is not None and best.low == best.high:
        return rank
    if isinstance(teacher, LabelTeacher) and (best is None or np.isinf(best.high)):
        return compute_separability_threshold(teacher, signal, rank)
    return np.nan


def compute_minimum_existence_threshold(loss: Loss, teacher: Teacher, signal: float = 1.0, rank: float = 1.0) -> float:
    """Compute the threshold in alpha for the loss to have a minimum as the penalty vanishes.

    The result is 0 if a minimum exists at every alpha.

    Parameters
    ----------
    loss, teacher
        The loss and the teacher of a config.
    signal, rank
        As in `compute_interpolation_threshold`.

    Examples
    --------
    >>> from statmech.convex.losses import Hinge, Logistic
    >>> from statmech.convex.teachers import SignTeacher
    >>> (
    ...     compute_minimum_existence_threshold(Hinge(), SignTeacher(flip=0.1)),
    ...     round(compute_minimum_existence_threshold(Logistic(), SignTeacher(flip=0.1)), 6)
    ... )
    (0.0, 2.992286)
    """
    loss = convert_to_stability_loss(loss) if teacher.labels else loss
    return (
        compute_interpolation_threshold(loss, teacher, signal, rank) if find_minimiser_interval(loss) is None else 0.0
    )


def compute_cluster_separability_threshold(clusters: TwoClusters, intercept: bool = False) -> float:
    """Compute the separability threshold of two clusters: the largest alpha where some student makes no errors.

    Parameters
    ----------
    clusters : TwoClusters
        The clusters.
    intercept : bool
        True for students whose planes need not contain the mean of all inputs.

    Examples
    --------
    >>> from statmech.convex.gaussian_clusters import GaussianClusters
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
    """Compute the interpolation threshold of two clusters: the largest alpha where all examples reach the minimum loss.

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
