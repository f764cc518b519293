r"""Order-parameter equations of students that learn online for N -> infinity, their averages, and their solution.

**Equations.** For :math:`\mathbf J_k \leftarrow \mathbf J_k + f_k\mathbf x`, self-averaging gives the Gram matrix of
:math:`\mathbf w = (\mathbf B, \mathbf J_1, \dots, \mathbf J_K)` with fields :math:`h_i = \mathbf w_i\cdot\mathbf x`

.. math:: \dot G_{ij} = \langle f_i h_j\rangle + \langle f_j h_i\rangle + \langle f_i f_j\rangle, \qquad f_0 = 0,

which is eqs (3.5) and (3.6) of Miyoshi, Hara & Okada by the chain rule. As R, q -> 1 these equations lose accuracy: R
and q round to 1. We integrate in :math:`\log l_k`, :math:`y_k = 1 - R_k = 1 - \cos\theta_k`, and the cosines
:math:`c_{kj} = (q_{kj} - R_kR_j)/(\sin\theta_k\sin\theta_j)` of the students' parts perpendicular to the teacher. With
:math:`D_k = \langle\partial f_k/\partial v\rangle` (`statmech.students.rules.RuleAverages`) and Stein's lemma,

.. math::
    \frac{d\log l_k}{dt} &= \frac{\langle f_ku_k\rangle}{l_k} + \frac{\langle f_k^2\rangle}{2l_k^2}, \\
    \dot y_k &= -\sin^2\theta_k\,\frac{D_k}{l_k} + \cos\theta_k\,\frac{\langle f_k^2\rangle}{2l_k^2}, \\
    \dot c_{kj} &= \frac{\langle f_kf_j\rangle}{l_kl_j\sin\theta_k\sin\theta_j}
        - \frac{c_{kj}}{2}\left(\frac{\langle f_k^2\rangle}{l_k^2\sin^2\theta_k}
        + \frac{\langle f_j^2\rangle}{l_j^2\sin^2\theta_j}\right).

No term is larger than the sum, even when :math:`\theta` is 1e-6, so eps_g keeps its digits for t > 1e6.

A teacher that drifts at rate :math:`\delta` (`drift`) turns away from all students, :math:`\dot R_k = -\delta R_k`, so
with :math:`\rho_k = \cot\theta_k` the rates gain :math:`\delta\cos\theta_k` and :math:`\delta\,(2\rho_k\rho_j -
c_{kj}(\rho_k^2 + \rho_j^2))`. Weight decay at rate :math:`\nu` (`decay`) subtracts :math:`\nu` from the rate of
:math:`\log l_k`. A `schedule` decreases the learning rate (`statmech.parameters.schedules_and_controls`).

If each student learns an example with its own probability s (`resample: {share: s}`), the averages over one student's
step are multiplied by s, and :math:`\langle f_kf_j\rangle` of two students, which both must learn the example, by
:math:`s^2`. Decay does not depend on s.

Students with equal initial conditions stay equal: one student and one pair represent all (the symmetric reduction).

**Averages** of a rule are closed forms or quadratures. Let :math:`\theta` be the angle between teacher and student,
:math:`\gamma = \cot\theta`, :math:`p_f` the label noise. The stability :math:`\kappa = \sigma u` has the density

.. math:: p(\kappa) = 2\varphi(\kappa)\,[p_f + (1-2p_f)\,\Phi(\gamma\kappa)],

so :math:`\langle fu\rangle = \eta\int p\, g\,\kappa` and :math:`\langle f^2\rangle = \eta^2\int p\, g^2`. The
label jumps at v = 0. Stein's lemma turns this jump into the *response*

.. math:: \langle\partial f/\partial v\rangle = \eta\,(1-2p_f)\sqrt{2/\pi}\int \varphi(z)\, g(z\sin\theta)\,dz ,

from which :math:`\langle f h\rangle` follows for every field h, without a 0/0 at R = 0 or R = 1.

For two students, student 2 is integrated conditionally on student 1: :math:`\kappa_2 = q\kappa_1 + pz`,
:math:`p = \sqrt{1-q^2}`. Given both stabilities, the label is right with probability
:math:`\Phi((\gamma_1\kappa_1 + rz)/\sqrt{1-r^2})`. Here r is the correlation between z and the part of
the teacher's field that :math:`\kappa_1` does not determine. With the transverse cosine c,

.. math:: pr = \cos\theta_2\sin\theta_1 - c\,\cos\theta_1\sin\theta_2, \qquad
          p\sqrt{1-r^2} = \sin\theta_2\sqrt{1-c^2},

both free of cancellation as q -> 1, where the density is a thin ridge in :math:`(\kappa_1,\kappa_2)` but not in
:math:`(\kappa_1, z)`. Panels are cut at the rule's kinks and around each sigmoid (8.5 of its widths).

**Solver.** One compiled program solves many parameter combinations in parallel. They form a batch along the last axis,
of length L. Each batch element integrates the equations of its students and, if requested, of their fluctuations of
order 1/N (`theory.online.student_fluctuations`). The index of its rule selects the equations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.errors import SolverError
from statmech.kinds.online_learning import OnlineCell
from statmech.numerics.gaussian import (
    GAUSSIAN_CUTOFF,
    MIN_DIVISOR,
    NODES,
    Array,
    get_legendre_rule,
    make_clipped_composite_rule,
    normal_density,
    normal_upper_tail,
    one_minus_cos,
    replace_zero,
)
from statmech.parameters.parameter_fields import RealParameterFamily, get_real_parameter_family
from statmech.parameters.schedules_and_controls import TimeDependence
from statmech.runtime.compiled_programs import fast_compiled_program, pad_array_length
from statmech.runtime.jax_and_blas_settings import use_cpu_double_precision
from statmech.runtime.operating_system import record_jax_use
from statmech.students.rules import Rule, RuleAverages
from statmech.students.student_geometry import angle_between_students, angle_from_versine
from theory.numerics.batch_integration import integrate, pad_times, split_times_into_pieces
from theory.online.student_fluctuations import (
    StabilityNodes,
    StepMoments,
    StudentFluctuations,
    compute_fluctuation_rates,
    compute_stability_panel_edges,
    compute_weighted_step_terms,
    convert_to_step_averages,
    make_initial_fluctuations,
    make_linear_rule_nodes,
    make_stability_nodes,
)
from theory.online.student_states import (
    ATOL,
    LOG_LENGTH_CLIP,
    VERSINE_ATOL,
    Students,
    check_length_overflow,
    compute_rate_terms,
    make_initial_students,
    make_pair_indices,
)

SIGMOID_CUTOFF = 8.5  # widths: a sigmoid is constant to 1e-17 outside
RTOL = 1e-9
FLUCTUATION_ATOL = 1e-9  # applies to fluctuations of order 1/N
MAX_STEPS = 2_000_000
MAX_ONLINE_CELLS_PER_BATCH = 128  # other rules are solved one by one
InitialState = tuple[Students, StudentFluctuations | None]


class StudentPair(NamedTuple):
    """Pair of students: angles to the teacher (2,), cosine of the transverse parts, lengths (2,)."""

    teacher_angles: tuple[Array, Array]
    transverse_cosine: Array
    lengths: tuple[Array, Array]


def compute_rule_averages(rule: Rule, use_closed_forms: bool, theta: Array, length: Array, flip: Array) -> RuleAverages:
    """Compute the averages in the rates of one student's order parameters, including the learning rate.

    The average uses a closed form, a line form or quadrature. Arrays broadcast.

    Parameters
    ----------
    rule
        The learning rule.
    use_closed_forms
        True to use its closed forms.
    theta, length
        The student's angle to the teacher, and its length.
    flip
        Probability that a label is flipped.
    """
    if use_closed_forms:
        fu, response, ff = rule.closed_form(theta, length, flip)
    else:
        average_one = rule.line_form if rule.has_line_integral_form else partial(integrate_rule_averages, rule)
        fu, response, ff = jnp.vectorize(lambda *values: tuple(average_one(*values)))(theta, length, flip)
    return RuleAverages(rule.eta * fu, rule.eta * response, rule.eta**2 * ff)


def compute_pair_average(rule: Rule, use_closed_forms: bool, pair: StudentPair, flip: Array) -> Array:
    r"""Average the product of two students' updates for the rate of their overlap, including the learning rate.

    The average :math:`\langle f_1 f_2\rangle` uses a closed form, a line form or quadrature. Arrays broadcast.
    """
    if use_closed_forms:
        pair_angle = angle_between_students(*pair.teacher_angles, pair.transverse_cosine)
        ff = rule.closed_form_pair(pair.teacher_angles, pair_angle, pair.lengths, flip)
    else:
        average_pair = _average_pair_by_line_form if rule.has_line_integral_form else integrate_pair_average
        flat = (*pair.teacher_angles, pair.transverse_cosine, *pair.lengths, flip)
        ff = jnp.vectorize(lambda a, b, c, k, l, e: average_pair(rule, StudentPair((a, b), c, (k, l)), e))(*flat)
    return rule.eta**2 * ff


def _average_pair_by_line_form(rule: Rule, pair: StudentPair, flip: Array) -> Array:
    pair_angle = angle_between_students(*pair.teacher_angles, pair.transverse_cosine)
    return rule.line_form_pair(pair.teacher_angles, pair_angle, pair.lengths, flip)


def integrate_rule_averages(rule: Rule, theta: Array, length: Array, flip: Array, nodes: int = NODES) -> RuleAverages:
    """Integrate the averages in the rates of one student's order parameters, in panels between kinks.

    The learning rate is 1, and all arguments are scalars.

    Parameters
    ----------
    rule
        The learning rule.
    theta, length
        The student's angle to the teacher, and its length.
    flip
        Probability that a label is flipped.
    nodes
        Number of nodes per panel.
    """
    sin, tan = replace_zero(jnp.sin(theta)), jnp.tan(theta)
    kinks = _get_rule_panel_edges(rule, length)
    kappa, weight = make_clipped_composite_rule(_join_panel_edges(_make_sigmoid_edges(0.0, tan), kinks), nodes)
    weight = (
        weight * 2 * normal_density(kappa) * (flip + (1 - 2 * flip) * normal_upper_tail(-kappa * jnp.cos(theta) / sin))
    )
    g = rule.g(kappa, length)
    z, z_weight = make_clipped_composite_rule(_join_panel_edges(_make_sigmoid_edges(0.0, 1.0), kinks / sin), nodes)
    response = jnp.sum(z_weight * normal_density(z) * rule.g(sin * z, length))
    return RuleAverages(
        fu=jnp.sum(weight * g * kappa),
        response=(1 - 2 * flip) * np.sqrt(2 / np.pi) * response,
        ff=jnp.sum(weight * g * g),
    )


def integrate_pair_average(rule: Rule, pair: StudentPair, flip: Array, nodes: int = NODES) -> Array:
    r"""Average the product of two students' updates for the rate of their overlap by nested quadrature.

    The learning rate is 1, and all arguments are scalars.
    """
    (sin_1, sin_2), (cos_1, cos_2) = (tuple(map(f, pair.teacher_angles)) for f in (jnp.sin, jnp.cos))
    pair_angle = angle_between_students(*pair.teacher_angles, pair.transverse_cosine)
    q, p = jnp.cos(pair_angle), jnp.sin(pair_angle)
    distinct = p > MIN_DIVISOR
    parallel = cos_2 * sin_1 - pair.transverse_cosine * cos_1 * sin_2  # p r
    # p sqrt(1 - r^2)
    perpendicular = sin_2 * jnp.sqrt(jnp.maximum((1 - pair.transverse_cosine) * (1 + pair.transverse_cosine), 0.0))
    norm = replace_zero(jnp.hypot(parallel, perpendicular))
    r, root = jnp.where(distinct, parallel / norm, 0.0), jnp.where(distinct, replace_zero(perpendicular / norm), 1.0)
    gamma = cos_1 / replace_zero(sin_1)
    first, second = (_get_rule_panel_edges(rule, length) for length in pair.lengths)

    def conditional(kappa_1: Array) -> Array:
        """Average over student 2 at a given stability kappa_1 of student 1."""

        def terms(z: Array) -> Array:
            right = normal_upper_tail(-(gamma * kappa_1 + r * z) / root)
            return normal_density(z) * (flip + (1 - 2 * flip) * right) * rule.g(q * kappa_1 + p * z, pair.lengths[1])

        label = _make_sigmoid_edges(-gamma * kappa_1 / replace_zero(r), root / replace_zero(r))
        return _integrate_panels(terms, _join_panel_edges(label, (second - q * kappa_1) / replace_zero(p)), nodes)

    def terms(kappa: Array) -> Array:
        return 2 * normal_density(kappa) * rule.g(kappa, pair.lengths[0]) * jax.vmap(conditional)(kappa)

    # in kappa_1 the inner integral changes where the kink of student 2 meets the ridge or the sigmoid of the label
    slope = replace_zero(q / replace_zero(p) - gamma / replace_zero(r))
    ridge = [_make_sigmoid_edges(kink / replace_zero(q), p / replace_zero(q)) for kink in rule.kinks]
    meeting = [
        _make_sigmoid_edges(kink / replace_zero(p) / slope, root / replace_zero(r) / slope) for kink in rule.kinks
    ]
    label = _make_sigmoid_edges(0.0, jnp.tan(pair.teacher_angles[0]))
    return _integrate_panels(terms, _join_panel_edges(label, first, *ridge, *meeting), nodes)


def _integrate_panels(integrand: Callable[[Array], Array], edges: Array, nodes: int) -> Array:
    """Integrate over a student's stability by a Gauss-Legendre rule on each panel between the edges.

    Most edges of a pair coincide or lie outside the range of stabilities, and empty panels take no time.
    """
    ends = jnp.sort(jnp.clip(edges, -GAUSSIAN_CUTOFF, GAUSSIAN_CUTOFF))
    distinct = jnp.diff(ends, prepend=-jnp.inf) > 0
    ends = jnp.sort(jnp.where(distinct, ends, GAUSSIAN_CUTOFF))
    x, weight = get_legendre_rule(nodes)

    def add(panel: Array, total: Array) -> Array:
        left, width = ends[panel], ends[panel + 1] - ends[panel]
        return total + jnp.sum(width * weight * integrand(left + width * x))

    return jax.lax.fori_loop(0, jnp.sum(distinct) - 1, add, jnp.zeros(()))


def _get_rule_panel_edges(rule: Rule, length: Array) -> Array:
    """Return the panel edges at the kinks and bends of a rule, for a student of a given length."""
    edges = [jnp.asarray(edge, float) for edge in rule.edges(length)]
    return jnp.stack(edges) if edges else jnp.zeros(0)


def _make_sigmoid_edges(centre: Array, width: Array) -> Array:
    """Return edges that bracket a sigmoid with the given centre and width."""
    half_width = SIGMOID_CUTOFF * jnp.abs(width)
    return jnp.stack([jnp.asarray(edge, float) for edge in (centre - half_width, centre, centre + half_width)])


def _join_panel_edges(*edges: Array) -> Array:
    """Join panel edges with 0 and the cutoffs of the real line."""
    return jnp.concatenate([jnp.asarray([-GAUSSIAN_CUTOFF, 0.0, GAUSSIAN_CUTOFF]), *edges])


def compute_rates(
    rule: Rule,
    use_closed_forms: bool,
    students: Students,
    flip: Array,
    changes: TimeDependence | None = None,
    has_pairs: bool = True,
    learning_probability: Array | None = None,
) -> Students:
    """Compute the time derivative of the order parameters of distinct students.

    Parameters
    ----------
    rule
        The learning rule.
    use_closed_forms
        True to use its closed forms.
    students
        The state.
    flip
        Probability that a label is flipped.
    changes
        Drift and decay. None means that both are 0.
    has_pairs
        False for a single student, whose c has no meaning and stays constant.
    learning_probability
        Probability that a student learns an example, independently of the others. None if all learn every example.
    """
    theta = angle_from_versine(students.y)
    length = jnp.exp(jnp.clip(students.log_length, -LOG_LENGTH_CLIP, LOG_LENGTH_CLIP))
    # without this barrier each of the three rates would recompute both, which doubles the time
    theta, length = jax.lax.optimization_barrier((theta, length))
    single = compute_rule_averages(rule, use_closed_forms, theta, length, flip)
    if learning_probability is not None:
        single = RuleAverages(*(learning_probability * part for part in single))
    log_rate, y_rate = map(sum, compute_rate_terms(single, students.y, length, changes))
    if not has_pairs:
        return Students(log_rate, y_rate, jnp.zeros_like(students.c))
    angles, lengths = _get_pair_values(theta), _get_pair_values(length)
    sin = jnp.sqrt(students.y * (2 - students.y))
    perpendicular = _divide_or_zero(single.ff / length**2, sin**2)
    common = compute_pair_average(rule, use_closed_forms, StudentPair(angles, students.c, lengths), flip) / prod(
        lengths
    )
    if learning_probability is not None:
        common = learning_probability**2 * common
    c_rate = _divide_or_zero(common, prod(_get_pair_values(sin))) - students.c / 2 * sum(
        _get_pair_values(perpendicular)
    )
    # identical students stay identical, but q = 1 may be unstable (perceptron): rounding errors would separate them
    separate = (students.c < 1) | (angles[0] != angles[1]) | (lengths[0] != lengths[1])
    if learning_probability is not None:
        separate |= learning_probability < 1
    c_rate = jnp.where(separate, c_rate, 0.0)
    if changes is not None:
        first, second = _get_pair_values(_divide_or_zero(1 - students.y, sin))
        c_rate += changes.drift * (2 * first * second - students.c * (first**2 + second**2))
    return Students(log_rate, y_rate, c_rate)


def compute_logarithmic_rates(
    rule: Rule, use_closed_forms: bool, state: tuple[Array, Array], flip: Array, changes: TimeDependence | None
) -> tuple[Array, Array]:
    """Compute the time derivatives of log l and log theta for one student.

    Parameters
    ----------
    rule
        The learning rule.
    use_closed_forms
        True to use its closed forms.
    state
        (log l, log theta).
    flip
        Probability that a label is flipped.
    changes
        Drift and decay. None means that both are 0.
    """
    length, theta = jnp.exp(jnp.clip(state[0], -LOG_LENGTH_CLIP, LOG_LENGTH_CLIP)), jnp.exp(state[1])
    single = compute_rule_averages(rule, use_closed_forms, theta, length, flip)
    log_rate, y_rate = map(sum, compute_rate_terms(single, one_minus_cos(theta), length, changes))
    return log_rate, log_theta_rate_from_y_rate(y_rate, theta)


def log_theta_rate_from_y_rate(y_rate: Array, theta: Array) -> Array:
    """Return the rate of log theta from the rate of y = 1 - cos(theta)."""
    return y_rate / (theta * jnp.sin(theta))


def _get_pair_values(student_values: Array) -> tuple[Array, Array]:
    """Split student values (S,) into the values of the first and second student of each pair."""
    if student_values.shape[0] == 1:  # no gather in the common case of one representative student
        return student_values, student_values
    first, second = make_pair_indices(student_values.shape[0])
    return student_values[first], student_values[second]


def _divide_or_zero(x: Array, y: Array) -> Array:
    """Return x / y, and 0 where both vanish.

    So a student on the teacher's axis with zero update stays there.
    """
    return jnp.where(y > 0, x / jnp.where(y > 0, y, 1.0), 0.0)


@dataclass(frozen=True)
class StudentSolverOptions:
    """Static arguments of the compiled solver.

    `use_closed_forms` selects closed forms instead of quadrature. `num_distinct_students` is the number of distinct
    students. `is_time_dependent` is True if drift, decay or a schedule may differ from their defaults. `paired` is True
    if there are pairs, whose averages by quadrature take most of the time. `has_fluctuations` is True if fluctuations
    are integrated, and `has_linear_rules` if the rules are then linear. `has_own_examples` is True if each
    student learns a fraction of the examples.
    """

    rules: tuple[RealParameterFamily, ...]
    use_closed_forms: bool
    num_distinct_students: int
    is_time_dependent: bool
    has_pairs: bool
    has_fluctuations: bool = False
    has_linear_rules: bool = False
    has_own_examples: bool = False


class StudentBatch(NamedTuple):
    """Run-time arguments of the solver, with the batch as the last axis.

    `rule_index` is the index of the rule. `fluctuations` has shape (5 S, L), or (0, L) if fluctuations are not
    integrated.
    """

    rule_index: Array
    parameters: dict[str, Array]
    flip: Array
    learning_probability: Array
    changes: TimeDependence
    start: Students
    fluctuations: Array


class StudentRateArguments(NamedTuple):
    """Arguments of the rate equations for one batch element, apart from its state.

    `t` is empty if nothing changes with time.
    """

    t: Array
    rule_index: Array
    parameters: dict[str, Array]
    flip: Array
    learning_probability: Array
    changes: TimeDependence


@fast_compiled_program
def solve_batch(
    equations: StudentSolverOptions, batch: StudentBatch, times: Array, max_steps: Array
) -> tuple[Array, ...]:
    """Integrate a batch of students, and return log l, y, c and the fluctuation rows (T, ..., L).

    Also returns a mask of elements that have reached the last time.
    """
    S, pairs, num_fluctuations = equations.num_distinct_students, batch.start.c.shape[0], batch.fluctuations.shape[0]
    cuts = [S, 2 * S, 2 * S + pairs, 2 * S + pairs + num_fluctuations]
    student_rates = jax.vmap(partial(_compute_student_rates, equations), in_axes=-1, out_axes=-1)

    def field(y: Array) -> Array:
        *state, rows, t = jnp.split(y, cuts)
        students = Students(*state)
        setting = StudentRateArguments(
            t, batch.rule_index, batch.parameters, batch.flip, batch.learning_probability, batch.changes
        )
        fluctuation_rates = (
            _compute_fluctuation_row_rates(equations, students, rows, setting) if equations.has_fluctuations else rows
        )
        return jnp.concatenate([*student_rates(students, setting), fluctuation_rates, jnp.ones_like(t)])

    # the last row is the time
    start = [*batch.start, batch.fluctuations, jnp.zeros((1 if equations.is_time_dependent else 0, batch.flip.size))]
    first = [ATOL] * S + [VERSINE_ATOL] * S + [ATOL] * pairs, [ATOL] * len(start[-1])
    atol = jnp.asarray(first[0] + [FLUCTUATION_ATOL] * num_fluctuations + first[1])[:, None]
    values, completed = integrate(field, jnp.concatenate(start), times, RTOL, atol, max_steps)
    return *jnp.split(values, cuts, axis=1)[:4], completed


def _make_current_rule(
    equations: StudentSolverOptions, family: RealParameterFamily, setting: StudentRateArguments
) -> Rule:
    """Return the rule in the equations of a batch element at the current time."""
    parameters = setting.parameters
    if equations.is_time_dependent:
        parameters = {**parameters, "eta": setting.changes.schedule.rate(parameters["eta"], setting.t[0])}
    return family(**{name: parameters[name] for name in family.real_parameter_names})


def _compute_student_rates(
    equations: StudentSolverOptions, students: Students, setting: StudentRateArguments
) -> Students:
    """Return the time derivative of the students' order parameters in one batch element."""

    def make_rule_rates(family: RealParameterFamily) -> Callable[[Students], Students]:
        rule = _make_current_rule(equations, family, setting)
        changes = setting.changes if equations.is_time_dependent else None
        learning_probability = setting.learning_probability if equations.has_own_examples else None
        return lambda students: compute_rates(
            rule, equations.use_closed_forms, students, setting.flip, changes, equations.has_pairs, learning_probability
        )

    inside = Students(students.log_length, jnp.clip(students.y, 0.0, 2.0), jnp.clip(students.c, -1.0, 1.0))
    return jax.lax.switch(setting.rule_index, [make_rule_rates(family) for family in equations.rules], inside)


