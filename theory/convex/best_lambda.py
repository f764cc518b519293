r"""The penalty of the smallest generalization error, in the limit N -> infinity.

Minimised is the angle to the teacher of labels, or the error of the field of a linear teacher. Either is the first
unknown x_0 of the equations, whose derivative by :math:`\ln\lambda` Newton's method gives: the best lambda is its root.
Solutions are followed from a large lambda to a small one, and a change of sign is enclosed by secants.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from statmech.convex.losses import Loss
from statmech.convex.penalties import Penalty
from statmech.convex.teachers import Teacher
from statmech.convex.weights import Weights
from theory.convex.empirical_risk import equations_of
from theory.convex.recovery import recovers
from theory.convex.saddle_point import Equations, Point, Solved, follow, healthy, solve

LARGEST, LEAST = 1e6, 1e-10  # lambdas between which the best is sought
STRONGEST = 16.0  # l1 norms in units of that which leaves a good part of the weights
STRIDE, STRIDE_L1 = np.log(6.0), np.log(2.0)  # of a scan: a minimum of the hinge is 10 wide
FLAT, FLAT_L1 = 1e-11, 1e-9  # slopes below it count as 0: of the hinge at small and large lambda
LEVEL = 1e-9  # error of a flat end
STEEP = 1e-4  # least slope of one end, relative to the other's, for a secant
CLOSE = 1e-10  # in ln lambda


def best_lambda(loss: Loss, teacher: Teacher, penalty: Penalty, weights: Weights, alpha: np.ndarray) -> np.ndarray:
    """Find the best lambda at each alpha (lanes,).

    0 where the error falls to the end of a vanishing penalty, infinite where it falls up to lambda = 1e6 and
    beyond; NaN where the equations were not solved.

    Parameters
    ----------
    loss, teacher, penalty, weights
        The learner, and the distribution of the teacher's weights.
    alpha
        Examples per weight (lanes,).

    Examples
    --------
    >>> from statmech.convex.losses import Square
    >>> from statmech.convex.teachers import LinearTeacher
    >>> from statmech.convex.weights import Gauss
    >>> best_lambda(Square(), LinearTeacher(noise=0.5), Penalty(), Gauss(), np.array([0.5, 2.0])).round(9)
    array([0.25, 0.25])
    """
    equations = equations_of(loss, teacher, penalty, weights)
    scan = _scan(equations, alpha, penalty.share)
    slopes = np.array([solved.tangent[0] for _, solved in scan])
    values = np.array([solved.x[0] for _, solved in scan])
    signs = _signs(slopes, values, FLAT_L1 if penalty.share else FLAT)
    lam, least = _edges(signs, values)
    exact = recovers(loss, teacher, penalty, weights, alpha, 0 * alpha)
    lam[exact] = 0.0
    turns = (signs[1:] < 0) & (signs[:-1] > 0)
    which = np.argmin(np.where(turns, np.minimum(values[1:], values[:-1]), np.inf), axis=0)
    lanes = np.flatnonzero(np.any(turns, axis=0) & ~exact)
    if len(lanes):
        high, low = (_picked(scan, which[lanes] + step, lanes) for step in (0, 1))
        root, value = _root(equations, alpha[lanes], penalty.share, low, high)
        lam[lanes] = np.where(value <= least[lanes] + LEVEL**1.5, np.exp(root), lam[lanes])
    return lam


def taken(best: float) -> float:
    """The lambda that simulation and theory take for the best one: the largest that was sought if it is infinite."""
    return min(best, LARGEST)


def _signs(slopes: np.ndarray, values: np.ndarray, flat: float) -> np.ndarray:
    """Return the signs of the slopes (places, lanes), from the largest lambda down.

    Where the error is flat, the sign is that of its change since the place before and, if there is none, the sign
    there; that of the first is down.
    """
    signs = np.sign(np.where(np.abs(slopes) > flat, slopes, 0.0))
    signs[0] = np.where(signs[0] == 0, -1.0, signs[0])
    for (before, here), (above, value) in zip(pairwise(signs), pairwise(values), strict=True):
        change = np.where(np.abs(above - value) > LEVEL, np.sign(above - value), 0.0)
        at = here == 0
        here[at] = np.where(change[at] == 0, before[at], change[at])
    return signs


def _edges(signs: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The better edge, 0 or infinity, of those to which the error falls or where it is flat, and the error there."""
    top = np.where(signs[0] < 0, values[0], np.inf)
    level = np.isclose(values[-1], values[-2], rtol=0, atol=LEVEL)
    bottom = np.where((signs[-1] > 0) | level, values[-1], np.inf)
    least = np.minimum(top, bottom)
    return np.where(np.isinf(least), np.nan, np.where(bottom < top - LEVEL, 0.0, np.inf)), least


