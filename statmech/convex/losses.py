r"""Convex losses and penalties, and the proximal points of losses.

A learner with weights w has the field :math:`h = \mathbf w\cdot\mathbf x/\sqrt N`. With P examples of outputs
:math:`y^\mu` it minimises :math:`\sum_\mu \ell(x^\mu) + r(\mathbf w)`, the sum of its losses plus a penalty. Here x is
the stability :math:`y h` or, for a loss of residuals, :math:`y - h`. On labels :math:`y = \pm1` an even loss of
residuals is one of stabilities, since :math:`|y - h| = |1 - yh|` (`StabilityLoss`).

**To add a loss** write one class with `value`, `slope` and `curvature`, and add one line to `LOSSES`. List the jumps of
the slope in `kinks` and the jumps of the curvature in `bends`. Theory, minimisation, message passing, config names,
labels and conformance tests follow. A loss must be convex: its slope must not decrease.

>>> @dataclass(frozen=True)
... class Pinball(Loss):
...     "Quantile regression."
...     label = "pinball"
...     of = "residual"
...     quantile: float = parameter(0.5, "quantile that is learnt", above=0, below=1)
...     kinks = (0.0,)
...     def value(self, x):
...         return x * self.slope(x)
...     def slope(self, x):
...         return np.where(x > 0, self.quantile, self.quantile - 1)
...     def curvature(self, x):
...         return np.zeros_like(x)
>>> Pinball(quantile=0.75).value(np.array([-2.0, 2.0]))
array([0.5, 1.5])

A parameter of a loss is a dataclass field made by `statmech.parameters.parameter_fields.parameter`. Kinks, bends and
the closed form of the proximal point are not inherited by a subclass that overrides the slope: it must define them
itself.

**Penalties** on the weights are :math:`r(\mathbf w) = \lambda\,(s\,|\mathbf w|_1 + \tfrac{1-s}2\,|\mathbf w|^2)`. l2
(ridge) has s = 0, l1 (lasso) s = 1, and the elastic net any s in between.

**The proximal point** of a loss is found by Newton's method within a bracket:

.. math:: p = \mathrm{argmin}_p\, \frac{(p-h)^2}{2V} + \ell(p), \qquad F(p) = p - h + V\ell'(p) = 0 .

F rises with a slope of at least 1, and :math:`\ell'` does not decrease. For any q, the root therefore lies between q
and :math:`h - V\ell'(q)`: taking q = 0, h, every kink and every bend yields a bracket with a smooth loss inside. A kink
c is the root itself where :math:`c + V\ell'(c^-) \le h \le c + V\ell'(c^+)`.

Brackets may span 15 decades (the exponential loss at V = 1e12). Where a Newton step leaves the bracket, or is longer
than half of the previous step, the bracket is bisected on the arcsinh scale, which gives each decade the same weight.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from statmech.errors import ScenarioError
from statmech.parameters.parameter_fields import parameter
from statmech.runtime.user_code_and_provenance import reset_inherited_attributes

MAX_SEARCHED_MINIMISER = 300.0  # the search for minimisers spans [-300, 300]
MINIMISER_TOL = 1e-9  # absolute
MAX_PROX_STEPS = 200  # bisection alone needs about 70 steps
MAX_FINITE_SLOPE = 1e300  # finite, so that the product with V = 0 is 0
MACHINE_EPSILON = float(np.finfo(float).eps)
SLOPE_DEPENDENT_ATTRIBUTES = ("kinks", "bends", "equation", "closed_prox", "largest_curvature")
SYMMETRY_TEST_POINTS = np.geomspace(1e-3, 30, 12)  # an even loss equals its mirror image at these points
KINK_OFFSET_ULPS = 4  # one-sided slopes are taken this far from a kink, which may be rounded
L1_FRACTIONS_BY_PENALTY: dict[str, float | None] = {  # the fraction s, or None if a config key sets it
    "l2": 0.0,
    "l1": 1.0,
    "elastic_net": None,
}


@dataclass(frozen=True)
class Loss(ABC):
    """A convex loss of stabilities or residuals. Subclasses define `label`, `of`, `value`, `slope` and `curvature`."""

    label: ClassVar[str]  # name shown in tables and legends
    equation: ClassVar[str] = ""  # in LaTeX
    of: ClassVar[Literal["stability", "residual"]] = "stability"
    cites: ClassVar[tuple[str, ...]] = ()  # keys of papers in the bibliography

    def __init_subclass__(cls, **options: Any) -> None:
        """Reset attributes that depend on the slope.

        A subclass that overrides the slope then does not inherit stale values.
        """
        super().__init_subclass__(**options)
        reset_inherited_attributes(cls, "slope", SLOPE_DEPENDENT_ATTRIBUTES, Loss)

    @property
    def kinks(self) -> tuple[float, ...]:
        """Positions where the slope jumps, in increasing order."""
        return ()

    @property
    def bends(self) -> tuple[float, ...]:
        """Positions where the slope is continuous but the curvature jumps, in increasing order."""
        return ()

    @abstractmethod
    def value(self, x: np.ndarray) -> np.ndarray:
        r"""Return the loss :math:`\ell(x)` of each stability or residual.

        Parameters
        ----------
        x : array
            Stabilities or residuals.

        Returns
        -------
        array
            Loss of the same shape: infinite where it exceeds all floats, never NaN.

        Examples
        --------
        >>> Hinge().value(np.array([-1.0, 0.5, 2.0]))
        array([2. , 0.5, 0. ])
        """

    @abstractmethod
    def slope(self, x: np.ndarray) -> np.ndarray:
        r"""Return the derivative :math:`\ell'(x)`, a nondecreasing function.

        At a kink it may be any value between the slopes on both sides.

        Parameters
        ----------
        x : array
            Stabilities or residuals.

        Returns
        -------
        array
            Slopes of the same shape.

        Examples
        --------
        >>> SquaredHinge().slope(np.array([-1.0, 0.5, 2.0]))
        array([-2. , -0.5,  0. ])
        """

    @abstractmethod
    def curvature(self, x: np.ndarray) -> np.ndarray:
        r"""Return the second derivative :math:`\ell''(x)`, without the delta functions at kinks.

        Parameters
        ----------
        x : array
            Stabilities or residuals.

        Returns
        -------
        array
            Curvatures of the same shape, at least 0.

        Examples
        --------
        >>> SquaredHinge().curvature(np.array([-1.0, 0.5, 2.0]))
        array([1., 1., 0.])
        """

    def one_sided_slopes(self, x: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
        r"""Return the one-sided slopes :math:`\ell'(x^-)` and :math:`\ell'(x^+)` of the loss, which differ at a kink.

        They are evaluated a few roundings of x away, so that a kink may be given as a rounded number.

        Parameters
        ----------
        x : array
            Stabilities or residuals, usually the kinks.

        Returns
        -------
        left, right : arrays
            Slopes of the same shape.

        Examples
        --------
        >>> left, right = Hinge().one_sided_slopes(1.0)
        >>> float(left), float(right)
        (-1.0, 0.0)
        """
        x = np.asarray(x, dtype=float)
        side = KINK_OFFSET_ULPS * np.spacing(np.maximum(1.0, np.abs(x)))
        return self.slope(x - side), self.slope(x + side)

    @property
    def largest_curvature(self) -> float:
        r"""The least upper bound of the curvature, or infinity if the class defines no bound.

        >>> from statmech.convex.losses import Hinge, Logistic
        >>> Logistic().largest_curvature, Hinge().largest_curvature
        (0.25, inf)
        """
        return np.inf

    def closed_prox(self, h: np.ndarray, V: np.ndarray) -> np.ndarray | None:
        """Return the proximal point of `statmech.convex.losses.prox` in closed form, or None if no closed form exists.

        Parameters
        ----------
        h, V : arrays
            Arrays of the same shape. V is at least 0.

        Returns
        -------
        array or None
            Proximal points of the same shape: exactly c where a kink c is the minimum.

        Examples
        --------
        >>> Hinge().closed_prox(np.array([-2.0, 0.5, 3.0]), np.ones(3))
        array([-1.,  1.,  3.])
        >>> Logistic().closed_prox(np.zeros(1), np.ones(1)) is None
        True
        """
        return None

    @property
    def even(self) -> bool:
        """True if the loss is an even function, so that a loss of residuals can be minimised on labels.
        >>> Huber().even, Logistic().even
        (True, False)
        """
        with np.errstate(over="ignore"):
            return bool(
                np.allclose(self.value(SYMMETRY_TEST_POINTS), self.value(-SYMMETRY_TEST_POINTS), rtol=1e-9, atol=1e-12)
            )


@dataclass(frozen=True)
class Square(Loss):
    """Half the squared error, as in least squares."""

    label: ClassVar = "square"
    equation: ClassVar = r"\ell = (y-h)^2/2"
    of: ClassVar = "residual"
    largest_curvature: ClassVar = 1.0

    def value(self, x: np.ndarray) -> np.ndarray:
        return 0.5 * x * x

    def slope(self, x: np.ndarray) -> np.ndarray:
        return 1.0 * x

    def curvature(self, x: np.ndarray) -> np.ndarray:
        return np.ones_like(x)

    def closed_prox(self, h: np.ndarray, V: np.ndarray) -> np.ndarray:
        return h / (1 + V)


@dataclass(frozen=True)
class Logistic(Loss):
    """The loss of logistic regression."""

    label: ClassVar = "logistic"
    equation: ClassVar = r"\ell = \ln(1+e^{-yh})"
    largest_curvature: ClassVar = 0.25

    def value(self, x: np.ndarray) -> np.ndarray:
        return np.logaddexp(0.0, -x)

    def slope(self, x: np.ndarray) -> np.ndarray:
        return -_sigmoid(-x)

    def curvature(self, x: np.ndarray) -> np.ndarray:
        return _sigmoid(x) * _sigmoid(-x)


@dataclass(frozen=True)
class Hinge(Loss):
    """The hinge loss of the support vector machine."""

    label: ClassVar = "hinge"
    equation: ClassVar = r"\ell = \max(0, 1-yh)"
    cites: ClassVar = ("cortes1995",)
    kinks: ClassVar = (1.0,)

    def value(self, x: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, 1 - x)

    def slope(self, x: np.ndarray) -> np.ndarray:
        return np.where(x < 1, -1.0, 0.0)

    def curvature(self, x: np.ndarray) -> np.ndarray:
        return np.zeros_like(x)

    def closed_prox(self, h: np.ndarray, V: np.ndarray) -> np.ndarray:
        return np.maximum(h, np.minimum(1.0, h + V))


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """The squared hinge loss of a support vector machine with squared slacks."""

    label: ClassVar = "squared hinge"
    equation: ClassVar = r"\ell = \max(0, 1-yh)^2/2"
    cites: ClassVar = ("cortes1995",)
    bends: ClassVar = (1.0,)
    largest_curvature: ClassVar = 1.0

    def value(self, x: np.ndarray) -> np.ndarray:
        return 0.5 * np.maximum(0.0, 1 - x) ** 2

    def slope(self, x: np.ndarray) -> np.ndarray:
        return np.minimum(0.0, x - 1)

    def curvature(self, x: np.ndarray) -> np.ndarray:
        return np.where(x < 1, 1.0, 0.0)


@dataclass(frozen=True)
class Exponential(Loss):
    """The exponential loss, which boosting minimises."""

    label: ClassVar = "exponential"
    equation: ClassVar = r"\ell = e^{-yh}"
    cites: ClassVar = ("freund1997",)

    def value(self, x: np.ndarray) -> np.ndarray:
        return np.exp(-x)

    def slope(self, x: np.ndarray) -> np.ndarray:
        return -np.exp(-x)

    def curvature(self, x: np.ndarray) -> np.ndarray:
        return np.exp(-x)


@dataclass(frozen=True)
class Huber(Loss):
    """Huber's loss: quadratic for residuals up to `width`, linear for larger residuals."""

    label: ClassVar = "Huber"
    equation: ClassVar = r"\ell = (y-h)^2/2 \text{ up to } |y-h| = a, \ a|y-h| - a^2/2 \text{ beyond}"
    of: ClassVar = "residual"
    cites: ClassVar = ("huber1964",)
    largest_curvature: ClassVar = 1.0
    width: float = parameter(1.0, "residual beyond which the loss is linear", symbol="$a$", above=0)

    @property
    def bends(self) -> tuple[float, ...]:
        return (-self.width, self.width)

    def value(self, x: np.ndarray) -> np.ndarray:
        size = np.abs(x)
        return np.where(size < self.width, 0.5 * x * x, self.width * (size - 0.5 * self.width))

    def slope(self, x: np.ndarray) -> np.ndarray:
        return np.clip(x, -self.width, self.width)

    def curvature(self, x: np.ndarray) -> np.ndarray:
        return np.where(np.abs(x) < self.width, 1.0, 0.0)


