r"""Bayes-optimal overlaps with a teacher of known prior, and state evolution of message passing, for N -> infinity.

**Bayes-optimal states.** The posterior of the teacher's weights, given P = alpha N examples, has an overlap q with
these weights, an upper bound for all learners. One line describes it: all examples together amount to data of precision
:math:`\hat q` on each weight (`statmech.convex.weight_distributions`), which leave the mean squared error
:math:`\Delta(\hat q) = 1 - q`. At this error one example contains the information :math:`I(\Delta)`
(`statmech.convex.teachers`):

.. math:: \hat q = \alpha\,I(\Delta(\hat q)) \quad\Longleftrightarrow\quad
          \alpha(\hat q) = \frac{\hat q}{I(\Delta(\hat q))}.

States are stable where the line rises. If the line turns, several states coexist, and the Bayes-optimal state has the
largest free entropy per weight,

.. math:: \phi = \tfrac12\hat q\,\Delta - \mathcal I(\hat q) + \alpha\,\langle\ln P(y|\omega, \Delta)\rangle

(Barbier, Krzakala, Macris, Miolane & Zdeborova 2019). If the line is bounded for :math:`\hat q\to\infty`, a further
state exists for alpha above that limit: the teacher is recovered, q = 1. For the linear teacher without noise the limit
is the fraction of weights that are not atoms, and the free entropy is infinite.

**State evolution.** The estimate of Bayes-optimal message passing after t steps has an overlap with the teacher that
equals its mean square, m = q (Nishimori's identity), so that one number describes it, the mean squared error
:math:`\Delta_t = 1 - q_t`:

.. math:: \hat q_t = \alpha\,I(\Delta_t), \qquad \Delta_{t+1} = \Delta(\hat q_t)

(Bayati & Montanari 2011; for any output Rangan 2011). The map is increasing, so that a sequence of steps is monotone,
and tends to the next stable state. Message passing that starts without information stays on the first part of the line,
up to its maximum.

**Starts.** Steps start at the mean of the prior (uninformed) or at :math:`\Delta_0 = 10^{-4}` (informed). Even the
uninformed start leaves q = 0, since I > 0 there. The informed start is close enough to the teacher to stay with
recovered binary weights for alpha > 0.2. It is not the teacher itself, so that steps leave the teacher if it is not an
attractor. And it is not so close that, at N of some thousands, hardly any examples would be informative: examples with
:math:`|u| < \sqrt{\Delta_0}`.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from statmech.convex.teachers import LinearTeacher, Teacher
from statmech.convex.weight_distributions import WeightDistribution
from statmech.errors import ScenarioError
from statmech.kinds.bayes_inference import INFORMED_START_MSE, MESSAGE_PASSING_STARTS, Inference, InferenceCell
from statmech.numerics.root_finding import find_zeros

# one point suffices below a precision of 1e-12, where ln alpha is linear in ln precision
SCANNED_LOG_PRECISIONS = np.array([np.log(1e-50), *np.linspace(np.log(1e-12), np.log(1e20), 321)])
ERROR_CHANGE_REL_TOL = 1e-14  # smaller relative changes per step count as converged
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
    >>> from statmech.convex.weight_distributions import Binary
    >>> solve_bayes_overlap(SignTeacher(), Binary(), np.array([1.24, 1.25])).round(6)
    array([0.6911, 1.    ])
    """
    return 1 - find_bayes_state(teacher, weights, alpha).mse


