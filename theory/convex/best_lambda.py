r"""The penalty of the smallest generalization error, in the limit N -> infinity.

The search minimises the angle to a teacher of labels, or the error of the field of a linear teacher. In both cases this
is the first unknown x_0 of the equations. Newton's method also gives the slope of x_0 in :math:`\ln\lambda`, and the
best lambda is a root of this slope. Solutions are followed from a large lambda to a small one, and every change of sign
of the slope is bracketed.
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

LARGEST, LEAST = 1e6, 1e-10  # bounds of the search for the best lambda
STRONGEST = 16.0  # in units of an l1 norm that leaves a good part of the weights
STRIDE, STRIDE_L1 = np.log(6.0), np.log(2.0)  # the minimum of the hinge loss spans a factor of 10 in lambda
FLAT, FLAT_L1 = 1e-11, 1e-9  # smaller slopes count as 0, as for the hinge loss at small and large lambda
LEVEL = 1e-9  # errors closer than this are equal
CLOSE = 1e-6  # step in ln lambda that ends the search; the remaining error is below 1e-10
ROUGH = 1e-6  # the last step of Newton's method squares this residual


def best_lambda(
    loss: Loss,
    teacher: Teacher,
    penalty: Penalty,
    weights: Weights,
    alpha: np.ndarray,
    inputs: Population | None = None,
) -> np.ndarray:
    """Find the best lambda at each alpha (batch,).

    It is 0 where the error falls until the penalty vanishes, infinite where the error still falls at lambda = 1e6, and
    NaN where the equations were not solved. For the square loss with an l2 norm a closed form is used.

    Parameters
    ----------
    loss, teacher, penalty, weights
        The learner, and the distribution of the teacher's weights.
    alpha
        Examples per weight (batch,).
    inputs
        Inputs of unequal variance, or None for isotropic inputs.

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
    """Return the noise-to-signal ratio of the outputs, the best lambda of the square loss at every alpha."""
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
    """Search numerically for the best lambda at each alpha (batch,), for any loss.

    Parameters
    ----------
    loss, teacher, penalty, weights, alpha, inputs
        As in `best_lambda`.
    """
    equations = equations_of(loss, teacher, penalty, weights, inputs)
    exact = recovers(loss, teacher, penalty, weights, alpha, 0 * alpha, inputs)
    return sought(equations, alpha, penalty.share, exact)


def sought(equations: Followed, alpha: np.ndarray, share: float, exact: np.ndarray) -> np.ndarray:
    """Search for the lambda that minimises the first unknown of the equations.

    Parameters
    ----------
    equations, alpha
        The equations, and examples per weight (batch,).
    share
        The fraction of the l1 norm.
    exact
        True where the best lambda is known to be 0 (batch,).
    """
    scan = _scan(equations, alpha, share)
    slopes = np.array([solved.tangent[0] for _, solved in scan])
    values = np.array([solved.x[0] for _, solved in scan])
    flat = FLAT_L1 if share else FLAT
    signs = _signs(slopes, values, flat)
    lam, least = _edges(signs, values)
    lam[exact] = 0.0
    plateau_ends = (np.abs(slopes[:-1]) <= flat) & (np.abs(np.diff(values, axis=0)) > LEVEL)
    turns = (signs[1:] < 0) & ((signs[:-1] > 0) | plateau_ends)
    left = turns & ~exact
    while len(
        lanes := np.flatnonzero(left.any(axis=0))
    ):  # the next minimum of each batch element: the first need not be the global one
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
    """Return the best lambda at each alpha, from a cache of this process.

    All alphas that are not in the cache are solved in one batch.

    Parameters
    ----------
    loss, teacher, penalty, weights
        The learner, and the distribution of the teacher's weights.
    alphas
        Examples per weight.
    inputs
        Inputs of unequal variance, or None for isotropic inputs.
    """
    with _SOLVING:
        solved = _SOLVED.setdefault((loss, teacher, penalty, weights, inputs), {})
        new = [alpha for alpha in dict.fromkeys(alphas) if alpha not in solved]
        if new:
            found = best_lambda(loss, teacher, penalty, weights, np.array(new, float), inputs)
            solved.update(zip(new, found.tolist(), strict=True))
    return solved


