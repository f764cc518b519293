r"""Bayes-optimal overlaps with a teacher of known prior for N -> infinity, an upper bound for all learners.

The posterior of the teacher's weights, given P = alpha N examples, has an overlap q with these weights. One line
describes it:
all examples together amount to data of precision :math:`\hat q` on each weight (`statmech.convex.weights`), which
leave the mean squared error :math:`\Delta(\hat q) = 1 - q`. At this error one example contains the information
:math:`I(\Delta)` (`statmech.convex.teachers`):

.. math:: \hat q = \alpha\,I(\Delta(\hat q)) \quad\Longleftrightarrow\quad
          \alpha(\hat q) = \frac{\hat q}{I(\Delta(\hat q))}.

States are stable where the line rises. If the line turns, several states coexist, and the Bayes-optimal state has the
largest free entropy per weight,

.. math:: \phi = \tfrac12\hat q\,\Delta - \mathcal I(\hat q) + \alpha\,\langle\ln P(y|\omega, \Delta)\rangle

(Barbier, Krzakala, Macris, Miolane & Zdeborova 2019). Message passing that starts without information stays on the
first part of the line, up to its maximum. If the line is bounded for :math:`\hat q\to\infty`, a further state exists
for alpha above that limit: the teacher is recovered, q = 1. For the linear teacher without noise the limit is the
fraction of weights that are not atoms, and the free entropy is infinite.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from statmech.convex.teachers import LinearTeacher, Teacher
from statmech.convex.weights import WeightDistribution
from statmech.numerics.zeros import find_zeros
from statmech.scenarios.inference import INFORMED_START_MSE

# one point suffices below a precision of 1e-12, where ln alpha is linear in ln precision
SCANNED_LOG_PRECISIONS = np.array([np.log(1e-50), *np.linspace(np.log(1e-12), np.log(1e20), 321)])
MIN_ALPHA_RELATIVE_DROP = 1e-9  # smaller relative decreases of alpha are rounding errors


class StationaryStateLine(NamedTuple):
    """Stationary states (L,) given by the logarithms of the precision and of alpha."""

    log_precision: np.ndarray
    log_alpha: np.ndarray


class StationaryStateScan(NamedTuple):
    """Stable branches of alpha(precision) in order, and the smallest alpha that allows recovery."""

    rising_parts: tuple[StationaryStateLine, ...]
    recovery_alpha: float


class BayesOptimalState(NamedTuple):
    """Mean squared error 1 - q, precision and free entropy of states (A,), NaN where no state exists."""

    mse: np.ndarray
    precision: np.ndarray
    free_entropy: np.ndarray


def solve_bayes_overlap(teacher: Teacher, weights: WeightDistribution, alpha: np.ndarray) -> np.ndarray:
    """Compute the overlap q of the posterior mean with the teacher.

    The mean squared error is 1 - q, and the cosine of the two vectors is sqrt(q).

    Parameters
    ----------
    teacher, weights
        The teacher and the distribution of its weights.
    alpha : array (A,)
        Examples per weight, above 0.

    Returns
    -------
    array (A,)
        The overlap of the state with the largest free entropy.

    Examples
    --------
    >>> from statmech.convex.teachers import SignTeacher
    >>> from statmech.convex.weights import Binary
    >>> solve_bayes_overlap(SignTeacher(), Binary(), np.array([1.24, 1.25])).round(6)
    array([0.6911, 1.    ])
    """
    return 1 - find_bayes_state(teacher, weights, alpha).mse


def find_bayes_state(teacher: Teacher, weights: WeightDistribution, alpha: np.ndarray) -> BayesOptimalState:
    """Find the state with the largest free entropy at each alpha (A,)."""
    alpha = np.asarray(alpha, float)
    candidates = find_stable_states(teacher, weights, alpha)
    best = np.argmax(
        [np.where(np.isnan(candidate.free_entropy), -np.inf, candidate.free_entropy) for candidate in candidates],
        axis=0,
    )
    return BayesOptimalState(*(np.choose(best, parts) for parts in zip(*candidates, strict=True)))


def find_stable_states(teacher: Teacher, weights: WeightDistribution, alpha: np.ndarray) -> list[BayesOptimalState]:
    """Find the stable states at each alpha (A,), one per rising branch, and the recovered teacher."""
    scan = scan_stationary_states(teacher, weights)
    on_parts = [_solve_states_on_rising_part(part, teacher, weights, alpha) for part in scan.rising_parts]
    return [*on_parts, _describe_recovered_state(scan.recovery_alpha, teacher, weights, alpha)]


def compute_initial_error(weights: WeightDistribution, start: str) -> float:
    """Return the mean squared error of an uninformed or informed start.

    The uninformed start is the mean of the prior. The informed start has the error `INFORMED_START_MSE`.

    >>> from statmech.convex.weights import Binary
    >>> compute_initial_error(Binary(), "uninformed"), compute_initial_error(Binary(), "informed")
    (1.0, 0.0001)
    """
    return INFORMED_START_MSE if start == "informed" else float(weights.mse(np.zeros(1))[0])


def free_entropy(teacher: Teacher, weights: WeightDistribution, alpha: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """Compute the free entropy per weight of stationary states (A,)."""
    mse = weights.mse(precision)
    return 0.5 * precision * mse - weights.mutual_information(precision) + alpha * teacher.mean_log_evidence(mse)


def find_transition_alphas(teacher: Teacher, weights: WeightDistribution) -> tuple[float, float]:
    """Find the information-theoretic and algorithmic thresholds (alpha_it, alpha_alg), or NaN.

    Free entropies are equal at alpha_it, and alpha(precision) has its first maximum at alpha_alg.

    >>> from statmech.convex.teachers import SignTeacher
    >>> from statmech.convex.weights import Binary
    >>> [round(alpha, 9) for alpha in find_transition_alphas(SignTeacher(), Binary())]
    [1.24468399, 1.492631818]
    """
    scan = scan_stationary_states(teacher, weights)
    first = scan.rising_parts[0]
    if (
        len(scan.rising_parts) == 1 and first.log_precision[-1] == SCANNED_LOG_PRECISIONS[-1]
    ):  # alpha(precision) is monotone
        limit = scan.recovery_alpha if _is_noiseless(teacher) else np.nan
        return limit, limit
    highest = float(np.exp(first.log_alpha[-1]))
    return _find_equal_entropy_alpha(teacher, weights, scan, highest), highest


@cache
def scan_stationary_states(teacher: Teacher, weights: WeightDistribution) -> StationaryStateScan:
    """Scan the stationary states alpha(precision), and split them into branches at the turning points."""
    line = _compute_stationary_line(teacher, weights, SCANNED_LOG_PRECISIONS)
    turns = [
        _refine_turning_point(teacher, weights, index, sign) for index, sign in _find_turning_points(line.log_alpha)
    ]
    ends = [SCANNED_LOG_PRECISIONS[0], *turns, SCANNED_LOG_PRECISIONS[-1]]
    parts = []
    for low, high in zip(ends[::2], ends[1::2], strict=False):
        parts.append(
            _compute_stationary_line(
                teacher, weights, np.unique([low, *np.clip(SCANNED_LOG_PRECISIONS, low, high), high])
            )
        )
    unbounded = float(np.exp(line.log_alpha[-1]))
    return StationaryStateScan(tuple(parts), weights.continuous_fraction if _is_noiseless(teacher) else unbounded)


def _compute_stationary_line(
    teacher: Teacher, weights: WeightDistribution, log_precision: np.ndarray
) -> StationaryStateLine:
    """Compute alpha as a function of the precision of a stationary state."""
    information = teacher.fisher_information(weights.mse(np.exp(log_precision)))
    return StationaryStateLine(log_precision, log_precision - np.log(information))


def _is_noiseless(teacher: Teacher) -> bool:
    """Return True if outputs determine the teacher's field exactly."""
    return isinstance(teacher, LinearTeacher) and teacher.noise == 0


