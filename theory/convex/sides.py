"""Saddle-point equations of the weights, which give their order parameters as functions of the conjugates.

If inputs are isotropic (`IsotropicWeightEquations`), all weights feel the same field
(`theory.convex.penalised_fields`). If inputs have modes, each mode has its own field (`theory.convex.mode_sums`). Both
classes compute the residuals of the equations and their derivatives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from statmech.convex.weights import WeightDistribution
from theory.convex import penalised_fields

MAX_WEIGHT_DEVIATIONS = 10.0  # in standard deviations; a fraction 1e-23 of the weights is larger


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
            return penalised_fields.compute_label_unknown_logs(self.weights, *np.exp(logs))

        logs = np.array([hats.log_q, hats.log_m, log_l1])
        log_slopes = penalised_fields.differentiate_by_logs(scaled_unknowns, logs)
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
            return penalised_fields.compute_output_unknown_logs(self.weights, *np.exp(logs))

        logs = np.array([np.log(hats.V), hats.log_q, np.log(l1), np.log(l2)])
        log_slopes, values = penalised_fields.differentiate_by_logs(scaled_unknowns, logs), scaled_unknowns(logs)
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
        log_t, log_DQ, _ = penalised_fields.compute_label_unknown_logs(self.weights, hats.q, hats.V, l1)
        log_D = np.log(hats.V + l2)
        log_error = penalised_fields.compute_output_unknown_logs(self.weights, hats.V, hats.q, l1, l2)[0]
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
