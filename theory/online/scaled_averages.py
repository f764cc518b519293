r"""Averages over a step for fields whose standard deviation differs from the student's length.

The stability of a student is :math:`\kappa = \sigma h/l` with the length :math:`l = |\mathbf J|/\sqrt N` of its
weights, whatever the inputs. For anisotropic inputs the field h has the standard deviation s, and
:math:`\kappa = r\,\sigma u` with :math:`r = s/l` and the standard normal u. Averages follow from
`theory.online.averages` at the angle of the fields, for the rule

.. math:: g_r(\kappa, l) = g(r\kappa, l) .

Closed forms require a rule that is homogeneous in the stability (`Rule.degree`): :math:`\langle fu\rangle` and the
response scale as :math:`r^n`, and :math:`\langle f_1f_2\rangle` as :math:`r_1^nr_2^n`. All other rules are integrated,
with the stabilities of kinks and bends divided by r.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from statmech.numerics.gaussian import Array
from statmech.order_parameters import angle_between_students
from statmech.parameters import RealParameterFamily, get_real_parameter_family
from statmech.rules import Rule, RuleAverages
from statmech.runtime.programs import cached_program


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
    """Compute the averages over each student's step, including the learning rate.

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
    r"""Average :math:`\langle f_1f_2\rangle` over pairs (P,) of students, including the learning rate.

    The averages use a closed form or quadrature.

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
    """Integrate the averages over each student's step at learning rate 1."""
    import jax.numpy as jnp  # imported late, also below: closed forms need no JAX

    from theory.online.averages import integrate_rule_averages

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
    """Integrate the product of the updates of each pair at learning rate 1."""
    import jax

    from theory.online.averages import StudentPair, integrate_pair_average

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
