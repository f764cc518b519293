r"""Standard deviations and biases at finite N for q, the weight mean and the vote of K equal students.

They follow from the 13 covariances and 3 biases of `theory.ensembles.pair_fluctuations`, which hold for any K. The
means over students and over pairs, :math:`\bar a` and :math:`\bar c`, have the covariances

.. math:: \bar V = \frac{V_1 + (K-1)V_2}{K}, \quad \bar W = \frac{2W_1 + (K-2)W_2}{K}, \quad
          \bar S = \frac{2S_0 + 4(K-2)S_1 + (K-2)(K-3)S_2}{K(K-1)}.

**The vote** changes to first order with :math:`\bar\theta` and :math:`\bar c` alone, by the same amount as
:math:`\epsilon_g(\theta, c)` of equal students: its variance is :math:`\nabla\epsilon_g\cdot\operatorname{Cov}\cdot
\nabla\epsilon_g`. The bias would require second derivatives for unequal students, and is not computed.

**The weight mean** is a perceptron with the angle :math:`\pi\epsilon_g = \operatorname{atan2}(\sqrt\beta, \alpha)`,

.. math:: \alpha = \frac1K\sum_kl_k\cos\theta_k, \qquad
          \beta = \frac1{K^2}\sum_{kj}l_kl_j\sin\theta_k\sin\theta_j\,c_{kj},

whose mean to order 1/N follows from the means for one student and for one pair.

**q** of a student is the mean over the others, so that its variance contains the covariances between
:math:`\theta_1, \bar\theta_{k>1}` and :math:`\bar c_{1k}`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from statmech.votes.equal_students import majority_vote_error
from theory.ensembles.pair_fluctuations import PairFluctuations
from theory.ensembles.pair_noise import dot_last_axis

VOTE_DIFFERENCE_STEP = 1e-2  # relative to the scale of the vote; errors of derivatives are of fourth order
CENTRAL_DIFFERENCE_STENCIL = np.array([-2, -1, 1, 2]), np.array([1, -8, 8, -1]) / 12


class MeanCovariances(NamedTuple):
    """N times the covariances of a and c averaged over students and pairs: V (T, 2, 2), W (T, 2) and S (T,)."""

    V: np.ndarray
    W: np.ndarray
    S: np.ndarray


def compute_ensemble_corrections(
    theta: np.ndarray, c: np.ndarray, K: int, N: int, fluctuations: PairFluctuations
) -> dict[str, np.ndarray]:
    r"""Compute standard deviations and biases at finite N for quantities that depend on several students.

    Standard deviations describe a single run.

    Parameters
    ----------
    theta, c : array (T,)
        The students' angle to the teacher, and their transverse cosine, for N -> infinity.
    K
        The number of students, at least 2.
    N
        The input dimension.
    fluctuations
        The fluctuations of the same cell, from `theory.ensembles.pair_fluctuations.solve_pair_fluctuations`.

    Returns
    -------
    dict of arrays (T,)
        `q_std`, `q_bias`, `eps_g_weight_mean_std`, `eps_g_weight_mean_bias`, `eps_g_majority_vote_std`.
    """
    means = compute_mean_covariances(fluctuations, K)
    variance, bias = _compute_q_variance_and_bias(theta, c, K, fluctuations)
    mean_variance, mean_bias = _compute_weight_mean_moments(theta, c, K, fluctuations, means)
    return {
        "q_std": np.sqrt(variance / N),
        "q_bias": bias / N,
        "eps_g_weight_mean_std": np.sqrt(mean_variance / N),
        "eps_g_weight_mean_bias": mean_bias / N,
        "eps_g_majority_vote_std": np.sqrt(_compute_vote_variance(theta, c, K, means) / N),
    }


def compute_mean_covariances(fluctuations: PairFluctuations, K: int) -> MeanCovariances:
    """Compute the covariances of the mean a of K students and the mean c of all pairs."""
    S = 2 * fluctuations.S0 + 4 * (K - 2) * fluctuations.S1 + (K - 2) * (K - 3) * fluctuations.S2
    return MeanCovariances(
        V=(fluctuations.V1 + (K - 1) * fluctuations.V2) / K,
        W=(2 * fluctuations.W1 + (K - 2) * fluctuations.W2) / K,
        S=S / (K * (K - 1)),
    )


def _compute_q_variance_and_bias(
    theta: np.ndarray, c: np.ndarray, K: int, fluctuations: PairFluctuations
) -> tuple[np.ndarray, np.ndarray]:
    """Compute N times the variance and bias of the mean q of one student with the others."""
    sin, cos, num_others = np.sin(theta), np.cos(theta), K - 1
    q_theta, q_c = -theta * sin * cos * (1 - c), sin**2  # derivatives of q for log theta and c
    V1, V2 = fluctuations.V1[..., 1, 1], fluctuations.V2[..., 1, 1]
    W1, W2 = fluctuations.W1[..., 1], fluctuations.W2[..., 1]
    turns = V1 + 2 * V2 + (V1 + (num_others - 1) * V2) / num_others
    mixed = W1 + (W1 + (num_others - 1) * W2) / num_others
    cosines = (fluctuations.S0 + (num_others - 1) * fluctuations.S1) / num_others
    variance = q_theta**2 * turns + 2 * q_theta * q_c * mixed + q_c**2 * cosines
    bend = q_theta - theta**2 * (cos**2 + c * sin**2), theta**2 * (sin**2 + c * cos**2), theta * sin * cos
    first = 2 * q_theta * fluctuations.bias[..., 1] + q_c * fluctuations.bias_c
    return variance, first + bend[0] * V1 + bend[1] * V2 + 2 * bend[2] * W1


def _compute_weight_mean_moments(
    theta: np.ndarray, c: np.ndarray, K: int, fluctuations: PairFluctuations, means: MeanCovariances
) -> tuple[np.ndarray, np.ndarray]:
    """Compute N times the variance and bias of eps_g of the weight mean.

    Lengths are relative to the students' length.
    """
    x, y = np.cos(theta), np.sin(theta)
    dx, dy = np.stack([x, -theta * y], -1), np.stack([y, theta * x], -1)  # derivatives for (log l, log theta)
    ddx, ddy = (np.stack([d, np.stack([d[..., 1], d[..., 1] - theta**2 * z], -1)], -2) for d, z in ((dx, x), (dy, y)))
    mean_cosine = (1 + (K - 1) * c) / K
    alpha, beta = x, y**2 * mean_cosine
    d_beta, c_beta = 2 * y[..., None] * dy * mean_cosine[..., None], y**2 * (K - 1) / K
    outer = dy[..., :, None] * dy[..., None, :]
    single = 2 * y * dot_last_axis(dy, fluctuations.bias) + _trace_product(
        outer + y[..., None, None] * ddy, fluctuations.V1
    )
    pair = (
        c
        * (
            2 * y * dot_last_axis(dy, fluctuations.bias)
            + _trace_product(y[..., None, None] * ddy, fluctuations.V1)
            + _trace_product(outer, fluctuations.V2)
        )
        + y**2 * fluctuations.bias_c
        + 2 * y * dot_last_axis(dy, fluctuations.W1)
    )
    first = (
        dot_last_axis(dx, fluctuations.bias) + _trace_product(ddx, fluctuations.V1) / 2,
        (single + (K - 1) * pair) / K,
    )
    VB = np.einsum("...ij,...j->...i", means.V, d_beta) + means.W * c_beta[..., None]
    spread = dot_last_axis(dx, np.einsum("...ij,...j->...i", means.V, dx)), dot_last_axis(dx, VB)
    beta_variance = dot_last_axis(d_beta, VB) + c_beta * (dot_last_axis(d_beta, means.W) + c_beta * means.S)
    root, square = np.sqrt(beta), alpha**2 + beta
    T = -root / square, alpha / (2 * root * square)
    TT = (
        2 * alpha * root / square**2,
        (beta - alpha**2) / (2 * root * square**2),
        -alpha * (1 + 2 * beta / square) / (4 * root**3 * square),
    )
    variance = T[0] ** 2 * spread[0] + 2 * T[0] * T[1] * spread[1] + T[1] ** 2 * beta_variance
    curved = TT[0] * spread[0] + 2 * TT[1] * spread[1] + TT[2] * beta_variance
    return variance / np.pi**2, (T[0] * first[0] + T[1] * first[1] + curved / 2) / np.pi


def _compute_vote_variance(theta: np.ndarray, c: np.ndarray, K: int, means: MeanCovariances) -> np.ndarray:
    """Compute N times the variance of eps_g of the majority vote."""
    eps_theta, eps_c = compute_vote_gradient(theta, c, K)
    mixed = 2 * eps_theta * eps_c * means.W[..., 1]
    return eps_theta**2 * means.V[..., 1, 1] + mixed + eps_c**2 * means.S


def compute_vote_gradient(theta: np.ndarray, c: np.ndarray, K: int) -> tuple[np.ndarray, np.ndarray]:
    """Differentiate eps_g of the majority vote with respect to log theta and c.

    Derivatives are finite differences of exact values.
    """
    if K <= 2:  # the vote of up to two students has the error of one student
        return theta / np.pi, np.zeros_like(theta)
    step = VOTE_DIFFERENCE_STEP * np.minimum(1 - c, c + 1 / (K - 1))
    offsets, weights, size = *CENTRAL_DIFFERENCE_STENCIL, np.asarray(K)
    turned = majority_vote_error(theta * np.exp(VOTE_DIFFERENCE_STEP * offsets[:, None]), c, size)
    shared = majority_vote_error(theta, c + step * offsets[:, None], size)
    eps_c = np.divide(weights @ shared, step, out=np.zeros_like(step), where=step > 0)  # 0 for identical students
    return weights @ turned / VOTE_DIFFERENCE_STEP, eps_c


def _trace_product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.einsum("...ij,...ij->...", x, y)
