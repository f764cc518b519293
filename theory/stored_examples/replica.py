r"""Learning from P = alpha N stored examples in the limit N -> infinity: order parameters of each learner.

Inputs :math:`\xi\sim N(0, I)`, labels :math:`S = \pm\mathrm{sgn}(\mathbf w^*\cdot\xi)`, flipped with probability
:math:`p_f`. Write :math:`a = (1-2p_f)\sqrt{2/\pi}` for the correlation of label and teacher's field,
:math:`\theta` for the angle between student and teacher, :math:`R = \cos\theta`, :math:`s = \sin\theta`.

**Hebb**, :math:`\mathbf w = \sum_\mu S^\mu\xi^\mu`, is signal :math:`\alpha a` along the teacher and noise
:math:`\sqrt\alpha` across it: :math:`\tan\theta = 1/(a\sqrt\alpha)`.

**Pseudo-inverse** (Adaline). S is :math:`a v` and a rest of variance :math:`1-a^2`, uncorrelated with the teacher's
field v. Below :math:`\alpha = 1` all labels are met exactly by the shortest w, above it w is the least-squares fit:

.. math:: \tan^2\theta = \frac{1-\alpha a^2}{\alpha a^2(1-\alpha)} - 1 \ (\alpha < 1), \qquad
          \tan^2\theta = \frac{1-a^2}{a^2(\alpha-1)} \ (\alpha > 1)

(Opper, Kinzel, Kleinz & Nehl 1990 for :math:`p_f = 0`): at :math:`\alpha = 1`, where the fit becomes exact, its
length diverges and it generalises no better than a random guess.

**Gibbs** learning draws a student from the version space (no noise). Nishimori's identity makes the overlap of two
students equal to that with the teacher, q = R; with :math:`\gamma^2 = q/(1-q)` the saddle point of the entropy
:math:`\frac12\ln(1-q) + \frac q2 + 2\alpha\int Dt\,H(\gamma t)\ln H(\gamma t)` is

.. math:: q = \frac\alpha\pi\int Dt\,\frac{e^{-\gamma^2t^2}}{H(\gamma t)},

which gives :math:`\alpha` as a function of :math:`\gamma` (Gyorgyi & Tishby 1990). **Bayes**, the majority vote of the
version space, has the overlap :math:`\sqrt q` of its centre (Opper & Haussler 1991): :math:`\tan\theta = 1/\gamma`.

**Maximum stability.** At the edge q -> 1 of Gardner's volume a pattern of cavity stability :math:`h < \kappa` is lifted
to :math:`\kappa`, and :math:`1-R^2 = \alpha\langle(\kappa-h)_+^2\rangle` is stationary in R. The density of h is
:math:`2\varphi(h)[p_f + (1-2p_f)\Phi(hR/s)]`; in units of s, :math:`k = \kappa/s`, both equations stay of order
one for all :math:`\alpha`:

.. math:: \frac1{\alpha s} &= I(s, k) = \int_{-\infty}^k 2\varphi(st)[p_f+(1-2p_f)\Phi(Rt)](k-t)^2\,dt, \\
          \frac R{\alpha s} &= a\,[k\,\Phi(k) + \varphi(k)]

(Opper, Kinzel, Kleinz & Nehl 1990 for :math:`p_f = 0`). The second states the angle,
:math:`\cot\theta = \alpha a\,[k\,\Phi(k) + \varphi(k)]`, so that one unknown is left, k. With noise the stability
vanishes at :math:`\alpha_c(p_f)`, beyond which no perceptron is right on all examples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr

from statmech.errors import ScenarioError, SolverError
from statmech.numerics.gaussian import NODES, TAIL, composite_legendre, density
from statmech.numerics.zeros import zeros

LOWEST, HIGHEST = -60.0, 60.0  # brackets of logarithms: of gamma, of kappa and of k
WIDEST = (-90.0, 90.0)  # of tan(theta)
TOLERANCE = 1e-9  # largest residual of a solution


class Curve(NamedTuple):
    """A learner's state at each alpha, arrays of one shape.

    `theta` is the angle to the teacher, `kappa` the smallest stability, `residual` the relative residual of the
    equations (0 for a closed form).
    """

    theta: np.ndarray
    kappa: np.ndarray
    residual: np.ndarray


def signal(flip: Any) -> Any:
    r"""The correlation :math:`a = (1-2p_f)\sqrt{2/\pi}` of a label with the teacher's field."""
    return (1 - 2 * flip) * float(np.sqrt(2 / np.pi))


def hebb(alpha: np.ndarray, flip: float) -> Curve:
    """The sum of all examples times their labels. Its stabilities are Gaussian, unbounded below."""
    theta = np.arctan2(1.0, signal(flip) * np.sqrt(alpha))
    return Curve(theta, np.full_like(theta, -np.inf), np.zeros_like(theta))


