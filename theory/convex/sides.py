"""The weights' side of the saddle-point equations: what the hats of the examples make of the weights.

`Isotropic` weights all feel the same field (`theory.convex.penalised_fields`); where inputs have modes, each has its
own (`theory.convex.mode_sums`). Either states the residuals of the equations and their derivatives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from statmech.convex.weights import Weights
from theory.convex import penalised_fields

NONE = 10.0  # standard deviations beyond which no weight is, a fraction of 1e-23


class Linearised(NamedTuple):
    """Residuals F (k, lanes), their derivatives J (k, k, lanes) by x, and f (k, lanes) by ln lambda."""

    F: np.ndarray
    J: np.ndarray
    f: np.ndarray


class Hats(NamedTuple):
    """V^, ln q^ and ln m^ (lanes,), and their derivatives (k, lanes) by the unknowns."""

    V: np.ndarray
    log_q: np.ndarray
    log_m: np.ndarray
    V_slopes: np.ndarray
    q_slopes: np.ndarray
    m_slopes: np.ndarray


class Forces(NamedTuple):
    """The hats V^, q^ and m^ (lanes,)."""

    V: np.ndarray
    q: np.ndarray
    m: np.ndarray


class Student(NamedTuple):
    """ln tan of its field's angle to the teacher's, the field's deviation and error, R and length; arrays (lanes,)."""

    log_tan: np.ndarray
    length_field: np.ndarray
    mse: np.ndarray
    R: np.ndarray
    length: np.ndarray


class Side(ABC):
    """The weights' side of the equations."""

    signal: float = 1.0  # part of the variance of the teacher's field that the inputs contain
    rank: float = 1.0  # fraction of the directions in which inputs vary
    stiffness: float | None = 1.0  # inverse variance of the teacher's weights in units of the penalty, if all share it
    length_of_teacher: float = 1.0  # of unit deviation of its field
    softest: float = 1.0  # largest variance of a direction, over the factor of its penalty

    @abstractmethod
    def of_labels(self, hats: Hats, x: np.ndarray, l1: np.ndarray, l2: np.ndarray) -> Linearised:
        """The equations of ln tan(theta), ln Q and ln V, x (3, lanes)."""

    @abstractmethod
    def of_outputs(self, hats: Hats, x: np.ndarray, noise: float, l1: np.ndarray, l2: np.ndarray) -> Linearised:
        """The equations of ln s and ln V for a linear teacher.

        Parameters
        ----------
        hats
            The hats, and their derivatives.
        x
            The unknowns (2, lanes).
        noise
            Standard deviation of the noise on the outputs.
        l1, l2
            Factors of the l1 norm and of half the squared length (lanes,).
        """

    @abstractmethod
    def hebb_on_labels(self, slope: float, signal: float, alpha: np.ndarray, log_lam: np.ndarray) -> np.ndarray:
        """The unknowns x (3, lanes) of Hebb's rule, to which a strong penalty leads."""

    @abstractmethod
    def hebb_on_outputs(self, slope: float, noise: float, alpha: np.ndarray, log_lam: np.ndarray) -> np.ndarray:
        """The unknowns x (2, lanes) of Hebb's rule with a linear teacher."""

    @abstractmethod
    def trained_on_labels(self, x: np.ndarray, forces: Callable[[], Forces], l2: np.ndarray) -> Student:
        """The student at a solution x (3, lanes)."""

    @abstractmethod
    def trained_on_outputs(self, forces: Forces, l1: np.ndarray, l2: np.ndarray) -> Student:
        """The student of a linear teacher at a solution."""

    def vanishes(self, q: np.ndarray, m: np.ndarray, l1: np.ndarray) -> np.ndarray:
        """True (lanes,) where an l1 norm leaves no weights in fields of hats q and m."""
        return np.zeros(len(q), bool)


