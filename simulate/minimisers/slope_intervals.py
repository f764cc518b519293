r"""A loss in parts: one without kinks, and intervals of slopes.

An interval [low, high] of slopes a at k adds the largest :math:`a(x-k)-\gamma a^2/2` to the loss: a kink if the `give`
:math:`\gamma` is 0, else a parabola that becomes linear where its slope reaches an end. Two infinite ends without give
are the constraint x = k, one is x >= k or x <= k.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from simulate.minimisers.problem import REACHED
from statmech.convex.losses import Loss

WIDELY = np.linspace(-20.0, 20.0, 401)  # where a loss is tried


class Parts(NamedTuple):
    """The slope and the curvature of the part without kinks, and K intervals of slopes."""

    slope: Callable[[np.ndarray], np.ndarray]
    curvature: Callable[[np.ndarray], np.ndarray]
    linear: bool  # the slope
    at: np.ndarray  # (K, 1), as are low, high and give
    low: np.ndarray
    high: np.ndarray
    give: np.ndarray | float = 0.0

    @property
    def constrains(self) -> bool:
        """True if some x have no finite loss."""
        return bool(np.all(self.give == 0) and not np.isfinite([self.low, self.high]).all())

    def excess(self, x: np.ndarray, a: np.ndarray) -> float:
        """By how much the intervals' part of the loss of x (P,) exceeds its tangents of slopes a (K, P), in all."""
        z = x - self.at
        if self.constrains:
            is_allowed = (z >= -REACHED) | np.isfinite(self.low)
            is_allowed &= (z <= REACHED) | np.isfinite(self.high)
            return float(np.abs(a * z).sum()) if is_allowed.all() else np.inf
        unbounded = np.where(z > 0, self.high, self.low) if np.all(self.give == 0) else z / self.give
        best = np.clip(unbounded, self.low, self.high)
        return float(np.sum((best - a) * (z - self.give * (best + a) / 2)))


def parts_of(loss: Loss) -> Parts:
    """A loss as its parts: if its slope is a line between two ends, as an interval, else with one for each kink."""
    return _clipped(loss) or _kinked(loss)


def constraints(low: float, high: float) -> Parts:
    """No loss, but low <= x <= high."""
    if low == high:
        ends = [(low, -np.inf, np.inf)]
    else:
        ends = [end for end in ((low, -np.inf, 0.0), (high, 0.0, np.inf)) if np.isfinite(end[0])]
    return Parts(np.zeros_like, np.zeros_like, True, *np.array(ends).T[:, :, None])


def _kinked(loss: Loss) -> Parts:
    """The sum of a part without kinks and of one interval, as long as the jump of the slope, for each kink.

    The first interval begins at the slope itself, so that small slopes keep their digits.
    """
    positions = np.array(loss.kinks, dtype=float)[:, None]
    before, after = loss.slope(np.nextafter(positions, -np.inf)), loss.slope(np.nextafter(positions, np.inf))
    positions, before, after = (array[before != after][:, None] for array in (positions, before, after))
    low = np.where(np.arange(len(positions))[:, None] == 0, before, 0.0)
    high = low + after - before

    def slope(x: np.ndarray) -> np.ndarray:
        shifted = np.where(np.any(x == positions, axis=0), np.nextafter(x, np.inf), x)  # the slope at a kink is any
        return loss.slope(shifted) - np.sum(np.where(shifted > positions, high, low), axis=0)

    linear = not loss.bends and np.ptp(loss.curvature(WIDELY)) == 0
    return Parts(slope, loss.curvature, bool(linear), positions, low, high)


def _clipped(loss: Loss) -> Parts | None:
    """The one interval of a loss whose curvature is constant between two bends or infinity, and 0 elsewhere."""
    if loss.kinks:
        return None
    edges = np.array([min(loss.bends, default=0.0) - 20, *loss.bends, max(loss.bends, default=0.0) + 20])
    inner = edges[:-1, None] + np.diff(edges)[:, None] * np.linspace(0.01, 0.99, 50)
    curvature = loss.curvature(inner)
    curved = np.flatnonzero(curvature.max(axis=1) > 0)
    if len(curved) != 1 or np.ptp(curvature[curved[0]]) > 1e-12 * curvature[curved[0], 0]:
        return None
    give = 1 / curvature[curved[0], 0]
    x = inner[curved[0], 25]
    centre = x - give * loss.slope(x)
    left, right = curved[0], curved[0] + 1
    low = (edges[left] - centre) / give if left > 0 else -np.inf
    high = (edges[right] - centre) / give if right < len(edges) - 1 else np.inf
    return Parts(np.zeros_like, np.zeros_like, True, *np.array([centre, low, high, give]).reshape(4, 1, 1))
