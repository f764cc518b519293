r"""Order-parameter equations of online learning from inputs of unequal variance, in the limit N -> infinity.

**Modes.** In the directions of mode a (`statmech.inputs.covariance_modes`) inputs have variance :math:`\omega_a/N`. The
mode contains a fraction :math:`\nu_a` of all directions and the part :math:`T_a = |\mathbf B_a|^2/N` of the teacher.
The variance of the teacher's field is :math:`S = \sum_a\omega_aT_a`. A student's weights in these directions are
:math:`\mathbf J_{ka} = \rho_{ka}\mathbf B_a` plus a part perpendicular to :math:`\mathbf B_a`. Perpendicular parts of
two students have the products :math:`N P_{kj}^a`. Only fields enter a step, so that Stein's lemma closes the equations.
With the response :math:`D_k` and the average :math:`\langle f_ku_k\rangle`, both at the angle :math:`\theta_k` of the
fields, the standard deviation :math:`s_k` of a student's field and
:math:`E_k = \langle\partial f_k/\partial h_k\rangle`,

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

For a single mode these are the equations of `theory.online.order_parameter_equations`. Yoshida & Okada (2019) derive
the equations of networks.

**Averages over a step** involve fields whose standard deviation differs from the student's length. The stability of a
student is :math:`\kappa = \sigma h/l` with the length :math:`l = |\mathbf J|/\sqrt N` of its weights, whatever the
inputs. For anisotropic inputs the field h has the standard deviation s, and :math:`\kappa = r\,\sigma u` with
:math:`r = s/l` and the standard normal u. Averages follow from `theory.online.order_parameter_equations` at the angle
of the fields, for the rule

.. math:: g_r(\kappa, l) = g(r\kappa, l) .

Closed forms require a rule that is homogeneous in the stability (`Rule.degree`): :math:`\langle fu\rangle` and the
response scale as :math:`r^n`, and :math:`\langle f_1f_2\rangle` as :math:`r_1^nr_2^n`. All other rules are integrated,
with the stabilities of kinks and bends divided by r.

**The Jacobian** is computed for one student, or for equal students. The rates are linear in the modes. Their
coefficients depend on the state only through the length of the weights and the overlaps of the fields. So the Jacobian
consists of diagonal blocks and a matrix :math:`UR` of rank 6 with the slopes of the coefficients, which are rows here.
The slopes of averages are finite differences, which are accurate enough for the iteration of an implicit method.

**Trajectories** of students are solved cell by cell. Inputs of unequal variance have many modes, isotropic inputs a
single mode. For rules with closed forms, the equations of a single mode need only NumPy and SciPy, and are used if JAX
is missing (`theory.kinds.online_perceptron`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from statmech.inputs.covariance_modes import Modes, condense_modes, make_modes
from statmech.kinds.online_learning import OnlineCell
from statmech.numerics.gaussian import Array, one_minus_cos
from statmech.parameters.parameter_fields import RealParameterFamily, get_real_parameter_family
from statmech.runtime.compiled_programs import cached_program
from statmech.runtime.jax_and_blas_settings import use_cpu_double_precision
from statmech.runtime.operating_system import record_jax_use
from statmech.students.rules import Rule, RuleAverages
from statmech.students.student_geometry import angle_between_students, angle_from_components
from theory.numerics.stiff_and_linear_equations import integrate_stiff_equations
from theory.online.student_states import (
    Students,
    check_length_overflow,
    compute_clipped_length,
    count_distinct_students,
    make_pair_indices,
)

MIN_RELATIVE_TEACHER_POWER = (
    1e-8  # relative to the mode's fraction: for a drifting teacher, rho = B.J / B.B requires B.B > 0
)
COEFFICIENT_DIFFERENCE_STEP = 1e-6  # relative
ATOL = 1e-12  # for early times, as angles decay at most as 1/t


class StudentFields(NamedTuple):
    """Fields of students (S,): angle to the teacher's field, weight length, and deviation over length."""

    theta: Array
    length: Array
    field_std_to_length_ratio: Array


