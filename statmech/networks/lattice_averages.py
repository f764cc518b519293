r"""The averages of a smooth activation by quadrature on a lattice, where it states no closed forms.

With the lower triangular root of the covariances, :math:`C = LL^\mathsf{T}`, the fields are :math:`x = Lz` with
independent normal z. The sum over the points of a cubic lattice of spacing h, weighted by the normal density, errs by
:math:`e^{-2\pi a/h}` for a g that is analytic within a of the real axis: for tanh(x), h = 0.32 reaches in 43 points
per variable what takes Gauss-Hermite quadrature 96, 7e-10. It does not converge across a kink, which is refused. The
spacing is the widest at which :math:`\langle g^2\rangle`, :math:`\langle g'^2\rangle` and :math:`\langle
xgg'\rangle` of a field of variance `WIDEST` are those of spacing `FINEST`; points beyond `RADIUS` are left out.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Tanh(Activation):
...     label = "tanh"
...     def both(self, x):
...         g = namespace(x).tanh(x)
...         return g, 1 - g * g
>>> averages = averages_of(Tanh())
>>> C = np.array([[1.0, 0.5], [0.5, 1.0]])
>>> averages.spacing, round(float(averages.I2(C)), 8)
(0.32, 0.18632441)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from statmech.activations import Activation
from statmech.numerics.gaussian import Array, namespace
from statmech.numerics.orthants import ratio, root

SPACINGS = (0.8, 0.65, 0.5, 0.4, 0.32, 0.25)
FINEST = 0.1
WIDEST = 1.0  # variance at which the spacing is chosen
TOLERANCE = 1e-8
RADIUS = 7.0  # four normal variables lie beyond with probability 6e-10
ROUNDING = 1e-14  # of a variance given other fields


@cache
def lattice(variables: int, spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Points (variables, n) and weights (n,) for averages over independent normal variables.

    >>> z, weight = lattice(2, 0.8)
    >>> round(float(weight @ (z[0] ** 2 * z[1] ** 2)), 6)
    1.0
    """
    count = int(RADIUS / spacing)
    line = spacing * np.arange(-count, count + 1)
    z = np.stack(np.meshgrid(*[line] * variables, indexing="ij")).reshape(variables, -1)
    squares = (z * z).sum(0)
    inside = squares < RADIUS**2
    weight = np.exp(-squares[inside] / 2)
    return z[:, inside], weight / weight.sum()


def averages_of(activation: Activation) -> Activation:
    """An activation with averages: itself if it states closed forms, else by quadrature.

    Parameters
    ----------
    activation : Activation
        Any.

    Returns
    -------
    Activation

    Raises
    ------
    NotImplementedError
        For an activation with kinks and without closed forms.
    """
    return activation if activation.has_closed_forms else LatticeAverages(activation, spacing_for(activation))


def spacing_for(activation: Activation) -> float:
    """The widest spacing that reaches TOLERANCE, or the least of SPACINGS."""
    if activation.kinks:
        raise NotImplementedError(f"{activation.label} has kinks, across which quadrature does not converge")
    exact = _probe(activation, FINEST)
    reached = (spacing for spacing in SPACINGS if abs(_probe(activation, spacing) - exact).max() < TOLERANCE)
    return next(reached, SPACINGS[-1])


def _probe(activation: Activation, spacing: float) -> np.ndarray:
    z, weight = lattice(1, spacing)
    x = np.sqrt(WIDEST) * z[0]
    g, slope = activation.both(x)
    return np.array([g * g, slope * slope, x * g * slope]) @ weight


@dataclass(frozen=True)
class LatticeAverages(Activation):
    """A smooth activation with its averages by quadrature at a spacing of points."""

    activation: Activation
    spacing: float

    @property
    def label(self) -> str:  # type: ignore[override]
        return self.activation.label

    def both(self, x: Array) -> tuple[Array, Array]:
        return self.activation.both(x)

    def I2(self, C: Array) -> Array:
        return self._average(C, lambda x: self._g(x[0]) * self._g(x[1]))

    def I3(self, C: Array) -> Array:
        return self._average(C, lambda x: self._slope(x[0]) * x[1] * self._g(x[2]))

    def I4(self, C: Array) -> Array:
        return self._average(C, lambda x: self._slope(x[0]) * self._slope(x[1]) * self._g(x[2]) * self._g(x[3]))

    def J2(self, C: Array) -> Array:
        return self._average(C, lambda x: self._slope(x[0]) * self._slope(x[1]))

    def given(self, mean: Array, variance: Array) -> Array:
        z, weight = lattice(1, self.spacing)
        return self._g(mean[..., None] + root(variance)[..., None] * z[0]) @ weight

    def _g(self, x: Array) -> Array:
        return self.both(x)[0]

    def _slope(self, x: Array) -> Array:
        return self.both(x)[1]

    def _average(self, C: Array, product: Callable[[list[Array]], Array]) -> Array:
        z, weight = lattice(len(C), self.spacing)
        fields = [sum(entry[..., None] * z[j] for j, entry in enumerate(row)) for row in lower(C)]
        return product(fields) @ weight


def lower(C: Array) -> list[list[Array]]:
    """The lower triangular root of covariances (n, n, ...), also of singular ones, as rows of arrays (...).

    >>> np.array(lower(np.ones((2, 2)))[1])
    array([1., 0.])
    """
    xp, rows = namespace(C), list[list[Array]]()
    for i in range(len(C)):
        row: list[Array] = []
        for j in range(i):
            row.append(ratio(C[i, j] - sum(row[k] * rows[j][k] for k in range(j)), rows[j][j]))
        rest = C[i, i] - sum(entry * entry for entry in row)
        row.append(root(xp.where(rest > ROUNDING * C[i, i], rest, 0.0)))
        rows.append(row)
    return rows
