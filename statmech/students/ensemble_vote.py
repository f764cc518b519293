r"""Generalization errors of ensembles of perceptrons: majority vote and mean of the weights.

Three methods cover K students with equal R and q, up to four unequal students, and many unequal students.

**Equal students.** With c the cosine between the students' components perpendicular to the teacher,
:math:`q = R^2 + c\,(1-R^2)`, the students are conditionally independent given their common field
:math:`m \sim N(0,1)`: each is positive with probability :math:`\Phi(\alpha m)`, :math:`\alpha = \sqrt{q/(1-q)}`,
and the teacher's field with probability :math:`\Phi(\gamma m)`, :math:`\gamma = R/\sqrt{q-R^2}`. So the vote of K
students has the error

.. math:: \epsilon_g = \int_0^\infty 2\varphi(m)\left[\Phi(-\gamma m)\,(1-W) + \Phi(\gamma m)\,W\right]dm, \qquad
          W = I_{\Phi(-\alpha m)}(n, n), \quad n = \lceil K/2\rceil,

the regularised incomplete beta function I being the probability that the majority is negative. A fair coin decides the
tie of an even K, which makes its error equal to the error for K - 1. For K -> infinity the error is
:math:`\arccos(R/\sqrt q)/\pi`, and the mean of the weights, the perceptron parallel to :math:`\sum_k\mathbf J_k`,
reaches the same limit from :math:`\arccos(R/\sqrt{q + (1-q)/K})/\pi`.

Equal students with q < R² (possible for few students) have no such field. There, by Price's theorem in R with K odd,

.. math:: \epsilon_g = \frac12 - \frac K\pi\int_0^{\arcsin R} \mathrm{even}_{K-1}(c_\phi)\,d\phi, \qquad
          c_\phi = (q - \sin^2\phi)/\cos^2\phi,

where even(c) is the probability that K - 1 = 2n students with v = u_1 = 0 split into equal halves,
:math:`\binom{2n}{n}\int\varphi(m)[\Phi(\sqrt c\,m)\Phi(-\sqrt c\,m)]^n dm`, real and positive also for negative c.

**Up to four unequal students.** The majority-vote error is exact. One student has the error :math:`\theta/\pi`. Two
students have the error of a random student, since a fair coin decides a tie. Four have the error of a random triple:
without one of four, a majority remains a majority and a tie becomes a fair coin. For three students the error is an
integral over one angle. Three signs have the majority :math:`(s_1 + s_2 + s_3 - s_1 s_2 s_3)/2`, and with the teacher's
sign :math:`s_0`

.. math:: \epsilon_g = \tfrac12 - \tfrac14\Big[\sum_k \langle s_0 s_k\rangle
          - \langle s_0 s_1 s_2 s_3\rangle\Big], \qquad \langle s_i s_j\rangle = 1 - 2\theta_{ij}/\pi .

The mean of four signs has no closed form, but its derivatives do (Price's theorem): with the partial correlation of
the other two fields,
:math:`\partial\langle s_0 s_1 s_2 s_3\rangle/\partial\theta_{ij} = -(2/\pi)^2\arcsin\rho_{kl\cdot ij}`.
Turn the teacher from student 1, where :math:`\langle s_0 s_1 s_2 s_3\rangle = \langle s_2 s_3\rangle`, along the great
circle to its final direction. At the angle :math:`\psi` before this direction, student k = 2, 3 has a component
:math:`x_k` along the teacher's motion and a constant part :math:`\mathbf y_k` perpendicular to the circle:

.. math:: x_k = \sin\theta_k\,c_{1k}\cos\psi - \cos\theta_k\sin\psi, \quad
          \mathbf y_k\cdot\mathbf y_l = \sin\theta_k\sin\theta_l\,(c_{kl} - c_{1k}c_{1l}), \quad
          p_k = \sqrt{x_k^2 + \mathbf y_k^2},

with the cosines c of the students' parts perpendicular to the final direction. At :math:`\psi`
:math:`d\theta_{0k}/d\psi = -x_k/p_k`, and with the area :math:`Y = |\mathbf y_2\times\mathbf y_3|`

.. math:: \epsilon_g = \frac{\theta_1 + \theta_2 + \theta_3 - \theta_{23}}{2\pi}
          - \frac1{\pi^2}\Big[\theta_1 A_1
          + \int_0^{\theta_1}\Big(\frac{x_2}{p_2}A_2 + \frac{x_3}{p_3}A_3\Big)d\psi\Big],

.. math:: A_1 = \operatorname{atan2}(\mathbf y_2\cdot\mathbf y_3,\, Y), \qquad
          A_2 = \operatorname{atan2}(\mathbf y_2^2\,x_3 - \mathbf y_2\cdot\mathbf y_3\,x_2,\, p_2 Y), \quad
          A_3 \text{ with 2 and 3 exchanged}.

Every term is of the size of an angle to the teacher, so that nothing cancels as learning succeeds. Where students are
coplanar the arctangents become steps: panels are cut there and halved until they agree.

**Many unequal students.** The majority vote is integrated exactly over great circles of inputs. For two independent
inputs x and x', every :math:`x\cos\phi + x'\sin\phi` has the distribution of an input, so eps_g is the mean over
circles of the fraction of :math:`\phi\in[0,\pi)` with a wrong vote (the other half turn repeats it with all signs
reversed). On a circle each of the K + 1 perceptrons changes sign once, at an angle known in closed form. With the
teacher's angle :math:`\phi_0`, the students' :math:`\phi_k` and signs :math:`s_k` at :math:`\phi = 0`, the net
agreement of the vote with the teacher is

.. math:: \int_0^\pi \operatorname{sgn}(vote)\,\operatorname{sgn}(teacher)\,d\phi = s_0\Big[\sum_k s_k\,p_k\,
          (\phi_0 - |\phi_0 - \phi_k|) - \operatorname{sgn}\Big(\sum_k s_k\Big)(2\phi_0 - \pi)\Big],

where :math:`p_k` is 2 if the others are divided equally at :math:`\phi_k`, 1 if one side leads by one, else 0. The
fraction is continuous in the fields and decreases with the students' angles to the teacher: its *relative* error does
not grow near perfect learning.

Circles are random or from a scrambled Sobol net. In both cases the average is unbiased, and independent draws give its
error. Two known averages reduce this error:

* Students with statistically identical starts differ from equal students, at the mean angle to the teacher and the mean
  cosine, by :math:`1/\sqrt N`. The error of equal students is the integral above, and only the *difference* is
  measured, on the same circles. Its variance decreases as 1/N, like the variance of the vote between runs, so that the
  same number of circles serves at any N. A control variate reduces it further: a fraction of each student's error,
  whose mean is known.
* The weight mean is a single perceptron, whose eps_g is known: for many students in few dimensions, which are far from
  equal, its deviation on the same circles corrects the vote's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, comb, dawsn, gammaln, log_ndtr, ndtr, ndtri

from statmech.numerics.gaussian import GAUSSIAN_CUTOFF, get_legendre_rule, make_composite_rule, normal_density
from statmech.students.student_geometry import angle_between_students, angle_from_components

MAX_PARAMETER_SETS_PER_BLOCK = 200  # parameter sets integrated together, to limit memory
MIN_INTEGRAND_DECAY_RATE = 1e-24  # for maximally opposed students, whose integrand decays only as a power
MAX_SUMMED_MAJORITY_SIZE = 64  # size n of a minimal majority; the incomplete beta function is faster for larger n
HALVING_PANEL_EDGES = np.geomspace(2.0**-44 * 10.0, 10.0, 45)  # each edge is twice the previous edge
MAX_EXACT_STUDENTS = 4
NODES = 10  # per panel and per half panel
VOTE_PANEL_TOL = 1e-13  # relative to the length of the path
MAX_VOTE_PANEL_HALVINGS = 45
MAX_ENSEMBLES_PER_BLOCK = 2**13  # ensembles integrated together; each takes 4 KB
MAX_NARROW_STEP_WIDTH = 0.1  # relative to the path: panels are cut at narrower steps, which would fall between nodes
UNIT_COSINE_TOL = 1e-14
MIN_STUDENT_SHIFT = 1e-20  # relative to the largest angle; separates students that coincide
NUM_TEST_CIRCLES = 1024  # per run; the estimate is unbiased, and the spread over seeds includes its error
MIN_TEST_CIRCLES = 64
MAX_SOBOL_DIMENSIONS = 21_201  # limit of SciPy's tables


def mean_weight_vector_error(theta: np.ndarray, c: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Return the error of an ensemble's mean weight vector, of K students at angle theta with transverse cosine c."""
    perpendicular = np.sin(theta) * np.sqrt(np.maximum(c + (1 - c) / K, 0.0))
    return _set_undecided_error(
        angle_from_components(perpendicular, np.cos(theta)) / np.pi, perpendicular, np.cos(theta)
    )