class StabilityScaledRule:
    """Rule g(r kappa, l) for students with ratio r, called with pairs (l, r) as lengths."""

    def __init__(self, rule: Rule, *ratios: Array):
        self.rule = rule
        self.kinks = tuple(kink / ratio for ratio in ratios for kink in rule.kinks)

    def g(self, kappa: Array, length: Array) -> Array:
        """Return the rule's modulation at the scaled stability r kappa."""
        length, ratio = length
        return self.rule.g(ratio * kappa, length)

    def edges(self, length: Array) -> tuple[Array, ...]:
        """Return the rule's panel edges, divided by r."""
        length, ratio = length
        return tuple(edge / ratio for edge in self.rule.edges(length))


def compute_field_averages(rule: Rule, fields: StudentFields, flip: float) -> RuleAverages:
    """Compute the averages over each student's step for inputs of unequal variance, including the learning rate.

    The averages are arrays (S,) by closed form or quadrature.

    Parameters
    ----------
    rule
        The learning rule.
    fields
        The students.
    flip
        Probability that a label is flipped.
    """
    theta, length, ratio = fields
    if rule.has_closed_form and rule.degree is not None:
        scale = ratio**rule.degree
        fu, response, ff = rule.closed_form(theta, length, flip)
        fu, response, ff = scale * fu, scale * response, scale**2 * ff
    else:
        fu, response, ff = map(
            np.asarray,
            _integrate_rule_averages(
                get_real_parameter_family(rule), _get_rule_parameters(rule), fields, np.float64(flip)
            ),
        )
    return RuleAverages(rule.eta * fu, rule.eta * response, rule.eta**2 * ff + np.zeros_like(theta))


def compute_pair_field_average(rule: Rule, first: StudentFields, second: StudentFields, c: Array, flip: float) -> Array:
    r"""Average :math:`\langle f_1f_2\rangle` over pairs (P,) of students for inputs of unequal variance.

    The averages include the learning rate, and use a closed form or quadrature.

    Parameters
    ----------
    rule
        The learning rule.
    first, second
        The students of each pair.
    c
        Transverse cosine of their fields.
    flip
        Probability that a label is flipped.
    """
    if rule.has_closed_form and rule.degree is not None:
        angles, lengths = (first.theta, second.theta), (first.length, second.length)
        ff = rule.closed_form_pair(angles, angle_between_students(*angles, c), lengths, flip)
        ff = (first.field_std_to_length_ratio * second.field_std_to_length_ratio) ** rule.degree * ff
    else:
        [ff] = map(
            np.asarray,
            _integrate_pair_average(
                get_real_parameter_family(rule), _get_rule_parameters(rule), first, second, c, np.float64(flip)
            ),
        )
    return rule.eta**2 * ff


def _get_rule_parameters(rule: Rule) -> dict[str, np.float64]:
    return {name: np.float64(getattr(rule, name)) for name in get_real_parameter_family(rule).real_parameter_names}


@cached_program
def _integrate_rule_averages(
    family: RealParameterFamily, parameters: dict[str, Array], fields: StudentFields, flip: Array
) -> tuple[Array, ...]:
    """Integrate the averages over each student's step for inputs of unequal variance, at learning rate 1."""
    import jax.numpy as jnp  # imported late, also below: closed forms need no JAX

    from theory.online.order_parameter_equations import integrate_rule_averages

    rule: Any = family(**parameters)

    def average_one(theta: Array, length: Array, ratio: Array) -> tuple[Array, ...]:
        return tuple(
            integrate_rule_averages(_cast_to_rule(StabilityScaledRule(rule, ratio)), theta, (length, ratio), flip)
        )

    return jnp.vectorize(average_one)(*fields)


