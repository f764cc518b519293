r"""Averages of the step rule :math:`g = \Theta(c-\kappa)` with margin c, as one-dimensional integrals.

With :math:`\theta` the angle between teacher and student, :math:`p_f` the label noise and
:math:`p(\kappa) = 2\varphi(\kappa)[p_f + (1-2p_f)\Phi(\kappa\cot\theta)]` the density of the stability, parts
of :math:`\int_{-\infty}^c` give

.. math::
    \langle fu\rangle &= -2p_f\varphi(c) + 2(1-2p_f)\left[\frac{\cos\theta}{\sqrt{2\pi}}\,\Phi\!\left(\frac
        c{\sin\theta}\right) - \varphi(c)\,\Phi(c\cot\theta)\right], \\
    \langle\partial f/\partial v\rangle &= (1-2p_f)\sqrt{2/\pi}\;\Phi(c/\sin\theta), \\
    \langle f^2\rangle &= 2p_f\Phi(c) + (1-2p_f)\left[\max(0, 2\Phi(c)-1) + I(\theta)\right], \quad
        I(\theta) = \frac1\pi\int_0^\theta e^{-c^2/2\sin^2s}\,ds .

The last is Owen's T function, written as a sum of terms of one sign, and :math:`I(\theta)+I(\pi-\theta) = 2\Phi(-|c|)`.

Two students at angle :math:`\beta` are both below c with probability
:math:`P_2 = \Phi(c) - \Phi(-|c|) + I(\frac{\pi-\beta}2)`, and with
:math:`P_3` this is true and v > 0, so that
:math:`\langle f_1f_2\rangle = 2p_f P_2 + 2(1-2p_f)P_3`. Let :math:`\omega` be the angle between their
components perpendicular to the teacher. At :math:`\omega=\pi/2` the students are independent given v, and from there
Plackett's identity gives P_3:

.. math::
    P_3 = \int_0^\infty\!\varphi(v)\prod_{k=1,2}\Phi\!\left(\frac{c-v\cos\theta_k}{\sin\theta_k}\right)dv
        - \int_{\pi/2}^\omega \frac{s}{2\pi\sin\beta}\,e^{-c^2/2\cos^2(\beta/2)}\,
          \Phi\!\left(\frac{c\,(\cos\theta_1+\cos\theta_2)\tan(\beta/2)}s\right)d\omega,
    \qquad s = \sin\theta_1\sin\theta_2\sin\omega .
"""

from __future__ import annotations

import numpy as np

from statmech.numerics.gaussian import (
    GAUSSIAN_CUTOFF,
    MIN_DIVISOR,
    Array,
    get_array_module,
    make_clipped_composite_rule,
    make_composite_rule,
    normal_cdf,
    normal_density,
    replace_zero,
)

GAUSSIAN_ARGUMENT_CUTOFF = 9.0  # exp(-9^2 / 2) is negligible


def single_student_averages(c: Array, theta: Array, flip: Array) -> tuple[Array, Array, Array]:
    r"""Return :math:`\langle fu\rangle`, the response and :math:`\langle f^2\rangle` at an angle to the teacher.

    All arguments are scalars: the margin, the angle and the flip probability of a label.

    >>> [float(value.round(6)) for value in single_student_averages(0.5, 1.0, 0.1)]
    [-0.173365, 0.462013, 0.565163]
    """
    xp = get_array_module(theta)
    sin, cos = xp.sin(theta), xp.cos(theta)
    below_margin = normal_cdf(c / sin)
    right = cos * below_margin / np.sqrt(2 * np.pi) - normal_density(c) * normal_cdf(c * cos / sin)
    fu = -2 * flip * normal_density(c) + 2 * (1 - 2 * flip) * right
    joint = xp.maximum(0.0, 2 * normal_cdf(c) - 1) + wedge_integral(c, theta)
    return fu, (1 - 2 * flip) * np.sqrt(2 / np.pi) * below_margin, 2 * flip * normal_cdf(c) + (1 - 2 * flip) * joint


def student_pair_average(c: Array, theta_1: Array, theta_2: Array, mutual_angle: Array, flip: Array) -> Array:
    r"""Return :math:`\langle f_1f_2\rangle` of two students, for scalar arguments.

    Parameters
    ----------
    c
        Margin.
    theta_1, theta_2
        Angles between each student and the teacher.
    mutual_angle
        Angle between the students.
    flip
        Probability that a label is flipped.

    Examples
    --------
    >>> float(student_pair_average(0.5, 1.0, 1.0, 0.8, 0.1).round(6))
    0.42961
    """
    together = normal_cdf(c) - normal_cdf(-abs(c)) + wedge_integral(c, (np.pi - mutual_angle) / 2)
    return 2 * flip * together + 2 * (1 - 2 * flip) * _joint_probability_below_margin(c, theta_1, theta_2, mutual_angle)


