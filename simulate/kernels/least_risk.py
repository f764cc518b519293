r"""Minimisation of the empirical risk by message passing, an alternative to descent methods.

In `simulate.kernels.message_passing`, with the proximal points p of the loss and w of the penalty,

.. math:: g = \frac{p - \omega}V, \quad p = \mathrm{argmin}_p\,\frac{(p-\omega)^2}{2V} + \ell(p), \qquad
          \mathbf w = \mathrm{argmin}_{\mathbf w}\,\tfrac s2|\mathbf w|^2 - \mathbf r\cdot\mathbf w + r(\mathbf w).

Fixed points are minima, whatever V and s are: there :math:`X\mathbf w/\sqrt N = \omega + V\mathbf g = p`, so that g is
minus the slope of the loss at the fields, and :math:`X^T\mathbf g/\sqrt N = \mathbf r - s\mathbf w` is the slope of the
penalty. So the steps end with the slopes that the certificate needs, including the slopes of examples at kinks.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from simulate.kernels.message_passing import EstimateFunction, OutputFunction, iterate_messages
from simulate.minimisers.active_set import solve_for_given_signs
from simulate.minimisers.optimality import bound_relative_gap
from simulate.minimisers.problem import Minimum, Problem
from statmech.convex.losses import StabilityLoss
from statmech.convex.prox import compute_prox_derivative, compute_prox_force, prox

DAMPING_FRACTION = 0.5  # weight of the previous iterate, if undamped steps do not converge
MIN_WEIGHT_STIFFNESS = 1e-8  # also the minimum variance of a weight; has no effect on minima
QUICK_WEIGHT_CHANGE_TOL = 1e-12  # relative change of the weights per step
QUICK_STEPS_DIVISOR = 2  # more than min(N, P) / divisor steps cost more than an interior point method
MIN_STEPS_FOR_CONVERGENCE_RATE = 20  # fewer steps do not determine the convergence rate
MIN_STABLE_SIGN_STEPS = 3  # the signs are tried after this number of steps without a sign change
MAX_SOLVE_COST_RATIO = 6  # a direct solve is cheaper if nonzero weights^2 < ratio * N * steps left


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
    """Try to find the minimum, or its signs, in a few undamped steps.

    If this fails the gap of the result is infinite.
    """
    problem = _convert_to_residual_loss(problem)
    max_steps, stable_steps, before = min(problem.B.shape) // QUICK_STEPS_DIVISOR, 0, np.zeros(problem.B.shape[1])
    for steps, (w, g, change) in enumerate(islice(_iterate_messages(problem), max_steps), 1):
        if change <= QUICK_WEIGHT_CHANGE_TOL:
            return Minimum(w, bound_relative_gap(problem, w, -g))
        progress = np.log(change) / np.log(
            QUICK_WEIGHT_CHANGE_TOL
        )  # fraction of the convergence achieved, on a logarithmic scale
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
    """Iterate until the weights have converged or diverged."""
    for num_steps, (w, g, change) in enumerate(islice(_iterate_messages(problem, damping), steps), 1):  # noqa: B007
        if change <= change_tol or not np.isfinite(change):
            break
    return MessagePassingResult(w, -g, num_steps, bool(change <= change_tol))


def _iterate_messages(problem: Problem, damping: float = 0.0) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """Yield after each step the weights (N,), the negative slopes of the loss (P,), and the relative change."""
    w = np.zeros(problem.B.shape[1])
    V = (
        1 / max(problem.l2, MIN_WEIGHT_STIFFNESS) if problem.l2 > 0 else 1.0
    )  # variance of a weight under the penalty alone
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
    """Make the output function of a loss."""
    loss = problem.loss

    def output(h: np.ndarray, V: float) -> tuple[np.ndarray, np.ndarray]:
        x = problem.c + h
        p = prox(loss, x, V)
        return compute_prox_force(loss, p, x, V), (1 - compute_prox_derivative(loss, p, V)) / V

    return output


def _make_penalised_weight_minimiser(problem: Problem) -> EstimateFunction:
    """Make the function that minimises :math:`sw^2/2 - rw` plus the penalty."""
    l1, l2 = problem.l1, problem.l2

    def estimate(r: np.ndarray, s: float) -> tuple[np.ndarray, np.ndarray]:
        stiffness = max(s + l2, MIN_WEIGHT_STIFFNESS)
        excess = r - np.clip(r, -l1, l1)
        return excess / stiffness, np.maximum((excess != 0) / stiffness, MIN_WEIGHT_STIFFNESS)

    return estimate
