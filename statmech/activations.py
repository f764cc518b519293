r"""Activations of the units of a network. An activation *is* its function g; simulation applies it, theory averages it.

A unit k of a network of M teacher and K student units has the field :math:`h_k = \mathbf J_k\cdot\mathbf x`, those of
the teacher :math:`y_m = \mathbf B_m\cdot\mathbf x`. With inputs :math:`\mathbf x\sim N(0, I/N)` the fields are normal,
with covariances :math:`Q_{kl} = \mathbf J_k\cdot\mathbf J_l/N`, :math:`R_{km} = \mathbf J_k\cdot\mathbf B_m/N` and
:math:`T_{mn} = \mathbf B_m\cdot\mathbf B_n/N`. All of the theory follows from four averages over normal fields (Saad &
Solla 1995),

.. math:: I_2 = \langle g(x_1)g(x_2)\rangle, \quad I_3 = \langle g'(x_1)\,x_2\,g(x_3)\rangle, \quad
          I_4 = \langle g'(x_1)g'(x_2)g(x_3)g(x_4)\rangle, \quad J_2 = \langle g'(x_1)g'(x_2)\rangle,

and three more where the teacher's output is a label, in which the last field is under a sign:
:math:`S_2 = \langle g(x_1)\,\mathrm{sgn}\,x_2\rangle`, :math:`S_3 = \langle g'(x_1)\,x_2\,\mathrm{sgn}\,x_3\rangle`,
:math:`S_4 = \langle g'(x_1)g'(x_2)g(x_3)\,\mathrm{sgn}\,x_4\rangle`.

**To add an activation** write one class with `both` and `kinks`, and add one line to `ACTIVATIONS` at the end of this
file. The simulation, the config name, labels, tables and conformance tests follow, and theory by quadrature where g is
smooth and there are few units.

>>> class Tanh(Activation):
...     "The hyperbolic tangent."
...     label = "tanh"
...     def both(self, x):
...         g = namespace(x).tanh(x)
...         return g, 1 - g * g

Use operators and `namespace(x)` for functions: the same lines then run in NumPy and, traced and batched, in JAX. A
parameter of an activation is a dataclass field made by `statmech.parameters.parameter`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from statmech.error_function import erf_and_derivative
from statmech.gaussian import Array, namespace, step


@dataclass(frozen=True)
class Activation(ABC):
    """The activation g of all units; subclasses state `label` and `both`, and the `kinks` of g if it has any."""

    label: ClassVar[str]  # the name in tables and legends
    cites: ClassVar[tuple[str, ...]] = ()  # papers, by their keys in the bibliography
    equation: ClassVar[str] = ""  # g in LaTeX
    kinks: ClassVar[tuple[float, ...]] = ()  # the fields where g bends or jumps

    @abstractmethod
    def both(self, x: Array) -> tuple[Array, Array]:
        """g(x) and its derivative g'(x), for an array of fields.

        Parameters
        ----------
        x : array
            Fields.

        Returns
        -------
        g, derivative : arrays
            Of the same shape; from NumPy arrays or, traced, from JAX arrays.

        Examples
        --------
        >>> g, derivative = ACTIVATIONS["relu"]().both(np.array([-1.0, 2.0]))
        >>> g, derivative
        (array([-0.,  2.]), array([0., 1.]))
        """

    has_closed_forms: ClassVar[bool] = False  # whether the averages below are stated

    def I2(self, C: Array) -> Array:
        """The average of g(x1) g(x2), for covariances C (2, 2, ...)."""
        raise NotImplementedError

    def I3(self, C: Array) -> Array:
        """The average of g'(x1) x2 g(x3), for covariances C (3, 3, ...)."""
        raise NotImplementedError

    def I4(self, C: Array) -> Array:
        """The average of g'(x1) g'(x2) g(x3) g(x4), for covariances C (4, 4, ...)."""
        raise NotImplementedError

    def J2(self, C: Array) -> Array:
        """The average of g'(x1) g'(x2), for covariances C (2, 2, ...)."""
        raise NotImplementedError

    def S2(self, C: Array) -> Array:
        """The average of g(x1) sgn x2, for covariances C (2, 2, ...)."""
        raise NotImplementedError

    def S3(self, C: Array) -> Array:
        """The average of g'(x1) x2 sgn x3, for covariances C (3, 3, ...)."""
        raise NotImplementedError

    def S4(self, C: Array) -> Array:
        """The average of g'(x1) g'(x2) g(x3) sgn x4, for covariances C (4, 4, ...)."""
        raise NotImplementedError


