r"""Learning curves of learners of P = alpha N stored examples for N -> infinity, and a bound on mistakes.

Inputs :math:`\xi\sim N(0, I)`, labels :math:`S = \pm\mathrm{sgn}(\mathbf w^*\cdot\xi)`, flipped with probability
:math:`p_f`. Write :math:`a = (1-2p_f)\sqrt{2/\pi}` for the correlation of label and teacher's field,
:math:`\theta` for the angle between student and teacher, :math:`R = \cos\theta`, :math:`s = \sin\theta`. One dataset
contains the curves of all learners.

**Hebb**, :math:`\mathbf w = \sum_\mu S^\mu\xi^\mu`, has the signal :math:`\alpha a` parallel to the teacher and the
noise :math:`\sqrt\alpha` perpendicular to it: :math:`\tan\theta = 1/(a\sqrt\alpha)`.

**Pseudo-inverse** (Adaline). S is :math:`a v` plus a rest of variance :math:`1-a^2`, uncorrelated with the teacher's
field v. For :math:`\alpha < 1` the shortest w fits all labels exactly, for :math:`\alpha > 1` w is the least-squares
fit:

.. math:: \tan^2\theta = \frac{1-\alpha a^2}{\alpha a^2(1-\alpha)} - 1 \ (\alpha < 1), \qquad
          \tan^2\theta = \frac{1-a^2}{a^2(\alpha-1)} \ (\alpha > 1)

(Opper, Kinzel, Kleinz & Nehl 1990 for :math:`p_f = 0`). At :math:`\alpha = 1`, where the fit becomes exact, the length
of w diverges, and w generalises no better than a random guess.

**Gibbs** learning draws a student from the version space (no noise). By Nishimori's identity the overlap of two
students equals their overlap with the teacher, q = R. With :math:`\gamma^2 = q/(1-q)` the saddle point of the entropy
:math:`\frac12\ln(1-q) + \frac q2 + 2\alpha\int Dt\,H(\gamma t)\ln H(\gamma t)` is

.. math:: q = \frac\alpha\pi\int Dt\,\frac{e^{-\gamma^2t^2}}{H(\gamma t)},

which gives :math:`\alpha` as a function of :math:`\gamma` (Gyorgyi & Tishby 1990). **Bayes**, the majority vote of the
version space, has the same overlap :math:`\sqrt q` with the teacher as the centre of the version space (Opper &
Haussler 1991): :math:`\tan\theta = 1/\gamma`.

**Maximum stability.** In the limit q -> 1 of Gardner's volume a pattern of cavity stability :math:`h < \kappa` is
lifted to :math:`\kappa`, and :math:`1-R^2 = \alpha\langle(\kappa-h)_+^2\rangle` is stationary in R. The density of h is
:math:`2\varphi(h)[p_f + (1-2p_f)\Phi(hR/s)]`. In units of s, with :math:`k = \kappa/s`, both equations remain of order
one for all :math:`\alpha`:

.. math:: \frac1{\alpha s} &= I(s, k) = \int_{-\infty}^k 2\varphi(st)[p_f+(1-2p_f)\Phi(Rt)](k-t)^2\,dt, \\
          \frac R{\alpha s} &= a\,[k\,\Phi(k) + \varphi(k)]

(Opper, Kinzel, Kleinz & Nehl 1990 for :math:`p_f = 0`). The second equation gives the angle,
:math:`\cot\theta = \alpha a\,[k\,\Phi(k) + \varphi(k)]`, so that only one unknown remains, k. With noise the stability
vanishes at :math:`\alpha_c(p_f)`. For larger :math:`\alpha` no perceptron classifies all examples correctly.

**Mistake bound** (Block 1962, Novikoff 1962). The number of mistakes before a perceptron classifies all examples
correctly is bounded. Let a student :math:`\mathbf u` of length 1 have a margin
:math:`\mathbf u\cdot\mathbf z\ge\gamma>0` on all examples times labels z, and let :math:`|\mathbf z|\le R`, where R and
:math:`\gamma` differ from the symbols above. Starting at w = 0, every mistake adds a z with
:math:`\mathbf w\cdot\mathbf z\le 0`, so that after M mistakes

.. math:: \mathbf u\cdot\mathbf w \ge M\gamma, \qquad |\mathbf w|^2 \le M R^2, \qquad\text{so}\quad M \le (R/\gamma)^2

for any order of the examples. The largest margin gives the smallest bound. A bias is the weight of a constant input,
and counts in both u and z.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, log_ndtr, ndtr

from statmech.errors import ScenarioError, SolverError
from statmech.numerics.gaussian import GAUSSIAN_CUTOFF, NODES, make_composite_rule, normal_density
from statmech.numerics.root_finding import find_zeros

if TYPE_CHECKING:
    import xarray as xr


MIN_LOG_BRACKET, MAX_LOG_BRACKET = -60.0, 60.0  # root brackets for ln gamma, ln kappa and ln k
LOG_TAN_BRACKET = (-90.0, 90.0)  # root bracket for ln tan(theta)
LEARNER_RESIDUAL_TOL = 1e-9  # solutions with larger residuals are rejected


class LearnerCurve(NamedTuple):
    """Angle, stability and residual of a learner at each alpha, as arrays of equal shape.

    `theta` is the angle to the teacher, `kappa` the smallest stability, and `residual` the relative residual of the
    equations (0 for a closed form).
    """

    theta: np.ndarray
    kappa: np.ndarray
    residual: np.ndarray


def label_field_correlation(flip: Any) -> Any:
    r"""Return the correlation :math:`a = (1-2p_f)\sqrt{2/\pi}` of a label with the teacher's field."""
    return (1 - 2 * flip) * float(np.sqrt(2 / np.pi))


