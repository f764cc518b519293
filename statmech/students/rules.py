r"""Learning rules of perceptrons, and averages of the step rule with a margin.

A rule *is* its modulation function g: the simulation applies it, theory averages it. With the teacher's label
:math:`\sigma` (after any label noise), a student's length l and its stability
:math:`\kappa = \sigma\, \mathbf J\cdot\mathbf x / l`, every rule here updates

.. math:: \mathbf J \leftarrow \mathbf J + f\,\mathbf x, \qquad f = \eta\,\sigma\, g(\kappa, l).

**To add a rule** write one class with `g` and `kinks`, and add one line to the registry `RULES` of this module.
The simulation, the order-parameter equations (by quadrature cut at the kinks), the config name, the table
and figure labels and the conformance tests follow by themselves:

>>> class Cautious(Rule):
...     "Corrects its errors, less for a longer student."
...     label = "cautious"
...     kinks = (0.0,)
...     def g(self, kappa, length):
...         return step(-kappa) / (1 + length)

Use operators and `get_array_module(kappa)` for functions (`get_array_module(kappa).tanh(kappa)`): the same line then
runs in NumPy and, traced and batched, in JAX. A parameter of a rule is a dataclass field made by
`statmech.parameters.parameter_fields.parameter`.

**Closed forms.** A rule may define `closed_form` and `closed_form_pair`. Theory then uses them instead of the
quadrature, and the conformance suite compares closed forms and quadrature. `line_form` and `line_form_pair` are the
equivalent for averages that reduce to integrals over a line. Closed forms are functions of angles, because near perfect
learning R and q round to 1, but the angles keep all digits: :math:`\theta = \arccos R` between student and teacher,
:math:`\theta_{12} = \arccos q` between two students. Closed forms belong to the g of the class that defines them: a
subclass that overrides g without new closed forms is integrated by quadrature. If the standard deviation of a student's
field is r times its length, as for anisotropic inputs, theory averages :math:`g(r\kappa, l)`. A rule that is
homogeneous in the stability defines its `degree` and keeps its closed forms.

**Panels.** If g bends smoothly, but on a scale of its own that may shrink with the length, the method `bends` returns
the positions of the bends, and the quadrature is also cut there. A rule with a g for short students only defines
`longest_start`.

**Step rule.** Averages of :math:`g = \Theta(c-\kappa)` with margin c are one-dimensional integrals. With :math:`\theta`
the angle between teacher and student, :math:`p_f` the label noise and
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
Plackett's identity gives :math:`P_3`:

.. math::
    P_3 &= \int_0^\infty\!\varphi(v)\prod_{k=1,2}\Phi\!\left(\frac{c-v\cos\theta_k}{\sin\theta_k}\right)dv \\
        &\quad - \int_{\pi/2}^\omega \frac{s}{2\pi\sin\beta}\,e^{-c^2/2\cos^2(\beta/2)}\,
          \Phi\!\left(\frac{c\,(\cos\theta_1+\cos\theta_2)\tan(\beta/2)}s\right)d\omega, \quad
          s = \sin\theta_1\sin\theta_2\sin\omega .
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

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
    normal_quantile,
    one_minus_cos,
    replace_zero,
    reversed_hazard,
    step,
    x_minus_sin,
)
from statmech.parameters.parameter_fields import parameter
from statmech.runtime.user_code_and_provenance import reset_inherited_attributes

GAUSSIAN_ARGUMENT_CUTOFF = 9.0  # exp(-9^2 / 2) is negligible
POSTERIOR_CUTOFF = 8.5  # posterior standard deviations
MIN_POSTERIOR_VARIANCE = 1e-30  # replaces s^2 <= 0 at lengths of 1 or more, where g takes its limit for s -> 0
MAX_LOG_ODDS = 80.0  # exp(-80) is negligible
G_OVERRIDE_RESET_ATTRIBUTES = (
    "closed_form",
    "closed_form_pair",
    "line_form",
    "line_form_pair",
    "has_closed_form",
    "linear",
    "degree",
)


def single_student_averages(c: Array, theta: Array, flip: Array) -> tuple[Array, Array, Array]:
    r"""Return :math:`\langle fu\rangle`, the response and :math:`\langle f^2\rangle` of the step rule at an angle.

    All arguments are scalars: the margin, the angle to the teacher and the flip probability of a label.

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
    r"""Return the step rule's :math:`\langle f_1f_2\rangle` of two students, for scalar arguments.

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
    r"""Return :math:`I(\theta) = \frac1\pi\int_0^\theta e^{-c^2/2\sin^2s}\,ds` of the step rule, theta in [0, pi]."""
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
    """Return the step rule's P_3, the probability that both stabilities are below the margin c and v > 0."""
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
    """Return the step rule's P_3 for students that are independent given the teacher's field."""
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
    """Return Gauss-Legendre nodes and weights for a step rule's averages, cut in the middle and at `cuts`.

    Weights are negative if high < low.
    """
    xp = get_array_module(high)
    middle = (low + high) / 2
    inside = xp.clip(cuts, xp.minimum(middle, high), xp.maximum(middle, high))
    edges = xp.concatenate([xp.stack([low + 0.0 * high, middle]), xp.sort(inside), xp.stack([high])])
    return make_composite_rule(edges)


