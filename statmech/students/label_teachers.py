r"""Teachers whose label is a sign that changes at given fields, and their Hermite coefficients.

The label is -1 below the first edge, and changes its sign at each edge. With an output weight w = -1 all labels are
reversed. The Hermite coefficients :math:`c_k = \langle y(u)\,He_k(u)\rangle/\sqrt{k!}` of edges :math:`e_j` are

.. math:: c_k = \frac{2w}{\sqrt{k!}}\sum_j (-1)^j\phi(e_j)\,He_{k-1}(e_j), \qquad k \ge 1,

with the normal density :math:`\phi`. The first coefficient of the reversed wedge vanishes at the width
:math:`\sqrt{2\ln 2}` (Watkin & Rau 1992). It also vanishes for every even label.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from statmech.numerics.gaussian import Array, get_array_module, normal_cdf, normal_density
from statmech.parameters.parameter_fields import parameter

SIGNAL_FREE_WEDGE_WIDTH = math.sqrt(2 * math.log(2))  # the first Hermite coefficient vanishes
MEDIAN_DOOR_EDGE = 0.674489750196081743  # half of all fields are farther from 0


@dataclass(frozen=True)
class EdgeLabels:
    """A teacher that labels a field by a sign, which changes at each edge.

    >>> EdgeLabels((-1.0, 0.0, 1.0)).label(np.array([-2.0, -0.5, 0.5, 2.0]))
    array([-1.,  1., -1.,  1.])
    """

    edges: tuple[float, ...]  # in increasing order
    w: float = 1.0  # -1 reverses all labels

    def label(self, u: Array) -> Array:
        """Return the labels +1 or -1 of fields u, for NumPy or JAX arrays."""
        xp = get_array_module(u)
        label = -self.w * xp.ones_like(u)
        for edge in self.edges:
            label = xp.where(u >= edge, -label, label)
        return label

    def hermite_coefficients(self, count: int) -> np.ndarray:
        """Return the Hermite coefficients c_0 to c_(count-1) of the label.

        >>> [round(float(c), 10) for c in EdgeLabels((0.0,)).hermite_coefficients(4)]
        [0.0, 0.7978845608, 0.0, -0.3257350079]
        """
        edges = np.array(self.edges)
        jumps = 2 * self.w * (-1.0) ** np.arange(edges.size)
        coefficients = np.zeros(count)
        coefficients[0] = -self.w + jumps @ normal_cdf(-edges)
        for k in range(1, count):
            hermite = np.polynomial.hermite_e.hermeval(edges, [0.0] * (k - 1) + [1.0])
            coefficients[k] = jumps @ (normal_density(edges) * hermite) / math.sqrt(math.factorial(k))
        return coefficients

    def conditional_moments(self, h: np.ndarray, R: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        r"""Return the averages of y, y v and y v^2 at given fields h of a student.

        The field of the teacher is :math:`u = Rh + \sqrt{1-R^2}\,v` with a normal v that is independent of h.

        Parameters
        ----------
        h, R
            Fields of the student and cosines with the teacher, of shapes that broadcast.

        Returns
        -------
        label, linear, squared : arrays
            The averages of the label times 1, v and the square of v.
        """
        label: np.ndarray = -self.w * np.ones(np.broadcast(h, R).shape)
        linear, squared = np.zeros_like(label), label.copy()
        for index, edge in enumerate(self.edges):
            jump = 2 * self.w * (-1) ** index
            v = (edge - R * h) / np.sqrt(1 - R * R)
            chance, density = normal_cdf(-v), normal_density(v)
            label += jump * chance
            linear += jump * density
            squared += jump * (chance + v * density)
        return label, linear, squared


@dataclass(frozen=True)
class SignEdges:
    """The sign of the field."""

    label = "sign"

    @property
    def edges(self) -> tuple[float, ...]:
        """Fields where the label changes."""
        return (0.0,)


@dataclass(frozen=True)
class WedgeEdges:
    """The reversed wedge: the sign of the field, reversed at fields smaller than the width."""

    label = "wedge"
    wedge_width: float = parameter(
        SIGNAL_FREE_WEDGE_WIDTH, "width of the reversed wedge", symbol=r"$\gamma$", above=0.0
    )

    @property
    def edges(self) -> tuple[float, ...]:
        """Fields where the label changes."""
        return (-self.wedge_width, 0.0, self.wedge_width)


@dataclass(frozen=True)
class DoorEdges:
    """The even teacher whose label is +1 at fields smaller than their median size."""

    label = "door"

    @property
    def edges(self) -> tuple[float, ...]:
        """Fields where the label changes."""
        return (-MEDIAN_DOOR_EDGE, MEDIAN_DOOR_EDGE)


@dataclass(frozen=True)
class GivenEdges:
    """A label that changes at the fields of the config key `edges`."""

    label = "edges"


@dataclass(frozen=True)
class UnitOutputs:
    """A teacher unit like the student, whose output is learnt."""

    label = "unit"


FIXED_LENGTH_TEACHERS: dict[str, type] = {
    "sign": SignEdges,
    "wedge": WedgeEdges,
    "door": DoorEdges,
    "edges": GivenEdges,
    "unit": UnitOutputs,
}


def make_wedge(width: float = SIGNAL_FREE_WEDGE_WIDTH) -> EdgeLabels:
    """Return the labels of the reversed wedge."""
    return EdgeLabels(WedgeEdges(width).edges)


def make_door() -> EdgeLabels:
    """Return the labels of the door."""
    return EdgeLabels(DoorEdges().edges)
