"""Learning curves of all learners of stored examples, in one dataset."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr

from statmech.errors import ScenarioError, SolverError
from theory.stored_examples import replica
from theory.stored_examples.replica import LearnerCurve

if TYPE_CHECKING:
    import xarray as xr

CurveEquations = Callable[[np.ndarray, float], LearnerCurve]


def _extend_to_flips_with_nan(curve: Callable[[np.ndarray], LearnerCurve]) -> CurveEquations:
    """Extend a learner's equations to flip > 0 with NaN.

    With flipped labels the version space does not contain the teacher, and the equations do not hold.
    """

    def equations(alpha: np.ndarray, flip: float) -> LearnerCurve:
        return (
            curve(alpha) if flip == 0 else LearnerCurve(*(np.full(alpha.shape, np.nan) for _ in LearnerCurve._fields))
        )

    return equations


LEARNER_EQUATIONS: dict[str, CurveEquations] = {
    "hebb": replica.solve_hebb,
    "pseudo_inverse": replica.solve_pseudo_inverse,
    "gibbs": _extend_to_flips_with_nan(replica.solve_gibbs),
    "max_stability": replica.solve_max_stability,
    "bayes": _extend_to_flips_with_nan(replica.solve_bayes),
}


def learning_curves(alphas: ArrayLike, flip: float = 0.0) -> xr.Dataset:
    r"""Compute the generalization error of each learner of P = alpha N stored examples, for N -> infinity.

    .. math:: \epsilon_g = \arccos(R)/\pi

    For the equations and their sources see `theory.stored_examples.replica`.

    Parameters
    ----------
    alphas : array_like (A,)
        Stored examples per input dimension, P/N > 0.
    flip : float
        Probability that a label is flipped, from 0 to 0.5.

    Returns
    -------
    xarray.Dataset
        On (learner, alpha): `R`, `eps_g`, `kappa` (smallest stability, NaN for Bayes because no equation is known, and
        -inf if stabilities are Gaussian), `residual` (relative residual of the saddle-point equations, 0 for closed
        forms) and `exists`. Where a learner does not exist (maximum stability for alpha above `noisy_capacity(flip)`),
        or no equations are implemented (Gibbs and Bayes with noise), `exists` is False and the others are NaN.

    Raises
    ------
    ScenarioError
        For alpha <= 0 or flip outside [0, 0.5].
    SolverError
        If the equations cannot be solved at some alpha.

    Examples
    --------
    >>> curves = learning_curves([2.0])
    >>> {str(name): round(float(e), 6) for name, e in zip(curves.learner.values, curves.eps_g.values[:, 0])}
    {'hebb': 0.230823, 'pseudo_inverse': 0.205952, 'gibbs': 0.240312, 'max_stability': 0.188479, 'bayes': 0.174534}
    """
    import xarray as xr

    alpha = np.atleast_1d(np.asarray(alphas, float))
    _check_curve_arguments(alpha, flip)
    curves = [solve_learner_curve(name, alpha, flip) for name in LEARNER_EQUATIONS]
    theta, kappa, residual = (np.stack(part) for part in zip(*curves, strict=True))
    dims = ("learner", "alpha")
    data: dict[str, Any] = {
        "R": (dims, np.cos(theta), {"long_name": "teacher-student cosine", "units": "1"}),
        "eps_g": (dims, theta / np.pi, {"long_name": "generalization error", "units": "1"}),
        "kappa": (dims, kappa, {"long_name": "smallest stability w.xi S/|w|", "units": "1"}),
        "residual": (dims, residual, {"long_name": "relative residual of the equations", "units": "1"}),
        "exists": (dims, np.isfinite(theta), {"long_name": "whether there is such a learner"}),
    }
    coordinates = {
        "learner": list(LEARNER_EQUATIONS),
        "alpha": ("alpha", alpha, {"long_name": "stored examples per input dimension P/N", "units": "1"}),
        "flip": ((), float(flip), {"long_name": "probability that the teacher's label is flipped"}),
    }
    return xr.Dataset(data, coordinates, {"title": "statmech theory", "source": "replica-symmetric, N -> infinity"})


def solve_learner_curve(name: str, alpha: np.ndarray, flip: float) -> LearnerCurve:
    """Solve the equations of a learner at each alpha.

    Raises `SolverError`, which names an alpha, if the equations are not solved.
    """
    curve = LEARNER_EQUATIONS[name](alpha, flip)
    off = alpha[curve.residual > replica.LEARNER_RESIDUAL_TOL]
    if off.size:
        raise SolverError(f"the equations of {name} were not solved at alpha = {off[0]:g}: their residual is too large")
    return curve


def separable_fraction(P: ArrayLike, N: ArrayLike) -> np.ndarray:
    r"""Compute the fraction of all 2^P labellings of P points that a perceptron in N dimensions can store.

    .. math:: 2^{1-P}\sum_{k=0}^{N-1}\binom{P-1}{k}

    for points in general position (Cover 1965).

    Parameters
    ----------
    P, N : array_like of int
        Numbers of points and dimensions, at least 1. They broadcast.

    Returns
    -------
    array
        The fraction, in the broadcast shape.

    Raises
    ------
    ScenarioError
        If P or N is less than 1 or not an integer.

    Examples
    --------
    >>> separable_fraction([10, 20, 30], 10).round(6)     # 1 up to P = N, one half at P = 2 N
    array([1.      , 0.5     , 0.030714])
    """
    P, N = np.broadcast_arrays(np.asarray(P), np.asarray(N))
    for name, value in (("P", P), ("N", N)):
        if not np.all((value >= 1) & (np.round(value) == value)):
            raise ScenarioError([((name,), "must be an integer of at least 1")])
    return np.where(P <= N, 1.0, bdtr(np.minimum(N, P) - 1.0, (P - 1).astype(int), 0.5))


def _check_curve_arguments(alpha: np.ndarray, flip: float) -> None:
    if alpha.ndim != 1 or not np.all((alpha > 0) & np.isfinite(alpha)):
        raise ScenarioError([(("alphas",), "the number of examples per dimension must be finite and greater than 0")])
    replica.check_flip(flip)