@dataclass(frozen=True)
class Isotropic(Side):
    """Inputs of equal variance in all directions; weights None: no l1 norm, when none matter."""

    weights: Weights | None = None

    def of_labels(self, hats: Hats, x: np.ndarray, l1: np.ndarray, l2: np.ndarray) -> Linearised:
        log_l1 = np.log(l1)

        def side(logs: np.ndarray) -> np.ndarray:
            return penalised_fields.direction(self.weights, *np.exp(logs))

        logs = np.array([hats.log_q, hats.log_m, log_l1])
        by = penalised_fields.slopes(side, logs)
        D, once = hats.V + l2, np.array([0.0, 1.0, 1.0])[:, None]
        F = side(logs) - once * np.log(D) - x
        J = by[:, 0, None] * hats.q_slopes + by[:, 1, None] * hats.m_slopes - once[:, None] * hats.V_slopes / D
        return Linearised(F, J - np.eye(3)[..., None], by[:, 2] - once * l2 / D)

    def of_outputs(self, hats: Hats, x: np.ndarray, noise: float, l1: np.ndarray, l2: np.ndarray) -> Linearised:
        D = hats.V + l2

        def side(logs: np.ndarray) -> np.ndarray:
            return penalised_fields.error(self.weights, *np.exp(logs))

        logs = np.array([np.log(hats.V), hats.log_q, np.log(l1), np.log(l2)])
        by, values = penalised_fields.slopes(side, logs), side(logs)
        mse = np.exp(values[0]) / D**2
        s2 = noise**2 + mse
        F = np.array([0.5 * np.log(s2), values[1] - np.log(D)]) - x
        much = np.array([0.5 * mse / s2, 1 + 0 * mse])  # of ln s and ln V by the logarithms of the side's outputs
        once = np.array([2.0, 1.0])[:, None]
        J = by[:, 0, None] * hats.V_slopes / hats.V + by[:, 1, None] * hats.q_slopes
        J = much[:, None] * (J - once[:, None] * hats.V_slopes / D) - np.eye(2)[..., None]
        return Linearised(F, J, much * (by[:, 2] + by[:, 3] - once * l2 / D))

    def hebb_on_labels(self, slope: float, signal: float, alpha: np.ndarray, log_lam: np.ndarray) -> np.ndarray:
        length = np.log(slope) - log_lam + 0.5 * np.log(alpha * (1 + alpha * signal**2))
        return np.array([-np.log(signal) - 0.5 * np.log(alpha), length, -log_lam])

    def hebb_on_outputs(self, slope: float, noise: float, alpha: np.ndarray, log_lam: np.ndarray) -> np.ndarray:
        return np.array([0 * alpha + 0.5 * np.log1p(noise**2), -log_lam])

    def trained_on_labels(self, x: np.ndarray, forces: Callable[[], Forces], l2: np.ndarray) -> Student:
        t, Q, _ = np.exp(x)
        return Student(x[0], Q, np.full_like(t, np.nan), 1 / np.hypot(1, t), Q)

    def trained_on_outputs(self, forces: Forces, l1: np.ndarray, l2: np.ndarray) -> Student:
        log_t, log_DQ, _ = penalised_fields.direction(self.weights, forces.q, forces.V, l1)
        log_D = np.log(forces.V + l2)
        log_error = penalised_fields.error(self.weights, forces.V, forces.q, l1, l2)[0]
        Q = np.exp(log_DQ - log_D)
        return Student(log_t, Q, np.exp(log_error - 2 * log_D), 1 / np.hypot(1, np.exp(log_t)), Q)

    def vanishes(self, q: np.ndarray, m: np.ndarray, l1: np.ndarray) -> np.ndarray:
        if self.weights is None:
            return super().vanishes(q, m, l1)
        pieces = self.weights.pieces
        reach = [np.abs(mean) * m + NONE * np.sqrt(variance * m**2 + q) for _, mean, variance in pieces]
        return l1 > np.max(reach, axis=0)
