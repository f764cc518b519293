r"""The separability threshold of a teacher's labels: below it, a decreasing loss has no minimum.

Let :math:`v = yu` be the teacher's field times its label, of density :math:`2\varphi(v)p(v)`, and let a student be t
times the teacher plus a perpendicular part. It classifies all of P = alpha N examples correctly if the perpendicular
part can lift all stabilities :math:`tv^\mu - \xi^\mu` to 0 or more: a cone of P dimensions meets a random subspace of
N - 1 dimensions as long as its distance from the point :math:`tv - \xi` is smaller,

.. math:: \frac1{\alpha_c} = \min_{t\ge0}\,\langle(\xi - tv)_+^2\rangle
         = \min_t \int 2\varphi(v)p(v)\left[(1+t^2v^2)\Phi(-tv) - tv\varphi(tv)\right]dv

(Candes & Sur 2020, eq 3, there with an intercept and for the logit teacher). The average is convex in t, with the
minimum where :math:`\langle v\,[\varphi(tv) - tv\,\Phi(-tv)]\rangle = 0`. Without a signal (t = 0) alpha_c is 2. It is
infinite if all labels agree with the teacher.

Where inputs contain only a fraction S of the variance of the teacher's field (`statmech.modes`), v is the field of this
part, in units of its deviation, and the rest is noise: :math:`p(v)` is the probability of y = 1 for a normal field of
mean :math:`\sqrt Sv` and variance 1 - S. The spectrum of the inputs is irrelevant, because a linear map leaves
separability unchanged. If inputs vary only in a fraction `rank` of the directions, alpha_c is multiplied by `rank`.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from statmech.convex.teachers import LabelTeacher
from statmech.numerics.gaussian import GAUSSIAN_CUTOFF, make_clipped_composite_rule, normal_cdf, normal_density

MAX_LOG_TEACHER_RATIO = 60.0  # a minimum at a larger ln t means that all labels agree with the teacher


@cache
def compute_separability_threshold(teacher: LabelTeacher, signal: float = 1.0, rank: float = 1.0) -> float:
    """Compute the largest alpha where some student still classifies all examples correctly.

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