_SOLVED: dict[tuple[Loss, Teacher, Penalty, Weights, Population | None], dict[float, float]] = {}
_SOLVING = Lock()  # simulations run in threads


def taken(best: float) -> float:
    """Return a finite lambda for simulation and theory: the bound of the search if the best lambda is infinite."""
    return min(best, LARGEST)


def _signs(slopes: np.ndarray, values: np.ndarray, flat: float) -> np.ndarray:
    """Return the signs of the slopes (points, batch), from the largest lambda down.

    Where the slope is 0, the sign is taken from the change of the error since the previous point. If the error has not
    changed, the previous sign is kept. At the first point, a slope of 0 gets the sign -1.
    """
    signs = np.sign(np.where(np.abs(slopes) > flat, slopes, 0.0))
    signs[0] = np.where(signs[0] == 0, -1.0, signs[0])
    for (before, here), (above, value) in zip(pairwise(signs), pairwise(values), strict=True):
        change = np.where(np.abs(above - value) > LEVEL, np.sign(above - value), 0.0)
        at = here == 0
        here[at] = np.where(change[at] == 0, before[at], change[at])
    return signs


def _edges(signs: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the better end of the scan, lambda = 0 or infinity, and the error there.

    An end counts if the error falls towards it, or is flat at lambda = 0. Returns NaN and infinity if none counts.
    """
    top = np.where(signs[0] < 0, values[0], np.inf)
    level = np.isclose(values[-1], values[-2], rtol=0, atol=LEVEL)
    bottom = np.where((signs[-1] > 0) | level, values[-1], np.inf)
    least = np.minimum(top, bottom)
    return np.where(np.isinf(least), np.nan, np.where(bottom < top - LEVEL, 0.0, np.inf)), least


Place = tuple[np.ndarray, Solved]  # ln lambda of each batch element, and the solution there


def _scan(equations: Followed, alpha: np.ndarray, share: float) -> list[Place]:
    """Solve the equations on a grid from the largest lambda to the smallest."""
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
    """Select the solution of each batch element in `lanes` at its own index `which` of the scan."""
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
        The equations, examples per weight (batch,), and the fraction of the l1 norm.
    low, high
        Scan points at the ends of the bracket. The slope is negative at `low`, and not negative at `high`.
    flat
        Smaller slopes count as 0.
    """
    lanes, root, value = np.arange(len(alpha)), low[0].copy(), 0 * alpha
    at = np.array([low[0], high[0], high[0]])  # latest point, point on the other side of the root, previous point
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
    """Give a slope that counts as 0 the sign of the end of the bracket with the same error.

    `same` (2, batch) is True where the error equals the error at the lower and at the upper end.
    """
    low, high = same & (np.abs(slope) <= flat)
    return np.where(low, -flat, np.where(high, flat, slope))


def _among(new: np.ndarray, before: np.ndarray, beyond: np.ndarray) -> np.ndarray:
    """Replace one of the three points of the bracket by a new point.

    `beyond` is True if the new point and the latest point lie on opposite sides of the root.
    """
    latest, other, _ = before
    return np.array([new, np.where(beyond, latest, other), np.where(beyond, other, latest)])


def _fraction(at: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Return the next step as a fraction of the bracket: inverse quadratic interpolation if it is safe, else 1/2."""
    (a, b, c), (f, g, h) = at, slopes
    with np.errstate(all="ignore"):
        part, rise = (a - b) / (c - b), (f - g) / (h - g)
        quadratic = f / (g - f) * h / (g - h) + (c - a) / (b - a) * f / (h - f) * g / (h - g)
    return np.where((rise**2 < part) & ((1 - rise) ** 2 < 1 - part), quadratic, 0.5)
