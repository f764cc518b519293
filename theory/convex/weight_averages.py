r"""Saddle-point equations of the weights, which give their order parameters as functions of the conjugates.

If inputs are isotropic (`IsotropicWeightEquations`), all weights feel the same Gaussian field. If inputs have modes
(`ModeWeightEquations`), each mode has its own field. Both classes compute the residuals of the equations and their
derivatives.

**Isotropic inputs.** A weight minimises :math:`\tfrac12(\hat V + \lambda_2)w^2 + \lambda_1|w| - bw` in a field
:math:`b = \hat m w^* + \sqrt{\hat q}\,\xi`, so that w is the soft threshold of b, over :math:`D = \hat V+\lambda_2`:

.. math:: V = P(|b| > \lambda_1)/D, \qquad m = \langle w^*w\rangle, \qquad l^2 = \langle w^2\rangle .

Without an l1 norm these averages are :math:`1/D,\ \hat m/D,\ (\hat m^2+\hat q)/D^2`. For a Gaussian
:math:`b\sim N(\mu,\Delta^2)` the averages of the soft threshold are, with :math:`k_\pm = (\pm\mu-\lambda_1)/\Delta`,

.. math:: \langle\mathrm{soft}'\rangle = \Phi(k_+)+\Phi(k_-), \quad
          \langle\mathrm{soft}\rangle = \Delta[\psi_1(k_+)-\psi_1(k_-)], \quad
          \langle\mathrm{soft}^2\rangle = \Delta^2[\psi_2(k_+)+\psi_2(k_-)],

:math:`\psi_1(k) = \varphi(k)+k\Phi(k)`, :math:`\psi_2(k) = (1+k^2)\Phi(k)+k\varphi(k)`. If the teacher's weights are a
mixture of Gaussians, so is b, and :math:`\langle w^*\,\mathrm{soft}\rangle` follows from Stein's lemma.

A linear teacher has :math:`\hat m = \hat V`, and only :math:`\langle(w-w^*)^2\rangle` matters. With
:math:`c = b - \mathrm{soft}(b)`, which is b clipped to :math:`\pm\lambda_1`,
:math:`D(w-w^*) = \sqrt{\hat q}\,\xi - c - \lambda_2w^*`; its mean square has no large terms that cancel.

**Modes.** For inputs of unequal variance the equations are sums over modes. A mode (`statmech.inputs.covariance_modes`)
is a fraction :math:`\nu_a` of the directions with the variance :math:`\omega_a`, the fraction :math:`p_a` of the
variance of the teacher's field, and the penalty :math:`\lambda_a`, a multiple of lambda. With
:math:`D_a = \lambda_a + \hat V\omega_a`, :math:`r_a = \omega_a/D_a`, :math:`S = \sum_ap_a` and
:math:`\bar r = \sum_ap_ar_a/S`, the covariance :math:`m = Q\cos\theta` of a student's field and the teacher's, the
student's variance :math:`Q^2` and the susceptibility V are

.. math:: V = \sum_a\nu_ar_a, \qquad m = \hat m\sum_ap_ar_a, \qquad
          Q^2 - m^2 = \hat q\sum_a\nu_ar_a^2 + \hat m^2\Big[\sum_ap_a(r_a-\bar r)^2 + S(1-S)\,\bar r^2\Big],

without cancellation also where the student's angle is small. For a linear teacher :math:`\hat m = \hat V`, and the
field's error is

.. math:: s^2 - \sigma^2 = 1 - S + \sum_ap_a\Big(\frac{\lambda_a}{D_a}\Big)^2 + \hat q\sum_a\nu_ar_a^2 .

Derivatives are :math:`\partial r_a/\partial\hat V = -r_a^2` and :math:`\partial r_a/\partial\ln\lambda =
-(\lambda_a/D_a)\,r_a`. The variable is :math:`\hat V` instead of its logarithm because it is 0 for a hinge loss under a
strong penalty. The weights in mode a are :math:`(\hat mc_a + \sqrt{\hat q\omega_a}\,\xi)/D_a`, with :math:`c_a^2 =
\omega_ap_a/\nu_a`, so that

.. math:: \frac{|\mathbf w|^2}N = \sum_a\frac{\hat m^2p_a\omega_a + \hat q\nu_a\omega_a}{D_a^2}, \qquad
          \frac{\mathbf w\cdot\mathbf w^*}N = \hat m\Big(\frac S{\sum_b\omega_bT_b}\Big)^{1/2}\sum_aT_ar_a .

(Loureiro, Gerbelot, Cui, Goldt, Krzakala, Mezard & Zdeborova 2021, in the eigenbasis of the covariance; for ridge
regression Dobriban & Wager 2018.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from statmech.convex.weight_distributions import WeightDistribution
from statmech.inputs.covariance_modes import Modes
from statmech.numerics.gaussian import normal_cdf, normal_density

LOG_DIFFERENCE_STEP = 1e-3  # gives fourth-order differences an error of 1e-12
MAX_WEIGHT_DEVIATIONS = 10.0  # in standard deviations; a fraction 1e-23 of the weights is larger
PRIOR_PENALTY_RATIO_REL_TOL = 1e-12  # smaller differences between modes are rounding errors


def compute_label_unknown_logs(
    weights: WeightDistribution | None, q: np.ndarray, m: np.ndarray, l1: np.ndarray
) -> np.ndarray:
    """Compute ln tan(theta), ln(D Q) and ln(D V) (3, batch) as averages over weights, from the conjugates q and m.

    Pass None as `weights` if the penalty has no l1 norm.
    """
    if weights is None:
        return np.array([0.5 * np.log(q) - np.log(m), 0.5 * np.log(m**2 + q), 0 * q])
    alive = overlap = square = 0 * q
    for fraction, mean, variance in weights.pieces:
        width = np.sqrt(m**2 * variance + q)
        survival, drift, power = _compute_soft_threshold_moments(m * mean, width, l1)
        alive, square = alive + fraction * survival, square + fraction * power
        overlap = overlap + fraction * (mean * drift + variance * m * survival)
    return np.array([0.5 * np.log(square - overlap**2) - np.log(overlap), 0.5 * np.log(square), np.log(alive)])


def compute_output_unknown_logs(
    weights: WeightDistribution | None, V: np.ndarray, q: np.ndarray, l1: np.ndarray, l2: np.ndarray
) -> np.ndarray:
    """Compute the logarithms (2, batch) of D V and the mean square of D (w - w*), as averages over weights.

    Parameters
    ----------
    weights
        Distribution of the teacher's weights, or None if the penalty has no l1 norm.
    V, q
        The conjugate order parameters V = m and q (batch,).
    l1, l2
        Factors of the l1 norm and of half the squared length (batch,).
    """
    if weights is None:
        return np.array([np.log(l2**2 + q), 0 * q])
    alive, square = 0 * q, l2**2
    for fraction, mean, variance in weights.pieces:
        width = np.sqrt(V**2 * variance + q)
        survival, drift, _ = _compute_soft_threshold_moments(V * mean, width, l1)
        alive = alive + fraction * survival
        pull = mean * (V * mean - drift) + variance * V * (1 - survival)
        square = square + fraction * (
            q * (2 * survival - 1) + _compute_clipped_mean_square(V * mean, width, l1, survival) + 2 * l2 * pull
        )
    return np.array([np.log(square), np.log(alive)])


def differentiate_by_logs(function: Callable[[np.ndarray], np.ndarray], logs: np.ndarray) -> np.ndarray:
    """Differentiate a function of k logarithms by fourth-order differences, as an array (outputs, k, batch)."""
    steps = np.array([1, -1, 2, -2])[:, None] * LOG_DIFFERENCE_STEP * np.eye(len(logs))[:, None]
    up, down, far_up, far_down = np.moveaxis(function(logs[:, None, None] + steps[..., None]), 1, 0)
    return (8 * (up - down) - far_up + far_down) / (12 * LOG_DIFFERENCE_STEP)


def _compute_soft_threshold_moments(
    mean: np.ndarray, width: np.ndarray, l1: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Average the slope, value and square of a soft-thresholded weight over its normal field."""
    up, down = (mean - l1) / width, (-mean - l1) / width
    right, left = normal_cdf(up), normal_cdf(down)
    first = up * right + normal_density(up) - down * left - normal_density(down)
    second = (1 + up**2) * right + up * normal_density(up) + (1 + down**2) * left + down * normal_density(down)
    return right + left, width * first, width**2 * second


