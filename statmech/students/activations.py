r"""Activation functions of the units of a network, and averages of smooth activations without closed forms.

An activation *is* its function g: the simulation applies it, theory averages it. In a network of M teacher and K
student units, the student unit k has the field :math:`h_k = \mathbf J_k\cdot\mathbf x` and the teacher unit m the
field :math:`y_m = \mathbf B_m\cdot\mathbf x`. With inputs :math:`\mathbf x\sim N(0, I/N)` the fields are normal,
with covariances :math:`Q_{kl} = \mathbf J_k\cdot\mathbf J_l/N`, :math:`R_{km} = \mathbf J_k\cdot\mathbf B_m/N` and
:math:`T_{mn} = \mathbf B_m\cdot\mathbf B_n/N`. All of the theory follows from four averages over normal fields (Saad &
Solla 1995),

.. math:: I_2 = \langle g(x_1)g(x_2)\rangle, \quad I_3 = \langle g'(x_1)\,x_2\,g(x_3)\rangle, \quad
          I_4 = \langle g'(x_1)g'(x_2)g(x_3)g(x_4)\rangle, \quad J_2 = \langle g'(x_1)g'(x_2)\rangle,

and, where the teacher's output is a label, from three more, whose last field enters by its sign:
:math:`S_2 = \langle g(x_1)\,\mathrm{sgn}\,x_2\rangle`, :math:`S_3 = \langle g'(x_1)\,x_2\,\mathrm{sgn}\,x_3\rangle`,
:math:`S_4 = \langle g'(x_1)g'(x_2)g(x_3)\,\mathrm{sgn}\,x_4\rangle`.

**To add an activation** write one class with `both` and `kinks`, and add one line to `ACTIVATIONS`. The simulation, the
config name, labels, tables and conformance tests follow, and theory by quadrature where g is smooth and there are few
units.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Tanh(Activation):
...     "The hyperbolic tangent."
...     label = "tanh"
...     def both(self, x):
...         g = get_array_module(x).tanh(x)
...         return g, 1 - g * g

Use operators and `get_array_module(x)` for functions: the same lines then run in NumPy and, traced and batched, in JAX.
A parameter of an activation is a dataclass field made by `statmech.parameters.parameter_fields.parameter`. Kinks and
averages belong to the g of the class that defines them: a subclass that overrides `both` does not inherit them.

**Quadrature.** A smooth activation without closed forms is averaged on a lattice. With the lower triangular root of the
covariances, :math:`C = LL^\mathsf{T}`, the fields are :math:`x = Lz` with independent normal z. The sum over the points
of a cubic lattice of spacing h, weighted by the normal density, has an error of :math:`e^{-2\pi a/h}` for a g that is
analytic within a of the real axis: for tanh(x), h = 0.32 has the error 7e-10 with 43 points per variable, and
Gauss-Hermite quadrature needs 96. The sum does not converge across a kink, so that activations with kinks are not
supported. The spacing is the widest one that reproduces :math:`\langle g^2\rangle`, :math:`\langle g'^2\rangle` and
:math:`\langle xgg'\rangle` of the spacing `REFERENCE_LATTICE_SPACING`, for a field of variance `PROBE_FIELD_VARIANCE`.
Points outside `LATTICE_RADIUS` are omitted.

>>> averages = ensure_gaussian_averages(Tanh())
>>> C = np.array([[1.0, 0.5], [0.5, 1.0]])
>>> averages.spacing, round(float(averages.I2(C)), 8)
(0.32, 0.18632441)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from statmech.numerics.gaussian import (
    Array,
    get_array_module,
    normal_cdf,
    normal_density,
    scaled_erf_and_derivative,
    step,
)
from statmech.numerics.orthants import (
    Correlations,
    has_positive_variances,
    orthant_probability_2,
    pair_determinant,
    safe_ratio,
    safe_sqrt,
)
from statmech.runtime.user_code_and_provenance import reset_inherited_attributes

GAUSSIAN_AVERAGE_METHODS = ("I2", "I3", "I4", "J2", "J2_along", "given", "S2", "S3", "S4")
OVERRIDE_RESET_ATTRIBUTES = ("kinks", "equation", "has_closed_forms", "odd", *GAUSSIAN_AVERAGE_METHODS)
LATTICE_SPACINGS = (0.8, 0.65, 0.5, 0.4, 0.32, 0.25)
REFERENCE_LATTICE_SPACING = 0.1
PROBE_FIELD_VARIANCE = 1.0  # field variance for testing the accuracy of a spacing
LATTICE_AVERAGE_TOL = 1e-8
LATTICE_RADIUS = 7.0  # standard deviations: four normal variables lie outside with probability 6e-10
MIN_CONDITIONAL_VARIANCE = 1e-14  # smaller conditional variances count as 0


@dataclass(frozen=True)
class Activation(ABC):
    """An activation function g, shared by all units of a network.

    Subclasses define `label`, `both` and, if g bends or jumps, its `kinks`.
    """

    label: ClassVar[str]  # shown in tables and legends
    cites: ClassVar[tuple[str, ...]] = ()  # bibliography keys of the papers
    equation: ClassVar[str] = ""  # g in LaTeX
    kinks: ClassVar[tuple[float, ...]] = ()  # fields where g bends or jumps

    def __init_subclass__(cls, **options: Any) -> None:
        """Reset inherited attributes that depend on g if a subclass overrides g."""
        super().__init_subclass__(**options)
        reset_inherited_attributes(cls, "both", OVERRIDE_RESET_ATTRIBUTES, Activation)

    @abstractmethod
    def both(self, x: Array) -> tuple[Array, Array]:
        """Return g(x) and its derivative g'(x) for an array of fields.

        Parameters
        ----------
        x : array
            Fields.

        Returns
        -------
        g, derivative : arrays
            Arrays of the same shape, for NumPy arrays or, traced, for JAX arrays.

        Examples
        --------
        >>> g, derivative = ACTIVATIONS["relu"]().both(np.array([-1.0, 2.0]))
        >>> g, derivative
        (array([-0.,  2.]), array([0., 1.]))
        """

    has_closed_forms: ClassVar[bool] = False  # True: the class defines the averages below
    odd: ClassVar[bool] = False  # True: g(-x) = -g(x)

    def I2(self, C: Array) -> Array:
        """Return the average of g(x1) g(x2) for covariances C (2, 2, ...)."""
        raise NotImplementedError

    def I3(self, C: Array) -> Array:
        """Return the average of g'(x1) x2 g(x3) for covariances C (3, 3, ...).

        The average is linear in the covariances of x2, which need not be positive semidefinite.
        """
        raise NotImplementedError

    def I4(self, C: Array) -> Array:
        """Return the average of g'(x1) g'(x2) g(x3) g(x4) for covariances C (4, 4, ...)."""
        raise NotImplementedError

    def J2(self, C: Array) -> Array:
        """Return the average of g'(x1) g'(x2) for covariances C (2, 2, ...)."""
        raise NotImplementedError

    def J2_along(self, C: Array, E: Array) -> Array:
        """Return the derivative of J2 at covariances C (2, 2, ...) along the direction E (2, 2, ...)."""
        raise NotImplementedError

    def given(self, mean: Array, variance: Array) -> Array:
        """Return the average of g(x) over a normal x with the given mean and variance, which broadcast."""
        raise NotImplementedError

    def S2(self, C: Array) -> Array:
        """Return the average of g(x1) sgn x2 for covariances C (2, 2, ...)."""
        raise NotImplementedError

    def S3(self, C: Array) -> Array:
        """Return the average of g'(x1) x2 sgn x3 for covariances C (3, 3, ...).

        The average is linear in the covariances of x2, which need not be positive semidefinite.
        """
        raise NotImplementedError

    def S4(self, C: Array) -> Array:
        """Return the average of g'(x1) g'(x2) g(x3) sgn x4 for covariances C (4, 4, ...)."""
        raise NotImplementedError


@dataclass(frozen=True)
class Erf(Activation):
    r"""The error-function activation of Saad & Solla, :math:`g(x) = \mathrm{erf}(x/\sqrt 2)`."""

    label = "erf"
    cites = ("saad1995",)
    equation = r"g(x) = \mathrm{erf}(x/\sqrt{2})"
    odd = True
    has_closed_forms = True

    def both(self, x: Array) -> tuple[Array, Array]:
        if get_array_module(x) is np:
            from scipy.special import erf
        elif x.dtype == np.float64:
            return scaled_erf_and_derivative(x)
        else:
            from jax.scipy.special import erf
        return erf(x * 0.5**0.5), (2 / np.pi) ** 0.5 * get_array_module(x).exp(-x * x / 2)

    def I2(self, C: Array) -> Array:
        return _erf_I2(C, 1.0)

    def I3(self, C: Array) -> Array:
        return _erf_I3(C, 1.0)

    def I4(self, C: Array) -> Array:
        return _erf_I4(C, 1.0)

    def J2(self, C: Array) -> Array:
        return 2 / np.pi / get_array_module(C).sqrt((1 + C[0, 0]) * (1 + C[1, 1]) - C[0, 1] ** 2)

    def J2_along(self, C: Array, E: Array) -> Array:
        a, b, c = 1 + C[0, 0], 1 + C[1, 1], C[0, 1]
        return -(E[0, 0] * b + E[1, 1] * a - 2 * c * E[0, 1]) / np.pi / (a * b - c * c) ** 1.5

    def given(self, mean: Array, variance: Array) -> Array:
        return self.both(mean / get_array_module(mean).sqrt(1 + variance))[0]

    def S2(self, C: Array) -> Array:
        return _erf_I2(C, 0.0)

    def S3(self, C: Array) -> Array:
        return _erf_I3(C, 0.0)

    def S4(self, C: Array) -> Array:
        return _erf_I4(C, 0.0)


def _erf_I2(C: Array, last_added_variance: float) -> Array:
    """Return I2 of the error function (`last_added_variance` = 1), or S2 (`last_added_variance` = 0).

    The sign of the last field is the limit of erf(a x) as a grows.
    """
    xp = get_array_module(C)
    return 2 / np.pi * xp.arcsin(C[0, 1] / xp.sqrt((1 + C[0, 0]) * (last_added_variance + C[1, 1])))


def _erf_I3(C: Array, last_added_variance: float) -> Array:
    """Return I3 of the error function (`last_added_variance` = 1), or S3 (`last_added_variance` = 0)."""
    first_variance = 1 + C[0, 0]
    det = first_variance * (last_added_variance + C[2, 2]) - C[0, 2] ** 2
    return 2 / np.pi * (C[1, 2] * first_variance - C[0, 1] * C[0, 2]) / (first_variance * get_array_module(C).sqrt(det))


def _erf_I4(C: Array, last_added_variance: float) -> Array:
    """Return I4 of the error function (`last_added_variance` = 1), or S4 (`last_added_variance` = 0)."""
    xp = get_array_module(C)
    a, b, c = 1 + C[0, 0], 1 + C[1, 1], C[0, 1]
    det = a * b - c * c

    def scaled_covariance(i: int, j: int) -> Array:
        """Return the conditional covariance of the fields i and j, multiplied by det.

        The condition is a Gaussian weight of the first two fields. The diagonal includes the added variance.
        """
        added_variance = (1.0 if i == 2 else last_added_variance) if i == j else 0.0
        left, right = C[0, i], C[1, i]
        return (
            det * (C[i, j] + added_variance)
            - a * right * C[1, j]
            - b * left * C[0, j]
            + c * (left * C[1, j] + right * C[0, j])
        )

    return (
        4
        / np.pi**2
        / xp.sqrt(det)
        * xp.arcsin(scaled_covariance(2, 3) / xp.sqrt(scaled_covariance(2, 2) * scaled_covariance(3, 3)))
    )


@dataclass(frozen=True)
class Relu(Activation):
    r"""The rectified linear unit, :math:`g(x) = x\,\Theta(x)`.

    With the orthant probabilities :math:`P_n` of `statmech.numerics.orthants` and :math:`D_{ij} =
    C_{ii}C_{jj}-C_{ij}^2`, Stein's lemma, :math:`\langle x_iF\rangle = \sum_jC_{ij}\langle\partial_jF\rangle`, gives

    .. math:: J_2 = P_2, \quad I_2 = C_{12}P_2 + \frac{\sqrt{D_{12}}}{2\pi}, \quad
              I_3 = C_{23}P_2(13) + \frac{C_{12}\sqrt{D_{13}}}{2\pi C_{11}},

    and, used twice, with the sum over the six pairs i < j and the other two fields k, l,

    .. math:: I_4 = C_{34}P_4 + \sum_{i<j}\frac{P_2(kl|ij)}{2\pi\sqrt{D_{ij}}}
              \left[C_{3i}\left(C_{4j}-\frac{C_{4i}C_{ij}}{C_{ii}}\right)
              + C_{3j}\left(C_{4i}-\frac{C_{4j}C_{ij}}{C_{jj}}\right)\right] .

    For a label, :math:`S_2 = C_{12}/\sqrt{2\pi C_{22}}`, :math:`S_3 = C_{23}/\sqrt{2\pi C_{33}}` and, with the angles
    :math:`\theta_{jk|i}` between two fields given a third that is 0,

    .. math:: S_4 = \sum_{i=1}^3\frac{C_{3i}}{\sqrt{2\pi C_{ii}}}\,\frac{\pi-\theta_{j4|i}-\theta_{k4|i}}{2\pi}
              + \frac{C_{34}}{\sqrt{2\pi C_{44}}}\,\frac{2\pi-\theta_{12|4}-\theta_{13|4}-\theta_{23|4}}{2\pi} .

    A field of variance 0 is never positive, as in the simulation.
    """

    label = "ReLU"
    equation = r"g(x) = x\,\Theta(x)"
    kinks = (0.0,)
    has_closed_forms = True

    def both(self, x: Array) -> tuple[Array, Array]:
        active = step(x)
        return x * active, active

    def I2(self, C: Array) -> Array:
        return C[0, 1] * orthant_probability_2(C) + safe_sqrt(pair_determinant(C, 0, 1)) / (2 * np.pi)

    def I3(self, C: Array) -> Array:
        both_positive = orthant_probability_2(_select_covariances(C, 0, 2))
        return C[1, 2] * both_positive + safe_ratio(C[0, 1] * safe_sqrt(pair_determinant(C, 0, 2)), 2 * np.pi * C[0, 0])

    def I4(self, C: Array) -> Array:
        fields = Correlations(C)
        result = C[2, 3] * fields.compute_orthant_probability()
        for i, j, k, l in ((0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2), (1, 2, 0, 3), (1, 3, 0, 2), (2, 3, 0, 1)):
            response = C[2, i] * _conditional_covariance(C, 3, j, i) + C[2, j] * _conditional_covariance(C, 3, i, j)
            others_positive = (np.pi - fields.angle_given_two(i, j, k, l)) / (2 * np.pi)
            result = result + safe_ratio(response, 2 * np.pi * safe_sqrt(pair_determinant(C, i, j))) * others_positive
        return has_positive_variances(C) * result

    def J2(self, C: Array) -> Array:
        return orthant_probability_2(C)

    def J2_along(self, C: Array, E: Array) -> Array:
        changes = E[0, 1] - C[0, 1] * (safe_ratio(E[0, 0], C[0, 0]) + safe_ratio(E[1, 1], C[1, 1])) / 2
        return has_positive_variances(C) * safe_ratio(changes, 2 * np.pi * safe_sqrt(pair_determinant(C, 0, 1)))

    def given(self, mean: Array, variance: Array) -> Array:
        xp, spread = get_array_module(mean), safe_sqrt(variance)
        scaled = mean / xp.where(spread > 0, spread, 1.0)
        return xp.where(spread > 0, mean * normal_cdf(scaled) + spread * normal_density(scaled), mean * step(mean))

    def S2(self, C: Array) -> Array:
        return safe_ratio(C[0, 1], safe_sqrt(2 * np.pi * C[1, 1]))

    def S3(self, C: Array) -> Array:
        return has_positive_variances(_select_covariances(C, 0, 2)) * self.S2(C[1:, 1:])

    def S4(self, C: Array) -> Array:
        fields, result = Correlations(C), 0.0
        for i, j, k in ((0, 1, 2), (1, 0, 2), (2, 0, 1)):
            angle_deficit = np.pi - fields.angle_given_one(i, j, 3) - fields.angle_given_one(i, k, 3)
            result = result + safe_ratio(C[2, i] * angle_deficit, safe_sqrt(C[i, i]))
        angle_deficit = 2 * np.pi - sum(fields.angle_given_one(3, i, j) for i, j in ((0, 1), (0, 2), (1, 2)))
        return (
            has_positive_variances(C)
            * (result + safe_ratio(C[2, 3] * angle_deficit, safe_sqrt(C[3, 3])))
            / (2 * np.pi) ** 1.5
        )


def _select_covariances(C: Array, *fields: int) -> Array:
    """Return the covariances of the selected fields."""
    return C[np.ix_(fields, fields)]


def _conditional_covariance(C: Array, n: int, j: int, condition: int) -> Array:
    """Return the covariance of the fields n and j given field i."""
    return C[n, j] - safe_ratio(C[n, condition] * C[condition, j], C[condition, condition])


@dataclass(frozen=True)
class Linear(Activation):
    """The linear activation, g(x) = x: such a network is equivalent to a single unit and has no plateaus."""

    label = "linear"
    equation = "g(x) = x"
    odd = True
    has_closed_forms = True

    def both(self, x: Array) -> tuple[Array, Array]:
        return x, get_array_module(x).ones_like(x)

    def I2(self, C: Array) -> Array:
        return C[0, 1]

    def I3(self, C: Array) -> Array:
        return C[1, 2]

    def I4(self, C: Array) -> Array:
        return C[2, 3]

    def J2(self, C: Array) -> Array:
        return get_array_module(C).ones_like(C[0, 1])

    def J2_along(self, C: Array, E: Array) -> Array:
        return get_array_module(C).zeros_like(C[0, 1])

    def given(self, mean: Array, variance: Array) -> Array:
        return mean + 0 * variance

    def S2(self, C: Array) -> Array:
        return np.sqrt(2 / np.pi) * C[0, 1] / get_array_module(C).sqrt(C[1, 1])

    def S3(self, C: Array) -> Array:
        return self.S2(C[1:, 1:])

    def S4(self, C: Array) -> Array:
        return self.S2(C[2:, 2:])


ACTIVATIONS: dict[str, type[Activation]] = {"erf": Erf, "relu": Relu, "linear": Linear}


@cache
def make_lattice(variables: int, spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Return lattice points (variables, n) and weights (n,) for averages of an activation over normal variables.

    >>> z, weight = make_lattice(2, 0.8)
    >>> round(float(weight @ (z[0] ** 2 * z[1] ** 2)), 6)
    1.0
    """
    count = int(LATTICE_RADIUS / spacing)
    line = spacing * np.arange(-count, count + 1)
    z = np.stack(np.meshgrid(*[line] * variables, indexing="ij")).reshape(variables, -1)
    squares = (z * z).sum(0)
    inside = squares < LATTICE_RADIUS**2
    weight = np.exp(-squares[inside] / 2)
    return z[:, inside], weight / weight.sum()


