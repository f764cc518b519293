r"""Thresholds in alpha at a vanishing penalty: interpolation, and the existence of a minimum.

As lambda tends to 0 below a threshold of alpha, all examples can reach the minimum of the loss. Then V grows as
1/lambda, p is the point of the minimising set closest to h, and the learner has the smallest penalty among all weights
that reach the minimum. The equations equal the equations of a loss that is infinite outside the set
(`ZeroLossInterval`), at lambda = 1, with lambda V instead of V. With the square loss this learner is the
pseudo-inverse, with the hinge loss the perceptron of maximum stability, and with an l1 norm basis pursuit. Above the
threshold the equations hold at lambda = 0. A loss that decreases everywhere (logistic, exponential) has no minimum
below the threshold: the length of the weights diverges.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from statmech.convex.losses import Loss, convert_to_stability_loss
from statmech.convex.separability import compute_separability_threshold
from statmech.convex.teachers import LabelTeacher, Teacher

MAX_SEARCHED_MINIMISER = 300.0  # the search for minimisers spans [-300, 300]
MINIMISER_TOL = 1e-9  # absolute


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
    """Find the interval where a loss is minimal, or return None if the loss decreases everywhere.

    >>> from statmech.convex.losses import Hinge, Logistic
    >>> find_minimiser_interval(Hinge()).low, find_minimiser_interval(Hinge()).high, find_minimiser_interval(Logistic())
    (1.0, inf, None)
    """
    low, high = (
        _find_first_x_by_slope(loss, lambda slope: slope >= 0),
        _find_first_x_by_slope(loss, lambda slope: slope > 0),
    )
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


def compute_interpolation_threshold(loss: Loss, teacher: Teacher, signal: float = 1.0, rank: float = 1.0) -> float:
    """Compute the largest alpha where every example can still reach the minimum of the loss.

    Parameters
    ----------
    loss, teacher
        The loss, as a function of stabilities or residuals, and the teacher.
    signal, rank
        The fraction of the variance of the teacher's field that the inputs contain, and the fraction of the
        directions with a nonzero input variance.
    """
    best = find_minimiser_interval(loss)
    if best is not None and best.low == best.high:
        return rank
    if isinstance(teacher, LabelTeacher) and (best is None or np.isinf(best.high)):
        return compute_separability_threshold(teacher, signal, rank)
    return np.nan


def compute_minimum_existence_threshold(loss: Loss, teacher: Teacher, signal: float = 1.0, rank: float = 1.0) -> float:
    """Compute the smallest alpha with a minimum of the loss in the limit of a vanishing penalty.

    The result is 0 if a minimum exists at every alpha.

    Parameters
    ----------
    loss, teacher
        The loss and the teacher of a config.
    signal, rank
        As in `compute_interpolation_threshold`.

    Examples
    --------
    >>> from statmech.convex.losses import Hinge, Logistic
    >>> from statmech.convex.teachers import SignTeacher
    >>> (
    ...     compute_minimum_existence_threshold(Hinge(), SignTeacher(flip=0.1)),
    ...     round(compute_minimum_existence_threshold(Logistic(), SignTeacher(flip=0.1)), 6)
    ... )
    (0.0, 2.992286)
    """
    loss = convert_to_stability_loss(loss) if teacher.labels else loss
    return (
        compute_interpolation_threshold(loss, teacher, signal, rank) if find_minimiser_interval(loss) is None else 0.0
    )
