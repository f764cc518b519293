r"""Controls: functions of time with few values, in which an optimum is searched.

On each segment :math:`[a, b]` between two edges a control is the polynomial through its p values at the Chebyshev
points

.. math:: t_j = a + (b-a)\sin^2\frac{\pi j}{2(p-1)}, \qquad j = 0, \dots, p-1,

or a constant for p = 1. Constants on many segments can jump, and approach a smooth optimum as slowly as a staircase;
one segment with many points converges geometrically to a smooth one. Edges belong where the problem itself jumps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Control:
    """The edges of segments, increasing, and the number of values on each.

    >>> Control((0.0, 10.0, 20.0)).times
    array([ 5., 15.])
    >>> float(Control((0.0, 4.0), points=3).at(np.array([0.0, 1.0, 2.0]), 3.0))
    1.5
    """

    edges: tuple[float, ...]
    points: int = 1

    @property
    def segments(self) -> int:
        """The number of segments."""
        return len(self.edges) - 1

    @property
    def size(self) -> int:
        """The number of values."""
        return self.segments * self.points

    @property
    def times(self) -> np.ndarray:
        """The times of the values (size,): the middle of a segment for a constant."""
        start, width = np.asarray(self.edges[:-1]), np.diff(self.edges)
        return (start[:, None] + width[:, None] * self._nodes).reshape(-1)

    @property
    def _nodes(self) -> np.ndarray:
        """The times of the values of a segment [0, 1]."""
        if self.points == 1:
            return np.array([0.5])
        return np.sin(np.pi * np.arange(self.points) / (2 * (self.points - 1))) ** 2

    def basis(self, x: np.ndarray) -> np.ndarray:
        """The weights (..., points) of a segment's values at times x (...) of the segment [0, 1].

        The barycentric formula, whose weights at Chebyshev points alternate, with halves at both ends.
        """
        sign = (-1.0) ** np.arange(self.points)
        if self.points > 1:
            sign[[0, -1]] /= 2
        distance = np.asarray(x, float)[..., None] - self._nodes
        hit = distance == 0
        weight = np.where(hit.any(-1, keepdims=True), hit, sign / np.where(hit, 1.0, distance))
        return weight / weight.sum(-1, keepdims=True)

    def at(self, values: np.ndarray, t: np.ndarray | float) -> np.ndarray:
        """The control at times t (...) from its values (size,); at an edge the value of the segment that begins there.

        Parameters
        ----------
        values : array (size,)
            The values, segment by segment.
        t : array or float
            Times between the first and the last edge.

        Returns
        -------
        array
            Of the shape of t.
        """
        edges, t = np.asarray(self.edges), np.asarray(t, float)
        which = np.clip(np.searchsorted(edges, t, side="right") - 1, 0, self.segments - 1)
        x = (t - edges[which]) / np.diff(edges)[which]
        return np.sum(self.basis(x) * np.asarray(values).reshape(self.segments, self.points)[which], axis=-1)