def pseudo_inverse(alpha: np.ndarray, flip: float) -> Curve:
    """The shortest w with fields S below alpha = 1, where all stabilities are equal; the least-squares fit above."""
    a2 = signal(flip) ** 2
    below = alpha < 1
    inside = np.where(below, alpha, 0.5)
    tan2_numerator = np.where(below, 1 - a2 * inside * (2 - inside), 1 - a2)
    tan2_denominator = np.where(below, a2 * inside * (1 - inside), a2 * (alpha - 1))
    theta = np.arctan2(np.sqrt(tan2_numerator), np.sqrt(tan2_denominator))
    kappa = np.where(below, np.sqrt((1 - inside) / (inside * (1 - a2 * inside))), -np.inf)
    return Curve(theta, kappa, np.zeros_like(theta))


def gibbs(alpha: np.ndarray) -> Curve:
    """A student drawn from the version space: cos(theta) = q = R. Its smallest stability is 0."""
    q_angle, residual = _version_space(alpha)
    # 1 - q = 1/(1 + gamma^2), and gamma = 1 / tan of the Bayes angle
    theta = 2 * np.arcsin(np.sin(q_angle) / np.sqrt(2))
    return Curve(theta, np.zeros_like(theta), residual)


def bayes(alpha: np.ndarray) -> Curve:
    """The version space's majority vote, and its centre, whose overlap with the teacher is sqrt(q)."""
    theta, residual = _version_space(alpha)
    return Curve(theta, np.full_like(theta, np.nan), residual)


def max_stability(alpha: np.ndarray, flip: float) -> Curve:
    """The perceptron of maximum stability; NaN for alpha >= alpha_c(flip), where none is right on all examples."""
    consistent = alpha < noisy_capacity(flip)
    curve = Curve(*(np.full(alpha.shape, np.nan) for _ in Curve._fields))
    if np.any(consistent):
        solved = _random_labels(alpha[consistent]) if flip == 0.5 else _most_stable(alpha[consistent], flip)
        for whole, part in zip(curve, solved, strict=True):
            whole[consistent] = part
    return curve


def capacity(kappa: ArrayLike = 0.0) -> np.ndarray:
    r"""Storage capacity of random labels: the largest alpha at which a perceptron of stability kappa exists.

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
        P/N, of the shape of `kappa`.

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
    return 1 / ((1 + kappa**2) * ndtr(kappa) + kappa * density(kappa))


def noisy_capacity(flip: ArrayLike, kappa: ArrayLike = 0.0) -> np.ndarray:
    r"""Capacity for a teacher's noisy labels: the largest alpha at which a perceptron of stability kappa exists.

    With :math:`s = \sin\theta` and I(s, k) of `theory.stored_examples.replica`, at the angle where both equations of
    maximum stability hold,

    .. math:: R\,I(s, \kappa/s) = a\,[k\,\Phi(k) + \varphi(k)],\ k = \kappa/s, \qquad
              \alpha_c = \frac1{s\,I(s, \kappa/s)}

    (Opper, Kinzel, Kleinz & Nehl 1990 for flip = 0).

    Parameters
    ----------
    flip : array_like
        Probability that a label is flipped, from 0 to 0.5.
    kappa : array_like
        Stability, 0 or more; broadcasts with `flip`. At 0 no perceptron is right on all examples beyond the capacity.

    Returns
    -------
    array
        P/N, of the broadcast shape. Infinite for flip = 0 and kappa = 0; `capacity(kappa)` for the random labels of
        flip = 0.5.

    Raises
    ------
    ScenarioError
        For flip outside [0, 0.5] or kappa < 0.
    SolverError
        If the equation of the angle is not solved.

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
    solved = (flips < 0.5) & np.isfinite(alpha)
    if np.any(solved):
        alpha[solved] = _noisy_capacity(flips[solved], kappas[solved])
    return alpha[()]


def _noisy_capacity(flip: np.ndarray, kappa: np.ndarray) -> np.ndarray:
    log_tan = _angle(kappa, flip)
    s = _sine(log_tan)
    return 1 / (s * _lifted(log_tan, kappa / s, flip))


def check_flip(flip: ArrayLike) -> None:
    """Raise `ScenarioError` for a probability of noise outside [0, 0.5]."""
    flip = np.atleast_1d(flip)
    bad = flip[~((flip >= 0) & (flip <= 0.5))]
    if bad.size:
        raise ScenarioError([(("flip",), f"must lie between 0 and 0.5 (random labels), not {bad[0]:g}")])


def check_stability(kappa: ArrayLike) -> None:
    """Raise `ScenarioError` for a stability below 0."""
    kappa = np.atleast_1d(kappa)
    bad = kappa[~(kappa >= 0)]
    if bad.size:
        raise ScenarioError([(("kappa",), f"must be 0 or more (replica symmetry breaks below), not {bad[0]:g}")])


