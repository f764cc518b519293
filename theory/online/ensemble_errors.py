r"""Generalization errors of an ensemble by majority vote or weight mean, and the advantage of an infinite ensemble.

**Equal students** (one R, one q): the error is an integral over their common field, in
`statmech.students.ensemble_vote`.

**Unequal students.** The vote of up to four students is exact. The vote of more students is integrated exactly over
great circles of inputs (`statmech.students.ensemble_vote`). The average over circles uses randomised quasi-Monte Carlo
with a standard error.

**Metropolis method** of Miyoshi, Hara & Okada, a random walk in the space of fields. Their eq (3.2) is an average over
the fields u of K students and the teacher's field v, which are jointly Gaussian with the covariance of eq (3.4). A walk
proposes a step of all K + 1 fields at once and accepts it with probability :math:`\min(1, p'/p)`. The error is the
fraction of steps with a wrong ensemble. `theory.ensemble_error` computes the same number to ten digits. The walk shows
that both methods agree, and compares their cost.

**Advantage** of an infinite ensemble: the ratio of its error to the error of one student during learning. The sum of
K equal students at angle :math:`\theta` to the teacher, with transverse cosine c, has a component
:math:`Kl\cos\theta` parallel to the teacher and :math:`Kl\sin\theta\sqrt{c + (1-c)/K}` perpendicular to it. For
K -> infinity the weight mean, and with it the majority vote (`statmech.students.ensemble_vote`), has the angle
:math:`\Theta` with

.. math:: \tan\Theta = \sqrt c\,\tan\theta, \qquad \epsilon_g(\infty)/\epsilon_g(1) = \Theta/\theta,

so that at late times, :math:`\theta\to0`, the ratio is :math:`\sqrt c`. It is computed from the integrated variables
:math:`1-R` and c (`theory.online.order_parameter_equations`), and keeps its digits where R and q round to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from statmech.errors import ScenarioError, format_unknown_name
from statmech.numerics.statistics import standard_error
from statmech.students.ensemble_vote import (
    MAX_EXACT_STUDENTS,
    draw_sobol_circles,
    few_student_vote_error,
    majority_vote_error,
    mean_weight_vector_error,
    measure_vote_error,
)
from statmech.students.student_geometry import (
    angle_from_components,
    angle_from_versine,
    factor_semidefinite_matrix,
    lowest_cosine_eigenvalue,
    student_coordinates,
)

if TYPE_CHECKING:
    import xarray as xr

    from statmech.kinds.online_learning import OnlineCell
    from statmech.kinds.online_perceptron import Scenario


NUM_PAIR_STUDENTS = 2  # one pair determines the error of an infinite ensemble
ENSEMBLE_OUTPUTS = ("majority_vote", "weight_mean")
NUM_SCRAMBLED_NETS, MIN_NET_POINTS, MAX_NET_POINTS = 16, 2**12, 2**16  # limits apply to the points per net
METROPOLIS_STEP_SCALE = 2.38  # divided by sqrt(K + 1): optimal in many dimensions (Roberts, Gelman & Gilks 1997)
METROPOLIS_BURN_IN_FRACTION = 0.1


class ErrorEstimate(NamedTuple):
    """Generalization error with the standard error of its numerical integration."""

    value: np.ndarray
    error: np.ndarray


def ensemble_error(R: ArrayLike, q: ArrayLike, K: ArrayLike, output: str = "majority_vote") -> Any:
    r"""Compute eps_g of an ensemble of K equal students, with an absolute accuracy of 1e-10.

    The error of the majority vote is the integral of eq (3.2) of Miyoshi, Hara & Okada, who use the Metropolis method;
    here it is integrated over the students' common field (derived in `theory.online.ensemble_errors`). The weight mean
    has

    .. math:: \epsilon_g = \arccos\left(R/\sqrt{q + (1-q)/K}\right)/\pi.

    Parameters
    ----------
    R, q : array_like
        Teacher-student and student-student cosine.
    K : array_like
        Number of students, which may be infinite. R, q and K broadcast.
    output : {"majority_vote", "weight_mean"}

    Returns
    -------
    array
        eps_g, of the broadcast shape.

    Raises
    ------
    ScenarioError
        If no K students have these cosines, or for an unknown output.

    Examples
    --------
    >>> error = ensemble_error(0.9, 0.85, [1, 3, np.inf])
    >>> [round(float(e), 6) for e in error]
    [0.143566, 0.111036, 0.069604]
    >>> round(float(ensemble_error(0.9, 0.85, 3, output="weight_mean")), 6)
    0.102416
    """
    if output not in ENSEMBLE_OUTPUTS:
        raise ScenarioError([(("output",), format_unknown_name(output, "an ensemble output", ENSEMBLE_OUTPUTS))])
    R, q, K = np.broadcast_arrays(*(np.asarray(value, float) for value in (R, q, K)))
    _check_possible_cosines(R, q, K)
    sin = np.sqrt((1 - R) * (1 + R))
    perpendicular = q - R**2
    c = np.divide(perpendicular, sin**2, out=np.ones_like(perpendicular), where=sin > 0)
    c = np.clip(np.where(np.abs(perpendicular) < 4e-16, 0.0, c), -1.0, 1.0)  # treat q as R^2 if they differ by rounding
    theta = angle_from_components(sin, R)
    error = (majority_vote_error if output == "majority_vote" else mean_weight_vector_error)(theta, c, K)
    return error[()] if error.ndim == 0 else error


def ensemble_error_unequal(
    R: ArrayLike,
    q: ArrayLike,
    length: ArrayLike | None = None,
    output: str = "majority_vote",
    tolerance: float = 1e-4,
) -> ErrorEstimate:
    """Compute eps_g of an ensemble of unequal students, with the standard error of the numerical integration.

    The vote of up to four students is exact. For more students, randomised quasi-Monte Carlo evaluates the integral of
    eq (3.2) of Miyoshi, Hara & Okada: point sets grow until the standard error is below `tolerance`, or to 2^16 points.
    The weight mean has a closed form.

    Parameters
    ----------
    R : array_like (K,)
        Teacher-student cosines.
    q : array_like (K, K)
        Student-student cosines.
    length : array_like (K,), optional
        Lengths of the students, equal by default. Only the weight mean depends on the lengths.
    output : {"majority_vote", "weight_mean"}
    tolerance : float
        Target standard error.

    Returns
    -------
    ErrorEstimate
        eps_g and its standard error, 0 where the result is exact.

    Raises
    ------
    ScenarioError
        For cosines that no students can have, shapes that do not match, or an unknown output.

    Examples
    --------
    >>> q = np.array([[1, 0.7, 0.5], [0.7, 1, 0.6], [0.5, 0.6, 1]])
    >>> value, error = ensemble_error_unequal([0.8, 0.7, 0.6], q)
    >>> print(f"{value:.4f}", float(error))
    0.2065 0.0
    """
    if output not in ENSEMBLE_OUTPUTS:
        raise ScenarioError([(("output",), format_unknown_name(output, "an ensemble output", ENSEMBLE_OUTPUTS))])
    R, q = np.asarray(R, float), np.asarray(q, float)
    if R.ndim != 1 or q.shape != (R.size, R.size):
        raise ScenarioError(
            [(("q",), f"R must have the shape (K,) and q the shape (K, K), not {R.shape} and {q.shape}")]
        )
    if lowest_cosine_eigenvalue(R, q) < -1e-10:
        raise ScenarioError(
            [(("q",), f"no {R.size} students have these R and q: the matrix of cosines has a negative eigenvalue")]
        )
    length = np.ones_like(R) if length is None else np.asarray(length, float)
    students = student_coordinates(length, R, q)
    if output == "weight_mean":
        mean = students.sum(axis=0)
        return ErrorEstimate(angle_from_components(np.linalg.norm(mean[1:]), mean[0]) / np.pi, np.zeros(()))
    return compute_vote_error(students[:, 0], students[:, 1:] @ students[:, 1:].T, tolerance)


def compute_vote_error(parallel: np.ndarray, perpendicular_gram: np.ndarray, tolerance: float = 1e-4) -> ErrorEstimate:
    """Compute eps_g of the majority vote and its standard error from the weight components of the students.

    The arguments are the components (..., K) parallel to the teacher and the Gram matrices (..., K, K) of the
    perpendicular components.
    """
    if parallel.shape[-1] <= MAX_EXACT_STUDENTS:
        return ErrorEstimate(few_student_vote_error(parallel, perpendicular_gram), np.zeros(parallel.shape[:-1]))
    factor, points = factor_semidefinite_matrix(perpendicular_gram), MIN_NET_POINTS
    while True:
        rng = np.random.default_rng(0)
        nets = (draw_sobol_circles(rng, points, factor.shape[-1]) for _ in range(NUM_SCRAMBLED_NETS))
        estimates = np.stack([measure_vote_error(parallel, factor, net) for net in nets])
        error = standard_error(estimates, axis=0)
        if np.all(error <= tolerance) or points >= MAX_NET_POINTS:
            return ErrorEstimate(estimates.mean(axis=0), error)
        points *= 4


def _check_possible_cosines(R: np.ndarray, q: np.ndarray, K: np.ndarray) -> None:
    problems = []
    if np.any(K < 1) or np.any(np.isfinite(K) & (np.round(K) != K)) or np.any(np.isnan(K)):
        problems.append((("K",), "the number of students must be an integer of at least 1, or infinite"))
    for name, value in (("R", R), ("q", q)):
        if not np.all(np.abs(value) <= 1):
            problems.append(((name,), "a cosine must lie in [-1, 1]"))
    # check the eigenvalue (1 + (K - 1) q)/K - R^2, whose order does not depend on K
    several, fraction = K > 1, 1 / np.where(K > 1, K, 2)
    if not problems and np.any(several & (fraction + (1 - fraction) * q - R**2 < -1e-12)):
        problems.append((("q",), "no K equal students have these R and q: q must be at least (K R^2 - 1)/(K - 1)"))
    if problems:
        raise ScenarioError(problems)


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
    """Compute the Cholesky factor of an ensemble's field covariance of eq (3.4), with the teacher last."""
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


