"""The Bayes-optimal estimate of a teacher's weights, by message passing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

import numpy as np

from simulate.kernels.message_passing import iterate_messages
from simulate.kernels.teacher_data import TeacherData
from statmech.convex.weights import WeightDistribution
from statmech.scenarios.convex_fit import TeacherCell

ESTIMATE_CHANGE_TOL = 1e-9  # relative change of an estimate in a step
CONTINUOUS_PRIOR_VARIANCE_TOL = 1e-20  # below this mean variance, weights with a continuous prior are known
# Below this sum of variances, N discrete weights are known. All labels are then certain, and another step would
# return to the prior.
DISCRETE_PRIOR_VARIANCE_SUM_TOL = 1e-3


def iterate_posterior_means(w: np.ndarray, V: float, data: TeacherData, cell: TeacherCell) -> Iterator[np.ndarray]:
    """Iterate from weights w (N,) of mean variance V, and yield the estimate (N,) until convergence."""
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
    """Compute the posterior mean (N,) in at most `max_steps` steps from the prior mean."""
    w, V = compute_prior_moments(cell.weights, data.X.shape[1])
    for estimate in islice(iterate_posterior_means(w, V, data, cell), max_steps):
        w = estimate
    return w
