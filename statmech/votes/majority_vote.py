r"""The error of a majority vote of many students, by exact integration over great circles.

For two independent inputs x and x', every :math:`x\cos\phi + x'\sin\phi` has the distribution of an input, so eps_g is
the mean over circles of the fraction of :math:`\phi\in[0,\pi)` with a wrong vote (the other half turn repeats
it with all signs reversed). On a circle each of the K + 1 perceptrons changes sign once, at an angle known in closed
form. With the teacher's angle :math:`\phi_0`, the students' :math:`\phi_k` and signs :math:`s_k` at :math:`\phi = 0`,
the net agreement of the vote with the teacher is

.. math:: \int_0^\pi \operatorname{sgn}(vote)\,\operatorname{sgn}(teacher)\,d\phi = s_0\Big[\sum_k s_k\,p_k\,
          (\phi_0 - |\phi_0 - \phi_k|) - \operatorname{sgn}\Big(\sum_k s_k\Big)(2\phi_0 - \pi)\Big],

where :math:`p_k` is 2 if the others are divided equally at :math:`\phi_k`, 1 if one side leads by one, else 0. The
fraction is continuous in the fields and decreases with the students' angles to the teacher: its *relative* error does
not grow near perfect learning.

Circles are random or from a scrambled Sobol net. In both cases the average is unbiased, and independent draws give its
error. Two known averages reduce this error:

* Students with statistically identical starts differ from equal students, at the mean angle to the teacher and the mean
  cosine, by :math:`1/\sqrt N`. The error of equal students is an integral (`statmech.votes.equal_students`), and only
  the *difference* is measured, on the same circles. Its variance decreases as 1/N, like the variance of the vote
  between runs, so that the same number of circles serves at any N. A control variate reduces it further: a fraction of
  each student's error, whose mean is known.
* The weight mean is a single perceptron, whose eps_g is known: for many students in few dimensions, which are far from
  equal, its deviation on the same circles corrects the vote's.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from statmech.order_parameters import angle_from_components
from statmech.votes.equal_students import integrate_vote_error

NUM_TEST_CIRCLES = 1024  # per run; the estimate is unbiased, and the spread over seeds includes its error
MIN_TEST_CIRCLES = 64
MAX_SOBOL_DIMENSIONS = 21_201  # limit of SciPy's tables


def choose_test_circle_count(K: int, N: float) -> int:
    """Return the number of circles that limits the measurement error to a tenth of the variance between runs.

    This number applies to students with statistically identical starts. The variance of the difference grows with K
    and, since the sign changes of short fields are far away, with log N. It has a bound, which matters at small N.

    >>> [choose_test_circle_count(5, N) for N in (10, 100, 10_000)]
    [64, 120, 240]
    """
    return int(np.clip(min(12 * K * np.log10(N), 4 * N), MIN_TEST_CIRCLES, NUM_TEST_CIRCLES))


def draw_random_circles(rng: np.random.Generator, points: int, n: int) -> np.ndarray:
    """Draw random pairs of inputs (2, points, 1 + n): one coordinate parallel to the teacher, n perpendicular."""
    return rng.standard_normal((2, points, 1 + n))


def draw_sobol_circles(rng: np.random.Generator, points: int, n: int) -> np.ndarray:
    """Draw great circles from a scrambled Sobol net of `points` (a power of 2).

    The circles are random if SciPy tabulates no net of that dimension. A net is better above some thousand points: with
    1,024 the vote's error varies as much as with random circles.
    """
    dimensions = 2 * (1 + n)
    if dimensions > MAX_SOBOL_DIMENSIONS:
        return draw_random_circles(rng, points, n)
    from scipy.stats import qmc  # imported here, because it takes longer than the rest of this package

    net = qmc.Sobol(dimensions, rng=rng).random(points)
    return np.moveaxis(ndtri(np.clip(net, 1e-16, 1 - 1e-16)).reshape(points, 2, 1 + n), 1, 0)


def measure_vote_error(parallel: np.ndarray, factor: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """Estimate the majority vote's error from the students' components (..., K) and (..., K, n).

    The components are parallel and perpendicular to the teacher. The error is measured relative to the weight mean.
    `inputs` come from `draw_random_circles`, and may have axes between the first two that broadcast with the leading
    axes of the students. A fair coin decides the tie of an even K.

    >>> inputs = draw_random_circles(np.random.default_rng(0), 1024, 1)
    >>> error = measure_vote_error(np.array([1.0]), np.array([[1.0]]), inputs)     # one student at 45 degrees: 1/4
    >>> bool(abs(error - 0.25) < 1e-12)
    True
    """
    transposed_factor = np.swapaxes(factor, -1, -2)
    fields = [parallel[..., None, :] * x[..., :1] + x[..., 1:] @ transposed_factor for x in inputs]
    mean = [field.sum(axis=-1, keepdims=True) for field in fields]
    teacher = inputs[..., :1]
    excess = np.mean(_average_vote_agreement(teacher, mean) - _average_vote_agreement(teacher, fields), axis=-1) / 2
    parallel_sum, perpendicular_sum = parallel.sum(axis=-1), np.linalg.norm(factor.sum(axis=-2), axis=-1)
    return excess + np.arctan2(perpendicular_sum, parallel_sum) / np.pi


def measure_near_equal_vote_error(parallel: np.ndarray, perpendicular: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """Estimate the vote error of nearly equal students from their perpendicular Gram matrix (..., K, K).

    `inputs` come from `draw_random_circles` in K dimensions, with axes as for `measure_vote_error`.

    >>> inputs = draw_random_circles(np.random.default_rng(0), 16, 5)
    >>> error = measure_near_equal_vote_error(np.ones(5), np.eye(5) + 1, inputs)   # equal students: exact
    >>> float(error.round(6))
    0.269993
    """
    length, K = np.sqrt(np.diagonal(perpendicular, axis1=-2, axis2=-1)), parallel.shape[-1]
    theta = angle_from_components(length, parallel)
    scale = np.where(length > 0, length, 1.0)
    cosines = perpendicular / scale[..., :, None] / scale[..., None, :]
    off_diagonal = cosines.sum(axis=(-2, -1)) - np.trace(cosines, axis1=-2, axis2=-1)
    equal_theta, c = theta.mean(axis=-1), np.clip(off_diagonal / (K * (K - 1)), 0.0, 1.0)
    equal = integrate_vote_error(equal_theta, c, K)
    control_fraction = _choose_control_fraction(equal, equal_theta, K)
    teacher = inputs[..., :1]
    measured = _average_vote_agreement(teacher, _compute_student_fields(theta, cosines, inputs), control_fraction)
    expected = _average_vote_agreement(teacher, _compute_equal_student_fields(equal_theta, c, inputs), control_fraction)
    return equal + np.mean(expected - measured, axis=-1) / 2


def _choose_control_fraction(vote: np.ndarray, theta: np.ndarray, K: int) -> np.ndarray:
    """Return the fraction of each student's error that the control variate subtracts from the vote's error.

    It is about the ratio of their distances from 1/2, early and late in learning. Any fraction leaves the mean
    unchanged, because the equal students have the same mean angle.
    """
    student_excess = 0.5 - theta / np.pi
    is_nonzero = abs(student_excess) > 1e-9
    return np.clip(np.where(is_nonzero, (0.5 - vote) / np.where(is_nonzero, student_excess, 1.0), 1.0) / K, 0.0, 1.0)


def _compute_student_fields(theta: np.ndarray, cosines: np.ndarray, inputs: np.ndarray) -> list[np.ndarray]:
    """Return students' fields (..., points, K), from the symmetric square root of their cosines."""
    values, vectors = np.linalg.eigh(cosines)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :] @ np.swapaxes(vectors, -1, -2)
    parallel, perpendicular = np.cos(theta)[..., None, :], np.sin(theta)[..., None, :]
    return [parallel * x[..., :1] + perpendicular * (x[..., 1:] @ root) for x in inputs]