def _compute_clipped_mean_square(
    mean: np.ndarray, width: np.ndarray, l1: np.ndarray, outside: np.ndarray
) -> np.ndarray:
    """Average the square of a weight's normal field, clipped to [-l1, l1]."""
    low, high = (-l1 - mean) / width, (l1 - mean) / width
    inside = mean**2 * (normal_cdf(high) - normal_cdf(low)) + 2 * mean * width * (
        normal_density(low) - normal_density(high)
    )
    return l1**2 * outside + inside + width**2 * (_integrate_gaussian_square(high) - _integrate_gaussian_square(low))


def _integrate_gaussian_square(k: np.ndarray) -> np.ndarray:
    r"""Compute :math:`\int_0^k x^2\varphi(x)\,dx` without cancellation at small k."""
    from scipy.special import gammainc

    return 0.5 * np.sign(k) * gammainc(1.5, 0.5 * k * k)


class LinearisedEquations(NamedTuple):
    """Residuals F (k, batch), their Jacobian J (k, k, batch), and their derivatives f (k, batch) for ln lambda."""

    F: np.ndarray
    J: np.ndarray
    f: np.ndarray


class HatsWithSlopes(NamedTuple):
    """Conjugates V^, ln q^ and ln m^ (batch,), and their derivatives (k, batch) with respect to the unknowns."""

    V: np.ndarray
    log_q: np.ndarray
    log_m: np.ndarray
    V_slopes: np.ndarray
    log_q_slopes: np.ndarray
    log_m_slopes: np.ndarray