def wedge_integral(c: Array, theta: Array) -> Array:
    r"""Return :math:`I(\theta) = \frac1\pi\int_0^\theta e^{-c^2/2\sin^2s}\,ds` for scalars, theta in [0, pi]."""
    xp = get_array_module(theta)
    acute = xp.minimum(theta, np.pi - theta)
    top = xp.log(xp.maximum(acute, MIN_DIVISOR))
    low = xp.minimum(xp.log(abs(c) / GAUSSIAN_ARGUMENT_CUTOFF + MIN_DIVISOR), top)
    # the integrand rises within about one unit of log s; the cutoff neglects a relative part of 1e-16
    x, weight = _make_legendre_rule(xp.maximum(low, top - 37.0), np.zeros(0), top)
    s = xp.exp(x)
    part = xp.sum(weight * s * xp.exp(-0.5 * (c / xp.sin(s)) ** 2)) / np.pi
    return xp.where(theta <= np.pi / 2, part, 2 * normal_cdf(-abs(c)) - part)


def _joint_probability_below_margin(c: Array, theta_1: Array, theta_2: Array, mutual_angle: Array) -> Array:
    """Return P_3, the probability that both stabilities are below c and v > 0."""
    xp = get_array_module(mutual_angle)
    sin, cos = (xp.sin(theta_1), xp.sin(theta_2)), (xp.cos(theta_1), xp.cos(theta_2))
    difference = theta_1 - theta_2
    haversine = xp.sin((mutual_angle + difference) / 2) * xp.sin((mutual_angle - difference) / 2) / (sin[0] * sin[1])
    omega = 2 * xp.arcsin(xp.sqrt(xp.clip(haversine, 0.0, 1.0)))
    # the last factor bends near pi - omega = c / sin(theta): panels grow fourfold from there
    bends = abs(c) / xp.sqrt(sin[0] * sin[1]) * 4.0 ** np.arange(-1, 4)
    angle, weight = _make_legendre_rule(xp.pi / 2, xp.pi - bends, omega)
    sines = sin[0] * sin[1] * xp.sin(angle)
    half = xp.arcsin(xp.sqrt(xp.clip(xp.sin(difference / 2) ** 2 + sin[0] * sin[1] * xp.sin(angle / 2) ** 2, 0.0, 1.0)))
    right = normal_cdf(c * (cos[0] + cos[1]) * xp.tan(half) / xp.maximum(sines, MIN_DIVISOR))
    rate = sines / xp.maximum(xp.sin(2 * half), MIN_DIVISOR) * xp.exp(-0.5 * (c / xp.cos(half)) ** 2) * right
    return _independent_joint_probability(c, sin, cos) - xp.sum(weight * rate) / (2 * np.pi)


def _independent_joint_probability(c: Array, sin: tuple[Array, Array], cos: tuple[Array, Array]) -> Array:
    """Return P_3 for students that are independent given the teacher's field."""
    xp = get_array_module(sin[0])
    edges = [0.0 * sin[0], GAUSSIAN_CUTOFF + 0.0 * sin[0]]
    for s, r in zip(sin, cos, strict=True):
        r = replace_zero(r)
        edges += [
            c / r + width * abs(s / r)
            for width in (
                -GAUSSIAN_ARGUMENT_CUTOFF,
                -GAUSSIAN_ARGUMENT_CUTOFF / 3,
                0.0,
                GAUSSIAN_ARGUMENT_CUTOFF / 3,
                GAUSSIAN_ARGUMENT_CUTOFF,
            )
        ]
    v, weight = make_clipped_composite_rule(xp.maximum(xp.stack(edges), 0.0))
    below = (normal_cdf((c - r * v) / s) for s, r in zip(sin, cos, strict=True))
    return xp.sum(weight * normal_density(v) * next(below) * next(below))


def _make_legendre_rule(low: Array, cuts: Array, high: Array) -> tuple[Array, Array]:
    """Return nodes and weights of Gauss-Legendre rules from low to high, cut in the middle and at `cuts`.

    Weights are negative if high < low.
    """
    xp = get_array_module(high)
    middle = (low + high) / 2
    inside = xp.clip(cuts, xp.minimum(middle, high), xp.maximum(middle, high))
    edges = xp.concatenate([xp.stack([low + 0.0 * high, middle]), xp.sort(inside), xp.stack([high])])
    return make_composite_rule(edges)