class RuleAverages(NamedTuple):
    r"""Averages in the equations of a single student, at learning rate 1.

    `fu` is :math:`\langle f u\rangle`, `ff` is :math:`\langle f^2\rangle`, and `response` is
    :math:`\langle\partial f/\partial v\rangle`. The response determines every other average of f with a field by
    Stein's lemma: :math:`\langle f v\rangle = R\langle fu\rangle + (1-R^2)\,response`.
    """

    fu: Array
    response: Array
    ff: Array


@dataclass(frozen=True)
class Rule(ABC):
    """A learning rule. Subclasses define `label`, `g` and `kinks`."""

    eta: float = parameter(1.0, "learning rate", symbol=r"$\eta$", above=0.0)

    label: ClassVar[str]  # shown in tables and legends
    cites: ClassVar[tuple[str, ...]] = ()  # bibliography keys of the papers
    equation: ClassVar[str] = ""  # g in LaTeX
    kinks: ClassVar[Any] = ()  # stabilities where g jumps or bends: a tuple or a property
    longest_start: ClassVar[float] = np.inf  # upper bound on the initial length; drawn students have length 1
    linear: ClassVar[Any] = False  # True: g is linear in kappa on both sides of 0, and few quadrature nodes are exact
    degree: ClassVar[Any] = None  # n = 0 or 1 if g(r kappa, l) = r^n g(kappa, l) for all r > 0, else None

    def __init_subclass__(cls, **options: Any) -> None:
        """Reset inherited attributes that depend on g if a subclass overrides g."""
        super().__init_subclass__(**options)
        reset_inherited_attributes(cls, "g", G_OVERRIDE_RESET_ATTRIBUTES, Rule)

    @abstractmethod
    def g(self, kappa: Array, length: Array) -> Array:
        """Return the modulation g(κ, l) for arrays of stabilities and lengths, which broadcast.

        Parameters
        ----------
        kappa : array
            Stabilities.
        length : array
            Lengths of the students.

        Returns
        -------
        array
            Values of the broadcast shape, for NumPy arrays or, traced, for JAX arrays.

        Examples
        --------
        >>> RULES["adatron"]().g(np.array([-1.0, 0.5]), np.array(1.0))
        array([ 1., -0.])
        """

    def bends(self, length: Array) -> tuple[Array, ...]:
        """Return the cuts of the quadrature at a student's length, in addition to the kinks.

        Cuts are stabilities. Between two cuts, g is smooth on the scale of their distance. A g that varies on the scale
        1 does not need further cuts.

        Parameters
        ----------
        length : array
            Length of the student, a scalar that JAX may trace.

        Returns
        -------
        tuple of arrays
            The number of bends is the same for every length. Bends may coincide or lie outside the range of
            stabilities.
        """
        return ()

    def edges(self, length: Array) -> tuple[Array, ...]:
        """Return the panel edges of the quadrature at a student's length: kinks and bends."""
        return *self.kinks, *self.bends(length)

    @classmethod
    def default_start(cls) -> Any:
        """Return the default start of the rule: "drawn", or fixed values if drawn students are too long.

        Returns
        -------
        "drawn" or dict
            A value for the key `start` of a config.

        Examples
        --------
        >>> Hebb.default_start(), Bayes.default_start()
        ('drawn', {'length': 0.2, 'R': 0.2})
        """
        return "drawn" if cls.longest_start > 1 else {"length": 0.2 * cls.longest_start, "R": 0.2}

    @property
    def has_closed_form(self) -> bool:
        """True if the rule defines closed forms of its averages."""
        return self._overrides_methods("closed_form", "closed_form_pair")

    @property
    def has_line_integral_form(self) -> bool:
        """True if the rule defines its averages as one-dimensional integrals."""
        return self._overrides_methods("line_form", "line_form_pair")

    def _overrides_methods(self, *names: str) -> bool:
        """Return True if the class overrides all of these methods."""
        return all(getattr(type(self), name) is not getattr(Rule, name) for name in names)

    def closed_form(self, angle: Array, length: Array, flip: Array) -> RuleAverages:
        """Return one student's averages at an angle to the teacher, for learning rate 1.

        Parameters
        ----------
        angle : array
            Angle of the student to the teacher.
        length : array
            Length of the student.
        flip : array
            Probability that a label is flipped.

        Returns
        -------
        RuleAverages
            Arrays of the broadcast shape.
        """
        raise NotImplementedError

    def closed_form_pair(
        self, angles: tuple[Array, Array], mutual_angle: Array, lengths: tuple[Array, Array], flip: Array
    ) -> Array:
        r"""Return :math:`\langle f_1 f_2\rangle` of two students from their angles to the teacher and to each other.

        Parameters
        ----------
        angles : pair of arrays
            Angles of the two students to the teacher.
        mutual_angle : array
            Angle between the two students.
        lengths : pair of arrays
            Lengths of the two students.
        flip : array
            Probability that a label is flipped.

        Returns
        -------
        array
            Averages of the broadcast shape.
        """
        raise NotImplementedError

    def line_form(self, angle: Array, length: Array, flip: Array) -> RuleAverages:
        """Return one student's averages for scalar arguments, as one-dimensional integrals."""
        raise NotImplementedError

    def line_form_pair(
        self, angles: tuple[Array, Array], mutual_angle: Array, lengths: tuple[Array, Array], flip: Array
    ) -> Array:
        """Return the average of a pair of students for scalar arguments, as a one-dimensional integral."""
        raise NotImplementedError