def _compute_fluctuation_row_rates(
    equations: StudentSolverOptions, students: Students, rows: Array, setting: StudentRateArguments
) -> Array:
    """Return the time derivative of the solver's fluctuation rows (5 S, L) for students (S, L).

    Each student is treated as a separate batch element.
    """
    log_length, theta = students.log_length.reshape(-1), angle_from_versine(jnp.clip(students.y, 0.0, 2.0)).reshape(-1)
    student_setting: StudentRateArguments = jax.tree.map(
        lambda array: jnp.tile(array, equations.num_distinct_students), setting
    )
    fluctuations = StudentFluctuations(*jnp.split(rows.reshape(5, -1), [3]))
    rates_by_rule = [
        jnp.concatenate(
            _compute_fluctuation_rates(equations, family, log_length, theta, fluctuations, student_setting)
        ).reshape(rows.shape)
        for family in equations.rules
    ]
    return (
        rates_by_rule[0]
        if len(rates_by_rule) == 1
        else jnp.select([student_setting.rule_index == index for index in range(len(rates_by_rule))], rates_by_rule)
    )


def _compute_fluctuation_rates(
    equations: StudentSolverOptions,
    family: RealParameterFamily,
    log_length: Array,
    theta: Array,
    fluctuations: StudentFluctuations,
    setting: StudentRateArguments,
) -> StudentFluctuations:
    """Return the solver's time derivative of fluctuations (., L) under one rule, one student per batch element.

    Nodes are mapped outside of the batch, so that the batch is the last axis of all arrays: this is several times
    faster.
    """
    length = jnp.exp(jnp.clip(log_length, -LOG_LENGTH_CLIP, LOG_LENGTH_CLIP))
    over_batch = partial(jax.vmap, in_axes=-1, out_axes=-1)

    def current_changes(setting: StudentRateArguments) -> TimeDependence | None:
        return setting.changes if equations.is_time_dependent else None

    def edges(theta: Array, length: Array, setting: StudentRateArguments) -> list[Array]:
        return compute_stability_panel_edges(_make_current_rule(equations, family, setting), theta, length)

    def examples(nodes: StabilityNodes, theta: Array, length: Array, setting: StudentRateArguments) -> StepMoments:
        rule = _make_current_rule(equations, family, setting)
        return compute_weighted_step_terms(rule, nodes, theta, length, setting.flip, current_changes(setting))

    def rates(
        example: StepMoments,
        log_length: Array,
        theta: Array,
        fluctuations: StudentFluctuations,
        setting: StudentRateArguments,
    ) -> StudentFluctuations:
        step = convert_to_step_averages(theta, example, current_changes(setting))

        def field(log_length: Array, log_theta: Array, t: Array) -> tuple[Array, Array]:
            rule = _make_current_rule(equations, family, setting._replace(t=t))
            return compute_logarithmic_rates(
                rule, equations.use_closed_forms, (log_length, log_theta), setting.flip, current_changes(setting)
            )

        return compute_fluctuation_rates(field, (log_length, jnp.log(theta)), setting.t, step, fluctuations)

    if equations.has_linear_rules:
        stabilities = make_linear_rule_nodes(theta, setting.flip)
    else:
        stabilities = make_stability_nodes(over_batch(edges)(theta, length, setting), theta, setting.flip)
    terms = jax.vmap(lambda stability: over_batch(examples)(stability, theta, length, setting))(stabilities)
    means: StepMoments = jax.tree.map(partial(jnp.sum, axis=0), terms)
    return over_batch(rates)(means, log_length, theta, fluctuations, setting)