def find_bayes_state(teacher: Teacher, weights: WeightDistribution, alpha: np.ndarray) -> BayesOptimalState:
    """Find the Bayes-optimal state, which has the largest free entropy, at each alpha (A,)."""
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

    >>> from statmech.convex.weight_distributions import Binary
    >>> compute_initial_error(Binary(), "uninformed"), compute_initial_error(Binary(), "informed")
    (1.0, 0.0001)
    """
    return INFORMED_START_MSE if start == "informed" else float(weights.mse(np.zeros(1))[0])


def free_entropy(teacher: Teacher, weights: WeightDistribution, alpha: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """Compute the free entropy per weight of stationary states (A,)."""
    mse = weights.mse(precision)
    return 0.5 * precision * mse - weights.mutual_information(precision) + alpha * teacher.mean_log_evidence(mse)


@cache
def scan_stationary_states(teacher: Teacher, weights: WeightDistribution) -> StationaryStateScan:
    """Scan the stationary states of Bayes-optimal inference, and split their line at its turning points."""
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
    return StationaryStateScan(tuple(parts), weights.continuous_fraction if is_noiseless(teacher) else unbounded)


def _compute_stationary_line(
    teacher: Teacher, weights: WeightDistribution, log_precision: np.ndarray
) -> StationaryStateLine:
    """Compute alpha as a function of the precision of a stationary state."""
    information = teacher.fisher_information(weights.mse(np.exp(log_precision)))
    return StationaryStateLine(log_precision, log_precision - np.log(information))


def is_noiseless(teacher: Teacher) -> bool:
    """Return True if outputs determine the teacher's field exactly."""
    return isinstance(teacher, LinearTeacher) and teacher.noise == 0


