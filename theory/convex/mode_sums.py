r"""Saddle-point equations of the weights for inputs of unequal variance, as sums over modes.

A mode (`statmech.modes`) is a fraction :math:`\nu_a` of the directions with the variance :math:`\omega_a`, the fraction
:math:`p_a` of the variance of the teacher's field, and the penalty :math:`\lambda_a`, a multiple of lambda. With
:math:`D_a = \lambda_a + \hat V\omega_a`, :math:`r_a = \omega_a/D_a`, :math:`S = \sum_ap_a` and :math:`\bar r =
\sum_ap_ar_a/S`, the covariance :math:`m = Q\cos\theta` of a student's field and the teacher's, the student's variance
:math:`Q^2` and the susceptibility V are

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

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from statmech.modes import Modes
from theory.convex.sides import (
    HatsWithSlopes,
    HatVariables,
    LinearisedEquations,
    StudentOrderParameters,
    WeightEquations,
)

PRIOR_PENALTY_RATIO_REL_TOL = 1e-12  # smaller differences between modes are rounding errors


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
        """Compute the responses of all modes, 0 for directions without variance."""
        omega = self.modes.variances[:, None]
        penalty = self._mode_penalties[:, None] * l2
        D = np.where(omega > 0, penalty + omega * V, 1.0)
        return _ModeResponses(omega / D, np.where(omega > 0, penalty / D, 1.0))

    def _sum_over_modes(self, responses: _ModeResponses) -> _ModeTotals:
        """Compute the sums over modes that enter the equations."""
        p, nu, S = self.modes.powers, self.modes.shares, self.signal_fraction
        p1 = p @ responses.r
        spread = p @ (responses.r - p1 / S) ** 2 + (1 - S) / S * p1**2
        return _ModeTotals(p1, nu @ responses.r, nu @ responses.r**2, spread, 1 - S + p @ responses.penalty_ratio**2)

    def _differentiate_mode_sums(
        self, responses: _ModeResponses, totals: _ModeTotals, response_slopes: np.ndarray
    ) -> _ModeTotals:
        """Differentiate the sums with respect to a parameter.

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
        """Compute R and the length of the weight vector.

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