class CellInitialValueProblem(NamedTuple):
    """A cell with its initial state, and the index of its rule in the compiled program."""

    cell: OnlineCell
    rule_index: int
    start: Students
    fluctuations: StudentFluctuations | None = None


def solve_cells(cells: list[OnlineCell], times: Iterable[float]) -> list[Students]:
    """Solve the equations of each cell for its students at each time.

    Arrays have a leading axis of times. Raises `SolverError` if the integration stops early, and `DivergedStudentError`
    if a length leaves the floating-point range.
    """
    return [students for students, _ in _solve_in_pieces(cells, times, with_fluctuations=False)]


def solve_with_fluctuations(
    cells: list[OnlineCell], times: Iterable[float]
) -> list[tuple[Students, StudentFluctuations]]:
    """Solve the equations of each cell for its students, with fluctuations of order 1/N.

    Raises errors like `solve_cells`.
    """
    return _solve_in_pieces(cells, times, with_fluctuations=True)


def _solve_in_pieces(
    cells: list[OnlineCell], times: Iterable[float], with_fluctuations: bool
) -> list[tuple[Students, StudentFluctuations]]:
    """Solve the equations of students piece by piece, between the edges of their functions of time."""
    t, edges = np.asarray(list(times), float), [cell.edges for cell in cells]
    starts = _make_initial_states(cells, with_fluctuations)
    solutions = dict[int, tuple[Students, StudentFluctuations]]()
    if not any(edges):
        return _solve_by_program(cells, t, starts, with_fluctuations)
    for common_edges in dict.fromkeys(edges):
        members = [index for index, cell_edges in enumerate(edges) if cell_edges == common_edges]
        group, state = [cells[index] for index in members], [starts[index] for index in members]
        parts = []
        for begin, piece_times, recorded in split_times_into_pieces(common_edges or (0.0,), t):
            piece_solutions = _solve_by_program(
                [cell.after(begin) if common_edges else cell for cell in group], piece_times, state, with_fluctuations
            )
            state = [_select_times(solution, -1) for solution in piece_solutions]
            parts.append([_select_times(solution, slice(recorded)) for solution in piece_solutions])
        joined = jax.tree.map(lambda *rows: np.concatenate(rows), *parts)
        solutions |= zip(members, joined, strict=True)
    return [solutions[index] for index in range(len(cells))]


