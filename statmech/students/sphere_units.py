r"""Units of networks on the sphere that are polynomials, and the change of such a unit by one example.

The unit of degree k is the normalised Hermite polynomial :math:`He_k(h)/\sqrt{k!}`. Its field :math:`h\sim N(0,1)`
gives :math:`\langle g^2\rangle = 1`, and it learns only from the k-th Hermite coefficient of a teacher.
"""

from __future__ import annotations

import math
from collections import ChainMap
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from statmech.numerics.gaussian import Array, make_composite_rule, normal_density
from statmech.parameters.parameter_fields import parameter
from statmech.students.activations import ACTIVATIONS, Activation
from statmech.students.label_teachers import EdgeLabels

MAX_HERMITE_DEGREE = 6
MAX_SIGNAL_ORDER = 12  # Hermite coefficients of higher order are not searched
MAX_OUTPUT_ORDER = 40
MAX_COSINE = 1 - 1e-12
SIGNAL_TOL = 1e-9  # smaller coefficients are 0: edges have ten digits
HERMITE_NODES = 32  # exact for polynomials up to degree 63
FIELD_RANGE, FIELD_PANELS, NODES_PER_PANEL = 12.0, 12, 20


@dataclass(frozen=True)
class HermiteUnit(Activation):
    """The Hermite polynomial of a degree, normalised to a mean square of 1."""

    label = "Hermite"
    equation = r"g(h) = \mathrm{He}_k(h)/\sqrt{k!}"
    degree: int = parameter(3, "degree of the Hermite polynomial", at_least=1, at_most=MAX_HERMITE_DEGREE)

    def both(self, x: Array) -> tuple[Array, Array]:  # style: ok
        lower, value = 0.0 * x, 1.0 + 0.0 * x
        for k in range(self.degree):
            lower, value = value, x * value - k * lower
        norm = math.sqrt(math.factorial(self.degree))
        return value / norm, self.degree / norm * lower


@dataclass(frozen=True)
class CubicUnit(Activation):
    """The unit h/2 + h^3/6, which learns from the first and the third Hermite coefficient."""

    label = "cubic"
    equation = "g(h) = h/2 + h^3/6"

    def both(self, x: Array) -> tuple[Array, Array]:  # style: ok
        return x / 2 + x * x * x / 6, (1 + x * x) / 2


SPHERE_UNITS: ChainMap[str, type[Activation]] = ChainMap({"hermite": HermiteUnit, "cubic": CubicUnit}, ACTIVATIONS)


@dataclass(frozen=True)
class LearningTask:
    """A unit on the sphere, its teacher, its error and its noise: everything except N and eta in a step."""

    unit: Activation
    teacher: EdgeLabels | None  # None for the outputs of a unit like the student
    v: float = 1.0  # output weight of the student, +1 or -1
    error: str = "correlation"
    flip: float = 0.0  # probability that a label is reversed
    noise: float = 0.0  # standard deviation of the noise of outputs
    trial: float | None = None  # learning rate of the trial step on the same example, None without such a step

    @cached_property
    def signal_terms(self) -> np.ndarray:
        r"""Products of Hermite coefficients of the teacher and the unit.

        Without trial steps they are the coefficients of the powers of R in :math:`C(R)/(1-R^2)`, for both errors.
        """
        orders = np.arange(1, MAX_SIGNAL_ORDER + 1)
        output = self._unit_coefficients[orders]
        label = (
            (1 - 2 * self.flip) * self.teacher.hermite_coefficients(MAX_SIGNAL_ORDER + 1)[1:]
            if self.teacher
            else output
        )
        return self.v * orders * output * label

    @property
    def exponent(self) -> int:
        """Information exponent: the order of the first signal term, or 0 without any."""
        present = np.abs(self.signal_terms) > SIGNAL_TOL
        return int(np.argmax(present)) + 1 if present.any() else 0

    @cached_property
    def _unit_coefficients(self) -> np.ndarray:
        """Hermite coefficients of g, up to the order `MAX_OUTPUT_ORDER`."""
        h, weight = make_field_rule(self.unit.kinks)
        hermite = np.polynomial.hermite_e.hermevander(h, MAX_OUTPUT_ORDER)
        norms = np.sqrt([float(math.factorial(k)) for k in range(MAX_OUTPUT_ORDER + 1)])
        return (weight * self.unit.both(h)[0]) @ hermite / norms

    @property
    def squared_change(self) -> float:
        """Mean square of the slope of g."""
        h, weight = make_field_rule(self.unit.kinks)
        return float(weight @ self.unit.both(h)[1] ** 2)

    def compute_change(self, y: Array, h: Array, squared_input: Array | float = 1.0) -> Array:
        """Return the factor f of a step J + eta f x, for the teacher's label or output y.

        Parameters
        ----------
        y, h
            Labels or outputs of the teacher, and fields of the student.
        squared_input
            Squared length of the input x, for the trial step.
        """
        if self.trial is not None:
            h = h + self.trial * squared_input * self._compute_gradient(y, h)
        return self._compute_gradient(y, h)

    def _compute_gradient(self, y: Array, h: Array) -> Array:
        """Return minus the derivative of the error with respect to the field h."""
        g, slope = self.unit.both(h)
        return self.v * slope * (y - self.v * g if self.error == "square" else y)

    def compute_error(self, R: np.ndarray) -> np.ndarray:
        """Return the mean squared error over 2 of students with cosines R (n,), without noise and flips."""
        h, weight = make_field_rule(self.unit.kinks)
        g = self.v * self.unit.both(h)[0]
        if self.teacher:
            R = np.clip(R, -MAX_COSINE, MAX_COSINE)[:, None]
            # a matrix product would depend on the number of students in its last bits
            return np.sum((1 + g * g - 2 * g * self.teacher.conditional_moments(h, R)[0]) * weight, axis=1) / 2
        return weight @ g**2 - self.v * np.polynomial.polynomial.polyval(R, self._unit_coefficients**2)

    @cached_property
    def is_even(self) -> bool:
        """True if R and -R are equivalent: for an even unit, and for even labels."""
        h = make_field_rule(self.unit.kinks)[0]
        functions = [self.unit.both(h)[0], *([self.teacher.label(h)] if self.teacher else [])]
        return any(np.allclose(values, values[::-1]) for values in functions)


def make_field_rule(kinks: tuple[float, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes (n,) and weights (n,) of averages over a normal field, on panels that end at the kinks.

    >>> h, weight = make_field_rule()
    >>> round(float(weight @ h**4), 12)
    3.0
    """
    edges = np.union1d(np.linspace(-FIELD_RANGE, FIELD_RANGE, FIELD_PANELS + 1), kinks)
    h, weight = make_composite_rule(edges, NODES_PER_PANEL)
    return h, weight * normal_density(h)
