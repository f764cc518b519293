"""The Bayes-optimal estimate of a teacher's weights, by message passing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

import numpy as np

from simulate.kernels.message_passing import messages
from simulate.kernels.teacher_data import Cell, TeacherData
from statmech.convex.weights import Weights

SETTLED = 1e-9  # relative change of an estimate in a step
EXACT = 1e-20  # weights of a continuous prior are then known
# Below this sum of their variances, N discrete weights are known. No label is then uncertain, and another step would
# return to the prior.
DOUBTS = 1e-3


def steps_from(w: np.ndarray, V: float, data: TeacherData, cell: Cell) -> Iterator[np.ndarray]:
    """Yield the estimate (N,) after each step from weights w (N,) of mean variance V, until it converges."""
    variance_tol = EXACT if cell.weights.continuous else DOUBTS / len(w)
    score = partial(cell.teacher.score, data.y)
    steps = messages(data.X, score, cell.weights.posterior, w, V, settled=SETTLED, recovered=variance_tol)
    return (estimate for estimate, *_ in steps)


def uninformed(weights: Weights, N: int) -> tuple[np.ndarray, float]:
    """Return the prior mean of N weights, and their mean variance."""
    mean, variance = weights.posterior(np.zeros(N), 0.0)
    return mean, float(np.mean(variance))


def posterior_mean(data: TeacherData, cell: Cell, most: int) -> np.ndarray:
    """Return the estimate (N,) after at most `most` steps from the prior mean."""
    w, V = uninformed(cell.weights, data.X.shape[1])
    for estimate in islice(steps_from(w, V, data, cell), most):
        w = estimate
    return w