def advantage(scenario: Scenario) -> xr.DataArray:
    r"""Compute the error of an infinite ensemble divided by the error of one student, at each recorded time.

    .. math:: \epsilon_g(K\to\infty)/\epsilon_g(1) = \arctan(\sqrt c\,\tan\theta)/\theta

    with the angle :math:`\theta` to the teacher and the transverse cosine c of two students. The ratio is the same for
    the majority vote and for the weight mean.

    Parameters
    ----------
    scenario : Scenario
        A scenario with equal students. Its K and N do not matter.

    Returns
    -------
    xarray.DataArray
        The ratio on the sweep axes without K and N, and on t.

    Raises
    ------
    ScenarioError
        For students with unequal starts, or for a start with q < R², which an infinite ensemble cannot have.

    Examples
    --------
    >>> from statmech import Scenario
    >>> gain = advantage(Scenario(rule=["hebb", "perceptron"], t=[1, 50]))
    >>> gain.sel(t=50).values.round(6)
    array([0.990349, 0.718756])
    """
    from statmech.stores.dataset import make_empty_dataset  # imported late: other errors need no scenario and no JAX
    from theory.online.order_parameter_equations import solve_cells

    config = scenario.config()
    first = config["N"][0] if isinstance(config["N"], list) else config["N"]
    pair = type(scenario)(**{**config, "K": NUM_PAIR_STUDENTS, "N": first})
    cells = list(pair.cells())
    _check_equal_starts(cells)
    ratio = make_empty_dataset(pair, seeds=None).eps_g_weight_mean
    for cell, students in zip(cells, solve_cells(cells, pair.t), strict=True):
        theta, c = angle_from_versine(students.y[:, 0]), students.c[:, 0]
        ratio[cell.index] = _infinite_ensemble_error_ratio(theta, c)
    return ratio.rename("advantage").assign_attrs(long_name="error of infinitely many students over that of one")


def _infinite_ensemble_error_ratio(theta: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Compute eps_g of the mean of infinitely many students divided by eps_g of one student.

    For students on the teacher's axis, the result is the limit of this ratio.
    """
    off_axis = np.where(theta > 0, theta, 1.0)
    together = mean_weight_vector_error(off_axis, c, np.full(c.shape, np.inf)) * np.pi / off_axis
    return np.where(theta > 0, together, np.sqrt(np.maximum(c, 0.0)))


def _check_equal_starts(cells: Sequence[OnlineCell]) -> None:
    for cell in cells:
        if not cell.has_equal_starts:
            raise ScenarioError([(("start",), "an infinite ensemble requires equal starts of all students")])
        _, R, q = cell.start_order_parameters
        if q[0, 1] < R[0] ** 2:
            raise ScenarioError([(("start",), "an infinite ensemble requires q >= R^2")])