def _version_space(alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The angle arccos sqrt(q), and the residual."""

    def residual(log_gamma: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        gamma = np.exp(log_gamma)
        return np.log(np.pi * _entropic(gamma) ** -1 / alpha) + 2 * log_gamma - np.log1p(gamma**2)

    log_gamma = _root(residual, LOWEST, HIGHEST, (alpha,), "gibbs")
    return np.arctan(np.exp(-log_gamma)), np.abs(residual(log_gamma, alpha))


def _entropic(gamma: np.ndarray) -> np.ndarray:
    r""":math:`\int Dt\,e^{-\gamma^2t^2}/H(\gamma t)`; the integrand is as wide as the narrower of 1 and 1/gamma."""
    reach = np.minimum(TAIL, 14 / gamma)
    t, weight = composite_legendre(np.stack([-reach, 0 * reach, reach]), 2 * NODES)
    scaled = gamma[..., None] * t
    return np.sum(weight * density(t) * np.exp(-(scaled**2) - log_ndtr(-scaled)), axis=-1)


def _most_stable(alpha: np.ndarray, flip: float) -> Curve:
    """Maximum stability where it is positive: the angle is explicit in k = kappa/s, which is solved for."""

    def residual(log_k: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        k = np.exp(log_k)
        log_tan = _explicit_angle(alpha, k, flip)
        return np.log(alpha * _sine(log_tan) * _lifted(log_tan, k, flip))

    log_k = _root(residual, LOWEST, HIGHEST, (alpha,), "max_stability")
    k = np.exp(log_k)
    log_tan = _explicit_angle(alpha, k, flip)
    return Curve(np.arctan(np.exp(log_tan)), k * _sine(log_tan), np.abs(residual(log_k, alpha)))


def _explicit_angle(alpha: np.ndarray, k: np.ndarray, flip: float) -> np.ndarray:
    """log tan(theta) by the second equation."""
    return -np.log(alpha * signal(flip) * _pull(k))


def _pull(k: np.ndarray) -> np.ndarray:
    """k Phi(k) + phi(k)."""
    return np.asarray(k * ndtr(k) + density(k))


def _random_labels(alpha: np.ndarray) -> Curve:
    """Labels independent of the teacher: the stability at which their capacity is alpha."""

    def residual(log_kappa: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        return np.log(capacity(np.exp(log_kappa)) / alpha)

    log_kappa = _root(residual, LOWEST, HIGHEST, (alpha,), "max_stability")
    return Curve(np.full_like(alpha, np.pi / 2), np.exp(log_kappa), np.abs(residual(log_kappa, alpha)))


def _angle(kappa: np.ndarray, flip: np.ndarray | float) -> np.ndarray:
    """log tan(theta) of the perceptron of maximum stability `kappa`."""
    return _root(_balance, WIDEST[0], WIDEST[1], (kappa, np.asarray(flip)), "max_stability")


def _balance(log_tan: np.ndarray, kappa: np.ndarray, flip: np.ndarray | float) -> np.ndarray:
    """Logarithm of R I(s, k) over a (k Phi(k) + phi(k)), which decreases with the angle."""
    R, k = _cosine(log_tan), kappa / _sine(log_tan)
    return np.log(R * _lifted(log_tan, k, flip) / (signal(flip) * _pull(k)))


def _lifted(log_tan: np.ndarray, k: np.ndarray, flip: np.ndarray | float) -> np.ndarray:
    """I(s, k), panels cut at both ends of the sigmoid and of the Gaussian."""
    flip = np.asarray(flip)[..., None]
    s, R = _sine(log_tan), _cosine(log_tan)
    sigmoid = 9 / np.maximum(R, 1e-3)
    edges = np.stack([-TAIL / s, -TAIL / s / 2, -sigmoid, -sigmoid / 2, 0 * s, sigmoid / 2, sigmoid, TAIL / s / 2, k])
    edges = np.sort(np.clip(edges, -TAIL / s, np.minimum(k, TAIL / s)), axis=0)
    t, weight = composite_legendre(edges)
    right = flip + (1 - 2 * flip) * ndtr(R[..., None] * t)
    return np.sum(weight * 2 * density(s[..., None] * t) * right * (k[..., None] - t) ** 2, axis=-1)


def _sine(log_tan: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * np.logaddexp(0, -2 * log_tan))


def _cosine(log_tan: np.ndarray) -> np.ndarray:
    return _sine(-log_tan)


def _root(
    residual: Callable[..., np.ndarray], low: float, high: float, args: tuple[np.ndarray, ...], learner: str
) -> np.ndarray:
    """The zero of an elementwise function between `low` and `high`. Raises `SolverError` naming the failures."""
    root = zeros(residual, low, high, args)
    if not np.all(root.success):
        values = ", ".join(f"{value:g}" for value in np.atleast_1d(args[0])[~np.atleast_1d(root.success)][:5])
        raise SolverError(f"the equations of {learner} are not solved at {values}")
    return root.x