@dataclass(frozen=True)
class Absolute(Loss):
    """The absolute error, as in least absolute deviations."""

    label: ClassVar = "absolute"
    equation: ClassVar = r"\ell = |y-h|"
    of: ClassVar = "residual"
    kinks: ClassVar = (0.0,)

    def value(self, x: np.ndarray) -> np.ndarray:
        return np.abs(x)

    def slope(self, x: np.ndarray) -> np.ndarray:
        return np.sign(x)

    def curvature(self, x: np.ndarray) -> np.ndarray:
        return np.zeros_like(x)

    def closed_prox(self, h: np.ndarray, V: np.ndarray) -> np.ndarray:
        return np.sign(h) * np.maximum(np.abs(h) - V, 0.0)


@dataclass(frozen=True)
class PerceptronLoss(Loss):
    """Rosenblatt's perceptron as a batch rule: all misclassified examples of a batch contribute together.

    Ties count as wrong, because w = 0 would not move otherwise. The loss is minimal at w = 0, so that only a descent
    learns with it.
    """

    label: ClassVar = "perceptron"
    equation: ClassVar = r"\ell = \max(0, -yh)"
    cites: ClassVar = ("rosenblatt1958",)
    kinks: ClassVar = (0.0,)

    def value(self, x: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, -x)

    def slope(self, x: np.ndarray) -> np.ndarray:
        return np.where(x <= 0, -1.0, 0.0)

    def curvature(self, x: np.ndarray) -> np.ndarray:
        return np.zeros_like(x)

    def closed_prox(self, h: np.ndarray, V: np.ndarray) -> np.ndarray:
        return np.maximum(h, np.minimum(0.0, h + V))