def solve_hebb(alpha: np.ndarray, flip: float) -> LearnerCurve:
    """Compute the learning curve of Hebb's rule, the sum of all examples times their labels.

    Stabilities are Gaussian and have no lower bound.
    """
    theta = np.arctan2(1.0, label_field_correlation(flip) * np.sqrt(alpha))
    return LearnerCurve(theta, np.full_like(theta, -np.inf), np.zeros_like(theta))


def solve_pseudo_inverse(alpha: np.ndarray, flip: float) -> LearnerCurve:
    """Compute the learning curve of the pseudo-inverse rule.

    For alpha < 1 the rule gives the shortest w with fields equal to the labels, and all stabilities are equal. For
    alpha > 1 it gives the least-squares fit.
    """
    a2 = label_field_correlation(flip) ** 2
    below = alpha < 1
    inside = np.where(below, alpha, 0.5)
    tan2_numerator = np.where(below, 1 - a2 * inside * (2 - inside), 1 - a2)
    tan2_denominator = np.where(below, a2 * inside * (1 - inside), a2 * (alpha - 1))
    theta = np.arctan2(np.sqrt(tan2_numerator), np.sqrt(tan2_denominator))
    kappa = np.where(below, np.sqrt((1 - inside) / (inside * (1 - a2 * inside))), -np.inf)
    return LearnerCurve(theta, kappa, np.zeros_like(theta))


def solve_gibbs(alpha: np.ndarray) -> LearnerCurve:
    """Compute the learning curve of Gibbs learning, a random student from the version space.

    Order parameters obey cos(theta) = q = R, and the smallest stability is 0.
    """
    q_angle, residual = _solve_version_space_angle(alpha)
    # 1 - q = 1/(1 + gamma^2), where 1/gamma is the tangent of the Bayes angle
    theta = 2 * np.arcsin(np.sin(q_angle) / np.sqrt(2))
    return LearnerCurve(theta, np.zeros_like(theta), residual)


def solve_bayes(alpha: np.ndarray) -> LearnerCurve:
    """Compute the learning curve of the Bayes algorithm, the majority vote of the version space.

    The vote and the centre of the version space have the overlap sqrt(q) with the teacher.
    """
    theta, residual = _solve_version_space_angle(alpha)
    return LearnerCurve(theta, np.full_like(theta, np.nan), residual)


def solve_max_stability(alpha: np.ndarray, flip: float) -> LearnerCurve:
    """Compute the learning curve of the perceptron of maximum stability.

    The result is NaN for alpha >= alpha_c(flip), since no perceptron classifies all examples correctly.
    """
    consistent = alpha < noisy_capacity(flip)
    curve = LearnerCurve(*(np.full(alpha.shape, np.nan) for _ in LearnerCurve._fields))
    if np.any(consistent):
        solution = (
            _solve_random_label_curve(alpha[consistent])
            if flip == 0.5
            else _solve_max_stability(alpha[consistent], flip)
        )
        for values, part in zip(curve, solution, strict=True):
            values[consistent] = part
    return curve