@cached_program
def _integrate_pair_average(
    family: RealParameterFamily,
    parameters: dict[str, Array],
    first: StudentFields,
    second: StudentFields,
    c: Array,
    flip: Array,
) -> tuple[Array]:
    """Integrate the product of each pair's updates for inputs of unequal variance, at learning rate 1."""
    import jax

    from theory.online.order_parameter_equations import StudentPair, integrate_pair_average

    rule: Any = family(**parameters)

    def average_pair(first: StudentFields, second: StudentFields, c: Array) -> Array:
        scaled = _cast_to_rule(
            StabilityScaledRule(rule, first.field_std_to_length_ratio, second.field_std_to_length_ratio)
        )
        lengths = ((first.length, first.field_std_to_length_ratio), (second.length, second.field_std_to_length_ratio))
        return integrate_pair_average(scaled, StudentPair((first.theta, second.theta), c, lengths), flip)

    return (jax.lax.map(lambda pair: average_pair(*pair), (first, second, c)),)


def _cast_to_rule(scaled: StabilityScaledRule) -> Any:
    """Cast a scaled rule so that it can be passed as a rule.

    Averages use only `g`, `kinks` and `edges` of a rule.
    """
    return scaled


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
        # rounding errors must not separate identical students
        self.together = (q[pair_indices] == 1) & np.all(equal_starts) & (cell.learning_probability == 1)

    @cached_property
    def start(self) -> ModeState:
        """The initial state of all modes, with isotropic weights."""
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
        """Return the power of the teacher in each mode at a given time."""
        drift = self.drift
        if not drift:
            return self.still
        power = self.share + (self.power - self.share) * np.exp(-2 * drift * t)
        return TeacherModes(power, 2 * drift * (self.share - power))

    def compute_overlaps(self, metric: np.ndarray, power: np.ndarray, state: ModeState) -> StudentOverlaps:
        """Compute the overlaps of weights or of fields as sums over modes.

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
        """Compute the coefficients of the modes' rates from the lengths and the fields of the students."""
        theta, ratio = fields.teacher_angles, np.hypot(fields.parallel, np.sqrt(fields.perpendicular))
        length = compute_clipped_length(log_length)
        rule, flip = self.cell.rule if self.cell.schedule is None else self.cell.get_rule_at(t), self.cell.flip
        students = StudentFields(theta, length, ratio)
        fu, response, ff = (
            self.cell.learning_probability * part for part in compute_field_averages(rule, students, flip)
        )
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
            common = self.cell.learning_probability**2 * common / (length[first] * length[second])
            common = np.where(self.together, noise[first], common)
        return RateCoefficients(gain, slope, noise, common)

    def compute_rates(self, t: float, values: np.ndarray) -> np.ndarray:
        """Return the time derivative (n,) of a state vector (n,) of all modes."""
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
        """Return the rates of the pair products in all modes."""
        if not self.has_pairs:
            return pair_products
        first, second, omega = self.first, self.second, self.omega
        growth_rates = (slope[first] + slope[second])[:, None] * omega - (growth[first] + growth[second])[:, None]
        product_rates = growth_rates * pair_products + common[:, None] * self.spread
        return product_rates + 2 * self.drift * self.share * rho[first] * rho[second] if self.drift else product_rates

    def describe_by_weights_and_fields(self, t: float, values: np.ndarray) -> tuple[Students, Students]:
        """Return the students of a state vector of modes, described by weights and by fields."""
        state, power = self.unpack_state(values), self.compute_teacher_modes(t).power
        students = []
        for metric in (np.ones_like(self.omega), self.omega):
            overlaps = self.compute_overlaps(metric, power, state)
            log_size = np.log(np.hypot(overlaps.parallel, np.sqrt(overlaps.perpendicular)))
            cosines = overlaps.compute_transverse_cosines(self.first, self.second)
            students.append(Students(state.log_length + log_size, one_minus_cos(overlaps.teacher_angles), cosines))
        return students[0], students[1]


