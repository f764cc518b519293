r"""The penalty of the smallest generalization error, in the limit N -> infinity.

Minimised is the angle to the teacher of labels, or the error of the field of a linear teacher. Either is the first
unknown x_0 of the equations, whose derivative by :math:`\ln\lambda` Newton's method gives: the best lambda is its root.
Solutions are followed from a large lambda to a small one, and a change of sign is enclosed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from threading import Lock

import numpy as np

from statmech.convex.losses import Loss, Square
from statmech.convex.penalties import Penalty
from statmech.convex.teachers import Teacher
from statmech.convex.weights import Weights
from statmech.population import Population
from theory.convex.empirical_risk import equations_of
from theory.convex.recovery import recovers
from theory.convex.saddle_point import Equations, Followed, Point, Solved, follow, healthy, solve

LARGEST, LEAST = 1e6, 1e-10  # lambdas between which the best is sought
STRONGEST = 16.0  # l1 norms in units of that which leaves a good part of the weights
STRIDE, STRIDE_L1 = np.log(6.0), np.log(2.0)  # of a scan: a minimum of the hinge is 10 wide
FLAT, FLAT_L1 = 1e-11, 1e-9  # slopes below it count as 0: of the hinge at small and large lambda
LEVEL = 1e-9  # error of a flat end
CLOSE = 1e-6  # last step in ln lambda: the error that it leaves is below 1e-10
ROUGH = 1e-6  # residual of a scan, before the last step of Newton's method, which squares it


def best_lambda(
    loss: Loss,
    teacher: Teacher,
    penalty: Penalty,
    weights: Weights,
    alpha: np.ndarray,
    inputs: Population | None = None,
) -> np.ndarray:
    """Find the best lambda at each alpha (lanes,).

    0 where the error falls to the end of a vanishing penalty, infinite where it falls up to lambda = 1e6 and
    beyond; NaN where the equations were not solved. That of the square loss with an l2 norm is known.

    Parameters
    ----------
    loss, teacher, penalty, weights
        The learner, and the distribution of the teacher's weights.
    alpha
        Examples per weight (lanes,).
    inputs
        Inputs of unequal variance; None: isotropic ones.

    Examples
    --------
    >>> from statmech.convex.losses import Square
    >>> from statmech.convex.teachers import LinearTeacher
    >>> from statmech.convex.weights import Gauss
    >>> best_lambda(Square(), LinearTeacher(noise=0.5), Penalty(), Gauss(), np.array([0.5, 2.0])).round(9)
    array([0.25, 0.25])
    """
    if type(loss) is Square and not penalty.share:
        equations = equations_of(loss, teacher, penalty, weights, inputs)
        if equations.side.stiffness is not None:
            return np.full(len(alpha), _best_ridge(equations, equations.side.stiffness))
    return searched(loss, teacher, penalty, weights, alpha, inputs)


def _best_ridge(equations: Equations, stiffness: float) -> float:
    """The ratio of noise to signal in the outputs, which is the best lambda of the square loss at every alpha."""
    signal = equations.signal**2 * equations.side.signal
    lam = stiffness * (equations.noise**2 + (1 - signal)) / signal if signal > 0 else np.inf
    return np.inf if lam > LARGEST else 0.0 if lam < LEAST else lam


def searched(
    loss: Loss,
    teacher: Teacher,
    penalty: Penalty,
    weights: Weights,
    alpha: np.ndarray,
    inputs: Population | None = None,
) -> np.ndarray:
    """Search for what `best_lambda` states, whatever the loss.

    Parameters
    ----------
    loss, teacher, penalty, weights, alpha, inputs
        Those of `best_lambda`.
    """
    equations = equations_of(loss, teacher, penalty, weights, inputs)
    exact = recovers(loss, teacher, penalty, weights, alpha, 0 * alpha, inputs)
    return sought(equations, alpha, penalty.share, exact)


def sought(equations: Followed, alpha: np.ndarray, share: float, exact: np.ndarray) -> np.ndarray:
    """Search for the lambda at which the first unknown of equations is smallest.

    Parameters
    ----------
    equations, alpha
        The equations, and examples per weight (lanes,).
    share
        The fraction of the l1 norm.
    exact
        True where the best is known to be 0 (lanes,).
    """
    scan = _scan(equations, alpha, share)
    slopes = np.array([solved.tangent[0] for _, solved in scan])
    values = np.array([solved.x[0] for _, solved in scan])
    flat = FLAT_L1 if share else FLAT
    signs = _signs(slopes, values, flat)
    lam, least = _edges(signs, values)
    lam[exact] = 0.0
    plateau_ends = (np.abs(slopes[:-1]) <= flat) & (np.abs(np.diff(values, axis=0)) > LEVEL)  # next to it, or beyond
    turns = (signs[1:] < 0) & ((signs[:-1] > 0) | plateau_ends)
    left = turns & ~exact
    while len(
        lanes := np.flatnonzero(left.any(axis=0))
    ):  # the next minimum of each lane: the first may not be the least
        which = np.argmax(left[:, lanes], axis=0)
        left[which, lanes] = False
        high, low = (picked(scan, which + step, lanes) for step in (0, 1))
        root, value = _root(equations, alpha[lanes], share, low, high, flat)
        better = value < least[lanes] - LEVEL**1.5
        lam[lanes], least[lanes] = np.where(better, [np.exp(root), value], [lam[lanes], least[lanes]])
    return lam


def best_lambdas(
    loss: Loss,
    teacher: Teacher,
    penalty: Penalty,
    weights: Weights,
    alphas: Iterable[float],
    inputs: Population | None = None,
) -> Mapping[float, float]:
    """The best lambda at each alpha; those that this process has not solved before are solved side by side.

    Parameters
    ----------
    loss, teacher, penalty, weights
        The learner, and the distribution of the teacher's weights.
    alphas
        Examples per weight.
    inputs
        Inputs of unequal variance; None: isotropic ones.
    """
    with _SOLVING:
        solved = _SOLVED.setdefault((loss, teacher, penalty, weights, inputs), {})
        new = [alpha for alpha in dict.fromkeys(alphas) if alpha not in solved]
        if new:
            found = best_lambda(loss, teacher, penalty, weights, np.array(new, float), inputs)
            solved.update(zip(new, found.tolist(), strict=True))
    return solved


_SOLVED: dict[tuple[Loss, Teacher, Penalty, Weights, Population | None], dict[float, float]] = {}
_SOLVING = Lock()  # runs are simulated in threads


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


def _scan(equations: Followed, alpha: np.ndarray, share: float) -> list[Place]:
    """Solutions from the largest lambda to the least."""
    at = np.full(len(alpha), np.log(LARGEST))
    stride = STRIDE_L1 if share else STRIDE
    if share:
        at = np.minimum(at, healthy(equations, alpha) + np.log(STRONGEST / share))
    shares = np.full(len(alpha), share)
    scan = [(at, solve(equations, alpha, np.exp(at), share))]
    while np.any(at > np.log(LEAST)):
        lower = np.maximum(at - stride, np.log(LEAST))
        scan.append((lower, follow(equations, alpha, scan[-1][1], Point(at, shares), Point(lower, shares), ROUGH)))
        at = lower
    return scan


def picked(scan: list[Place], which: np.ndarray, lanes: np.ndarray) -> Place:
    """The solutions of lanes at the places `which` of the scan."""
    where = np.stack([at for at, _ in scan])[which, lanes]
    parts = (np.stack([solved[k] for _, solved in scan]) for k in range(3))
    return where, Solved(*(np.moveaxis(part, 0, -1)[..., lanes, which] for part in parts))


def _root(
    equations: Followed, alpha: np.ndarray, share: float, low: Place, high: Place, flat: float
) -> tuple[np.ndarray, np.ndarray]:
    """Find ln lambda where the slope is 0, and x_0 there, by Chandrupatla's method.

    Parameters
    ----------
    equations, alpha, share
        The equations, examples per weight (lanes,), and the fraction of the l1 norm.
    low, high
        Places of a smaller lambda, where the slope is negative, and of a larger one, where it is not.
    flat
        Slopes below it count as 0.
    """
    lanes, root, value = np.arange(len(alpha)), low[0].copy(), 0 * alpha
    at = np.array([low[0], high[0], high[0]])  # the latest place, the one on the other side, and the one before
    slopes = np.array([low[1].tangent[0], high[1].tangent[0]])
    plateaus = np.where(np.abs(slopes) <= flat, np.array([low[1].x[0], high[1].x[0]]), np.nan)
    slopes = np.array([np.minimum(slopes[0], -flat), *2 * [np.maximum(slopes[1], flat)]])
    state = low[1]._replace(residual=0 * alpha)
    for _ in range(60):
        new, shares = at[0] + _fraction(at, slopes) * (at[1] - at[0]), np.full(len(lanes), share)
        state = follow(equations, alpha[lanes], state, Point(at[0], shares), Point(new, shares))
        slope = _sided(state.tangent[0], np.abs(state.x[0] - plateaus[:, lanes]) < LEVEL, flat)
        root[lanes], value[lanes] = np.where(np.isfinite(slope), new, np.nan), state.x[0]
        going = (np.abs(new - at[0]) > CLOSE) & np.isfinite(slope) & (slope != 0)
        beyond = slope * slopes[0] < 0
        at, slopes = _among(new, at, beyond)[:, going], _among(slope, slopes, beyond)[:, going]
        lanes, state = lanes[going], state.take(going)
        if not len(lanes):
            break
    return root, value


def _sided(slope: np.ndarray, same: np.ndarray, flat: float) -> np.ndarray:
    """The slopes; where they count as 0, the same as those of the lower or upper end (2, lanes), with its sign."""
    low, high = same & (np.abs(slope) <= flat)
    return np.where(low, -flat, np.where(high, flat, slope))


def _among(new: np.ndarray, before: np.ndarray, beyond: np.ndarray) -> np.ndarray:
    """The three places with a new one, which may lie beyond the root as seen from the latest."""
    latest, other, _ = before
    return np.array([new, np.where(beyond, latest, other), np.where(beyond, other, latest)])


def _fraction(at: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """The part of the way to the other side: by inverse quadratic interpolation where that is safe, else half."""
    (a, b, c), (f, g, h) = at, slopes
    with np.errstate(all="ignore"):
        part, rise = (a - b) / (c - b), (f - g) / (h - g)
        quadratic = f / (g - f) * h / (g - h) + (c - a) / (b - a) * f / (h - f) * g / (h - g)
    return np.where((rise**2 < part) & ((1 - rise) ** 2 < 1 - part), quadratic, 0.5)