class HatVariables(NamedTuple):
    """Conjugate order parameters V^, q^ and m^ (the hats), as arrays (batch,)."""

    V: np.ndarray
    q: np.ndarray
    m: np.ndarray


class StudentOrderParameters(NamedTuple):
    """Order parameters of a student, as arrays (batch,).

    The first three describe its field: ln tan of the angle to the teacher's field, the standard deviation, and the mean
    squared error. R and length belong to the weight vector.
    """

    log_tan: np.ndarray
    length_field: np.ndarray
    mse: np.ndarray
    R: np.ndarray
    length: np.ndarray


class WeightEquations(ABC):
    """Interface of the saddle-point equations of the weights."""

    signal_fraction: float = 1.0  # fraction of the variance of the teacher's field explained by the inputs
    rank_fraction: float = 1.0  # fraction of input directions with nonzero variance
    prior_to_penalty_ratio: float | None = (
        1.0  # inverse variance of the teacher's weights over the penalty, if constant
    )
    teacher_length: float = 1.0  # for a field of standard deviation 1
    max_variance_penalty_ratio: float = 1.0  # largest ratio of input variance to penalty factor

    @abstractmethod
    def linearise_for_labels(
        self, hats: HatsWithSlopes, x: np.ndarray, l1: np.ndarray, l2: np.ndarray
    ) -> LinearisedEquations:
        """Linearise the equations of ln tan(theta), ln Q and ln V at x (3, batch), for a label teacher."""

    @abstractmethod
    def linearise_for_linear_teacher(
        self, hats: HatsWithSlopes, x: np.ndarray, noise: float, l1: np.ndarray, l2: np.ndarray
    ) -> LinearisedEquations:
        """Linearise the equations of ln s and ln V for a linear teacher.

        Parameters
        ----------
        hats
            The conjugate order parameters and their derivatives.
        x
            The unknowns (2, batch).
        noise
            Standard deviation of the noise on the outputs.
        l1, l2
            Factors of the l1 norm and of half the squared length (batch,).
        """

    @abstractmethod
    def compute_hebb_label_unknowns(
        self, slope: float, signal: float, alpha: np.ndarray, log_lam: np.ndarray
    ) -> np.ndarray:
        """Return the unknowns x (3, batch) in the limit of a strong penalty, Hebb's rule."""

    @abstractmethod
    def compute_hebb_output_unknowns(
        self, slope: float, noise: float, alpha: np.ndarray, log_lam: np.ndarray
    ) -> np.ndarray:
        """Return the unknowns x (2, batch) of Hebb's rule for a linear teacher."""

    @abstractmethod
    def describe_student_of_labels(
        self, x: np.ndarray, compute_hats: Callable[[], HatVariables], l2: np.ndarray
    ) -> StudentOrderParameters:
        """Compute the order parameters of the student of a label teacher at a solution x (3, batch)."""

    @abstractmethod
    def describe_student_of_outputs(self, hats: HatVariables, l1: np.ndarray, l2: np.ndarray) -> StudentOrderParameters:
        """Compute the order parameters of the student of a linear teacher from the conjugates."""

    def has_zero_weights(self, q: np.ndarray, m: np.ndarray, l1: np.ndarray) -> np.ndarray:
        """Return True (batch,) where the l1 norm sets all weights to 0, given the conjugates q and m."""
        return np.zeros(len(q), bool)