def _find_turning_points(height: np.ndarray) -> list[tuple[int, int]]:
    """Find alternating maxima (+1) and minima (-1) of a sequence (L,), as pairs of index and sign.

    Changes of at most `MIN_ALPHA_RELATIVE_DROP` are ignored.
    """
    turns: list[tuple[int, int]] = []
    sign, extreme_index = 1, 0
    for index, value in enumerate(height):
        if sign * (value - height[extreme_index]) > 0:
            extreme_index = index
        elif sign * (height[extreme_index] - value) > MIN_ALPHA_RELATIVE_DROP:
            turns.append((extreme_index, sign))
            sign, extreme_index = -sign, index
    return turns


def _refine_turning_point(teacher: Teacher, weights: WeightDistribution, index: int, sign: int) -> float:
    """Compute the logarithm of the precision at the turning point near this index of the scan."""
    low, high = (
        SCANNED_LOG_PRECISIONS[max(index - 1, 0)],
        SCANNED_LOG_PRECISIONS[min(index + 1, len(SCANNED_LOG_PRECISIONS) - 1)],
    )
    for _ in range(6):
        points = np.linspace(low, high, 21)
        best = int(np.argmax(sign * _compute_stationary_line(teacher, weights, points).log_alpha))
        low, high = points[max(best - 1, 0)], points[min(best + 1, 20)]
    return float(points[best])