def majority_vote_error(theta: np.ndarray, c: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Return the majority-vote error of K students at angle theta to the teacher, with transverse cosine c."""
    theta, c, K = np.broadcast_arrays(*(np.asarray(value, float) for value in (theta, c, K)))
    error = np.where(K <= 2, theta / np.pi, mean_weight_vector_error(theta, c, np.inf * np.ones_like(K)))
    several = np.isfinite(K) & (K > 2) & (theta > 0) & (theta < np.pi)
    independent = several & (c >= 0)
    error[independent] = integrate_vote_error(theta[independent], c[independent], K[independent])
    for index in map(tuple, np.argwhere(several & (c < 0))):
        error[index] = _integrate_opposed_vote_error(theta[index], c[index], int(K[index]))
    return error


def integrate_vote_error(theta: np.ndarray, c: np.ndarray, K: ArrayLike) -> np.ndarray:
    """Integrate the vote error of K > 2 students with c >= 0 over their common field, in blocks.

    Panels shrink towards 0 by factors of 2 until both sigmoids of an element are smooth on the first panel. The value
    of an element does not depend on the other elements.
    """
    gamma, alpha, K = (x.ravel() for x in np.broadcast_arrays(*_compute_sigmoid_slopes(theta, c), np.asarray(K, float)))
    panels_each = _count_halving_panels(np.maximum(np.where(np.isfinite(gamma), abs(gamma), 0.0), alpha * np.sqrt(K)))
    values = np.empty_like(gamma)
    for number in np.unique(panels_each):
        rows, edges = np.flatnonzero(panels_each == number), np.concatenate([[0.0], HALVING_PANEL_EDGES[-number:]])
        for block in np.split(rows, range(MAX_PARAMETER_SETS_PER_BLOCK, rows.size, MAX_PARAMETER_SETS_PER_BLOCK)):
            values[block] = _integrate_over_common_field(
                alpha[block, None], gamma[block, None], np.ceil(K[block, None] / 2), edges
            )
    return values.reshape(np.shape(theta))


def _compute_sigmoid_slopes(theta: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the slopes gamma and alpha of the votes' sigmoids, defined in the module's docstring."""
    sin, cos = np.sin(theta), np.cos(theta)
    with np.errstate(divide="ignore", invalid="ignore"):
        gamma = cos / (sin * np.sqrt(c))
        alpha = np.sqrt(cos**2 + sin**2 * c) / (sin * np.sqrt(1 - c))
    return np.nan_to_num(gamma, nan=0.0, posinf=np.inf, neginf=-np.inf), alpha


def _count_halving_panels(slope: np.ndarray) -> np.ndarray:
    """Count the panels needed for the steepest sigmoid of each element, in multiples of 4."""
    halvings = np.log2(2 * HALVING_PANEL_EDGES[-1] * np.maximum(slope, 1.0))
    return np.clip(4 * np.ceil((halvings + 1) / 4), 4, HALVING_PANEL_EDGES.size).astype(int)


def _integrate_over_common_field(alpha: np.ndarray, gamma: np.ndarray, n: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Integrate the vote error over the common field on panels between the edges."""
    m, weight = make_composite_rule(edges, 16)
    minority, against = _compute_majority_probability(ndtr(-alpha * m), n), ndtr(-abs(gamma) * m)
    wrong = against + (1 - 2 * against) * np.where(gamma < 0, 1 - minority, minority)
    return np.sum(weight * 2 * normal_density(m) * wrong, axis=-1)


def _compute_majority_probability(p: np.ndarray, n: np.ndarray) -> np.ndarray:
    r"""Return the probability :math:`I_p(n, n) = p^n\sum_{j<n}\binom{n-1+j}{j}(1-p)^j` of n or more votes among 2n - 1.

    The sum has positive terms only. For hundreds of students the incomplete beta function is faster.
    """
    probability = np.empty_like(p)
    for size in np.unique(n).tolist():
        rows = n[:, 0] == size
        probability[rows] = (
            _sum_majority_terms(p[rows], int(size))
            if size <= MAX_SUMMED_MAJORITY_SIZE
            else betainc(size, size, p[rows])
        )
    return probability


def _sum_majority_terms(p: np.ndarray, n: int) -> np.ndarray:
    """Sum the probability of at least n votes among 2n - 1 term by term."""
    total, rest = np.full_like(p, comb(2 * n - 2, n - 1)), 1 - p
    for j in reversed(range(n - 1)):
        total *= rest
        total += comb(n - 1 + j, j)
    for _ in range(n):
        total *= p
    return total


def _integrate_opposed_vote_error(theta: float, c: float, K: int) -> float:
    """Integrate the vote error of students with negative transverse cosine c, by Price's theorem.

    The variable is the logarithm of psi = pi/2 - phi, because the integrand changes at psi of the order of theta. Its
    limit 1 far away is subtracted. Panels halve towards theta, where maximally opposed students have a square root
    singularity.
    """
    if theta > np.pi / 2:
        return 1 - _integrate_opposed_vote_error(np.pi - theta, c, K)
    odd, length = K - 1 + K % 2, np.log(np.pi / 2 / theta)
    halved = min(length, 1.0) * 2.0 ** -np.arange(40.0, -1.0, -1.0)
    edges = np.concatenate([[0.0], halved, np.linspace(halved[-1], length, 1 + int(np.ceil(length)))[1:]])
    log_psi, weight = make_composite_rule(edges, 16)
    psi = theta * np.exp(log_psi)
    cosine = 1 - (1 - c) * (np.sin(theta) / np.sin(psi)) ** 2
    excess = odd * _compute_equal_split_probability(cosine, (odd - 1) // 2) - 1
    return float(theta - weight @ (psi * excess)) / np.pi


def _compute_equal_split_probability(c: np.ndarray, n: int) -> np.ndarray:
    """Return for each c the probability that half of 2n normal variables with correlation c/(1 + c) are positive.

    For negative c the integrand decays as exp(-rate m^2) only, and as a power of m at c = -1/(2n), where 2n students
    lie in fewer than 2n dimensions.
    """
    rate = 0.5 - n * np.maximum(-c, 0.0)
    octaves = np.log2(1 / np.sqrt(2 * max(float(np.min(rate)), MIN_INTEGRAND_DECAY_RATE)))
    wide = GAUSSIAN_CUTOFF * 2 ** np.arange(0.5, octaves + 0.5, 0.5)
    m, weight = make_composite_rule(np.concatenate([np.linspace(0.0, GAUSSIAN_CUTOFF, 17), wide]), 16)
    scaled = np.sqrt(np.abs(c))[:, None] * m
    # Phi(z) Phi(-z) is 1/4 + dawsn(|z|/sqrt 2)^2 exp(|z|^2) / pi for imaginary z: the rate contains its exponential
    imaginary = np.log(np.exp(-(scaled**2)) / 4 + dawsn(scaled / np.sqrt(2)) ** 2 / np.pi)
    log_product = np.where(c[:, None] < 0, imaginary, log_ndtr(scaled) + log_ndtr(-scaled))
    log_ways = gammaln(2 * n + 1) - 2 * gammaln(n + 1)
    decay = np.exp(log_ways + n * log_product - rate[:, None] * m**2)
    return 2 * np.sum(weight * decay, axis=-1) / np.sqrt(2 * np.pi)


def _set_undecided_error(error: np.ndarray, perpendicular: np.ndarray, parallel: np.ndarray) -> np.ndarray:
    """Set the error to 1/2 where the weights sum to 0, so that the output is undecided."""
    return np.where((np.abs(perpendicular) < 1e-15) & (np.abs(parallel) < 1e-15), 0.5, error)


class TeacherPath(NamedTuple):
    """Parameters of the integrand, arrays (n,), for students sorted by their angles to the teacher."""

    end_angle: np.ndarray  # theta_1
    sin2: np.ndarray  # x_2 at psi = 0
    cos2: np.ndarray
    sin3: np.ndarray
    cos3: np.ndarray
    y22: np.ndarray
    y33: np.ndarray
    y23: np.ndarray
    area: np.ndarray


def few_student_vote_error(parallel: np.ndarray, perpendicular: np.ndarray) -> np.ndarray:
    """Return the error of the majority vote of up to four students.

    The error is 1e-12 of the largest angle to the teacher. It rises to 1e-7 of this angle if students coincide, or are
    coplanar with the teacher, within 1e-6.

    Parameters
    ----------
    parallel : array (..., K)
        The students' components parallel to the teacher, K <= 4.
    perpendicular : array (..., K, K)
        The Gram matrix of their components perpendicular to the teacher.

    Returns
    -------
    array (...)

    Examples
    --------
    Identical students vote like a single student, here at 45 degrees:

    >>> float(few_student_vote_error(np.ones(3), np.ones((3, 3))).round(12))
    0.25
    """
    K = parallel.shape[-1]
    if K <= 2:
        return np.mean(
            angle_from_components(np.sqrt(np.diagonal(perpendicular, axis1=-2, axis2=-1)), parallel) / np.pi, axis=-1
        )
    if K == 3:
        return _three_student_vote_error(parallel, perpendicular)
    triples = np.array([[k for k in range(4) if k != out] for out in range(4)])
    return _three_student_vote_error(
        parallel[..., triples], perpendicular[..., triples[:, :, None], triples[:, None, :]]
    ).mean(axis=-1)


def _three_student_vote_error(parallel: np.ndarray, perpendicular: np.ndarray) -> np.ndarray:
    """Return the vote errors (...) of ensembles of three students, computed in blocks."""
    errors = np.empty(parallel.shape[:-1])
    ensembles, components, products = errors.reshape(-1), parallel.reshape(-1, 3), perpendicular.reshape(-1, 3, 3)
    for first in range(0, len(ensembles), MAX_ENSEMBLES_PER_BLOCK):
        block = slice(first, first + MAX_ENSEMBLES_PER_BLOCK)
        theta, c = _sort_by_angle(components[block], products[block])
        path = _make_teacher_path(theta, c)
        theta_23 = angle_between_students(theta[:, 1], theta[:, 2], c[:, 1, 2])
        bend = path.end_angle * np.arctan2(path.y23, path.area) + _integrate_teacher_path(path)
        ensembles[block] = (theta.sum(axis=-1) - theta_23) / (2 * np.pi) - bend / np.pi**2
    return errors


def _sort_by_angle(parallel_part: np.ndarray, perpendicular: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return three voters' angles (n, 3) to the teacher, in increasing order, and perpendicular cosines (n, 3, 3)."""
    length = np.sqrt(np.diagonal(perpendicular, axis1=-2, axis2=-1))
    theta = angle_from_components(length, parallel_part)
    parallel = length == 0
    scale = np.where(parallel, 1.0, length)
    c = np.clip(perpendicular / scale[:, :, None] / scale[:, None, :], -1.0, 1.0)
    c = np.where(abs(c) > 1 - UNIT_COSINE_TOL, np.sign(c), c)  # a square root would amplify rounding errors to 1e-8
    order = np.argsort(theta, axis=-1, kind="stable")
    rows = np.arange(len(theta))[:, None]
    return theta[rows, order], c[rows[..., None], order[:, :, None], order[:, None, :]]


def _make_teacher_path(theta: np.ndarray, c: np.ndarray) -> TeacherPath:
    """Return the parameters of the vote's integrand from angles to the teacher and cosines of three students."""
    (sin1, sin2, sin3), (_, cos2, cos3) = np.sin(theta).T, np.cos(theta).T
    c12, c13, c23 = c[:, 0, 1], c[:, 0, 2], c[:, 1, 2]
    y22, y33 = (1 - c12) * (1 + c12), (1 - c13) * (1 + c13)
    bound = np.sqrt(y22 * y33)
    y23 = np.clip(c23 - c12 * c13, -bound, bound)
    area = (bound - y23) * (bound + y23)
    # shift each student in its own direction, so that identical students form a triangle with well-defined angles
    min_square = (MIN_STUDENT_SHIFT * np.maximum(sin1, np.maximum(sin2, sin3))) ** 2
    y22, y33, y23 = y22 * sin2**2, y33 * sin3**2, y23 * sin2 * sin3
    area = np.sqrt(area * (sin2 * sin3) ** 2 + min_square * (y22 + y33 + min_square))
    return TeacherPath(theta[:, 0], sin2 * c12, cos2, sin3 * c13, cos3, y22 + min_square, y33 + min_square, y23, area)


def _evaluate_vote_integrand(psi: np.ndarray, path: TeacherPath) -> np.ndarray:
    """Evaluate the integrand of three students' vote at angles (n, nodes), for parameters (n, 1)."""
    sin, cos = np.sin(psi), np.cos(psi)
    x2, x3 = path.sin2 * cos - path.cos2 * sin, path.sin3 * cos - path.cos3 * sin
    p2, p3 = np.sqrt(x2**2 + path.y22), np.sqrt(x3**2 + path.y33)
    a2 = np.arctan2(path.y22 * x3 - path.y23 * x2, p2 * path.area)
    a3 = np.arctan2(path.y33 * x2 - path.y23 * x3, p3 * path.area)
    return x2 / p2 * a2 + x3 / p3 * a3


def _integrate_vote_panel(left: np.ndarray, width: np.ndarray, path: TeacherPath) -> np.ndarray:
    """Integrate the vote error over one panel (n,) of each teacher's path."""
    x, weight = get_legendre_rule(NODES)
    values = _evaluate_vote_integrand(
        left[:, None] + width[:, None] * x, TeacherPath(*(number[:, None] for number in path))
    )
    return width * (weight * values).sum(axis=-1)


def _integrate_teacher_path(path: TeacherPath) -> np.ndarray:
    """Integrate the vote error along each path, bisecting panels whose integral differs from the sum over halves."""
    edges = _compute_panel_edges(path)
    owner, panel = np.nonzero(np.diff(edges, axis=-1) > 0)
    left, width = edges[owner, panel], np.diff(edges, axis=-1)[owner, panel]
    total = np.zeros_like(path.end_angle)
    previous = _integrate_vote_panel(left, width, TeacherPath(*(number[owner] for number in path)))
    for _ in range(MAX_VOTE_PANEL_HALVINGS):
        if not owner.size:
            break
        owner, width = np.repeat(owner, 2), np.repeat(width / 2, 2)
        left = np.repeat(left, 2)
        left[1::2] += width[1::2]
        half = _integrate_vote_panel(left, width, TeacherPath(*(number[owner] for number in path)))
        halves = half[::2] + half[1::2]
        open_ = abs(halves - previous) > VOTE_PANEL_TOL * path.end_angle[owner[::2]]
        total += np.bincount(owner[::2][~open_], halves[~open_], len(total))
        open_ = np.repeat(open_, 2)
        owner, left, width, previous = owner[open_], left[open_], width[open_], half[open_]
    return total + np.bincount(owner, previous, len(total))


def _compute_panel_edges(path: TeacherPath) -> np.ndarray:
    """Return panel edges (n, 6) of the vote's integrand, with zeros of x_2, x_3 and arctangents at narrow steps."""
    h2, h3 = np.sqrt(path.y22), np.sqrt(path.y33)
    s2, c2 = path.y22 * path.sin3 - path.y23 * path.sin2, path.y22 * path.cos3 - path.y23 * path.cos2
    s3, c3 = path.y33 * path.sin2 - path.y23 * path.sin3, path.y33 * path.cos2 - path.y23 * path.cos3
    sin, cos = np.stack([path.sin2, path.sin3, s2, s3]), np.stack([path.cos2, path.cos3, c2, c3])
    narrow = np.stack([h2, h3, h2 * path.area, h3 * path.area]) < MAX_NARROW_STEP_WIDTH * path.end_angle * np.hypot(
        sin, cos
    )
    zero = np.where(narrow, np.arctan2(sin, cos) % np.pi, 0.0)
    return np.sort(np.clip([*zero, np.zeros_like(path.end_angle), path.end_angle], 0.0, path.end_angle), axis=0).T


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
    """Draw great circles for measuring votes from a scrambled Sobol net of `points` (a power of 2).

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
    """Return the voters' fields (..., points, K), from the symmetric square root of the cosines of students."""
    values, vectors = np.linalg.eigh(cosines)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :] @ np.swapaxes(vectors, -1, -2)
    parallel, perpendicular = np.cos(theta)[..., None, :], np.sin(theta)[..., None, :]
    return [parallel * x[..., :1] + perpendicular * (x[..., 1:] @ root) for x in inputs]


def _compute_equal_student_fields(theta: np.ndarray, c: np.ndarray, inputs: np.ndarray) -> list[np.ndarray]:
    """Return the voters' fields (..., points, K), for equal students at the angle theta with the cosine c."""
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