def _select_times(
    solution: tuple[Students, StudentFluctuations], selection: Any
) -> tuple[Students, StudentFluctuations]:
    """Select times of a solution, by an index or a slice."""
    return jax.tree.map(lambda rows: rows[selection], solution)


def _solve_by_program(
    cells: list[OnlineCell], t: np.ndarray, starts: list[InitialState], with_fluctuations: bool
) -> list[tuple[Students, StudentFluctuations]]:
    """Solve the equations of students in parallel, grouped by the compiled program that they share.

    Fluctuations are empty unless `with_fluctuations`. Cells with the same number of distinct students are integrated in
    parallel. All rules with closed forms share one batch, since tracing the solver takes longer than solving. Cells of
    other rules are solved one by one.
    """
    families = [get_real_parameter_family(cell.rule) for cell in cells]
    groups: dict[Any, list[int]] = {}
    for index, (cell, (start, _), family) in enumerate(zip(cells, starts, families, strict=True)):
        closed, linear = cell.rule.has_closed_form, with_fluctuations and bool(cell.rule.linear)
        changing = (cell.annealing, *dict(cell.controls)) if cell.has_time_dependence else None
        kind = changing, closed or cell.K > 1, linear, cell.resample is not None
        program = closed, start.y.size, *kind, None if closed else family
        groups.setdefault(program, []).append(index)
    record_jax_use()
    solutions: dict[int, tuple[Students, StudentFluctuations]] = {}
    with use_cpu_double_precision():
        for (closed, students, changing, paired, linear, resampled, _), members in groups.items():
            rules = tuple(dict.fromkeys(families[index] for index in members))
            equations = StudentSolverOptions(
                rules, closed, students, changing is not None, paired, with_fluctuations, linear, resampled
            )
            size = MAX_ONLINE_CELLS_PER_BATCH if closed else 1
            for batch in (members[first : first + size] for first in range(0, len(members), size)):
                problems = [
                    CellInitialValueProblem(cells[index], rules.index(families[index]), *starts[index])
                    for index in batch
                ]
                solutions |= dict(zip(batch, _solve_with_one_program(equations, problems, t), strict=True))
    return [solutions[index] for index in range(len(cells))]


