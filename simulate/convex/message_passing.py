r"""Approximate message passing (AMP) for minima of the empirical risk and for Bayes-optimal estimates of weights.

AMP estimates weights from outputs of the fields w.x/sqrt(N). For inputs X (P, N) of independent entries of mean 0 and
variance 1, with the mean V of the weights' variances,

.. math:: \omega &= \frac{X\mathbf w}{\sqrt N} - V\,\mathbf g, \qquad
          g_\mu = g(\omega_\mu, V), \qquad s = -\frac1N\sum_\mu\partial_\omega g(\omega_\mu, V), \\
          \mathbf r &= s\,\mathbf w + \frac{X^T\mathbf g}{\sqrt N}, \qquad
          w_i, v_i = \text{estimate}(r_i, s), \qquad V = \frac1N\sum_i v_i

(Rangan 2011, with scalar variances; the term :math:`V\mathbf g`, with g of the step before, is Onsager's). Undamped
steps follow state evolution for such inputs. The output function g and the estimate determine the result.

**Bayes-optimal estimate**: g is the teacher's `score`, and the estimate is the prior's `posterior`.

**Minimum of the empirical risk**, an alternative to descent methods: with the proximal points p of the loss and w of
the penalty,

.. math:: g = \frac{p - \omega}V, \quad p = \mathrm{argmin}_p\,\frac{(p-\omega)^2}{2V} + \ell(p), \qquad
          \mathbf w = \mathrm{argmin}_{\mathbf w}\,\tfrac s2|\mathbf w|^2 - \mathbf r\cdot\mathbf w + r(\mathbf w).

Fixed points are minima, whatever V and s are: there :math:`X\mathbf w/\sqrt N = \omega + V\mathbf g = p`, so that g is
minus the slope of the loss at the fields, and :math:`X^T\mathbf g/\sqrt N = \mathbf r - s\mathbf w` is the slope of the
penalty. So the steps end with the slopes that the certificate needs, including the slopes of examples at kinks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from simulate.convex.interior_point import solve_for_given_signs
from simulate.convex.objective_and_certificates import Minimum, Problem, bound_relative_gap
from simulate.convex.training_data import TeacherData
from statmech.convex.losses import StabilityLoss, compute_prox_derivative, compute_prox_force, prox
from statmech.convex.weight_distributions import WeightDistribution
from statmech.kinds.convex_fit import TeacherCell

OutputFunction = Callable[[np.ndarray, float], tuple[np.ndarray, np.ndarray]]  # (omega, V) -> g, -dg/domega
EstimateFunction = Callable[[np.ndarray, float], tuple[np.ndarray, np.ndarray]]  # (r, s) -> weights, variances

MIN_WEIGHT_NORM = 1e-300  # avoids division by 0 in relative changes
RECOVERED_VARIANCE_TOL = 1e-9  # discrete weights are then known: another step would divide rounding errors by 0
DAMPING_FRACTION = 0.5  # weight of the previous iterate, if undamped steps do not converge
MIN_WEIGHT_STIFFNESS = 1e-8  # also the minimum variance of a weight; has no effect on minima
QUICK_WEIGHT_CHANGE_TOL = 1e-12  # relative change of the weights per step
QUICK_STEPS_DIVISOR = 2  # more than min(N, P) / divisor steps cost more than an interior point method
MIN_STEPS_FOR_CONVERGENCE_RATE = 20  # fewer steps do not determine the convergence rate
MIN_STABLE_SIGN_STEPS = 3  # the signs are tried after this number of steps without a sign change
MAX_SOLVE_COST_RATIO = 6  # a direct solve is cheaper if nonzero weights^2 < ratio * N * steps left
ESTIMATE_CHANGE_TOL = 1e-9  # relative change of an estimate in a step
CONTINUOUS_PRIOR_VARIANCE_TOL = 1e-20  # below this mean variance, weights with a continuous prior are known
# Below this sum of variances, N discrete weights are known. All labels are then certain, and another step would
# return to the prior.
DISCRETE_PRIOR_VARIANCE_SUM_TOL = 1e-3


def iterate_messages(
    X: np.ndarray,
    output: OutputFunction,
    estimate: EstimateFunction,
    w: np.ndarray,
    V: float,
    change_tol: float = 0.0,
    damping: float = 0.0,
    variance_tol: float = RECOVERED_VARIANCE_TOL,
    input_scale: float | None = None,
) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """Iterate from weights w of variance V, and yield weights (N,), g (P,) and change after each step.

    Parameters
    ----------
    X : array (P, N)
        Inputs.
    output, estimate
        The functions g and estimate.
    w : array (N,)
        Weights at the start.
    V : float
        Their mean variance.
    change_tol : float
        Root mean square change of the weights in a step, relative to the weights. The steps end below it.
    damping : float
        Fraction of the old weights in a step (damping). Fixed points do not depend on it.
    variance_tol : float
        Lowest variance V. The steps end below it.
    input_scale : float
        Divisor of X: the root of N, or 1 if X has already been divided.

    Yields
    ------
    w, g, change : arrays (N,), (P,), float
        The weights, g, and the relative root mean square change of the weights.

    Examples
    --------
    Ridge regression, (y - h)^2/2 and |w|^2/2: N = 1 has w = X.y/(1 + X.X).

    >>> X, y = np.array([[1.0], [-2.0]]), np.array([1.0, 0.0])
    >>> steps = iterate_messages(X, lambda h, V: ((y - h) / (1 + V), np.full(2, 1 / (1 + V))),
    ...                  lambda r, s: (r / (s + 1), np.full(1, 1 / (s + 1))), np.zeros(1), 1.0, 1e-12)
    >>> len(list(steps)) < 100
    True
    """
    N, g = len(w), np.zeros(len(X))
    input_scale = np.sqrt(N) if input_scale is None else input_scale
    while variance_tol < V:
        g, steepness = output(X @ w / input_scale - V * g, V)
        s = max(float(np.sum(steepness)) / N, 0.0)  # the sum may be negative with few examples or flipped labels
        before = w
        w, variances = estimate(s * w + g @ X / input_scale, s)
        w, V = damping * before + (1 - damping) * w if damping else w, float(np.mean(variances))
        change = float(np.linalg.norm(w - before)) / max(float(np.linalg.norm(w)), MIN_WEIGHT_NORM)
        yield w, g, change
        if change <= change_tol:
            return


class MessagePassingResult(NamedTuple):
    """The result of message passing: weights (N,), slopes of the loss (P,) and the number of steps.

    `converged` is True if the last step has left the weights unchanged.
    """

    w: np.ndarray
    slopes: np.ndarray
    steps: int
    converged: bool


def minimise_by_message_passing(
    problem: Problem, max_steps: int = 2000, change_tol: float = 1e-11
) -> MessagePassingResult:
    r"""Minimise the risk :math:`\sum_\mu\ell(x_\mu) + r(\mathbf w)` by message passing.

    For inputs with independent entries, first without damping, then with damping. It may not converge for other inputs,
    or where the penalty hardly distinguishes minima (l1 below N examples, the absolute loss, at small lam; hinge and
    l1).

    Parameters
    ----------
    problem : Problem
        The objective to minimise.
    max_steps : int
        Maximal number of steps without damping, and again with damping.
    change_tol : float
        Relative change of the weights in a step that counts as converged.

    Returns
    -------
    Minimised

    Examples
    --------
    >>> from statmech.convex.losses import Square
    >>> X, y = np.array([[1.0], [-2.0]]), np.array([1.0, 0.0])
    >>> minimise_by_message_passing(Problem(-X, y, Square(), 0.0, 1.0)).w.round(6)         # X.y/(1 + X.X)
    array([0.166667])
    """
    problem = _convert_to_residual_loss(problem)
    result = _iterate_to_convergence(problem, max_steps, change_tol)
    if result.converged:
        return result
    damped = _iterate_to_convergence(problem, max_steps, change_tol, DAMPING_FRACTION)
    return damped._replace(steps=result.steps + damped.steps)


@np.errstate(all="ignore")  # the steps may diverge
def try_quick_message_passing(problem: Problem) -> Minimum:
    """Try to find the minimum, or its signs, in a few undamped steps of message passing.

    If this fails the gap of the result is infinite.
    """
    problem = _convert_to_residual_loss(problem)
    max_steps, stable_steps, before = min(problem.B.shape) // QUICK_STEPS_DIVISOR, 0, np.zeros(problem.B.shape[1])
    for steps, (w, g, change) in enumerate(islice(_iterate_messages(problem), max_steps), 1):
        if change <= QUICK_WEIGHT_CHANGE_TOL:
            return Minimum(w, bound_relative_gap(problem, w, -g))
        # fraction of the convergence achieved, on a logarithmic scale
        progress = np.log(change) / np.log(QUICK_WEIGHT_CHANGE_TOL)
        if steps >= MIN_STEPS_FOR_CONVERGENCE_RATE and not progress >= steps / max_steps:
            break
        stable_steps, before = stable_steps + 1 if np.array_equal(np.sign(w), before) else 0, np.sign(w)
        if stable_steps == MIN_STABLE_SIGN_STEPS and _is_direct_solve_cheaper(problem, w, steps / progress - steps):
            solution = solve_for_given_signs(problem, w)
            gap = bound_relative_gap(problem, solution)
            if gap <= QUICK_WEIGHT_CHANGE_TOL:
                return Minimum(solution, gap)
    return Minimum(w, np.inf)


def _is_direct_solve_cheaper(problem: Problem, w: np.ndarray, steps_left: float) -> bool:
    """Return True if solving for the nonzero weights costs less than the remaining steps."""
    smooth = problem.l1 > 0 and not problem.loss.kinks
    return smooth and bool(np.count_nonzero(w) ** 2 < MAX_SOLVE_COST_RATIO * steps_left * len(w))


def _convert_to_residual_loss(problem: Problem) -> Problem:
    """Convert a regression loss on labels into a loss of residuals, whose proximal point is known."""
    if not isinstance(problem.loss, StabilityLoss):
        return problem
    return problem._replace(B=-problem.B, c=1 - problem.c, loss=problem.loss.residual_loss)


@np.errstate(all="ignore")
def _iterate_to_convergence(
    problem: Problem, steps: int, change_tol: float, damping: float = 0.0
) -> MessagePassingResult:
    """Iterate messages until the weights have converged or diverged."""
    for num_steps, (w, g, change) in enumerate(islice(_iterate_messages(problem, damping), steps), 1):  # noqa: B007
        if change <= change_tol or not np.isfinite(change):
            break
    return MessagePassingResult(w, -g, num_steps, bool(change <= change_tol))


def _iterate_messages(problem: Problem, damping: float = 0.0) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """Yield after each step the weights (N,), the negative slopes of the loss (P,), and the relative change."""
    w = np.zeros(problem.B.shape[1])
    # variance of a weight under the penalty alone
    V = 1 / max(problem.l2, MIN_WEIGHT_STIFFNESS) if problem.l2 > 0 else 1.0
    return iterate_messages(
        problem.B,
        _make_loss_output(problem),
        _make_penalised_weight_minimiser(problem),
        w,
        V,
        damping=damping,
        input_scale=1.0,
    )


def _make_loss_output(problem: Problem) -> OutputFunction:
    """Make the output function of messages for a loss."""
    loss = problem.loss

    def output(h: np.ndarray, V: float) -> tuple[np.ndarray, np.ndarray]:
        x = problem.c + h
        p = prox(loss, x, V)
        return compute_prox_force(loss, p, x, V), (1 - compute_prox_derivative(loss, p, V)) / V

    return output


def _make_penalised_weight_minimiser(problem: Problem) -> EstimateFunction:
    """Make the function that estimates weights from messages: it minimises :math:`sw^2/2 - rw` plus the penalty."""
    l1, l2 = problem.l1, problem.l2

    def estimate(r: np.ndarray, s: float) -> tuple[np.ndarray, np.ndarray]:
        stiffness = max(s + l2, MIN_WEIGHT_STIFFNESS)
        excess = r - np.clip(r, -l1, l1)
        return excess / stiffness, np.maximum((excess != 0) / stiffness, MIN_WEIGHT_STIFFNESS)

    return estimate


def iterate_posterior_means(w: np.ndarray, V: float, data: TeacherData, cell: TeacherCell) -> Iterator[np.ndarray]:
    """Iterate messages from weights w (N,) of mean variance V, and yield the estimate (N,) until convergence."""
    variance_tol = (
        CONTINUOUS_PRIOR_VARIANCE_TOL if cell.weights.continuous_fraction else DISCRETE_PRIOR_VARIANCE_SUM_TOL / len(w)
    )
    score = partial(cell.teacher.score, data.y)
    steps = iterate_messages(
        data.X, score, cell.weights.posterior, w, V, change_tol=ESTIMATE_CHANGE_TOL, variance_tol=variance_tol
    )
    return (estimate for estimate, *_ in steps)


def compute_prior_moments(weights: WeightDistribution, N: int) -> tuple[np.ndarray, float]:
    """Return the prior mean of N weights, and their mean variance."""
    mean, variance = weights.posterior(np.zeros(N), 0.0)
    return mean, float(np.mean(variance))


def compute_posterior_mean(data: TeacherData, cell: TeacherCell, max_steps: int) -> np.ndarray:
    """Compute the posterior mean (N,) in at most `max_steps` steps of messages from the prior mean."""
    w, V = compute_prior_moments(cell.weights, data.X.shape[1])
    for estimate in islice(iterate_posterior_means(w, V, data, cell), max_steps):
        w = estimate
    return w
