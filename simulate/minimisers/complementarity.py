r"""Terms with kinks, :math:`\max_a a z` over an interval of slopes a, and their interior-point steps.

With z = s - r, s and r >= 0, a term of slopes from `low` to `high` costs high s - low r. At its minimum
s (high - a) = 0 and r (a - low) = 0. An interior point method sets both products to a small positive number, which
decreases from step to step. An infinite bound forbids one sign of z: two infinite bounds force z = 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class BoundedSlopes(NamedTuple):
    """Slopes a, slacks s and r, and the distances high - a and a - low, arrays of one shape.

    For an infinite bound the distance is 1 and the slack 0.
    """

    a: np.ndarray
    s: np.ndarray
    r: np.ndarray
    above: np.ndarray
    below: np.ndarray

    def apply_step(self, step: BoundedSlopes, t: float, slope_fraction: float) -> BoundedSlopes:
        """Return the box after a fraction of a step.

        Slacks move by the fraction t of their step, slopes and their distances by the fraction `slope_fraction`.
        """
        parts = (slope_fraction, t, t, slope_fraction, slope_fraction)
        return BoundedSlopes(*(value + part * change for value, part, change in zip(self, parts, step, strict=True)))

    @property
    def slack_product_sum(self) -> float:
        """The sum of s (high - a) + r (a - low)."""
        return float(np.sum(self.s * self.above) + np.sum(self.r * self.below))

    @property
    def num_slack_products(self) -> int:
        """The number of complementarity products that can be nonzero."""
        return int(np.count_nonzero(self.s) + np.count_nonzero(self.r))

    @property
    def argument_response_to_slope(self) -> np.ndarray:
        """The derivative of z with respect to a."""
        return self.s / self.above + self.r / self.below

    def get_product_targets(self, mu: float, predictor: BoundedSlopes | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the targets of both complementarity products (Mehrotra's corrector).

        A target is 0 where its product always vanishes.
        """
        if predictor is None:
            return mu * (self.s > 0), mu * (self.r > 0)
        return (mu + predictor.s * predictor.a) * (self.s > 0), (mu - predictor.r * predictor.a) * (self.r > 0)

    def offset(self, z: np.ndarray, product_targets: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Return the offset e in the step (dz + e) / softness of the slopes."""
        return z - product_targets[0] / self.above + product_targets[1] / self.below

    def step(self, da: np.ndarray, product_targets: tuple[np.ndarray, np.ndarray]) -> BoundedSlopes:
        """Return the step of the box for a step of the slopes."""
        ds = (product_targets[0] + self.s * da) / self.above - self.s
        dr = (product_targets[1] - self.r * da) / self.below - self.r
        return BoundedSlopes(da, ds, dr, np.where(self.s > 0, -da, 0.0), np.where(self.r > 0, da, 0.0))

    def get_max_step_fractions(self, step: BoundedSlopes) -> tuple[float, float]:
        """Return the largest fractions of a step that keep the slacks and the distances nonnegative."""
        return _get_max_step(self[1:3], step[1:3]), _get_max_step(self[3:], step[3:])

    def barrier_slope(self, step: BoundedSlopes, t: float, mu: float) -> float:
        """Return the derivative with respect to t of high s - low r - mu (log s + log r) along a step."""
        s, r = self.s + t * step.s, self.r + t * step.r
        of_s = (self.above + self.a) * step.s - mu * np.divide(step.s, s, out=np.zeros_like(s), where=self.s > 0)
        of_r = (self.below - self.a) * step.r - mu * np.divide(step.r, r, out=np.zeros_like(r), where=self.r > 0)
        return float(of_s.sum() + of_r.sum())


class InteriorPointState(NamedTuple):
    """Weights, arguments of the loss, and the boxes of the examples (K, P) and of the weights (N,)."""

    w: np.ndarray
    x: np.ndarray
    rows: BoundedSlopes
    weights: BoundedSlopes | None


def _get_max_step(values: tuple[np.ndarray, ...], step: tuple[np.ndarray, ...]) -> float:
    """Return the largest fraction of a step that keeps all values nonnegative."""
    pairs = zip(values, step, strict=True)
    max_ratio = max(float(np.max(-change[value > 0] / value[value > 0], initial=0.0)) for value, change in pairs)
    return np.inf if max_ratio == 0 else 1 / max_ratio


def make_bounded_slopes(
    z: np.ndarray, low: np.ndarray, high: np.ndarray, softness: np.ndarray | float
) -> BoundedSlopes:
    """Make an initial box, with slopes in the middle of their intervals or near the only finite bound.

    The slacks represent z - give a.
    """
    lows, highs = np.broadcast_to(low, z.shape), np.broadcast_to(high, z.shape)
    has_low, has_high = np.isfinite(lows), np.isfinite(highs)
    floor, ceiling = np.where(has_low, lows, 0.0), np.where(has_high, highs, 0.0)
    a = np.where(has_low & has_high, (floor + ceiling) / 2, floor + ceiling + 1.0 * has_low - 1.0 * has_high)
    rest = z - softness * a
    s = np.where(has_high, np.maximum(rest, 0.0) + 1, 0.0)
    r = np.where(has_low, np.maximum(-rest, 0.0) + 1, 0.0)
    return BoundedSlopes(a, s, r, np.where(has_high, ceiling - a, 1.0), np.where(has_low, a - floor, 1.0))