def compute_jacobian(equations: ModeEquations, t: float, values: np.ndarray) -> np.ndarray:
    """Compute the Jacobian (n, n) of `ModeEquations.compute_rates` with respect to the state vector.

    There must be a single distinct student.

    Parameters
    ----------
    equations
        The equations.
    t
        Time.
    values
        The state's vector (n,).
    """
    teacher = equations.compute_teacher_modes(t)
    omega, nu, power, drift = equations.omega, equations.share, teacher.power, equations.drift
    state = equations.centre_delta(equations.unpack_state(values), power)
    weight, n, d = omega * power / (omega @ power), values.size, omega.size
    m_row, delta_rows, perpendicular_rows = 1, slice(2, 2 + d), slice(2 + d, 2 + 2 * d)
    pair_rows = slice(2 + 2 * d, n)
    delta, perpendicular, rho = state.delta[0], state.perpendicular[0], (state.m + state.delta[0])
    (gain, slope, noise, _), slopes = _differentiate_coefficients(equations, t, state, weight, n)
    pull = omega * (gain + slope * delta)
    shrink = drift * (1 - 2 * nu / power)

    growth = power @ (rho * pull) + slope * (perpendicular @ omega) + noise / 2 * (nu @ omega)
    growth_gradient = (power * rho) @ omega * slopes[0] + (
        (power * rho * omega) @ delta + perpendicular @ omega
    ) * slopes[1]
    growth_gradient += nu @ omega / 2 * slopes[2]
    growth_gradient[m_row] += power @ pull
    growth_gradient[delta_rows] += power * (pull + rho * omega * slope)
    growth_gradient[perpendicular_rows] += slope * omega
    square = power @ rho**2 + perpendicular.sum()
    growth = growth / square
    growth_gradient[m_row] -= 2 * growth * (power @ rho)
    growth_gradient[delta_rows] -= 2 * growth * power * rho
    growth_gradient[perpendicular_rows] -= growth
    growth_gradient /= square

    derivatives = np.zeros((n, n))
    derivatives[0] = growth_gradient
    rho_derivatives = np.outer(omega, slopes[0]) + np.outer(omega * delta, slopes[1])
    rho_derivatives[:, m_row] += shrink
    _add_to_diagonal(rho_derivatives[:, delta_rows], omega * slope + shrink)
    mean = weight @ rho_derivatives
    mean[delta_rows] += omega * teacher.power_rate / (omega @ power)
    derivatives[m_row] = mean - state.m * growth_gradient
    derivatives[m_row, m_row] -= growth
    derivatives[delta_rows] = rho_derivatives - mean - np.outer(delta, growth_gradient)
    _add_to_diagonal(derivatives[delta_rows, delta_rows], -growth)
    parts = [(perpendicular_rows, perpendicular, slopes[2]), (pair_rows, *state.pair_products, slopes[3])][
        : 2 if equations.has_pairs else 1
    ]
    for rows, part, source in parts:
        derivatives[rows] = (
            np.outer(2 * omega * part, slopes[1]) + np.outer(omega * nu, source) - np.outer(2 * part, growth_gradient)
        )
        _add_to_diagonal(derivatives[rows, rows], 2 * (omega * slope - growth))
        derivatives[rows, m_row] += 4 * drift * nu * rho
        _add_to_diagonal(derivatives[rows, delta_rows], 4 * drift * nu * rho)
    # the rates centre delta: the chain rule gives its derivatives
    derivatives[:, delta_rows] += np.outer(derivatives[:, m_row] - derivatives[:, delta_rows].sum(axis=1), weight)
    return derivatives


def _add_to_diagonal(block: np.ndarray, values: np.ndarray) -> None:
    """Add values to the diagonal of a matrix view, in place."""
    block[np.diag_indices(len(block))] += values