def capacity(kappa: ArrayLike = 0.0) -> np.ndarray:
    r"""Compute the storage capacity for random labels, the maximum alpha at stability kappa.

    .. math:: \frac1{\alpha_c} = \int_{-\kappa}^\infty Dt\,(t+\kappa)^2
              = (1+\kappa^2)\,\Phi(\kappa) + \kappa\varphi(\kappa)

    (Gardner 1988, eq 27).

    Parameters
    ----------
    kappa : array_like
        Stability, 0 or more.

    Returns
    -------
    array
        P/N, in the shape of `kappa`.

    Raises
    ------
    ScenarioError
        For kappa < 0, where replica symmetry is broken and the formula is only a bound.

    Examples
    --------
    >>> capacity([0, 1]).round(6)
    array([2.      , 0.519572])
    """
    kappa = np.asarray(kappa, float)
    check_stability(kappa)
    return 1 / ((1 + kappa**2) * ndtr(kappa) + kappa * normal_density(kappa))


def noisy_capacity(flip: ArrayLike, kappa: ArrayLike = 0.0) -> np.ndarray:
    r"""Compute the capacity for a teacher's noisy labels, the maximum alpha at stability kappa.

    At the angle that solves both equations of maximum stability, with :math:`s = \sin\theta` and :math:`I(s, k)` as in
    `theory.stored_examples.learning_curves_and_bounds`,

    .. math:: R\,I(s, \kappa/s) = a\,[k\,\Phi(k) + \varphi(k)],\ k = \kappa/s, \qquad
              \alpha_c = \frac1{s\,I(s, \kappa/s)}

    (Opper, Kinzel, Kleinz & Nehl 1990 for flip = 0).

    Parameters
    ----------
    flip : array_like
        Probability that a label is flipped, from 0 to 0.5.
    kappa : array_like
        Stability, 0 or more. It broadcasts with `flip`. At kappa = 0 no perceptron classifies more examples than the
        capacity correctly.

    Returns
    -------
    array
        P/N, in the broadcast shape. It is infinite for flip = 0 and kappa = 0, and `capacity(kappa)` for the random
        labels at flip = 0.5.

    Raises
    ------
    ScenarioError
        For flip outside [0, 0.5] or kappa < 0.
    SolverError
        If the equation of the angle cannot be solved.

    Examples
    --------
    >>> noisy_capacity([0, 0.1, 0.5]).round(6)
    array([     inf, 2.992286, 2.      ])
    >>> noisy_capacity(0.1, kappa=[0, 0.5]).round(6)
    array([2.992286, 1.240865])
    """
    flips, kappas = np.broadcast_arrays(np.asarray(flip, float), np.asarray(kappa, float))
    check_flip(flips)
    alpha = np.where((flips == 0) & (kappas == 0), np.inf, capacity(kappas))
    to_solve = (flips < 0.5) & np.isfinite(alpha)
    if np.any(to_solve):
        alpha[to_solve] = _solve_noisy_capacity(flips[to_solve], kappas[to_solve])
    return alpha[()]


def _solve_noisy_capacity(flip: np.ndarray, kappa: np.ndarray) -> np.ndarray:
    """Compute the finite capacity for labels that are not random."""
    log_tan = _solve_max_stability_log_tan(kappa, flip)
    s = _sine_from_log_tan(log_tan)
    return 1 / (s * _lifting_integral(log_tan, kappa / s, flip))


def check_flip(flip: ArrayLike) -> None:
    """Raise `ScenarioError` if the flip probability of a learning curve or a capacity is outside [0, 0.5]."""
    flip = np.atleast_1d(flip)
    bad = flip[~((flip >= 0) & (flip <= 0.5))]
    if bad.size:
        raise ScenarioError([(("flip",), f"must lie between 0 and 0.5 (random labels), not {bad[0]:g}")])


def check_stability(kappa: ArrayLike) -> None:
    """Raise `ScenarioError` if the stability of a capacity is negative."""
    kappa = np.atleast_1d(kappa)
    bad = kappa[~(kappa >= 0)]
    if bad.size:
        raise ScenarioError([(("kappa",), f"must be 0 or more (replica symmetry breaks below), not {bad[0]:g}")])