@dataclass(frozen=True)
class SquaredPerceptronLoss(Loss):
    """The squared perceptron loss: the force is proportional to minus the stability, as in the AdaTron.

    The loss is minimal at w = 0, so that only a descent from a start of nonzero length learns with it.
    """

    label: ClassVar = "squared perceptron"
    equation: ClassVar = r"\ell = \max(0, -yh)^2/2"
    bends: ClassVar = (0.0,)
    largest_curvature: ClassVar = 1.0

    def value(self, x: np.ndarray) -> np.ndarray:
        return 0.5 * np.maximum(0.0, -x) ** 2

    def slope(self, x: np.ndarray) -> np.ndarray:
        return np.minimum(0.0, x)

    def curvature(self, x: np.ndarray) -> np.ndarray:
        return np.where(x < 0, 1.0, 0.0)


@dataclass(frozen=True)
class StabilityLoss(Loss):
    r"""An even loss of residuals, written as a loss of the stability z = y h: :math:`\ell(y - h) = \ell(1 - z)`.

    >>> StabilityLoss(Absolute()).kinks
    (1.0,)
    """

    residual_loss: Loss = Square()
    label: ClassVar = "of stability"

    @property
    def kinks(self) -> tuple[float, ...]:
        return tuple(1 - x for x in reversed(self.residual_loss.kinks))

    @property
    def bends(self) -> tuple[float, ...]:
        return tuple(1 - x for x in reversed(self.residual_loss.bends))

    @property
    def largest_curvature(self) -> float:
        return self.residual_loss.largest_curvature

    def value(self, x: np.ndarray) -> np.ndarray:
        return self.residual_loss.value(1 - x)

    def slope(self, x: np.ndarray) -> np.ndarray:
        return -self.residual_loss.slope(1 - x)

    def curvature(self, x: np.ndarray) -> np.ndarray:
        return self.residual_loss.curvature(1 - x)