def _find_turning_points(height: np.ndarray) -> list[tuple[int, int]]:
    """Find the turning points of a line of Bayes-optimal states, as pairs of index and sign: maximum +1, minimum -1.

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
    """Compute the logarithm of the precision at the turning point near this index of a scan of Bayes-optimal states."""
    low = SCANNED_LOG_PRECISIONS[max(index - 1, 0)]
    high = SCANNED_LOG_PRECISIONS[min(index + 1, len(SCANNED_LOG_PRECISIONS) - 1)]
    for _ in range(6):
        points = np.linspace(low, high, 21)
        best = int(np.argmax(sign * _compute_stationary_line(teacher, weights, points).log_alpha))
        low, high = points[max(best - 1, 0)], points[min(best + 1, 20)]
    return float(points[best])


def _solve_states_on_rising_part(
    part: StationaryStateLine, teacher: Teacher, weights: WeightDistribution, alpha: np.ndarray
) -> BayesOptimalState:
    """Solve for the states of Bayes-optimal inference on one rising branch of alpha(precision) at each alpha."""
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
    evidence = np.inf if is_noiseless(teacher) else teacher.mean_log_evidence(np.zeros(1))[0]
    entropy = alpha * evidence - weights.mutual_information(np.exp(SCANNED_LOG_PRECISIONS[-1:]))[0]
    return BayesOptimalState(*(np.where(alpha >= recovery_alpha, value, np.nan) for value in (0.0, np.inf, entropy)))


def bayes_overlap(prior: str, alpha: ArrayLike, teacher: str = "sign", **parameters: float) -> np.ndarray:
    r"""Compute the overlap q of the Bayes-optimal estimate with the teacher.

    The cosine of the two vectors is :math:`\sqrt q`. The estimate is the state with the largest free entropy. For the
    equations see `theory.convex.bayes_optimal`.

    Parameters
    ----------
    prior : str
        Distribution of the teacher's weights: `gauss`, `binary`, `sparse`.
    alpha : array_like
        Examples per weight, P/N.
    teacher : str
        `sign`, `probit`, `logit` or `linear`.
    **parameters
        Of prior and teacher: `rho`, `flip`, `noise`, `gain`.

    Returns
    -------
    array
        The overlap, in the shape of `alpha`.

    Raises
    ------
    ScenarioError
        For an unknown name, or a value out of bounds.

    Examples
    --------
    >>> q = bayes_overlap("gauss", [1, 3], flip=0.1)
    >>> (np.arccos(np.sqrt(q)) / np.pi).round(6)
    array([0.308058, 0.200685])
    """
    cell = make_inference_cell(prior, teacher, parameters)
    alpha = _check_alpha(alpha)
    return solve_bayes_overlap(cell.teacher, cell.weights, alpha.reshape(-1)).reshape(alpha.shape)


def state_evolution(
    prior: str,
    alpha: ArrayLike,
    teacher: str = "sign",
    start: str = "uninformed",
    steps: int = 100,
    **parameters: float,
) -> np.ndarray:
    r"""Compute the overlap :math:`q_t` of message passing with the teacher after each step.

    .. math:: 1 - q_{t+1} = \Delta\bigl(\alpha\,I(1 - q_t)\bigr)

    Parameters
    ----------
    prior : str
        Distribution of the teacher's weights: `gauss`, `binary`, `sparse`.
    alpha : array_like
        Examples per weight, P/N.
    teacher : str
        `sign`, `probit`, `logit` or `linear`.
    start : str
        `uninformed`, at the mean of the prior, or `informed`, at :math:`1 - q_0 = 10^{-4}`.
    steps : int
        Number of steps.
    **parameters
        Of prior and teacher: `rho`, `flip`, `noise`, `gain`.

    Returns
    -------
    array (..., steps + 1)
        The overlaps at the start and after each step, for each alpha.

    Raises
    ------
    ScenarioError
        For an unknown name, or a value out of bounds.

    Examples
    --------
    >>> state_evolution("gauss", 2.0, steps=4).round(4)
    array([0.    , 0.5601, 0.6737, 0.7085, 0.7208])
    """
    cell = make_inference_cell(prior, teacher, {**parameters, "start": start, "steps": steps})
    alpha = _check_alpha(alpha)
    error = iterate_state_evolution(cell.teacher, cell.weights, alpha.reshape(-1), [start] * alpha.size, steps)
    return 1 - error.reshape(*alpha.shape, steps + 1)


def iterate_state_evolution(
    teacher: Teacher, weights: WeightDistribution, alpha: np.ndarray, starts: list[str], steps: int
) -> np.ndarray:
    """Compute the mean squared errors (A, steps + 1) of message passing by state evolution.

    Errors that have converged are kept constant.

    Parameters
    ----------
    teacher, weights
        The teacher's outputs, and the distribution of its weights.
    alpha
        Examples per weight (A,).
    starts
        Names of the initial states (A).
    steps
        Number of steps.
    """
    error = _compute_initial_errors(weights, starts)
    history = np.repeat(error[:, None], steps + 1, axis=1)
    moving = np.arange(alpha.size)
    for step in range(1, steps + 1):
        before = history[moving, step - 1]
        after = weights.mse(alpha[moving] * teacher.fisher_information(before))
        history[moving, step] = after
        moves = np.abs(after - before) > ERROR_CHANGE_REL_TOL * before
        history[moving[~moves], step:] = after[~moves, None]
        moving = moving[moves]
        if not moving.size:
            break
    return history


def find_message_passing_state(
    teacher: Teacher, weights: WeightDistribution, alpha: np.ndarray, starts: list[str]
) -> BayesOptimalState:
    """Find the states (A,) of Bayes-optimal inference that message passing reaches.

    Each limit is the next state of smaller error, or of larger error if the first step increases the error.
    """
    error = _compute_initial_errors(weights, starts)
    falls = weights.mse(alpha * teacher.fisher_information(error)) <= error
    candidates = find_stable_states(teacher, weights, alpha)
    distance = np.array([np.where(falls, error - candidate.mse, candidate.mse - error) for candidate in candidates])
    nearest = np.argmin(np.where(distance >= 0, distance, np.inf), axis=0)
    return BayesOptimalState(*(np.choose(nearest, parts) for parts in zip(*candidates, strict=True)))


def _compute_initial_errors(weights: WeightDistribution, starts: list[str]) -> np.ndarray:
    """Return the initial mean squared error for each named start."""
    error = {start: compute_initial_error(weights, start) for start in MESSAGE_PASSING_STARTS}
    return np.array([error[start] for start in starts])


def make_inference_cell(prior: str, teacher: str, parameters: dict[str, Any]) -> InferenceCell:
    """Make the cell of a Bayes-optimal calculation from a prior and a teacher, with all checks of a scenario."""
    cells = list(Inference(prior=prior, teacher=teacher, alpha=1.0, **parameters).cells())
    if len(cells) > 1:
        raise ScenarioError([((), "requires one prior and one teacher: use theory.solve(Inference(...)) for several")])
    return cells[0]


def _check_alpha(alpha: ArrayLike) -> np.ndarray:
    """Return the alpha of a Bayes-optimal calculation as an array, or raise `ScenarioError` if it is not positive."""
    alpha = np.asarray(alpha, float)
    if not np.all((alpha > 0) & np.isfinite(alpha)):
        raise ScenarioError([(("alpha",), "the number of examples per dimension must be finite and greater than 0")])
    return alpha