def _solve_version_space_angle(alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solve for the angle arccos(sqrt(q)) between the teacher and the centre of the version space.

    Also returns the residual.
    """

    def residual(log_gamma: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        gamma = np.exp(log_gamma)
        return np.log(np.pi * _gibbs_overlap_integral(gamma) ** -1 / alpha) + 2 * log_gamma - np.log1p(gamma**2)

    log_gamma = _find_root(residual, MIN_LOG_BRACKET, MAX_LOG_BRACKET, (alpha,), "gibbs")
    return np.arctan(np.exp(-log_gamma)), np.abs(residual(log_gamma, alpha))


def _gibbs_overlap_integral(gamma: np.ndarray) -> np.ndarray:
    r"""Compute :math:`\int Dt\,e^{-\gamma^2t^2}/H(\gamma t)` for the learning curve of Gibbs learning.

    The width of the integrand is the smaller of 1 and 1/gamma.
    """
    cutoff = np.minimum(GAUSSIAN_CUTOFF, 14 / gamma)
    t, weight = make_composite_rule(np.stack([-cutoff, 0 * cutoff, cutoff]), 2 * NODES)
    scaled = gamma[..., None] * t
    return np.sum(weight * normal_density(t) * np.exp(-(scaled**2) - log_ndtr(-scaled)), axis=-1)


def _solve_max_stability(alpha: np.ndarray, flip: float) -> LearnerCurve:
    """Solve the equations of the learning curve of maximum stability for k = kappa/s > 0."""

    def residual(log_k: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        k = np.exp(log_k)
        log_tan = _log_tan_from_k(alpha, k, flip)
        return np.log(alpha * _sine_from_log_tan(log_tan) * _lifting_integral(log_tan, k, flip))

    log_k = _find_root(residual, MIN_LOG_BRACKET, MAX_LOG_BRACKET, (alpha,), "max_stability")
    k = np.exp(log_k)
    log_tan = _log_tan_from_k(alpha, k, flip)
    return LearnerCurve(np.arctan(np.exp(log_tan)), k * _sine_from_log_tan(log_tan), np.abs(residual(log_k, alpha)))


def _log_tan_from_k(alpha: np.ndarray, k: np.ndarray, flip: float) -> np.ndarray:
    """Compute ln tan(theta) from k by the second equation of maximum stability."""
    return -np.log(alpha * label_field_correlation(flip) * _mean_positive_part(k))


def _mean_positive_part(k: np.ndarray) -> np.ndarray:
    """Compute the mean of (k - t)_+ for a standard normal t, which is k Phi(k) + phi(k)."""
    return np.asarray(k * ndtr(k) + normal_density(k))


def _solve_random_label_curve(alpha: np.ndarray) -> LearnerCurve:
    """Solve for the stability whose capacity for random labels equals alpha."""

    def residual(log_kappa: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        return np.log(capacity(np.exp(log_kappa)) / alpha)

    log_kappa = _find_root(residual, MIN_LOG_BRACKET, MAX_LOG_BRACKET, (alpha,), "max_stability")
    return LearnerCurve(np.full_like(alpha, np.pi / 2), np.exp(log_kappa), np.abs(residual(log_kappa, alpha)))


def _solve_max_stability_log_tan(kappa: np.ndarray, flip: np.ndarray | float) -> np.ndarray:
    """Solve for ln tan(theta) of a perceptron with maximum stability `kappa`."""
    return _find_root(
        _max_stability_residual, LOG_TAN_BRACKET[0], LOG_TAN_BRACKET[1], (kappa, np.asarray(flip)), "max_stability"
    )


def _max_stability_residual(log_tan: np.ndarray, kappa: np.ndarray, flip: np.ndarray | float) -> np.ndarray:
    """Compute the logarithm of R I(s, k) / (a [k Phi(k) + phi(k)]), which decreases with the angle."""
    R, k = _cosine_from_log_tan(log_tan), kappa / _sine_from_log_tan(log_tan)
    return np.log(R * _lifting_integral(log_tan, k, flip) / (label_field_correlation(flip) * _mean_positive_part(k)))


def _lifting_integral(log_tan: np.ndarray, k: np.ndarray, flip: np.ndarray | float) -> np.ndarray:
    """Compute the integral I(s, k) of the equations of maximum stability."""
    flip = np.asarray(flip)[..., None]
    s, R = _sine_from_log_tan(log_tan), _cosine_from_log_tan(log_tan)
    sigmoid = 9 / np.maximum(R, 1e-3)
    edges = np.stack(
        [
            -GAUSSIAN_CUTOFF / s,
            -GAUSSIAN_CUTOFF / s / 2,
            -sigmoid,
            -sigmoid / 2,
            0 * s,
            sigmoid / 2,
            sigmoid,
            GAUSSIAN_CUTOFF / s / 2,
            k,
        ]
    )
    edges = np.sort(np.clip(edges, -GAUSSIAN_CUTOFF / s, np.minimum(k, GAUSSIAN_CUTOFF / s)), axis=0)
    t, weight = make_composite_rule(edges)
    right = flip + (1 - 2 * flip) * ndtr(R[..., None] * t)
    return np.sum(weight * 2 * normal_density(s[..., None] * t) * right * (k[..., None] - t) ** 2, axis=-1)


def _sine_from_log_tan(log_tan: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * np.logaddexp(0, -2 * log_tan))


def _cosine_from_log_tan(log_tan: np.ndarray) -> np.ndarray:
    return _sine_from_log_tan(-log_tan)


def _find_root(
    residual: Callable[..., np.ndarray], low: float, high: float, args: tuple[np.ndarray, ...], learner: str
) -> np.ndarray:
    """Find the roots of the equation of a learning curve or a capacity between `low` and `high`.

    Raises `SolverError` with the arguments of failed elements.
    """
    root = find_zeros(residual, low, high, args)
    if not np.all(root.success):
        values = ", ".join(f"{value:g}" for value in np.atleast_1d(args[0])[~np.atleast_1d(root.success)][:5])
        raise SolverError(f"the equations of {learner} are not solved at {values}")
    return root.x


CurveEquations = Callable[[np.ndarray, float], LearnerCurve]


def _extend_to_flips_with_nan(curve: Callable[[np.ndarray], LearnerCurve]) -> CurveEquations:
    """Extend the equations of a learner's learning curve to flip > 0 with NaN.

    With flipped labels the version space does not contain the teacher, and the equations do not hold.
    """

    def equations(alpha: np.ndarray, flip: float) -> LearnerCurve:
        return (
            curve(alpha) if flip == 0 else LearnerCurve(*(np.full(alpha.shape, np.nan) for _ in LearnerCurve._fields))
        )

    return equations


LEARNER_EQUATIONS: dict[str, CurveEquations] = {
    "hebb": solve_hebb,
    "pseudo_inverse": solve_pseudo_inverse,
    "gibbs": _extend_to_flips_with_nan(solve_gibbs),
    "max_stability": solve_max_stability,
    "bayes": _extend_to_flips_with_nan(solve_bayes),
}


def learning_curves(alphas: ArrayLike, flip: float = 0.0) -> xr.Dataset:
    r"""Compute the generalization error of each learner of P = alpha N stored examples, for N -> infinity.

    .. math:: \epsilon_g = \arccos(R)/\pi

    For the equations and their sources see `theory.stored_examples.learning_curves_and_bounds`.

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
    """Solve the equations of a learner's learning curve at each alpha.

    Raises `SolverError`, which names an alpha, if the equations are not solved.
    """
    curve = LEARNER_EQUATIONS[name](alpha, flip)
    off = alpha[curve.residual > LEARNER_RESIDUAL_TOL]
    if off.size:
        raise SolverError(f"the equations of {name} were not solved at alpha = {off[0]:g}: their residual is too large")
    return curve


def separable_fraction(P: ArrayLike, N: ArrayLike) -> np.ndarray:
    r"""Compute the fraction of all :math:`2^P` labellings of P points that a perceptron in N dimensions can store.

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
    check_flip(flip)


def mistake_bound(radius: ArrayLike, margin: ArrayLike) -> np.ndarray:
    r"""Compute the upper bound of Block and Novikoff on the number of a perceptron's mistakes on stored examples.

    .. math:: M \le (R/\gamma)^2

    With inputs of length :math:`\sqrt N` and a stability :math:`\kappa` the bound is :math:`N/\kappa^2`.

    Parameters
    ----------
    radius : array_like
        Length of the longest example.
    margin : array_like
        Margin of a student of unit length (`simulate.margin`). It broadcasts with `radius`.

    Returns
    -------
    array
        The bound, infinite where the margin is not positive.

    Raises
    ------
    ScenarioError
        For a negative radius.

    Examples
    --------
    >>> mistake_bound(1.0, [0.5, 0.1, -0.2])
    array([  4., 100.,  inf])
    """
    radius, margin = np.asarray(radius, float), np.asarray(margin, float)
    if not np.all(radius >= 0):
        raise ScenarioError([(("radius",), "must not be negative")])
    safe = np.where(margin > 0, margin, 1.0)
    return np.where(margin > 0, (radius / safe) ** 2, np.inf)
