r"""Gaussian averages of any learning rule, by closed forms or quadrature.

Let :math:`\theta` be the angle between teacher and student, :math:`\gamma = \cot\theta`, :math:`p_f` the label
noise. The stability :math:`\kappa = \sigma u` has the density

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
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.numerics.gaussian import (
    GAUSSIAN_CUTOFF,
    MIN_DIVISOR,
    NODES,
    Array,
    get_legendre_rule,
    make_clipped_composite_rule,
    normal_density,
    normal_upper_tail,
    replace_zero,
)
from statmech.order_parameters import angle_between_students
from statmech.rules import Rule, RuleAverages

SIGMOID_CUTOFF = 8.5  # widths: a sigmoid is constant to 1e-17 outside


class StudentPair(NamedTuple):
    """Pair of students: angles to the teacher (2,), cosine of the transverse parts, lengths (2,)."""

    teacher_angles: tuple[Array, Array]
    transverse_cosine: Array
    lengths: tuple[Array, Array]


def compute_rule_averages(rule: Rule, use_closed_forms: bool, theta: Array, length: Array, flip: Array) -> RuleAverages:
    """Compute the averages over one student's step, including the learning rate.

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
    r"""Average the product of two students' updates, :math:`\langle f_1 f_2\rangle`, including the learning rate.

    The average uses a closed form, a line form or quadrature. Arrays broadcast.
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
    """Integrate the averages over one student's step at learning rate 1, in panels between kinks.

    All arguments are scalars.

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
    r"""Compute :math:`\langle f_1 f_2\rangle` for learning rate 1 by nested quadrature. All arguments are scalars."""
    (sin_1, sin_2), (cos_1, cos_2) = (tuple(map(f, pair.teacher_angles)) for f in (jnp.sin, jnp.cos))
    pair_angle = angle_between_students(*pair.teacher_angles, pair.transverse_cosine)
    q, p = jnp.cos(pair_angle), jnp.sin(pair_angle)
    distinct = p > MIN_DIVISOR
    parallel = cos_2 * sin_1 - pair.transverse_cosine * cos_1 * sin_2  # p r
    perpendicular = sin_2 * jnp.sqrt(
        jnp.maximum((1 - pair.transverse_cosine) * (1 + pair.transverse_cosine), 0.0)
    )  # p sqrt(1 - r^2)
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
    """Integrate over the real line by a Gauss-Legendre rule on each panel between the edges.

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
