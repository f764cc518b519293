r"""Exact generalization errors of K students with equal R and q: majority vote and mean of the weights.

With c the cosine between the students' components perpendicular to the teacher,
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

Equal students with q < R^2 (possible for few students) have no such field. There, by Price's theorem in R with K odd,

.. math:: \epsilon_g = \frac12 - \frac K\pi\int_0^{\arcsin R} \mathrm{even}_{K-1}(c_\phi)\,d\phi, \qquad
          c_\phi = (q - \sin^2\phi)/\cos^2\phi,

where even(c) is the probability that K - 1 = 2n students with v = u_1 = 0 split into equal halves,
:math:`\binom{2n}{n}\int\varphi(m)[\Phi(\sqrt c\,m)\Phi(-\sqrt c\,m)]^n dm`, real and positive also for negative c.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, comb, dawsn, gammaln, log_ndtr, ndtr

from statmech.numerics.gaussian import GAUSSIAN_CUTOFF, make_composite_rule, normal_density
from statmech.order_parameters import angle_from_components

MAX_PARAMETER_SETS_PER_BLOCK = 200  # parameter sets integrated together, to limit memory
MIN_INTEGRAND_DECAY_RATE = 1e-24  # for maximally opposed students, whose integrand decays only as a power
MAX_SUMMED_MAJORITY_SIZE = 64  # size n of a minimal majority; the incomplete beta function is faster for larger n
HALVING_PANEL_EDGES = np.geomspace(2.0**-44 * 10.0, 10.0, 45)  # each edge is twice the previous edge


def mean_weight_vector_error(theta: np.ndarray, c: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Return the error of the mean weight vector of K students at angle theta, with transverse cosine c."""
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
    """Return the slopes gamma and alpha defined in the module's docstring."""
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