@dataclass(frozen=True)
class Erf(Activation):
    r"""The error function of Saad & Solla, :math:`g(x) = \mathrm{erf}(x/\sqrt 2)`."""

    label = "erf"
    cites = ("saad1995",)
    equation = r"g(x) = \mathrm{erf}(x/\sqrt 2)"
    has_closed_forms = True

    def both(self, x: Array) -> tuple[Array, Array]:
        if namespace(x) is np:
            from scipy.special import erf
        elif x.dtype == np.float64:
            return erf_and_derivative(x)
        else:
            from jax.scipy.special import erf
        return erf(x * 0.5**0.5), (2 / np.pi) ** 0.5 * namespace(x).exp(-x * x / 2)

    def I2(self, C: Array) -> Array:
        return _I2(C, 1.0)

    def I3(self, C: Array) -> Array:
        return _I3(C, 1.0)

    def I4(self, C: Array) -> Array:
        return _I4(C, 1.0)

    def J2(self, C: Array) -> Array:
        return 2 / np.pi / namespace(C).sqrt((1 + C[0, 0]) * (1 + C[1, 1]) - C[0, 1] ** 2)

    def S2(self, C: Array) -> Array:
        return _I2(C, 0.0)

    def S3(self, C: Array) -> Array:
        return _I3(C, 0.0)

    def S4(self, C: Array) -> Array:
        return _I4(C, 0.0)


def _I2(C: Array, last: float) -> Array:
    """With `last` = 0 the last field is under a sign, the limit of erf(a x) as a grows."""
    xp = namespace(C)
    return 2 / np.pi * xp.arcsin(C[0, 1] / xp.sqrt((1 + C[0, 0]) * (last + C[1, 1])))


def _I3(C: Array, last: float) -> Array:
    wide = 1 + C[0, 0]
    spread = wide * (last + C[2, 2]) - C[0, 2] ** 2
    return 2 / np.pi * (C[1, 2] * wide - C[0, 1] * C[0, 2]) / (wide * namespace(C).sqrt(spread))


def _I4(C: Array, last: float) -> Array:
    xp = namespace(C)
    a, b, c = 1 + C[0, 0], 1 + C[1, 1], C[0, 1]
    det = a * b - c * c

    def product(i: int, j: int) -> Array:
        """Covariance of two fields given the first two under Gaussians, times det; 1 is added on the diagonal."""
        own = (1.0 if i == 2 else last) if i == j else 0.0
        left, right = C[0, i], C[1, i]
        return det * (C[i, j] + own) - a * right * C[1, j] - b * left * C[0, j] + c * (left * C[1, j] + right * C[0, j])

    return 4 / np.pi**2 / xp.sqrt(det) * xp.arcsin(product(2, 3) / xp.sqrt(product(2, 2) * product(3, 3)))


@dataclass(frozen=True)
class Relu(Activation):
    r"""The rectified linear unit, :math:`g(x) = x\,\Theta(x)`."""

    label = "ReLU"
    equation = r"g(x) = x\,\Theta(x)"
    kinks = (0.0,)

    def both(self, x: Array) -> tuple[Array, Array]:
        active = step(x)
        return x * active, active


@dataclass(frozen=True)
class Linear(Activation):
    """The identity, g(x) = x: a network of linear units is one linear unit, which learns without plateaus."""

    label = "linear"
    equation = "g(x) = x"
    has_closed_forms = True

    def both(self, x: Array) -> tuple[Array, Array]:
        return x, namespace(x).ones_like(x)

    def I2(self, C: Array) -> Array:
        return C[0, 1]

    def I3(self, C: Array) -> Array:
        return C[1, 2]

    def I4(self, C: Array) -> Array:
        return C[2, 3]

    def J2(self, C: Array) -> Array:
        return namespace(C).ones_like(C[0, 1])

    def S2(self, C: Array) -> Array:
        return np.sqrt(2 / np.pi) * C[0, 1] / namespace(C).sqrt(C[1, 1])

    def S3(self, C: Array) -> Array:
        return self.S2(C[1:, 1:])

    def S4(self, C: Array) -> Array:
        return self.S2(C[2:, 2:])


ACTIVATIONS: dict[str, type[Activation]] = {"erf": Erf, "relu": Relu, "linear": Linear}
