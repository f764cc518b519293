r"""Linear separability of a training set, with a certificate in either case.

Newton's method for the logistic loss without a penalty ends if all stabilities are positive, or if the slopes a < 0 of
the loss, normalised to the sum -1, have :math:`|B^\top a|` below `NULL_STABILITY_TOL`. In the second case the convex
hull of the rows of B comes as close to the origin, and no student has a larger stability. Up to N examples in general
position can be separated by the weights with all stabilities equal to 1.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve

from simulate.convex.newton import compute_cholesky_factor, find_step_length
from simulate.convex.objective_and_certificates import Problem
from statmech.convex.losses import Logistic, Loss

NULL_STABILITY_TOL = 1e-8  # stability of a student of length sqrt(N)
MAX_SEPARATION_STEPS = 100


class Separation(NamedTuple):
    """The result of a separability test: whether examples can be separated, and weights.

    The weights are right on all examples, or else minimise the logistic loss.
    """

    exists: bool
    w: np.ndarray


def find_separation(B: np.ndarray) -> Separation:
    """Decide whether labelled examples with rows y x / sqrt(N) can be separated."""
    P, N = B.shape
    if P <= N:
        w = np.linalg.lstsq(B, np.ones(P), rcond=None)[0]
        if np.all(B @ w > 0):
            return Separation(True, w)
    return _separate_by_newton(Problem(B, np.zeros(P), Logistic(), 0.0, 0.0))


def _separate_by_newton(problem: Problem) -> Separation:
    w, x = np.zeros(problem.B.shape[1]), problem.c
    for _ in range(MAX_SEPARATION_STEPS):
        slopes = problem.loss.slope(x)
        pull = slopes @ problem.B
        if np.linalg.norm(pull) <= -NULL_STABILITY_TOL * slopes.sum():
            break
        dw = -cho_solve(compute_cholesky_factor(problem, x), pull)
        dx = problem.B @ dw
        t = find_step_length(partial(_compute_loss_slope_along_step, problem.loss, x, dx))
        w, x = w + t * dw, x + t * dx
        if np.all(x > 0) or np.all(dx > 0):
            return Separation(True, w if np.all(x > 0) else dw)
    return Separation(False, w)


def _compute_loss_slope_along_step(loss: Loss, x: np.ndarray, dx: np.ndarray, t: float) -> float:
    return float(loss.slope(x + t * dx) @ dx)