@dataclass(frozen=True)
class Hebb(Rule):
    r"""Hebbian learning, g = 1: every example is learnt with the same weight (Miyoshi, Hara & Okada, section 4)."""

    label = "Hebbian"
    equation = r"g(\kappa, l) = 1"
    linear = True
    degree = 0

    def g(self, kappa: Array, length: Array) -> Array:
        return 0.0 * kappa + 1.0

    def closed_form(self, angle: Array, length: Array, flip: Array) -> RuleAverages:
        response = np.sqrt(2 / np.pi) * (1 - 2 * flip)
        return RuleAverages(response * get_array_module(angle).cos(angle), response, 1.0)

    def closed_form_pair(
        self, angles: tuple[Array, Array], mutual_angle: Array, lengths: tuple[Array, Array], flip: Array
    ) -> Array:
        return 1.0 + 0.0 * mutual_angle


@dataclass(frozen=True)
class Perceptron(Rule):
    r"""Rosenblatt's perceptron, :math:`g = \Theta(c-\kappa)`: learns examples whose stability is below the margin c.

    Closed forms hold at margin c = 0, where :math:`\langle f_1f_2\rangle` is the probability that both err:
    the excess :math:`(\theta_1+\theta_2-\theta_{12})/2\pi` of a spherical triangle;
    `statmech.students.rules` has the averages for c > 0 and c < 0.
    """

    label = "perceptron"
    cites = ("rosenblatt1958",)
    equation = r"g(\kappa, l) = \Theta(c - \kappa)"
    margin: float = parameter(0.0, "stability below which an example is learnt; 0 learns errors only", symbol="$c$")

    @property
    def kinks(self) -> tuple[Array, ...]:
        return (self.margin,)

    def g(self, kappa: Array, length: Array) -> Array:
        return step(self.margin - kappa)

    @property
    def has_closed_form(self) -> bool:
        return self.margin == 0

    @property
    def linear(self) -> bool:
        return self.margin == 0

    @property
    def degree(self) -> int | None:
        return 0 if self.margin == 0 else None

    def closed_form(self, angle: Array, length: Array, flip: Array) -> RuleAverages:
        # label noise mixes the angle with its supplement, which has 1 - cos = 2 - versine
        versine = one_minus_cos(angle)
        fu = -((1 - flip) * versine + flip * (2 - versine)) / np.sqrt(2 * np.pi)
        response = (1 - 2 * flip) / np.sqrt(2 * np.pi)
        return RuleAverages(fu, response, ((1 - flip) * angle + flip * (np.pi - angle)) / np.pi)

    def closed_form_pair(
        self, angles: tuple[Array, Array], mutual_angle: Array, lengths: tuple[Array, Array], flip: Array
    ) -> Array:
        total = angles[0] + angles[1]
        return ((1 - flip) * (total - mutual_angle) + flip * (2 * np.pi - total - mutual_angle)) / (2 * np.pi)

    def line_form(self, angle: Array, length: Array, flip: Array) -> RuleAverages:
        return RuleAverages(*single_student_averages(self.margin, angle, flip))

    def line_form_pair(
        self, angles: tuple[Array, Array], mutual_angle: Array, lengths: tuple[Array, Array], flip: Array
    ) -> Array:
        return student_pair_average(self.margin, *angles, mutual_angle, flip)