def ensure_gaussian_averages(activation: Activation) -> Activation:
    """Return an activation with Gaussian averages, by quadrature if it has no closed forms.

    Parameters
    ----------
    activation : Activation
        Any activation.

    Returns
    -------
    Activation

    Raises
    ------
    NotImplementedError
        If the activation has kinks and no closed forms.
    """
    return (
        activation
        if activation.has_closed_forms
        else LatticeAverages(activation, choose_smooth_lattice_spacing(activation))
    )


def choose_smooth_lattice_spacing(activation: Activation) -> float:
    """Return the widest lattice spacing within the tolerance for an activation, or the smallest spacing."""
    if activation.kinks:
        raise NotImplementedError(f"{activation.label} has kinks: quadrature does not converge across kinks")
    exact = _compute_probe_averages(activation, REFERENCE_LATTICE_SPACING)
    accurate_spacings = (
        spacing
        for spacing in LATTICE_SPACINGS
        if abs(_compute_probe_averages(activation, spacing) - exact).max() < LATTICE_AVERAGE_TOL
    )
    return next(accurate_spacings, LATTICE_SPACINGS[-1])


def _compute_probe_averages(activation: Activation, spacing: float) -> np.ndarray:
    """Compute averages of three products of g and its slope on a lattice of this spacing."""
    z, weight = make_lattice(1, spacing)
    x = np.sqrt(PROBE_FIELD_VARIANCE) * z[0]
    g, slope = activation.both(x)
    return np.array([g * g, slope * slope, x * g * slope]) @ weight