@dataclass(frozen=True)
class IsotropicWeightEquations(WeightEquations):
    """Saddle-point equations of the weights for isotropic inputs.

    `weights` is the distribution of the teacher's weights, or None if the penalty has no l1 norm.
    """

    weights: WeightDistribution | None = None

    def linearise_for_labels(
        self, hats: HatsWithSlopes, x: np.ndarray, l1: np.ndarray, l2: np.ndarray
    ) -> LinearisedEquations:
        log_l1 = np.log(l1)

        def scaled_unknowns(logs: np.ndarray) -> np.ndarray:
            return compute_label_unknown_logs(self.weights, *np.exp(logs))

        logs = np.array([hats.log_q, hats.log_m, log_l1])
        log_slopes = differentiate_by_logs(scaled_unknowns, logs)
        D, powers_of_D = hats.V + l2, np.array([0.0, 1.0, 1.0])[:, None]
        F = scaled_unknowns(logs) - powers_of_D * np.log(D) - x
        J = (
            log_slopes[:, 0, None] * hats.log_q_slopes
            + log_slopes[:, 1, None] * hats.log_m_slopes
            - powers_of_D[:, None] * hats.V_slopes / D
        )
        return LinearisedEquations(F, J - np.eye(3)[..., None], log_slopes[:, 2] - powers_of_D * l2 / D)

    def linearise_for_linear_teacher(
        self, hats: HatsWithSlopes, x: np.ndarray, noise: float, l1: np.ndarray, l2: np.ndarray
    ) -> LinearisedEquations:
        D = hats.V + l2

        def scaled_unknowns(logs: np.ndarray) -> np.ndarray:
            return compute_output_unknown_logs(self.weights, *np.exp(logs))

        logs = np.array([np.log(hats.V), hats.log_q, np.log(l1), np.log(l2)])
        log_slopes, values = differentiate_by_logs(scaled_unknowns, logs), scaled_unknowns(logs)
        mse = np.exp(values[0]) / D**2
        s2 = noise**2 + mse
        F = np.array([0.5 * np.log(s2), values[1] - np.log(D)]) - x
        outer_slopes = np.array([0.5 * mse / s2, 1 + 0 * mse])  # derivatives with respect to the scaled unknowns
        powers_of_D = np.array([2.0, 1.0])[:, None]
        J = log_slopes[:, 0, None] * hats.V_slopes / hats.V + log_slopes[:, 1, None] * hats.log_q_slopes
        J = outer_slopes[:, None] * (J - powers_of_D[:, None] * hats.V_slopes / D) - np.eye(2)[..., None]
        return LinearisedEquations(F, J, outer_slopes * (log_slopes[:, 2] + log_slopes[:, 3] - powers_of_D * l2 / D))

    def compute_hebb_label_unknowns(
        self, slope: float, signal: float, alpha: np.ndarray, log_lam: np.ndarray
    ) -> np.ndarray:
        length = np.log(slope) - log_lam + 0.5 * np.log(alpha * (1 + alpha * signal**2))
        return np.array([-np.log(signal) - 0.5 * np.log(alpha), length, -log_lam])

    def compute_hebb_output_unknowns(
        self, slope: float, noise: float, alpha: np.ndarray, log_lam: np.ndarray
    ) -> np.ndarray:
        return np.array([0 * alpha + 0.5 * np.log1p(noise**2), -log_lam])

    def describe_student_of_labels(
        self, x: np.ndarray, compute_hats: Callable[[], HatVariables], l2: np.ndarray
    ) -> StudentOrderParameters:
        t, Q, _ = np.exp(x)
        return StudentOrderParameters(x[0], Q, np.full_like(t, np.nan), 1 / np.hypot(1, t), Q)

    def describe_student_of_outputs(self, hats: HatVariables, l1: np.ndarray, l2: np.ndarray) -> StudentOrderParameters:
        log_t, log_DQ, _ = compute_label_unknown_logs(self.weights, hats.q, hats.V, l1)
        log_D = np.log(hats.V + l2)
        log_error = compute_output_unknown_logs(self.weights, hats.V, hats.q, l1, l2)[0]
        Q = np.exp(log_DQ - log_D)
        return StudentOrderParameters(log_t, Q, np.exp(log_error - 2 * log_D), 1 / np.hypot(1, np.exp(log_t)), Q)

    def has_zero_weights(self, q: np.ndarray, m: np.ndarray, l1: np.ndarray) -> np.ndarray:
        if self.weights is None:
            return super().has_zero_weights(q, m, l1)
        pieces = self.weights.pieces
        max_fields = [
            np.abs(mean) * m + MAX_WEIGHT_DEVIATIONS * np.sqrt(variance * m**2 + q) for _, mean, variance in pieces
        ]
        return l1 > np.max(max_fields, axis=0)


