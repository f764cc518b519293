r"""Order-parameter equations of online learning in the limit N -> infinity.

For :math:`\mathbf J_k \leftarrow \mathbf J_k + f_k\mathbf x`, self-averaging gives the Gram matrix of
:math:`\mathbf w = (\mathbf B, \mathbf J_1, \dots, \mathbf J_K)` with fields :math:`h_i = \mathbf w_i\cdot\mathbf x`

.. math:: \dot G_{ij} = \langle f_i h_j\rangle + \langle f_j h_i\rangle + \langle f_i f_j\rangle, \qquad f_0 = 0,

which is eqs (3.5) and (3.6) of Miyoshi, Hara & Okada by the chain rule. As R, q -> 1 these equations lose accuracy: R
and q round to 1. We integrate in :math:`\log l_k`, :math:`y_k = 1 - R_k = 1 - \cos\theta_k`, and the cosines
:math:`c_{kj} = (q_{kj} - R_kR_j)/(\sin\theta_k\sin\theta_j)` of the students' parts perpendicular to the teacher. With
:math:`D_k = \langle\partial f_k/\partial v\rangle` (`statmech.rules.RuleAverages`) and Stein's lemma,

.. math::
    \frac{d\log l_k}{dt} &= \frac{\langle f_ku_k\rangle}{l_k} + \frac{\langle f_k^2\rangle}{2l_k^2}, \\
    \dot y_k &= -\sin^2\theta_k\,\frac{D_k}{l_k} + \cos\theta_k\,\frac{\langle f_k^2\rangle}{2l_k^2}, \\
    \dot c_{kj} &= \frac{\langle f_kf_j\rangle}{l_kl_j\sin\theta_k\sin\theta_j}
        - \frac{c_{kj}}{2}\left(\frac{\langle f_k^2\rangle}{l_k^2\sin^2\theta_k}
        + \frac{\langle f_j^2\rangle}{l_j^2\sin^2\theta_j}\right).

A teacher that drifts at rate :math:`\delta` (`drift`) turns away from all students, :math:`\dot R_k = -\delta R_k`, so
with :math:`\rho_k = \cot\theta_k` the rates gain :math:`\delta\cos\theta_k` and :math:`\delta\,(2\rho_k\rho_j -
c_{kj}(\rho_k^2 + \rho_j^2))`. Weight decay at rate :math:`\nu` (`decay`) subtracts :math:`\nu` from the rate of
:math:`\log l_k`. A `schedule` decreases the learning rate (`statmech.schedules`).

No term is larger than the sum, even when :math:`\theta` is 1e-6, so eps_g keeps its digits for t > 1e6.

Students with equal initial conditions stay equal: one student and one pair represent all (the symmetric reduction).
"""

from __future__ import annotations

from math import prod

import jax
import jax.numpy as jnp

from statmech.numerics.gaussian import Array, one_minus_cos
from statmech.order_parameters import angle_from_versine
from statmech.rules import Rule
from statmech.schedules import TimeDependence
from theory.online.averages import StudentPair, compute_pair_average, compute_rule_averages
from theory.online.rate_terms import compute_rate_terms
from theory.online.students import Students, make_pair_indices

LOG_LENGTH_CLIP = 300.0  # harmless: rules with diverging lengths have the same rates at any length


def compute_rates(
    rule: Rule,
    use_closed_forms: bool,
    students: Students,
    flip: Array,
    changes: TimeDependence | None = None,
    has_pairs: bool = True,
) -> Students:
    """Compute the time derivative of the state of distinct students.

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
    """
    theta, length = (
        angle_from_versine(students.y),
        jnp.exp(jnp.clip(students.log_length, -LOG_LENGTH_CLIP, LOG_LENGTH_CLIP)),
    )
    # without this barrier each of the three rates would recompute both, which doubles the time
    theta, length = jax.lax.optimization_barrier((theta, length))
    single = compute_rule_averages(rule, use_closed_forms, theta, length, flip)
    log_rate, y_rate = map(sum, compute_rate_terms(single, students.y, length, changes))
    if not has_pairs:
        return Students(log_rate, y_rate, jnp.zeros_like(students.c))
    angles, lengths = _get_pair_values(theta), _get_pair_values(length)
    sin = jnp.sqrt(students.y * (2 - students.y))
    perpendicular = _divide_or_zero(single.ff / length**2, sin**2)
    common = compute_pair_average(rule, use_closed_forms, StudentPair(angles, students.c, lengths), flip) / prod(
        lengths
    )
    c_rate = _divide_or_zero(common, prod(_get_pair_values(sin))) - students.c / 2 * sum(
        _get_pair_values(perpendicular)
    )
    # identical students stay identical, but q = 1 may be unstable (perceptron): rounding errors would separate them
    separate = (students.c < 1) | (angles[0] != angles[1]) | (lengths[0] != lengths[1])
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
