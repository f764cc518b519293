r"""Ensemble error by the Metropolis method of Miyoshi, Hara & Okada, a random walk in the space of fields.

Their eq (3.2) is an average over the fields u of K students and the teacher's field v, which are jointly Gaussian with
the covariance of eq (3.4). A walk proposes a step of all K + 1 fields at once and accepts it with probability
:math:`\min(1, p'/p)`. The error is the fraction of steps with a wrong ensemble. `theory.ensemble_error`
computes the same number to ten digits. The walk shows that both methods agree, and compares their cost.
"""

from __future__ import annotations

import numpy as np

from statmech.errors import ScenarioError, format_unknown_name
from statmech.numerics.statistics import standard_error
from theory.ensembles.errors import ENSEMBLE_OUTPUTS, ErrorEstimate

METROPOLIS_STEP_SCALE = 2.38  # divided by sqrt(K + 1): optimal in many dimensions (Roberts, Gelman & Gilks 1997)
METROPOLIS_BURN_IN_FRACTION = 0.1


def metropolis_error(
    R: float,
    q: float,
    K: int,
    output: str = "majority_vote",
    steps: int = 20_000,
    walks: int = 64,
    key: int = 0,
) -> ErrorEstimate:
    """Estimate eps_g of K equal students and its standard error by the Metropolis method.

    Parameters
    ----------
    R, q
        Teacher-student and student-student cosine.
    K
        Number of students.
    output : {"majority_vote", "weight_mean"}
    steps
        Number of steps per walk. The first tenth is discarded.
    walks
        Number of independent walks. Their spread gives the standard error.
    key
        Key of the random numbers.

    Returns
    -------
    eps_g and its standard error (`ErrorEstimate`).

    Raises
    ------
    ScenarioError
        If no K students have these cosines, or for an unknown output.

    Examples
    --------
    >>> from theory import ensemble_error
    >>> walk = metropolis_error(0.9, 0.85, 3, steps=2000)
    >>> bool(abs(walk.value - ensemble_error(0.9, 0.85, 3)) < 4 * walk.error)
    True
    """
    if output not in ENSEMBLE_OUTPUTS:
        raise ScenarioError([(("output",), format_unknown_name(output, "an ensemble output", ENSEMBLE_OUTPUTS))])
    factor, random = _compute_field_cholesky(R, q, K), np.random.default_rng(key)
    whitened = random.normal(size=(walks, K + 1))  # walk in uncorrelated coordinates
    wrong, counted = np.zeros(walks), 0
    for step in range(steps):
        proposed = whitened + METROPOLIS_STEP_SCALE / np.sqrt(K + 1) * random.normal(size=whitened.shape)
        gain = 0.5 * (whitened**2 - proposed**2).sum(axis=1)
        accepted = random.random(walks) < np.exp(np.minimum(gain, 0.0))
        whitened[accepted] = proposed[accepted]
        if step >= METROPOLIS_BURN_IN_FRACTION * steps:
            wrong += _mark_ensemble_errors(whitened @ factor.T, output)
            counted += 1
    rates = wrong / counted
    return ErrorEstimate(np.asarray(rates.mean()), np.asarray(standard_error(rates)))


def _compute_field_cholesky(R: float, q: float, K: int) -> np.ndarray:
    """Compute the Cholesky factor of the field covariance of eq (3.4), with the teacher last."""
    covariance = np.full((K + 1, K + 1), float(q))
    covariance[-1], covariance[:, -1] = R, R
    np.fill_diagonal(covariance, 1.0)
    try:
        return np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        sentence = f"no {K} students have R = {R:g} and q = {q:g} without lying in a plane with the teacher"
        raise ScenarioError([(("R",), sentence)]) from None


def _mark_ensemble_errors(fields: np.ndarray, output: str) -> np.ndarray:
    """Return 1 where the ensemble errs, 1/2 where its vote is tied, and 0 elsewhere."""
    students, teacher = fields[:, :-1], np.sign(fields[:, -1])
    total = (np.sign(students) if output == "majority_vote" else students).sum(axis=1)
    return np.asarray(np.where(total == 0, 0.5, np.sign(total) != teacher), float)