def _make_initial_states(cells: list[OnlineCell], with_fluctuations: bool) -> list[InitialState]:
    """Return the initial state of each cell, and its fluctuations if requested.

    Many parameter combinations start from the same initial state.
    """
    different = {(id(cell.start), cell.K): cell for cell in cells}
    computed = {key: _make_initial_state(cell, with_fluctuations) for key, cell in different.items()}
    return [computed[id(cell.start), cell.K] for cell in cells]


def _make_initial_state(cell: OnlineCell, with_fluctuations: bool) -> InitialState:
    students = make_initial_students(cell)
    fluctuations = (
        make_initial_fluctuations(angle_from_versine(students.y), random=cell.start is None)
        if with_fluctuations
        else None
    )
    return students, fluctuations


def _solve_with_one_program(
    equations: StudentSolverOptions, problems: list[CellInitialValueProblem], times: np.ndarray
) -> list[tuple[Students, StudentFluctuations]]:
    """Solve the equations of one batch of students with one compiled program.

    Cells and times are padded, so that few programs are compiled.
    """
    missing = pad_array_length(len(problems)) - len(problems)
    problem = _stack_initial_value_problems(problems + problems[-1:] * missing, equations.rules)
    padded_times = pad_times(times, sum(part.size for part in (*problem.start, problem.fluctuations)))
    *state, completed = map(np.asarray, solve_batch(equations, problem, padded_times, np.int64(MAX_STEPS)))
    log_length, y, c, fluctuations = (np.moveaxis(part[: times.size], -1, 0)[: len(problems)] for part in state)
    students = Students(log_length, y, np.clip(c, -1, 1))  # rounding
    completed = completed[: len(problems)] & np.isfinite(fluctuations).all(axis=(1, 2))
    _check_solution([cell_problem.cell for cell_problem in problems], students, completed, times[-1])
    return [
        (Students(*state), _unpack_fluctuations(rows)) for *state, rows in zip(*students, fluctuations, strict=True)
    ]


