r"""State evolution of Bayes-optimal message passing and its phase transitions, for N -> infinity.

The estimate of message passing after t steps has an overlap with the teacher that equals its mean square, m = q
(Nishimori's identity), so that one number describes it, the mean squared error :math:`\Delta_t = 1 - q_t`:

.. math:: \hat q_t = \alpha\,I(\Delta_t), \qquad \Delta_{t+1} = \Delta(\hat q_t)

with the information I of an example (`statmech.convex.teachers`) and the error :math:`\Delta(\hat q)` that data of
precision :math:`\hat q` leave (`statmech.convex.weights`) (Bayati & Montanari 2011; for any output Rangan 2011).

Steps start at the mean of the prior (uninformed) or at :math:`\Delta_0 = 10^{-4}` (informed). Even the uninformed start
leaves q = 0, since I > 0 there. The informed start is close enough to the teacher to stay with recovered binary weights
for alpha > 0.2. It is not the teacher itself, so that steps leave the teacher if it is not an attractor. And it is not
so close that, at N of some thousands, hardly any examples would be informative: those with :math:`|u| <
\sqrt{\Delta_0}`. The map is increasing, so that a sequence of steps is monotone, and tends to the next stable state.
For states, free entropies and transitions see `theory.convex.bayes_optimal`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from statmech.convex.teachers import Teacher
from statmech.convex.weights import WeightDistribution
from statmech.errors import ScenarioError
from statmech.scenarios.inference import MESSAGE_PASSING_STARTS, Inference, InferenceCell
from theory.convex import bayes_optimal

ERROR_CHANGE_REL_TOL = 1e-14  # smaller relative changes per step count as converged


class Transitions(NamedTuple):
    """Thresholds of first-order transitions, NaN if the overlap is a continuous function of alpha."""

    alpha_it: float
    alpha_alg: float


def transitions(prior: str, teacher: str = "sign", **parameters: float) -> Transitions:
    r"""Find the information-theoretic and algorithmic thresholds in alpha for recovering a teacher.

    At alpha_it the state of the recovered teacher (with noise: the state of small error) has the same free entropy as
    the state that message passing reaches from the prior. At alpha_alg, the first maximum of
    :math:`\alpha(\hat q) = \hat q/I(\Delta(\hat q))`, it becomes the only state. For the equations see
    `theory.convex.bayes_optimal`.

    Parameters
    ----------
    prior : str
        Distribution of the teacher's weights: `gauss`, `binary`, `sparse`.
    teacher : str
        `sign`, `probit`, `logit` or `linear`.
    **parameters
        Of prior and teacher: `rho`, `flip`, `noise`, `gain`.

    Returns
    -------
    Transitions
        `alpha_it` and `alpha_alg`, NaN if the overlap is a continuous function of alpha. They are equal if the overlap
        reaches 1 continuously, as for Gaussian weights and outputs without noise.

    Raises
    ------
    ScenarioError
        For an unknown name, or a value out of bounds.

    Examples
    --------
    >>> [round(alpha, 6) for alpha in transitions("binary")]       # Gyorgyi 1990: 1.245
    [1.244684, 1.492632]
    >>> [round(alpha, 6) for alpha in transitions("sparse", "linear", rho=0.4)]
    [0.4, 0.589246]
    >>> transitions("gauss", "logit", gain=2.0)
    Transitions(alpha_it=nan, alpha_alg=nan)
    """
    cell = _make_inference_cell(prior, teacher, parameters)
    return Transitions(*bayes_optimal.find_transition_alphas(cell.teacher, cell.weights))


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
    cell = _make_inference_cell(prior, teacher, parameters)
    alpha = _check_alpha(alpha)
    return bayes_optimal.solve_bayes_overlap(cell.teacher, cell.weights, alpha.reshape(-1)).reshape(alpha.shape)


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
    cell = _make_inference_cell(prior, teacher, {**parameters, "start": start, "steps": steps})
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
) -> bayes_optimal.BayesOptimalState:
    """Find the limit states (A,) of message passing.

    Each limit is the next state of smaller error, or of larger error if the first step increases the error.
    """
    error = _compute_initial_errors(weights, starts)
    falls = weights.mse(alpha * teacher.fisher_information(error)) <= error
    candidates = bayes_optimal.find_stable_states(teacher, weights, alpha)
    distance = np.array([np.where(falls, error - candidate.mse, candidate.mse - error) for candidate in candidates])
    nearest = np.argmin(np.where(distance >= 0, distance, np.inf), axis=0)
    return bayes_optimal.BayesOptimalState(*(np.choose(nearest, parts) for parts in zip(*candidates, strict=True)))


def _compute_initial_errors(weights: WeightDistribution, starts: list[str]) -> np.ndarray:
    """Return the initial mean squared error for each named start."""
    error = {start: bayes_optimal.compute_initial_error(weights, start) for start in MESSAGE_PASSING_STARTS}
    return np.array([error[start] for start in starts])


def _make_inference_cell(prior: str, teacher: str, parameters: dict[str, Any]) -> InferenceCell:
    """Make an inference cell from a prior and a teacher, with all checks of a scenario."""
    cells = list(Inference(prior=prior, teacher=teacher, alpha=1.0, **parameters).cells())
    if len(cells) > 1:
        raise ScenarioError([((), "requires one prior and one teacher: use theory.solve(Inference(...)) for several")])
    return cells[0]


def _check_alpha(alpha: ArrayLike) -> np.ndarray:
    """Return alpha as an array of finite positive numbers, or raise `ScenarioError`."""
    alpha = np.asarray(alpha, float)
    if not np.all((alpha > 0) & np.isfinite(alpha)):
        raise ScenarioError([(("alpha",), "the number of examples per dimension must be finite and greater than 0")])
    return alpha