def convert_to_stability_loss(loss: Loss) -> Loss:
    r"""Return the loss as a function of the stability y h.

    .. math:: \ell(y - h) = \ell(1 - y h) \quad\text{for even } \ell \text{ and } y = \pm1 .

    Parameters
    ----------
    loss : Loss
        A loss of stabilities, or an even loss of residuals.

    Returns
    -------
    Loss
        A loss of stabilities.

    Raises
    ------
    ScenarioError
        If the loss is a loss of residuals and not even.

    Examples
    --------
    >>> float(convert_to_stability_loss(Square()).value(np.array(0.5)))
    0.125
    """
    if loss.of == "stability":
        return loss
    if why := explain_label_mismatch(loss):
        raise ScenarioError([(("loss",), why)])
    return StabilityLoss(loss)


@cache  # called for each value of sweeps with up to a million values
def explain_label_mismatch(loss: Loss) -> str:
    """Return the reason why a loss cannot be minimised on labels, or an empty string if it can.

    >>> explain_label_mismatch(Huber()), explain_label_mismatch(Hinge())
    ('', '')
    """
    if loss.of == "stability" or loss.even:
        return ""
    return f"the loss {loss.label} is not even in y - h: it needs outputs, not labels"


def _sigmoid(x: np.ndarray) -> np.ndarray:
    from scipy.special import expit

    return expit(x)


