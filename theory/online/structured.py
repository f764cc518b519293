r"""Order-parameter equations of online learning from inputs of unequal variance, in the limit N -> infinity.

In the directions of mode a (`statmech.modes`) inputs have variance :math:`\omega_a/N`. The mode contains a fraction
:math:`\nu_a` of all directions and the part :math:`T_a = |\mathbf B_a|^2/N` of the teacher. The variance of the
teacher's field is :math:`S = \sum_a\omega_aT_a`. A student's weights in these directions are :math:`\mathbf J_{ka} =
\rho_{ka}\mathbf B_a` plus a part perpendicular to :math:`\mathbf B_a`. Perpendicular parts of two students have the
products :math:`N P_{kj}^a`. Only fields enter a step, so that Stein's lemma closes the equations. With the response
:math:`D_k`, the averages of `theory.online.scaled_averages` at the angle :math:`\theta_k` of the fields, the standard
deviation :math:`s_k` of a student's field and :math:`E_k = \langle\partial f_k/\partial h_k\rangle`,

.. math::
    \gamma_k &= (\sin^2\theta_k\,D_k + \cos\theta_k\,\langle f_ku_k\rangle)/\sqrt S, \qquad
    E_k = (\langle f_ku_k\rangle - \cos\theta_k\,D_k)/s_k, \\
    \dot\rho_{ka} &= \omega_a(\gamma_k + E_k\delta_{ka}), \qquad
    m_k = \sum_a\omega_aT_a\rho_{ka}/S, \qquad \delta_{ka} = \rho_{ka} - m_k, \\
    \dot P_{kj}^a &= \omega_a\left[(E_k + E_j)P_{kj}^a + \nu_a\langle f_kf_j\rangle\right], \\
    \tan^2\theta_k &= \sum_a\omega_a(P_{kk}^a + T_a\delta_{ka}^2)/(S\,m_k^2) .

The variable :math:`\delta` vanishes when learning succeeds. Without it the angle would be a difference of nearly equal
numbers. A teacher that drifts at rate :math:`\lambda` has :math:`\dot T_a = 2\lambda(\nu_a - T_a)`, and the rates gain
:math:`\lambda(1 - 2\nu_a/T_a)\rho_{ka}` and :math:`2\lambda\nu_a\rho_{ka}\rho_{ja}`. Weight decay changes only the
lengths. We integrate :math:`\log l_k` and all other variables in units of the length
:math:`l_k = |\mathbf J_k|/\sqrt N`, which is the argument of a rule, so that students may grow and shrink without
bound.

For a single mode these are the equations of `theory.online.equations`. Yoshida & Okada (2019) derive the equations of
networks.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from statmech.modes import Modes
from statmech.numerics.gaussian import one_minus_cos
from statmech.order_parameters import angle_from_components
from statmech.scenarios.online_student import OnlineCell
from theory.online.scaled_averages import StudentFields, compute_field_averages, compute_pair_field_average
from theory.online.stiff_equations import compute_clipped_length
from theory.online.students import Students, count_distinct_students, make_pair_indices

MIN_RELATIVE_TEACHER_POWER = (
    1e-8  # relative to the mode's fraction: for a drifting teacher, rho = B.J / B.B requires B.B > 0
)


class ModeState(NamedTuple):
    """State of students in units of lengths: log l and m (S,), delta and P (S, d), and P of pairs (., d)."""

    log_length: np.ndarray
    m: np.ndarray
    delta: np.ndarray
    perpendicular: np.ndarray
    pair_products: np.ndarray


class TeacherModes(NamedTuple):
    """Power T_a of the teacher in each mode, and its time derivative (d,)."""

    power: np.ndarray
    power_rate: np.ndarray


class StudentOverlaps(NamedTuple):
    """Components of students parallel to the teacher, and covariances of their perpendicular parts.

    There is a component and a variance for each student (S,), and a covariance for each pair, in units of the lengths.
    """

    parallel: np.ndarray
    perpendicular: np.ndarray
    pair_covariance: np.ndarray

    @property
    def teacher_angles(self) -> np.ndarray:
        """The angles between students and teacher."""
        return angle_from_components(np.sqrt(self.perpendicular), self.parallel)

    def compute_transverse_cosines(self, first_indices: np.ndarray, second_indices: np.ndarray) -> np.ndarray:
        """Return the transverse cosines of pairs.

        Students on the teacher's axis move together and have cosine 1.
        """
        scale = np.sqrt(self.perpendicular[first_indices] * self.perpendicular[second_indices])
        return np.clip(np.divide(self.pair_covariance, scale, out=np.ones_like(scale), where=scale > 0), -1, 1)


class RateCoefficients(NamedTuple):
    """Coefficients gamma, E and <f^2> of students (S,), and <f f> of pairs, in units of the lengths."""

    gain: np.ndarray
    slope: np.ndarray
    noise: np.ndarray
    pair_noise: np.ndarray


class ModeEquations:
    """Rate equations of one cell in modes.

    Rates are functions of the time and of the state, packed into one vector.
    """

    def __init__(self, cell: OnlineCell, modes: Modes):
        assert modes.teacher is not None  # scenarios without a teacher in modes have no equations
        self.cell, self.drift = cell, cell.drift
        self.omega, self.share = modes.variances, modes.shares
        self.spread, self.trace = self.omega * self.share, self.share @ self.omega
        self.students, (self.first, self.second) = (
            count_distinct_students(cell),
            make_pair_indices(count_distinct_students(cell)),
        )
        min_power = MIN_RELATIVE_TEACHER_POWER * self.share if cell.drift else 0.0
        self.power = np.maximum(modes.teacher, min_power)
        self.power = self.power / self.power.sum()
        self.still = TeacherModes(self.power, np.zeros_like(self.power))
        start, q = self.start, cell.start_order_parameters.q
        pair_indices = (self.first, self.second if self.students > 1 else np.array([min(1, cell.K - 1)]))
        equal_starts = [np.array_equal(part[self.first], part[self.second]) for part in start[:2]]
        self.together = (q[pair_indices] == 1) & np.all(
            equal_starts
        )  # rounding errors must not separate identical students

    @cached_property
    def start(self) -> ModeState:
        """The initial state, with isotropic weights."""
        S, (length, R, q) = self.students, self.cell.start_order_parameters
        second = self.second if S > 1 else np.array([min(1, self.cell.K - 1)])
        perpendicular = (1 - R[:S]) * (1 + R[:S])
        pair_covariance = q[self.first, second] - R[self.first] * R[second]
        return ModeState(
            np.log(length[:S]),
            R[:S].copy(),
            np.zeros((S, self.omega.size)),
            np.outer(perpendicular, self.share),
            np.outer(pair_covariance, self.share) if self.has_pairs else np.zeros((0, self.omega.size)),
        )

    @property
    def has_pairs(self) -> bool:
        """True if there are pairs of students."""
        return self.cell.K > 1

    def pack_state(self, state: ModeState) -> np.ndarray:
        """Pack a state into one vector."""
        return np.concatenate([*state[:2], *(part.ravel() for part in state[2:])])

    def unpack_state(self, values: np.ndarray) -> ModeState:
        """Unpack a vector (n,) into a state."""
        S, d = self.students, self.omega.size
        modes = values[2 * S :].reshape(-1, d)
        return ModeState(values[:S], values[S : 2 * S], modes[:S], modes[S : 2 * S], modes[2 * S :])

    def centre_delta(self, state: ModeState, power: np.ndarray) -> ModeState:
        """Shift delta so that its mean over modes is 0.

        The mean vanishes up to rounding errors, which would grow as students shrink.
        """
        shift = state.delta @ (self.omega * power) / (self.omega @ power)
        return state._replace(m=state.m + shift, delta=state.delta - shift[:, None])

    def compute_teacher_modes(self, t: float) -> TeacherModes:
        """Return the teacher's modes at a given time."""
        drift = self.drift
        if not drift:
            return self.still
        power = self.share + (self.power - self.share) * np.exp(-2 * drift * t)
        return TeacherModes(power, 2 * drift * (self.share - power))

    def compute_overlaps(self, metric: np.ndarray, power: np.ndarray, state: ModeState) -> StudentOverlaps:
        """Compute overlaps of weights or of fields.

        The metric is 1 in each mode for weights, and omega for fields.
        """
        weight = metric * power
        total = weight.sum()
        shift = state.delta @ weight / total
        delta = state.delta - shift[:, None]
        pair_covariance = (
            state.pair_products @ metric + (delta[self.first] * delta[self.second]) @ weight if self.has_pairs else None
        )
        variance = state.perpendicular @ metric + delta**2 @ weight
        return StudentOverlaps(
            np.sqrt(total) * (state.m + shift), variance, variance if pair_covariance is None else pair_covariance
        )

    def compute_coefficients(
        self, t: float, log_length: np.ndarray, fields: StudentOverlaps, variance: float
    ) -> RateCoefficients:
        """Compute the coefficients of the rates from the lengths and the fields of the students."""
        theta, ratio = fields.teacher_angles, np.hypot(fields.parallel, np.sqrt(fields.perpendicular))
        length = compute_clipped_length(log_length)
        rule, flip = self.cell.rule if self.cell.schedule is None else self.cell.get_rule_at(t), self.cell.flip
        students = StudentFields(theta, length, ratio)
        fu, response, ff = compute_field_averages(rule, students, flip)
        sin, cos = np.sin(theta), np.cos(theta)
        gain = (sin**2 * response + cos * fu) / (np.sqrt(variance) * length)
        slope, noise, common = (fu - cos * response) / (ratio * length), ff / length**2, np.zeros(0)
        if self.has_pairs:
            first, second = self.first, self.second
            first_students = second_students = students  # identical arrays simplify their angle
            if self.students > 1:
                first_students, second_students = (
                    StudentFields(*(part[indices] for part in students)) for indices in (first, second)
                )
            common = compute_pair_field_average(
                rule, first_students, second_students, fields.compute_transverse_cosines(first, second), flip
            )
            common = np.where(self.together, noise[first], common / (length[first] * length[second]))
        return RateCoefficients(gain, slope, noise, common)

    def compute_rates(self, t: float, values: np.ndarray) -> np.ndarray:
        """Return the time derivative (n,) of a state vector (n,)."""
        teacher, (omega, nu), drift = self.compute_teacher_modes(t), (self.omega, self.share), self.drift
        power, variance = teacher.power, omega @ teacher.power
        state = self.centre_delta(self.unpack_state(values), power)
        rho = state.m[:, None] + state.delta
        gain, slope, noise, common = self.compute_coefficients(
            t, state.log_length, self.compute_overlaps(omega, power, state), variance
        )
        pull = omega * (gain[:, None] + slope[:, None] * state.delta)
        growth = (rho * pull) @ power + slope * (state.perpendicular @ omega) + (self.trace / 2) * noise
        growth = growth / (rho**2 @ power + state.perpendicular.sum(axis=1))  # 1 up to rounding, which would grow
        perpendicular_rates = (
            2 * (slope[:, None] * omega - growth[:, None]) * state.perpendicular + noise[:, None] * self.spread
        )
        if drift:
            pull = pull + drift * (1 - 2 * nu / power) * rho
            perpendicular_rates = perpendicular_rates + 2 * drift * nu * rho**2
        mean = pull @ (omega * power) / variance
        if drift:
            mean = mean + state.delta @ (omega * teacher.power_rate) / variance
        delta_rates = pull - mean[:, None] - growth[:, None] * state.delta
        pair_rates = self._compute_pair_rates(state.pair_products, rho, slope, growth, common)
        return self.pack_state(
            ModeState(growth - self.cell.decay, mean - growth * state.m, delta_rates, perpendicular_rates, pair_rates)
        )

    def _compute_pair_rates(
        self, pair_products: np.ndarray, rho: np.ndarray, slope: np.ndarray, growth: np.ndarray, common: np.ndarray
    ) -> np.ndarray:
        """Return the rates of the pair products."""
        if not self.has_pairs:
            return pair_products
        first, second, omega = self.first, self.second, self.omega
        growth_rates = (slope[first] + slope[second])[:, None] * omega - (growth[first] + growth[second])[:, None]
        product_rates = growth_rates * pair_products + common[:, None] * self.spread
        return product_rates + 2 * self.drift * self.share * rho[first] * rho[second] if self.drift else product_rates

    def describe_by_weights_and_fields(self, t: float, values: np.ndarray) -> tuple[Students, Students]:
        """Return the students of a state vector, described by weights and by fields."""
        state, power = self.unpack_state(values), self.compute_teacher_modes(t).power
        students = []
        for metric in (np.ones_like(self.omega), self.omega):
            overlaps = self.compute_overlaps(metric, power, state)
            log_size = np.log(np.hypot(overlaps.parallel, np.sqrt(overlaps.perpendicular)))
            cosines = overlaps.compute_transverse_cosines(self.first, self.second)
            students.append(Students(state.log_length + log_size, one_minus_cos(overlaps.teacher_angles), cosines))
        return students[0], students[1]