@dataclass(frozen=True)
class AdaTron(Rule):
    r"""AdaTron as printed in the ensemble paper, :math:`g = -\kappa\,\Theta(-\kappa)`, with the *normalised* field.

    The correction does not grow with the student, so the length matters: errors drive it towards η/2. With label
    noise it converges to this value; without, errors vanish first: it stays at 0.6202 for η = 1 from R = 0 and
    length 1. This is not the textbook rule, `AdaTronTextbook`: at t = 50 their eps_g differ by 13 %.
    """

    label = "AdaTron"
    cites = ("anlauf1989",)
    equation = r"g(\kappa, l) = -\kappa\,\Theta(-\kappa)"
    kinks = (0.0,)
    linear = True
    degree = 1

    def g(self, kappa: Array, length: Array) -> Array:
        return -kappa * step(-kappa)

    def closed_form(self, angle: Array, length: Array, flip: Array) -> RuleAverages:
        xp = get_array_module(angle)
        right = x_minus_sin(2 * angle)  # the supplementary angle has 2 pi - right
        ff = ((1 - flip) * right + flip * (2 * np.pi - right)) / (2 * np.pi)
        return RuleAverages(-ff, (1 - 2 * flip) * xp.sin(angle) / np.pi, ff)

    def closed_form_pair(
        self, angles: tuple[Array, Array], mutual_angle: Array, lengths: tuple[Array, Array], flip: Array
    ) -> Array:
        total = angles[0] + angles[1]
        right = _adatron_pair_integral(total, mutual_angle)
        flipped = _adatron_pair_integral(2 * np.pi - total, mutual_angle)
        return ((1 - flip) * right + flip * flipped) / (2 * np.pi)


@dataclass(frozen=True)
class AdaTronTextbook(AdaTron):
    r"""The textbook AdaTron, :math:`g = -l\kappa\,\Theta(-\kappa)`, with R independent of l (Biehl & Riegler)."""

    label = "AdaTron (textbook)"
    cites = ("anlauf1989",)
    equation = r"g(\kappa, l) = -l\,\kappa\,\Theta(-\kappa)"
    linear = True
    degree = 1

    def g(self, kappa: Array, length: Array) -> Array:
        return length * super().g(kappa, length)

    def closed_form(self, angle: Array, length: Array, flip: Array) -> RuleAverages:
        fu, response, ff = super().closed_form(angle, length, flip)
        return RuleAverages(length * fu, length * response, length**2 * ff)

    def closed_form_pair(
        self, angles: tuple[Array, Array], mutual_angle: Array, lengths: tuple[Array, Array], flip: Array
    ) -> Array:
        return lengths[0] * lengths[1] * super().closed_form_pair(angles, mutual_angle, lengths, flip)


def _adatron_pair_integral(total: Array, mutual_angle: Array) -> Array:
    r"""Return 2 pi times the AdaTron's average over a pair of students.

    It is :math:`\int_{\theta_{12}}^{\theta_1+\theta_2}(\theta_1+\theta_2-x)\sin x\,dx`. With the excess
    :math:`e = \theta_1+\theta_2-\theta_{12}` it is :math:`e\cos\theta_{12} + \sin\theta_{12} -
    \sin(\theta_{12}+e)`; as a sum of two terms of one sign it is accurate when all three angles vanish.
    """
    xp = get_array_module(mutual_angle)
    excess = total - mutual_angle
    return xp.sin(mutual_angle) * one_minus_cos(excess) + xp.cos(mutual_angle) * x_minus_sin(excess)