Place = tuple[np.ndarray, Solved]  # ln lambda of each lane, and the solution there


def _scan(equations: Equations, alpha: np.ndarray, share: float) -> list[Place]:
    """Solutions from the largest lambda to the least."""
    at = np.full(len(alpha), np.log(LARGEST))
    stride = STRIDE_L1 if share else STRIDE
    if share:
        at = np.minimum(at, healthy(equations, alpha) + np.log(STRONGEST / share))
    shares = np.full(len(alpha), share)
    scan = [(at, solve(equations, alpha, np.exp(at), share))]
    while np.any(at > np.log(LEAST)):
        lower = np.maximum(at - stride, np.log(LEAST))
        scan.append((lower, follow(equations, alpha, scan[-1][1], Point(at, shares), Point(lower, shares))))
        at = lower
    return scan


def _picked(scan: list[Place], which: np.ndarray, lanes: np.ndarray) -> Place:
    """The solutions of lanes at the places `which` of the scan."""
    where = np.stack([at for at, _ in scan])[which, lanes]
    parts = (np.stack([solved[k] for _, solved in scan]) for k in range(3))
    return where, Solved(*(np.moveaxis(part, 0, -1)[..., lanes, which] for part in parts))


def _between(a: np.ndarray, b: np.ndarray, f: np.ndarray, g: np.ndarray) -> np.ndarray:
    """The place where a secant between slopes f at a and g at b is 0; the middle, if one end is flat."""
    size = np.maximum(np.abs(f), np.abs(g))
    secant = (np.minimum(np.abs(f), np.abs(g)) > STEEP * size) & (f * g < 0)
    return np.where(secant, a - f * (b - a) / np.where(secant, g - f, 1.0), (a + b) / 2)


def _root(
    equations: Equations, alpha: np.ndarray, share: float, low: Place, high: Place
) -> tuple[np.ndarray, np.ndarray]:
    """ln lambda where the slope is 0, between a place where it is negative and one where it is not; and x_0 there."""
    a, b = low[0].copy(), high[0].copy()
    f, g = low[1].tangent[0].copy(), high[1].tangent[0].copy()
    now, state, root, value = a.copy(), low[1], a.copy(), 0 * a
    lanes = np.arange(len(a))
    side = np.zeros(len(a))
    for _ in range(60):
        t = _between(a[lanes], b[lanes], f[lanes], g[lanes])
        begin, end = (Point(of, np.full(len(lanes), share)) for of in (now[lanes], t))
        state = follow(equations, alpha[lanes], state, begin, end)
        slope = state.tangent[0]
        close = (np.abs(t - root[lanes]) < CLOSE) | ~np.isfinite(slope) | (slope == 0)
        root[lanes], now[lanes], value[lanes] = t, t, state.x[0]
        below = slope < 0
        one, two = lanes[below], lanes[~below]
        g[one] *= np.where(side[one] == -1, 0.5, 1.0)  # Illinois: the end that stays counts half
        f[two] *= np.where(side[two] == 1, 0.5, 1.0)
        a[one], f[one], side[one] = t[below], slope[below], -1
        b[two], g[two], side[two] = t[~below], slope[~below], 1
        root[lanes[~np.isfinite(slope)]] = np.nan
        lanes, state = lanes[~close], state.take(~close)
        if not len(lanes):
            break
    return root, value