def _differentiate_coefficients(
    equations: ModeEquations, t: float, state: ModeState, weight: np.ndarray, num_variables: int
) -> tuple[tuple[float, ...], np.ndarray]:
    """Return one student's coefficients (4,) of the modes' rates, and their finite-difference derivatives (4, n)."""
    omega, power = equations.omega, equations.compute_teacher_modes(t).power
    variance, d = omega @ power, omega.size
    fields = equations.compute_overlaps(omega, power, state)
    arguments = [state.log_length, *fields]
    rows = np.zeros((4, num_variables))
    rows[0, 0] = 1.0
    rows[1, 1], rows[1, 2 : 2 + d] = np.sqrt(variance), np.sqrt(variance) * weight
    rows[2:, 2 : 2 + d] = 2 * omega * power * (state.delta[0] - weight @ state.delta[0])
    rows[2, 2 + d : 2 + 2 * d] = omega
    rows[3, 2 + 2 * d :] = omega[: num_variables - 2 - 2 * d]

    def coefficients_at(point: list[np.ndarray]) -> np.ndarray:
        return _flatten_coefficients(equations.compute_coefficients(t, point[0], StudentOverlaps(*point[1:]), variance))

    first, derivatives = coefficients_at(arguments), np.zeros((4, num_variables))
    scale = np.hypot(fields.parallel, np.sqrt(fields.perpendicular))
    for index, (value, size) in enumerate(
        zip(arguments, (1.0, scale, fields.perpendicular, fields.perpendicular), strict=True)
    ):
        shifted = list(arguments)
        # backward difference: cosines of pairs cannot exceed 1
        shifted[index] = value - COEFFICIENT_DIFFERENCE_STEP * size
        derivatives += np.outer((first - coefficients_at(shifted)) / (COEFFICIENT_DIFFERENCE_STEP * size), rows[index])
    return tuple(first), derivatives


def _flatten_coefficients(coefficients: RateCoefficients) -> np.ndarray:
    """Return the coefficients of one student as a vector.

    The coefficient of pairs is 0 without pairs.
    """
    return np.resize(np.concatenate([*coefficients[:3], coefficients.pair_noise, [0.0]]), 4)


class WeightAndFieldStudents(NamedTuple):
    """Students at each time, described by products of weights and by covariances of fields."""

    weights: Students
    fields: Students


def solve_cells(cells: Iterable[OnlineCell], times: Iterable[float]) -> list[WeightAndFieldStudents]:
    """Solve the equations of each cell for its students at each time, for inputs of unequal variance.

    Arrays have a leading axis of times.

    Raises `SolverError` if the integration stops early, `DivergedStudentError` if a length leaves the floating-point
    range.
    """
    record_jax_use()
    with use_cpu_double_precision():
        return [_solve_cell(cell, np.asarray(list(times), float)) for cell in cells]


def _solve_cell(cell: OnlineCell, times: np.ndarray) -> WeightAndFieldStudents:
    modes = make_modes([1.0]) if cell.inputs.isotropic else cell.inputs.modes(cell.N)
    assert modes is not None  # scenarios without modes have no equations
    equations = ModeEquations(cell, condense_modes(modes))
    students = [
        equations.describe_by_weights_and_fields(t, row)
        for t, row in zip(times, _integrate_equations(equations, times), strict=True)
    ]
    metrics = WeightAndFieldStudents(
        *(Students(*map(np.stack, zip(*over_time, strict=True))) for over_time in zip(*students, strict=True))
    )
    check_length_overflow(metrics.weights.log_length, cell.message_description)
    return metrics


def _integrate_equations(equations: ModeEquations, times: np.ndarray) -> np.ndarray:
    """Integrate the equations of all modes, and return the state vectors (T, n) at the given times."""
    return integrate_stiff_equations(
        equations.compute_rates,
        equations.pack_state(equations.start),
        times,
        _make_absolute_tolerances(equations, times[-1]),
        equations.cell.message_description,
        (lambda t, values: compute_jacobian(equations, t, values)) if equations.students == 1 else None,
    )


def _make_absolute_tolerances(equations: ModeEquations, last_time: float) -> np.ndarray:
    """Return absolute tolerances (n,) of all modes that keep small angles accurate until the last time."""
    min_angle = 1 / (1 + last_time)
    start = equations.start
    delta = np.full(start.delta.shape, min_angle)
    perpendicular = np.broadcast_to(min_angle**2 * equations.share, start.delta.shape)
    pair_products = np.broadcast_to(min_angle**2 * equations.share, start.pair_products.shape)
    return ATOL * np.concatenate(
        [np.ones(2 * equations.students), *map(np.ravel, (delta, perpendicular, pair_products))]
    )
