r"""Decomposition of a loss into a part without kinks and intervals of slopes.

An interval [low, high] of slopes a at k adds the maximum of :math:`a(x-k)-\gamma a^2/2` over a to the loss: a kink if
the `give` :math:`\gamma` is 0, else a parabola that becomes linear where its slope reaches an end. Without give, two
infinite ends are the constraint x = k, and one infinite end is x >= k or x <= k.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from simulate.minimisers.problem import GAP_TOL
from statmech.convex.losses import Loss

CURVATURE_TEST_ARGUMENTS = np.linspace(-20.0, 20.0, 401)  # covers the arguments of typical losses


class LossParts(NamedTuple):
    """The slope and the curvature of the part without kinks, and K intervals of slopes."""

    slope: Callable[[np.ndarray], np.ndarray]
    curvature: Callable[[np.ndarray], np.ndarray]
    linear: bool  # whether `slope` is linear
    positions: np.ndarray  # positions (K, 1) of the intervals, in the shape of low, high and give
    low: np.ndarray
    high: np.ndarray
    softness: np.ndarray | float = 0.0

    @property
    def has_constraints(self) -> bool:
        """Whether the loss is infinite for some x."""
        return bool(np.all(self.softness == 0) and not np.isfinite([self.low, self.high]).all())

    def excess_over_tangents(self, x: np.ndarray, a: np.ndarray) -> float:
        """Return the excess of the intervals' loss at x (P,) over its tangents of slopes a (K, P)."""
        z = x - self.positions
        if self.has_constraints:
            is_allowed = (z >= -GAP_TOL) | np.isfinite(self.low)
            is_allowed &= (z <= GAP_TOL) | np.isfinite(self.high)
            return float(np.abs(a * z).sum()) if is_allowed.all() else np.inf
        unbounded = np.where(z > 0, self.high, self.low) if np.all(self.softness == 0) else z / self.softness
        best = np.clip(unbounded, self.low, self.high)
        return float(np.sum((best - a) * (z - self.softness * (best + a) / 2)))


def split_loss_at_kinks(loss: Loss) -> LossParts:
    """Split a loss into a part without kinks and intervals of slopes.

    A loss whose slope is linear between two ends becomes one interval. Other losses have one interval per kink.
    """
    return _make_single_slope_interval(loss) or _split_at_kinks(loss)


def make_constraints(low: float, high: float) -> LossParts:
    """Make the parts of a vanishing loss with the constraint low <= x <= high."""
    if low == high:
        ends = [(low, -np.inf, np.inf)]
    else:
        ends = [end for end in ((low, -np.inf, 0.0), (high, 0.0, np.inf)) if np.isfinite(end[0])]
    return LossParts(np.zeros_like, np.zeros_like, True, *np.array(ends).T[:, :, None])


def _split_at_kinks(loss: Loss) -> LossParts:
    """Split a loss into a part without kinks and one interval for each kink.

    The length of an interval is the jump of the slope. The first interval starts at the slope itself, so that small
    slopes keep their digits.
    """
    positions = np.array(loss.kinks, dtype=float)[:, None]
    before, after = loss.slope(np.nextafter(positions, -np.inf)), loss.slope(np.nextafter(positions, np.inf))
    positions, before, after = (array[before != after][:, None] for array in (positions, before, after))
    low = np.where(np.arange(len(positions))[:, None] == 0, before, 0.0)
    high = low + after - before

    def slope(x: np.ndarray) -> np.ndarray:
        shifted = np.where(np.any(x == positions, axis=0), np.nextafter(x, np.inf), x)  # any slope is valid at a kink
        return loss.slope(shifted) - np.sum(np.where(shifted > positions, high, low), axis=0)

    linear = not loss.bends and np.ptp(loss.curvature(CURVATURE_TEST_ARGUMENTS)) == 0
    return LossParts(slope, loss.curvature, bool(linear), positions, low, high)


def _make_single_slope_interval(loss: Loss) -> LossParts | None:
    """Return the single interval of a loss with constant curvature between two bends and 0 elsewhere.

    An end of the curved region may be infinite. None for other losses.
    """
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
    return LossParts(np.zeros_like, np.zeros_like, True, *np.array([centre, low, high, give]).reshape(4, 1, 1))