def _solve_states_on_rising_part(
    part: StationaryStateLine, teacher: Teacher, weights: WeightDistribution, alpha: np.ndarray
) -> BayesOptimalState:
    """Solve for the states on one rising branch of alpha(precision) at each alpha."""
    height, log_alpha = np.maximum.accumulate(part.log_alpha), np.log(alpha)
    covered = (log_alpha >= height[0]) & (log_alpha < height[-1])
    state = BayesOptimalState(*(np.full(alpha.shape, np.nan) for _ in BayesOptimalState._fields))
    if not np.any(covered):
        return state
    above = np.searchsorted(height, log_alpha[covered], side="right")
    bracket = part.log_precision[above - 1], part.log_precision[above]
    root = find_zeros(
        lambda x, goal: _compute_stationary_line(teacher, weights, x).log_alpha - goal, *bracket, (log_alpha[covered],)
    )
    precision = np.exp(root.x)
    state.mse[covered], state.precision[covered] = weights.mse(precision), precision
    state.free_entropy[covered] = free_entropy(teacher, weights, alpha[covered], precision)
    return state


def _describe_recovered_state(
    recovery_alpha: float, teacher: Teacher, weights: WeightDistribution, alpha: np.ndarray
) -> BayesOptimalState:
    """Describe the recovered teacher as a state, which exists for alpha >= `recovery_alpha`."""
    evidence = np.inf if _is_noiseless(teacher) else teacher.mean_log_evidence(np.zeros(1))[0]
    entropy = alpha * evidence - weights.mutual_information(np.exp(SCANNED_LOG_PRECISIONS[-1:]))[0]
    return BayesOptimalState(*(np.where(alpha >= recovery_alpha, value, np.nan) for value in (0.0, np.inf, entropy)))


def _find_equal_entropy_alpha(
    teacher: Teacher, weights: WeightDistribution, scan: StationaryStateScan, max_alpha: float
) -> float:
    """Find the alpha where the free entropy of a later state equals the free entropy of the first state."""
    from scipy.optimize import brentq

    if _is_noiseless(teacher):
        return scan.recovery_alpha

    def gain(log_alpha: float) -> float:
        first_entropy, *later_entropies = (
            state.free_entropy[0] for state in find_stable_states(teacher, weights, np.exp([log_alpha]))
        )
        return float(np.nanmax(later_entropies) - first_entropy)

    lowest = min([scan.recovery_alpha, *(float(np.exp(part.log_alpha[0])) for part in scan.rising_parts[1:])])
    low, high = np.log(max(lowest, 1e-9 * max_alpha)) + 1e-12, np.log(max_alpha) - 1e-12
    return float(np.exp(brentq(gain, low, high, xtol=1e-15)))