def _compute_equal_student_fields(theta: np.ndarray, c: np.ndarray, inputs: np.ndarray) -> list[np.ndarray]:
    """Return fields (..., points, K) of equal students at the angle theta with the cosine c."""
    K = inputs.shape[-1] - 1
    theta, c = theta[..., None, None], c[..., None, None]
    individual = np.sqrt(1 - c)
    common = (np.sqrt(1 + (K - 1) * c) - individual) / K
    parallel, perpendicular = np.cos(theta), np.sin(theta)
    return [
        parallel * x[..., :1]
        + perpendicular * (individual * x[..., 1:] + common * x[..., 1:].sum(axis=-1, keepdims=True))
        for x in inputs
    ]


def _average_vote_agreement(
    teacher: np.ndarray, fields: list[np.ndarray], control_fraction: np.ndarray | float = 0.0
) -> np.ndarray:
    """Average over each circle the teacher's agreement with the vote, minus a fraction of each student's agreement.

    The teacher's fields are (2, .., points, 1), the students' 2 x (.., points, K), the fraction (..).
    """
    control_fraction = np.asarray(control_fraction)[..., None, None]
    turns, teachers = _find_sign_change_angle(*fields), _find_sign_change_angle(*teacher)
    bits = turns.view(np.int64)  # each student's sign replaces the last bit of its angle, so that one sort orders both
    bits &= -2
    bits |= fields[0] > 0
    turns.sort(axis=-1)
    sign = 2 * (bits & 1).astype(np.int16) - 1
    total = sign.sum(axis=-1, keepdims=True, dtype=np.int16)
    lead_of_others = total + sign - 2 * np.cumsum(sign, axis=-1, dtype=np.int16)  # where each student's sign changes
    weight = sign * (np.maximum(2 - abs(lead_of_others), 0) - 2 * control_fraction)
    turned = np.sum(weight * (teachers - abs(teachers - turns)), axis=-1, keepdims=True)
    unturned = (np.sign(total) - control_fraction * total) * (2 * teachers - np.pi)
    return (np.sign(teacher[0]) * (turned - unturned) / np.pi)[..., 0]


def _find_sign_change_angle(field: np.ndarray, rotated_field: np.ndarray) -> np.ndarray:
    """Return the angle phi in [0, pi] where field cos(phi) + rotated_field sin(phi) changes sign."""
    return np.arctan2(abs(field), np.where(field > 0, -rotated_field, rotated_field))