class _ModeResponses(NamedTuple):
    """Responses r and penalty ratios lambda_a / D of the modes, as arrays (modes, batch)."""

    r: np.ndarray
    penalty_ratio: np.ndarray


class _ModeTotals(NamedTuple):
    """Sums over modes of p r, nu r and nu r^2, the spread in Q^2 - m^2, and the error of the field (batch,)."""

    p1: np.ndarray
    nu1: np.ndarray
    nu2: np.ndarray
    spread: np.ndarray
    signal_field_error: np.ndarray


@dataclass(frozen=True, eq=False)
class ModeWeightEquations(WeightEquations):
    """Saddle-point equations of the weights for inputs with several modes, under an l2 penalty."""

    modes: Modes

    @property
    def signal_fraction(self) -> float:  # type: ignore[override]
        return self.modes.signal_fraction

    @property
    def rank_fraction(self) -> float:  # type: ignore[override]
        return self.modes.rank_fraction

    @property
    def teacher_length(self) -> float:  # type: ignore[override]
        """Length of the teacher for a field variance of 1, NaN if the teacher is not in the space of inputs."""
        return np.nan if self.modes.teacher is None else float((self.modes.variances @ self.modes.teacher) ** -0.5)

    @property
    def prior_to_penalty_ratio(self) -> float | None:  # type: ignore[override]
        """Ratio of the teacher's inverse weight variance to the penalty if it is equal in all directions, else None."""
        modes, varying = self.modes, self.modes.variances > 0
        if modes.teacher is None:
            return None
        prior = (modes.teacher * self._mode_penalties / modes.shares)[varying]
        equal = np.ptp(prior) <= PRIOR_PENALTY_RATIO_REL_TOL * prior[0]
        return float((modes.variances @ modes.teacher) / prior[0]) if equal else None

    @cached_property
    def max_variance_penalty_ratio(self) -> float:  # type: ignore[override]
        return float(np.max(self.modes.variances / self.modes.ridge))

    @cached_property
    def _mode_penalties(self) -> np.ndarray:
        return np.broadcast_to(self.modes.ridge, self.modes.variances.shape)

    def _compute_responses(self, V: np.ndarray, l2: np.ndarray) -> _ModeResponses:
        """Compute the responses of the weights in all modes, 0 for directions without variance."""
        omega = self.modes.variances[:, None]
        penalty = self._mode_penalties[:, None] * l2
        D = np.where(omega > 0, penalty + omega * V, 1.0)
        return _ModeResponses(omega / D, np.where(omega > 0, penalty / D, 1.0))

    def _sum_over_modes(self, responses: _ModeResponses) -> _ModeTotals:
        """Compute the sums over modes that enter the equations of the weights."""
        p, nu, S = self.modes.powers, self.modes.shares, self.signal_fraction
        p1 = p @ responses.r
        spread = p @ (responses.r - p1 / S) ** 2 + (1 - S) / S * p1**2
        return _ModeTotals(p1, nu @ responses.r, nu @ responses.r**2, spread, 1 - S + p @ responses.penalty_ratio**2)

    def _differentiate_mode_sums(
        self, responses: _ModeResponses, totals: _ModeTotals, response_slopes: np.ndarray
    ) -> _ModeTotals:
        """Differentiate the sums over modes in the equations of the weights with respect to a parameter.

        The derivatives of the responses r are `response_slopes` (modes, batch). The derivative of the field error is
        returned as 0, since callers compute it.
        """
        p, nu, S = self.modes.powers, self.modes.shares, self.signal_fraction
        p_slope = p @ response_slopes
        spread = 2 * (p @ ((responses.r - totals.p1 / S) * response_slopes)) + 2 * (1 - S) / S * totals.p1 * p_slope
        return _ModeTotals(
            p_slope, nu @ response_slopes, 2 * (nu @ (responses.r * response_slopes)), spread, np.zeros_like(p_slope)
        )

    def linearise_for_labels(
        self, hats: HatsWithSlopes, x: np.ndarray, l1: np.ndarray, l2: np.ndarray
    ) -> LinearisedEquations:
        responses = self._compute_responses(hats.V, l2)
        totals = self._sum_over_modes(responses)
        q, m2 = np.exp(hats.log_q), np.exp(2 * hats.log_m)
        perpendicular, parallel = q * totals.nu2 + m2 * totals.spread, m2 * totals.p1**2
        total = perpendicular + parallel
        F = np.array(
            [
                0.5 * np.log(perpendicular / parallel),
                0.5 * np.log(total),
                np.log(totals.nu1),
            ]
        )

        def column(perpendicular_slope: np.ndarray, parallel_slope: np.ndarray, V_slope: np.ndarray) -> np.ndarray:
            """Differentiate the three equations, given the derivatives of both squared lengths and of V."""
            tan = 0.5 * (perpendicular_slope / perpendicular - parallel_slope / parallel)
            return np.array([tan, 0.5 * (perpendicular_slope + parallel_slope) / total, V_slope / totals.nu1])

        def through_r(slopes: _ModeTotals) -> np.ndarray:
            return column(q * slopes.nu2 + m2 * slopes.spread, 2 * m2 * totals.p1 * slopes.p1, slopes.nu1)

        by_V = through_r(self._differentiate_mode_sums(responses, totals, -(responses.r**2)))
        by_q = column(q * totals.nu2, 0 * q, 0 * q)
        by_m = column(2 * m2 * totals.spread, 2 * parallel, 0 * q)
        J = by_V[:, None] * hats.V_slopes + by_q[:, None] * hats.log_q_slopes + by_m[:, None] * hats.log_m_slopes
        f = through_r(self._differentiate_mode_sums(responses, totals, -responses.penalty_ratio * responses.r))
        return LinearisedEquations(F - x, J - np.eye(3)[..., None], f)

    def linearise_for_linear_teacher(
        self, hats: HatsWithSlopes, x: np.ndarray, noise: float, l1: np.ndarray, l2: np.ndarray
    ) -> LinearisedEquations:
        responses = self._compute_responses(hats.V, l2)
        totals, p = self._sum_over_modes(responses), self.modes.powers
        q = np.exp(hats.log_q)
        s2 = noise**2 + totals.signal_field_error + q * totals.nu2
        F = np.array([0.5 * np.log(s2), np.log(totals.nu1)])

        def column(change: np.ndarray, missed: np.ndarray) -> np.ndarray:
            slopes = self._differentiate_mode_sums(responses, totals, change)
            return np.array([0.5 * (missed + q * slopes.nu2) / s2, slopes.nu1 / totals.nu1])

        by_V = column(-(responses.r**2), -2 * (p @ (responses.penalty_ratio**2 * responses.r)))
        by_q = np.array([0.5 * q * totals.nu2 / s2, 0 * q])
        J = by_V[:, None] * hats.V_slopes + by_q[:, None] * hats.log_q_slopes
        f = column(
            -responses.penalty_ratio * responses.r, 2 * hats.V * (p @ (responses.penalty_ratio**2 * responses.r))
        )
        return LinearisedEquations(F - x, J - np.eye(2)[..., None], f)

    def compute_hebb_label_unknowns(
        self, slope: float, signal: float, alpha: np.ndarray, log_lam: np.ndarray
    ) -> np.ndarray:
        hats = _make_hebb_hats(3, np.log(alpha * slope**2), np.log(alpha * slope * signal))
        return self.linearise_for_labels(hats, np.zeros((3, len(alpha))), 0 * alpha, np.exp(log_lam)).F

    def compute_hebb_output_unknowns(
        self, slope: float, noise: float, alpha: np.ndarray, log_lam: np.ndarray
    ) -> np.ndarray:
        hats = _make_hebb_hats(2, np.log(alpha * slope**2), np.log(alpha * slope))
        return self.linearise_for_linear_teacher(hats, np.zeros((2, len(alpha))), noise, 0 * alpha, np.exp(log_lam)).F

    def describe_student_of_labels(
        self, x: np.ndarray, compute_hats: Callable[[], HatVariables], l2: np.ndarray
    ) -> StudentOrderParameters:
        return self._describe_student(compute_hats(), l2)._replace(mse=np.full_like(x[0], np.nan))

    def describe_student_of_outputs(self, hats: HatVariables, l1: np.ndarray, l2: np.ndarray) -> StudentOrderParameters:
        return self._describe_student(hats._replace(m=hats.V), l2)

    def _describe_student(self, hats: HatVariables, l2: np.ndarray) -> StudentOrderParameters:
        responses = self._compute_responses(hats.V, l2)
        totals = self._sum_over_modes(responses)
        perpendicular, parallel = hats.q * totals.nu2 + hats.m**2 * totals.spread, hats.m * totals.p1
        log_tan = 0.5 * np.log(perpendicular) - np.log(parallel)
        R, length = self._compute_R_and_weight_length(hats, responses)
        return StudentOrderParameters(
            log_tan, np.sqrt(perpendicular + parallel**2), totals.signal_field_error + hats.q * totals.nu2, R, length
        )

    def _compute_R_and_weight_length(
        self, hats: HatVariables, responses: _ModeResponses
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute R and the length of the weight vector from sums over modes.

        R is NaN if the teacher is not in the space of inputs.
        """
        modes, nans = self.modes, np.full_like(hats.q, np.nan)
        varying = modes.variances > 0
        per_variance = responses.r[varying] ** 2 / modes.variances[varying, None]
        length = np.sqrt(
            hats.m**2 * (modes.powers[varying] @ per_variance) + hats.q * (modes.shares[varying] @ per_variance)
        )
        if modes.teacher is None:
            return nans, length
        scale = np.sqrt(self.signal_fraction) * self.teacher_length
        return hats.m * scale * (modes.teacher @ responses.r) / length, length


def _make_hebb_hats(unknowns: int, log_q: np.ndarray, log_m: np.ndarray) -> HatsWithSlopes:
    """Return the conjugate order parameters of Hebb's rule, with V^ = 0 and derivatives 0."""
    zeros = np.zeros((unknowns, len(log_q)))
    return HatsWithSlopes(0 * log_q, log_q, log_m, zeros, zeros, zeros)
