r"""Order-parameter equations of a student whose teacher is itself a student of the truth, for N -> infinity.

In every step the moving teacher learns the label :math:`\mathrm{sgn}\,v` of a fresh input from the truth, by its rule
and its learning rate, and the student learns the label :math:`\mathrm{sgn}\,u_1` of the same input from the moving
teacher. With cosines :math:`R_1, R_2` to the truth and q with each other, both learners have the averages of
`theory.online.order_parameter_equations` at the angle to their own teacher, :math:`D_k` the response, and

.. math::
    \dot R_1 &= (1-R_1^2)\frac{D_1}{l_1} - R_1\frac{\langle f_1^2\rangle}{2l_1^2}, \qquad
    \dot R_2 = (R_1-qR_2)\frac{D_2}{l_2} - R_2\frac{\langle f_2^2\rangle}{2l_2^2}, \\
    \dot q &= (R_2-qR_1)\frac{D_1}{l_1} + (1-q^2)\frac{D_2}{l_2} + \frac{\langle f_1f_2\rangle}{l_1l_2}
        - \frac q2\left[\frac{\langle f_1^2\rangle}{l_1^2}+\frac{\langle f_2^2\rangle}{l_2^2}\right].

Both learn the same input, so that :math:`\langle f_1f_2\rangle` is an average over three fields. By symmetry
:math:`u_1 > 0`, and given :math:`u_1` and :math:`u_2` the truth's label is +1 with the probability
:math:`P_+ = p_f + (1-2p_f)\,\Phi(\langle v\rangle/\sigma_v)`:

.. math:: \langle f_1f_2\rangle = 2\eta_1\eta_2\int_0^\infty\!Du_1\int\!dP(u_2|u_1)\,g_2(u_2)
          \left[P_+\,g_1(u_1) - (1-P_+)\,g_1(-u_1)\right].

We integrate the logarithms of lengths, and 1 minus the cosines. (Miyoshi & Okada 2006 solve linear learners, Urakami,
Miyoshi & Okada 2007 a truth that is not a perceptron.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from statmech.kinds.moving_teacher import MovingTeacherCell
from statmech.numerics.gaussian import (
    GAUSSIAN_CUTOFF,
    make_clipped_composite_rule,
    make_composite_rule,
    normal_cdf,
    normal_density,
)
from statmech.runtime.jax_and_blas_settings import use_cpu_double_precision
from statmech.runtime.operating_system import record_jax_use
from statmech.students.rules import Rule, RuleAverages
from theory.numerics.stiff_and_linear_equations import integrate_stiff_equations
from theory.online.student_states import check_length_overflow, compute_clipped_length

ATOL = 1e-12
MIN_VERSINE = 1e-14  # smaller values are rounding errors
TRANSITION_EDGES = np.array([-10.0, -4.0, -1.5, 0.0, 1.5, 4.0, 10.0])  # in widths of a teacher's sigmoid


class MovingTeacherTrajectory(NamedTuple):
    """Log lengths (T, 2), and 1 - R (T, 2), of the moving teacher and the student, and 1 - q (T,)."""

    log_length: np.ndarray
    y: np.ndarray
    pair_versine: np.ndarray


def average_rule(rule: Rule, length: float, y: float, flip: float) -> RuleAverages:
    """Compute the averages of a rule, without JAX, at 1 minus the cosine of learner and teacher.

    >>> from statmech.students.rules import Hebb
    >>> [round(float(part), 9) for part in average_rule(Hebb(), 1.0, 0.4, 0.1)]
    [0.382984589, 0.638307649, 1.0]
    """
    R, sin = 1 - y, np.sqrt(y * (2 - y))
    cotangent = R / sin
    edges = [0.0, *TRANSITION_EDGES / max(abs(cotangent), 1e-2), *rule.edges(np.float64(length))]
    kappa, weight = make_clipped_composite_rule(np.array([-GAUSSIAN_CUTOFF, *edges, GAUSSIAN_CUTOFF], float))
    pull = 2 * weight * normal_density(kappa) * np.asarray(rule.g(kappa, np.float64(length)), float)
    right = flip + (1 - 2 * flip) * normal_cdf(kappa * cotangent)
    response = (1 - 2 * flip) * normal_density(kappa * cotangent) / sin
    fu, ff = np.sum(pull * right * kappa), np.sum(pull * right * np.asarray(rule.g(kappa, np.float64(length)), float))
    return RuleAverages(rule.eta * fu, rule.eta * np.sum(pull * response), rule.eta**2 * ff)


def average_common_step(rules: tuple[Rule, Rule], lengths: np.ndarray, versines: np.ndarray, flip: float) -> float:
    """Compute the average product of both modulations for one input.

    Parameters
    ----------
    rules
        Rules of the moving teacher and of the student.
    lengths
        Both lengths (2,).
    versines
        1 minus R of both, and 1 minus q (3,).
    flip
        Probability that a label of the truth is flipped.
    """
    (y1, y2, pair), (first_length, second_length) = versines, lengths
    R1, q, sin = 1 - y1, 1 - pair, np.sqrt(pair * (2 - pair))
    slope = (y1 + pair - y1 * pair - y2) / sin  # mean field of the truth per unit of z
    width = np.sqrt(max(y1 * (2 - y1) - slope**2, MIN_VERSINE))
    first_edges = np.abs([float(edge) for edge in rules[0].edges(first_length)])
    second_edges = np.array([float(edge) for edge in rules[1].edges(second_length)])
    widths = TRANSITION_EDGES[TRANSITION_EDGES >= 0]
    tangents = np.sqrt(versines[[0, 2]] * (2 - versines[[0, 2]])) / np.maximum(1 - versines[[0, 2]], 1e-2)
    outer_edges = np.concatenate([[0.0, GAUSSIAN_CUTOFF], first_edges, *np.multiply.outer(tangents, widths)])
    u, u_weight = make_composite_rule(np.sort(np.clip(outer_edges, 0, GAUSSIAN_CUTOFF)))
    centre = -R1 * u / (slope if abs(slope) > MIN_VERSINE else MIN_VERSINE)
    transition = centre + np.multiply.outer(TRANSITION_EDGES, np.full_like(u, width / max(abs(slope), MIN_VERSINE)))
    kinks = (second_edges[:, None] - q * u) / sin
    ends = np.multiply.outer([-GAUSSIAN_CUTOFF, 0.0, GAUSSIAN_CUTOFF], np.ones_like(u))
    inner_edges = np.clip(np.concatenate([ends, kinks, transition]), -GAUSSIAN_CUTOFF, GAUSSIAN_CUTOFF)
    z, z_weight = make_composite_rule(np.sort(inner_edges, axis=0))  # (nodes of u, nodes of z)
    right = flip + (1 - 2 * flip) * normal_cdf((R1 * u[:, None] + slope * z) / width)
    true_step, false_step = (rules[0].g(sign * u, first_length)[:, None] for sign in (1, -1))
    student_step = rules[1].g(q * u[:, None] + sin * z, second_length)
    inner = np.sum(z_weight * normal_density(z) * student_step * (right * true_step - (1 - right) * false_step), axis=1)
    return float(2 * rules[0].eta * rules[1].eta * np.sum(u_weight * normal_density(u) * inner))


def compute_moving_teacher_rates(cell: MovingTeacherCell, state: np.ndarray) -> np.ndarray:
    """Return the time derivative (5,) of both log lengths, and of 1 - R of both and 1 - q."""
    lengths, versines = compute_clipped_length(state[:2]), np.clip(state[2:], MIN_VERSINE, 2 - MIN_VERSINE)
    y1, y2, pair = versines
    first = average_rule(cell.moving_teacher, lengths[0], y1, cell.flip)
    second = average_rule(cell.rule, lengths[1], pair, 0.0)
    common = average_common_step((cell.moving_teacher, cell.rule), lengths, versines, cell.flip) / np.prod(lengths)
    half_diffusion = np.array([first.ff, second.ff]) / lengths**2 / 2
    growth = np.array([first.fu, second.fu]) / lengths + half_diffusion
    pulls = first.response / lengths[0], second.response / lengths[1]
    teacher_rate = y1 * (2 - y1) * pulls[0] - (1 - y1) * half_diffusion[0]
    student_rate = (pair + y2 - pair * y2 - y1) * pulls[1] - (1 - y2) * half_diffusion[1]
    pair_rate = (y1 + pair - y1 * pair - y2) * pulls[0] + pair * (2 - pair) * pulls[1] + common
    return np.array([*growth, -teacher_rate, -student_rate, (1 - pair) * half_diffusion.sum() - pair_rate])


def solve_moving_teacher(cell: MovingTeacherCell, times: Sequence[float]) -> MovingTeacherTrajectory:
    """Solve for a moving teacher and its student at the given times.

    Raises `SolverError` if the integration stops early, `DivergedStudentError` if a length leaves the floating-point
    range.
    """
    record_jax_use()
    length, R, q = cell.start_order_parameters
    start = np.array([*np.log(length), *(1 - R), 1 - q[0, 1]])
    with use_cpu_double_precision():  # a user-defined rule may use JAX
        states = integrate_stiff_equations(
            lambda t, state: compute_moving_teacher_rates(cell, state),
            start,
            np.asarray(times, float),
            np.full(5, ATOL),
            cell.message_description,
        )
    check_length_overflow(states[:, :2], cell.message_description)
    return MovingTeacherTrajectory(states[:, :2], np.maximum(states[:, 2:4], 0.0), np.maximum(states[:, 4], 0.0))