LOSSES: dict[str, type[Loss]] = {
    "square": Square,
    "logistic": Logistic,
    "hinge": Hinge,
    "squared_hinge": SquaredHinge,
    "exponential": Exponential,
    "huber": Huber,
    "absolute": Absolute,
}
DESCENT_ONLY_LOSSES: dict[str, type[Loss]] = {"perceptron": PerceptronLoss, "squared_perceptron": SquaredPerceptronLoss}
# all losses that a descent supports, including losses that users add to LOSSES
DESCENT_LOSSES: Mapping[str, type[Loss]] = ChainMap(DESCENT_ONLY_LOSSES, LOSSES)


@dataclass(frozen=True)
class ZeroLossInterval(Loss):
    """A loss that is 0 between two values and infinite elsewhere."""

    low: float = 1.0
    high: float = np.inf
    label: ClassVar = "within"

    @property
    def kinks(self) -> tuple[float, ...]:
        return tuple(dict.fromkeys(end for end in (self.low, self.high) if np.isfinite(end)))

    def value(self, x: np.ndarray) -> np.ndarray:
        return np.where((x < self.low) | (x > self.high), np.inf, 0.0)

    def slope(self, x: np.ndarray) -> np.ndarray:
        return np.where(x < self.low, -np.inf, np.where(x > self.high, np.inf, 0.0))

    def curvature(self, x: np.ndarray) -> np.ndarray:
        return np.zeros_like(x)

    def closed_prox(self, h: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return the point between the two values that is closest to h."""
        return np.clip(h, self.low, self.high)


@cache
def find_minimiser_interval(loss: Loss) -> ZeroLossInterval | None:
    """Find the interval where a loss is minimal, or return None if it decreases everywhere.

    >>> find_minimiser_interval(Hinge()).low, find_minimiser_interval(Hinge()).high, find_minimiser_interval(Logistic())
    (1.0, inf, None)
    """
    low = _find_first_x_by_slope(loss, lambda slope: slope >= 0)
    high = _find_first_x_by_slope(loss, lambda slope: slope > 0)
    if low >= MAX_SEARCHED_MINIMISER / 2:
        return None
    return ZeroLossInterval(
        low, np.inf if high > MAX_SEARCHED_MINIMISER / 2 else low if high - low < MINIMISER_TOL else high
    )


def _find_first_x_by_slope(loss: Loss, condition: object) -> float:
    """Find the smallest x where the slope of a loss meets a condition, by bisection.

    The result is exactly 0, a kink or a bend if one of these points is within the tolerance.
    """
    low, high = -MAX_SEARCHED_MINIMISER, MAX_SEARCHED_MINIMISER
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if condition(loss.slope(np.array(middle))) else (middle, high)  # type: ignore[operator]
    marked_points = [x for x in (0.0, *loss.kinks, *loss.bends) if abs(x - high) < MINIMISER_TOL]
    return float(marked_points[0]) if marked_points else high


Strength = TypeVar("Strength", float, np.ndarray)


@dataclass(frozen=True)
class Penalty:
    """An elastic-net penalty: a fraction `share` of its strength multiplies the l1 norm."""

    share: float = 0.0
    label: ClassVar[str] = "elastic net"

    def split_strength(self, lam: Strength) -> tuple[Strength, Strength]:
        r"""Return the strengths of the l1 and l2 terms.

        They are the factors :math:`\lambda s` of :math:`|\mathbf w|_1` and :math:`\lambda(1-s)` of
        :math:`|\mathbf w|^2/2`.

        Parameters
        ----------
        lam : array or float
            The strength of the penalty.

        Returns
        -------
        l1, l2 : arrays or floats
            Factors of the same shape.

        Examples
        --------
        >>> Penalty(0.25).split_strength(2.0)
        (0.5, 1.5)
        """
        return lam * self.share, lam * (1 - self.share)

    def value(self, w: np.ndarray, lam: float) -> np.ndarray:
        """Return the penalty of the weights.

        Parameters
        ----------
        w : array (..., N)
            Weights.
        lam : float
            The strength of the penalty.

        Returns
        -------
        array (...)

        Examples
        --------
        >>> float(Penalty(0.5).value(np.array([3.0, -1.0]), lam=1.0))
        4.5
        """
        l1, l2 = self.split_strength(lam)
        return l1 * np.abs(w).sum(axis=-1) + 0.5 * l2 * (w * w).sum(axis=-1)

    def prox(self, w: np.ndarray, lam: float, step: np.ndarray | float) -> np.ndarray:
        r"""Return the proximal point of each weight, :math:`\mathrm{argmin}_u\, (u-w)^2/2 + \eta\,r(u)`.

        .. math:: u = \mathrm{sgn}(w)\,\frac{\max(0, |w| - \eta\lambda s)}{1 + \eta\lambda(1-s)}

        Parameters
        ----------
        w : array
            Weights.
        lam : float
            The strength of the penalty.
        step : array or float
            The step :math:`\eta`; it broadcasts with the weights.

        Returns
        -------
        array
            Proximal points of the broadcast shape: exactly 0 where the l1 norm fixes a weight at 0.

        Examples
        --------
        >>> Penalty(1.0).prox(np.array([-2.0, 0.3]), lam=1.0, step=0.5)
        array([-1.5,  0. ])
        """
        l1, l2 = self.split_strength(lam)
        return np.sign(w) * np.maximum(np.abs(w) - step * l1, 0.0) / (1 + step * l2)


def prox(loss: Loss, h: np.ndarray | float, V: np.ndarray | float, rtol: float = 0.0) -> np.ndarray:
    r"""Find the proximal point of a loss, :math:`p = \mathrm{argmin}_p\,(p-h)^2/(2V) + \ell(p)`.

    Parameters
    ----------
    loss : Loss
    h : array
        Finite fields, which broadcast with V.
    V : array
        Variances, at least 0.
    rtol : float
        Accepted error relative to h. At 0 only the rounding error remains.

    Returns
    -------
    array
        p, of the broadcast shape: exactly c where a kink c is the minimum. Elsewhere the error is about one
        rounding error of h and :math:`V\ell'`.

    Examples
    --------
    >>> from statmech.convex.losses import Hinge, Logistic
    >>> prox(Hinge(), np.array([-2.0, 0.5, 3.0]), 1.0)
    array([-1.,  1.,  3.])
    >>> p = prox(Logistic(), 0.0, 2.0)
    >>> bool(abs(p + 2.0 * Logistic().slope(p)) < 1e-15)
    True
    """
    h, V = np.broadcast_arrays(np.asarray(h, dtype=float), np.asarray(V, dtype=float))
    closed = loss.closed_prox(h, V)
    return find_prox_by_newton(loss, h, V, rtol) if closed is None else closed


def find_prox_by_newton(loss: Loss, h: np.ndarray, V: np.ndarray, rtol: float = 0.0) -> np.ndarray:
    """Find proximal points of a loss for h and V of the same shape by Newton's method, even if a closed form exists."""
    shape, h, V = h.shape, h.ravel(), V.ravel()
    with np.errstate(over="ignore", invalid="ignore"):  # slopes at large |x| may overflow
        low, high = _bracket_roots(loss, h, V)
        return _find_prox_roots(loss, h, V, low, high, rtol).reshape(shape)


def compute_prox_derivative(loss: Loss, p: np.ndarray, V: np.ndarray | float) -> np.ndarray:
    r"""Return the derivative of the proximal point with respect to h, :math:`1/(1 + V\ell''(p))`, and 0 at a kink.

    >>> from statmech.convex.losses import Hinge
    >>> compute_prox_derivative(Hinge(), np.array([-1.0, 1.0, 3.0]), 1.0)
    array([1., 0., 1.])
    """
    smooth: np.ndarray = 1 / (1 + V * loss.curvature(p))
    return np.where(np.isin(p, loss.kinks), 0.0, smooth) if loss.kinks else smooth


def compute_prox_force(loss: Loss, p: np.ndarray, h: np.ndarray, V: np.ndarray | float) -> np.ndarray:
    r"""Return :math:`(p - h)/V = -\ell'(p)` at the proximal point p, without loss of digits at small V.

    >>> from statmech.convex.losses import Hinge
    >>> compute_prox_force(Hinge(), np.array([-1.0, 1.0, 3.0]), np.array([-2.0, 0.5, 3.0]), 1.0)
    array([ 1. ,  0.5, -0. ])
    """
    if not loss.kinks:
        return -loss.slope(p)
    pinned = np.isin(p, loss.kinks) & (np.asarray(V) > 0)
    return np.where(pinned, (p - h) / np.where(pinned, V, 1.0), -loss.slope(p))


def _bracket_roots(loss: Loss, h: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bracket the proximal points of a loss, with coinciding bounds where the point is a kink."""
    low, high = np.full_like(h, -np.inf), np.full_like(h, np.inf)
    for q, left, right in _list_bracketing_points(loss, h):
        before, after = h - V * left, h - V * right  # bounds for roots on the left and on the right of q
        low = np.maximum(low, np.minimum(q, before))
        high = np.minimum(high, np.maximum(q, after))
    return low, high


def _list_bracketing_points(loss: Loss, h: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return the bracketing points of a loss (0, the kinks, the bends and h), each with its one-sided slopes."""
    smooth, kinks = np.array([0.0, *loss.bends]), np.array(loss.kinks)
    slope = loss.slope(smooth)
    at_h = np.clip(loss.slope(h), -MAX_FINITE_SLOPE, MAX_FINITE_SLOPE)
    points = [*zip(smooth, slope, slope, strict=True), *zip(kinks, *loss.one_sided_slopes(kinks), strict=True)]
    return [*points, (h, at_h, at_h)]


def _find_prox_roots(
    loss: Loss, h: np.ndarray, V: np.ndarray, low: np.ndarray, high: np.ndarray, rtol: float
) -> np.ndarray:
    """Find the proximal point of a loss in each bracket, independently of the other brackets."""
    p, previous_length = _bisect_arcsinh(low, high), np.full_like(low, np.inf)
    active = np.flatnonzero(low < high)
    for _ in range(MAX_PROX_STEPS):
        if not len(active):
            break
        converged, *updates = _take_newton_step(
            loss, rtol, *(array[active] for array in (h, V, p, previous_length, low, high))
        )
        for array, new in zip((p, previous_length, low, high), updates, strict=True):
            array[active] = new
        active = active[~converged]
    return p


def _take_newton_step(
    loss: Loss,
    rtol: float,
    h: np.ndarray,
    V: np.ndarray,
    p: np.ndarray,
    previous_length: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """Return a mask of converged proximal points, the new points p, their step lengths and their brackets."""
    pull, rise = V * loss.slope(p), 1 + V * loss.curvature(p)
    F = p - h + pull
    low, high = np.where(F < 0, p, low), np.where(F > 0, p, high)
    newton = p - F / rise
    near = np.abs(newton - p) <= MACHINE_EPSILON * (np.abs(p) + (np.abs(h) + np.abs(pull)) / rise)
    near |= np.abs(F) <= rtol * np.abs(h)
    good = (low <= newton) & (newton <= high) & (2 * np.abs(newton - p) <= previous_length)
    new, halved = np.clip(newton, low, high), ~(good | near)
    if np.any(halved):
        new[halved] = _bisect_arcsinh(low[halved], high[halved])
    return near | (new == p), new, np.abs(new - p), low, high


def _bisect_arcsinh(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the midpoint of each bracket on the arcsinh scale."""
    middle = np.sinh(0.5 * (np.arcsinh(low) + np.arcsinh(high)))
    inside = (low < middle) & (middle < high)
    return np.where(inside, middle, 0.5 * (low + high))