@dataclass(frozen=True)
class Bayes(Rule):
    r"""The optimal rule: the student is the posterior mean of the teacher (Kinouchi & Caticha).

    Let the teacher, given the examples so far, be Gaussian of mean :math:`\mathbf J` and variance :math:`s^2 = 1-l^2`
    in every direction, so that :math:`|\mathbf B|^2 = N`. Its field on a new input is Gaussian of mean
    :math:`\mathbf J\cdot\mathbf x` and variance :math:`s^2`; if labels are flipped with probability :math:`\hat p_f`
    (`assumed_flip`), this one has the probability :math:`Z = \hat p_f + (1-2\hat p_f)\,\Phi(l\kappa/s)`, and the new
    mean is :math:`\mathbf J + s^2\,\partial\ln Z/\partial(\mathbf J\cdot\mathbf x)\,\mathbf x`:

    .. math:: g(\kappa, l) = \frac{s\,(1-2\hat p_f)\,\varphi(l\kappa/s)}{\hat p_f + (1-2\hat p_f)\,\Phi(l\kappa/s)} .

    For a mean, :math:`\mathbf B\cdot\mathbf J` and :math:`|\mathbf J|^2` are equal on average: a student that starts
    at l = R keeps it, others are attracted. With :math:`\eta=1` and :math:`\hat p_f` = `flip` no rule learns faster
    online; with a teacher that drifts, if the weights decay at the rate of the drift. As :math:`l\to1`, g tends to the
    textbook AdaTron :math:`-l\kappa\,\Theta(-\kappa)`, which shortens the student, or to 0 if :math:`\hat p_f>0`: a
    student that is certain of itself ascribes all errors to the labels. These limits are used where a run at small N
    has :math:`l\ge1`; a start must be shorter.
    """

    label = "optimal (Bayes)"
    cites = ("kinouchi1992", "kinouchi1993", "vicente1998")
    equation = (
        r"g(\kappa, l) = \frac{s\,(1-2\hat p_f)\,\varphi(l\kappa/s)}{\hat p_f+(1-2\hat p_f)\,\Phi(l\kappa/s)}"
        r",\; s^2 = 1-l^2"
    )
    kinks = (0.0,)  # kink of g in the limit l -> 1
    longest_start = 1.0
    assumed_flip: float = parameter(
        0.0, "probability of a flip that the student assumes", symbol=r"$\hat p_f$", at_least=0.0, below=0.5
    )

    def g(self, kappa: Array, length: Array) -> Array:
        xp, p = get_array_module(kappa + length), self.assumed_flip
        s = _posterior_deviation(length)
        z = length * kappa / s
        odds = xp.where(p > 0, p, 1.0) / (1 - 2 * p)  # odds of a flip, 1 without flips
        excess = xp.where(p > 0, xp.log(np.sqrt(2 * np.pi) * odds) + z * z / 2, -MAX_LOG_ODDS)  # log(odds/phi)
        rise = reversed_hazard(z)
        return s * rise / (1 + rise * xp.exp(xp.clip(excess, -MAX_LOG_ODDS, MAX_LOG_ODDS)))

    def bends(self, length: Array) -> tuple[Array, ...]:
        width = _posterior_deviation(length) / length
        flip_quantile = normal_quantile(self.assumed_flip / (1 - self.assumed_flip))
        # kept finite: panels are differentiated with respect to the length
        doubt = get_array_module(flip_quantile).maximum(flip_quantile, -40.0)
        tail = (
            POSTERIOR_CUTOFF,
            -POSTERIOR_CUTOFF,
            -16 * POSTERIOR_CUTOFF,
            -256 * POSTERIOR_CUTOFF,
        )  # wide panels: the hazard approaches its asymptote as a power of kappa
        turn = (doubt + offset / (1 - doubt) for offset in (-30.0, 0.0, 30.0))  # where errors pass for flipped labels
        return tuple(width * edge for edge in (*tail, *turn))


def _posterior_deviation(length: Array) -> Array:
    """Return the posterior standard deviation s of a teacher's component, tiny for lengths of 1 or more."""
    return get_array_module(length).sqrt(
        get_array_module(length).maximum((1 - length) * (1 + length), MIN_POSTERIOR_VARIANCE)
    )


RULES: dict[str, type[Rule]] = {
    "hebb": Hebb,
    "perceptron": Perceptron,
    "adatron": AdaTron,
    "adatron_textbook": AdaTronTextbook,
    "bayes": Bayes,
}