@dataclass(frozen=True)
class LatticeAverages(Activation):
    """A smooth activation whose averages are sums over a lattice."""

    activation: Activation
    spacing: float

    @property
    def label(self) -> str:  # type: ignore[override]
        return self.activation.label

    def both(self, x: Array) -> tuple[Array, Array]:
        return self.activation.both(x)

    def I2(self, C: Array) -> Array:
        return self._average_on_lattice(C, lambda x: self._g(x[0]) * self._g(x[1]))

    def I3(self, C: Array) -> Array:
        return self._average_on_lattice(C, lambda x: self._slope(x[0]) * x[1] * self._g(x[2]))

    def I4(self, C: Array) -> Array:
        return self._average_on_lattice(
            C, lambda x: self._slope(x[0]) * self._slope(x[1]) * self._g(x[2]) * self._g(x[3])
        )

    def J2(self, C: Array) -> Array:
        return self._average_on_lattice(C, lambda x: self._slope(x[0]) * self._slope(x[1]))

    def given(self, mean: Array, variance: Array) -> Array:
        z, weight = make_lattice(1, self.spacing)
        return self._g(mean[..., None] + safe_sqrt(variance)[..., None] * z[0]) @ weight

    def _g(self, x: Array) -> Array:
        return self.both(x)[0]

    def _slope(self, x: Array) -> Array:
        return self.both(x)[1]

    def _average_on_lattice(self, C: Array, product: Callable[[list[Array]], Array]) -> Array:
        z, weight = make_lattice(len(C), self.spacing)
        fields = [sum(entry[..., None] * z[j] for j, entry in enumerate(row)) for row in compute_cholesky_rows(C)]
        return product(fields) @ weight


def compute_cholesky_rows(C: Array) -> list[list[Array]]:
    """Return the rows of the Cholesky factor of fields' covariances (n, n, ...), which may be singular.

    >>> np.array(compute_cholesky_rows(np.ones((2, 2)))[1])
    array([1., 0.])
    """
    xp, rows = get_array_module(C), list[list[Array]]()
    for i in range(len(C)):
        row: list[Array] = []
        for j in range(i):
            row.append(safe_ratio(C[i, j] - sum(row[k] * rows[j][k] for k in range(j)), rows[j][j]))
        rest = C[i, i] - sum(entry * entry for entry in row)
        row.append(safe_sqrt(xp.where(rest > MIN_CONDITIONAL_VARIANCE * C[i, i], rest, 0.0)))
        rows.append(row)
    return rows