def _stack_initial_value_problems(
    problems: list[CellInitialValueProblem], rules: tuple[RealParameterFamily, ...]
) -> StudentBatch:
    """Stack the initial values of students whose rules are among `rules` into one batch.

    A parameter that a cell's rule does not have is set to 1.
    """
    names = sorted({name for family in rules for name in family.real_parameter_names})
    parameters = {
        name: np.asarray([getattr(problem.cell.rule, name, 1.0) for problem in problems], float) for name in names
    }
    start = Students(*(np.stack(part, axis=-1) for part in zip(*(problem.start for problem in problems), strict=True)))
    rule = np.asarray([problem.rule_index for problem in problems])
    flip = np.asarray([problem.cell.flip for problem in problems], float)
    learning_probability = np.asarray([problem.cell.learning_probability for problem in problems], float)
    changes = jax.tree.map(
        lambda *values: np.stack(values, axis=-1), *(problem.cell.time_dependence for problem in problems)
    )
    fluctuations = np.stack([_pack_fluctuations(problem.fluctuations) for problem in problems], axis=-1)
    return StudentBatch(rule, parameters, flip, learning_probability, changes, start, fluctuations)


def _pack_fluctuations(fluctuations: StudentFluctuations | None) -> np.ndarray:
    """Pack fluctuations into rows of the solver's state."""
    return np.zeros(0) if fluctuations is None else np.concatenate(fluctuations).reshape(-1)


def _unpack_fluctuations(rows: Array) -> StudentFluctuations:
    """Unpack fluctuations from rows (..., 5 S) of the solver's state."""
    parts = rows.reshape(*rows.shape[:-1], 5, -1)
    return StudentFluctuations(parts[..., :3, :], parts[..., 3:, :])


def _check_solution(cells: list[OnlineCell], students: Students, completed: np.ndarray, last_time: float) -> None:
    """Raise `SolverError` for equations that stop early, and `DivergedStudentError` for lengths that overflow.

    Lengths can overflow although their logarithms do not.
    """
    completed = completed & np.all([np.isfinite(part).all(axis=(1, 2)) for part in students], axis=0)
    for cell, is_complete, log_length in zip(cells, completed, students.log_length, strict=True):
        if not is_complete:
            raise SolverError(
                f"the order-parameter equations of {cell.message_description} stop before t = {last_time:g}"
            )
        check_length_overflow(log_length, cell.message_description)
