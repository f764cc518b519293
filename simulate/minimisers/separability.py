r"""Linear separability of a training set, with a certificate in either case.

Newton's method for the logistic loss without a penalty tries weights until either all stabilities are positive, or the
slopes a < 0 of the loss, of sum -1, have :math:`|B^\top a|` below `VANISHING`: then the convex hull of the rows of B
comes as near to the origin, and no student has a stability beyond it. Up to N examples in general position can be
separated: the weights whose stabilities are 1 do it.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve

from simulate.minimisers.line_search import step_length
from simulate.minimisers.newton import factored
from simulate.minimisers.problem import Problem
from statmech.convex.losses import Logistic, Loss

VANISHING = 1e-8  # stability that counts as 0, of a student of length sqrt(N)
STEPS = 100


class Separation(NamedTuple):
    """True if examples can be separated, and weights: right on all examples, or where the logistic loss is least."""

    exists: bool
    w: np.ndarray


def separation(B: np.ndarray) -> Separation:
    """The answer for the rows y x / sqrt(N) of labelled examples."""
    P, N = B.shape
    if P <= N:
        w = np.linalg.lstsq(B, np.ones(P), rcond=None)[0]
        if np.all(B @ w > 0):
            return Separation(True, w)
    return _tried(Problem(B, np.zeros(P), Logistic(), 0.0, 0.0))


def _tried(problem: Problem) -> Separation:
    w, x = np.zeros(problem.B.shape[1]), problem.c
    for _ in range(STEPS):
        slopes = problem.loss.slope(x)
        pull = slopes @ problem.B
        if np.linalg.norm(pull) <= -VANISHING * slopes.sum():
            break
        dw = -cho_solve(factored(problem, x), pull)
        dx = problem.B @ dw
        t = step_length(partial(_slope, problem.loss, x, dx))
        w, x = w + t * dw, x + t * dx
        if np.all(x > 0) or np.all(dx > 0):
            return Separation(True, w if np.all(x > 0) else dw)
    return Separation(False, w)


def _slope(loss: Loss, x: np.ndarray, dx: np.ndarray, t: float) -> float:
    return float(loss.slope(x + t * dx) @ dx)
