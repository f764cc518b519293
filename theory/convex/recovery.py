r"""Exact recovery: conditions for the minimum of a loss of noiseless outputs to be the teacher itself.

Then s and V are 0 at a fixed ratio. Let :math:`\sigma` be the slope of the loss next to its kink at 0, infinite in the
limit of a vanishing penalty, and :math:`u = \sigma V/s`. A residual is pulled to 0 if it is smaller than u, so that
:math:`A = a(u) = 2\Phi(u)-1` and :math:`B = s^2 b(u)`, :math:`b(u) = \langle\min(z^2, u^2)\rangle`. The hats are
:math:`\hat V = \alpha a/V\to\infty` and :math:`\hat q = \alpha b\,(\sigma/u)^2`. The student follows each nonzero
weight of the teacher. Where the teacher's weight is 0, the student's is the soft threshold of
:math:`\sqrt{\hat q}\,\xi`. With
:math:`\tau = \lambda_1/\sqrt{\hat q}` and a fraction :math:`\rho` of weights that are not 0

.. math:: \alpha a(u) = \rho + 2(1-\rho)\Phi(-\tau)

is the equation of V, and the error grows in each step of the iteration to its solution by the factor

.. math:: \frac{s'^2}{s^2} = \left(\frac u{\sigma\alpha a}\right)^2
          \left\{\hat q\rho + 2(1-\rho)\,\hat q\left[(1+\tau^2)\Phi(-\tau)-\tau\varphi(\tau)\right]
          + \langle(\lambda_1\mathrm{sgn}\,w^* + \lambda_2w^*)^2\rangle\right\} .

The teacher is recovered where it is below 1. For :math:`\sigma\to\infty` and an l1 norm alone this is the threshold of
basis pursuit,

.. math:: \alpha_c(\rho) = \min_\tau\,\left\{\rho(1+\tau^2) + 2(1-\rho)\left[(1+\tau^2)\Phi(-\tau) - \tau\varphi(\tau)
          \right]\right\}

(Donoho & Tanner 2009; in this form Donoho, Maleki & Montanari 2009, eq 4).

**V as the penalty vanishes.** Where the loss has no kink, s is proportional to :math:`\lambda` and V has a limit. With
its curvature c, :math:`\hat V = \alpha c/(1+cV)` and :math:`\hat q = \alpha c^2s^2/(1+cV)^2`, the mean square error
:math:`s^2` of the weights is :math:`\hat q M(\tau)/\hat V^2`, so that

.. math:: M(\tau) = \rho + \tau^2\,\langle(\mathrm{sgn}\,w^*+\lambda_2w^*/\lambda_1)^2\rangle
          + 2(1-\rho)\left[(1+\tau^2)\Phi(-\tau) - \tau\varphi(\tau)\right] = \alpha, \qquad
          V = \frac n{c(\alpha-n)}, \quad n = \rho + 2(1-\rho)\Phi(-\tau)

where n is the fraction of nonzero weights. Since :math:`\alpha - n = \tau M'(\tau)/2`, V diverges at the transition,
the minimum of M, as :math:`(\alpha-\alpha_c)^{-1/2}`.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from statmech.convex.losses import Loss
from statmech.convex.penalties import Penalty
from statmech.convex.teachers import LinearTeacher, Teacher
from statmech.convex.weights import Sparse, Weights
from statmech.modes import Modes
from statmech.numerics.gaussian import cumulative, density
from statmech.population import Population

WIDE = 40.0  # standard deviations


def recovers(
    loss: Loss,
    teacher: Teacher,
    penalty: Penalty,
    weights: Weights,
    alpha: np.ndarray,
    lam: np.ndarray,
    inputs: Population | None = None,
) -> np.ndarray:
    """Return True where the minimum is the teacher itself (batch,).

    Parameters
    ----------
    loss, teacher, penalty, weights
        The learner, and the distribution of the teacher's weights.
    alpha
        Examples per weight (batch,).
    lam
        Strength of the penalty (batch,), 0 for the limit of a vanishing penalty.
    inputs
        Inputs of unequal variance, or None for isotropic inputs.
    """
    not_recovered = np.zeros(len(alpha), bool)
    if not isinstance(teacher, LinearTeacher) or teacher.noise or (inputs and inputs.modes.misfit):
        return not_recovered
    force = float(loss.slopes_at(0.0)[1]) if 0.0 in loss.kinks else 0.0
    pairs = zip(alpha.tolist(), lam.tolist(), strict=True)
    if inputs:
        return np.array([_recovers_in_modes(force, inputs.modes, *pair) for pair in pairs], bool)
    return np.array([_recovers(force, penalty, weights, *pair) for pair in pairs], bool)


def _recovers(force: float, penalty: Penalty, weights: Weights, alpha: float, lam: float) -> bool:
    """Return True if a loss with the slope `force` next to its kink recovers the teacher from isotropic inputs."""
    if lam == 0 and alpha >= 1:
        return True
    if lam == 0:
        return bool(penalty.share) and _contracts(weights, alpha, penalty.share, 1 - penalty.share, np.inf)
    return force > 0 and _contracts(weights, alpha, lam * penalty.share, lam * (1 - penalty.share), force)


def _recovers_in_modes(force: float, modes: Modes, alpha: float, lam: float) -> bool:
    """Return True if the teacher is recovered from inputs of unequal variance under an l2 penalty."""
    rank = modes.rank
    if lam == 0 or force == 0 or alpha <= rank:
        return lam == 0 and alpha >= rank
    u = _reach(alpha / rank, 1.0, 0.0)
    pulled, ratio, varying = alpha * _held(u), u / force, modes.variances > 0
    bias = np.sum((modes.powers * (modes.ridge / np.where(varying, modes.variances, 1)) ** 2)[varying])
    return bool((rank * alpha * _lifted(u) / ratio**2 + lam**2 * bias) * (ratio / pulled) ** 2 < 1)


def _contracts(weights: Weights, alpha: float, l1: float, l2: float, force: float) -> bool:
    """Return True if a small error shrinks under the iteration of the equations."""
    rho = sum(fraction for fraction, mean, variance in weights.pieces if mean or variance)
    if alpha <= rho:
        return False
    if np.isinf(force):
        tau = _tau(alpha, rho)
        q, pulled, ratio = (l1 / tau) ** 2, alpha, np.sqrt(alpha) * tau / l1
    else:
        u = _reach(alpha, rho, l1 / force)
        pulled, ratio = alpha * _held(u), u / force
        q = alpha * _lifted(u) / ratio**2
        tau = l1 / np.sqrt(q)
    square = q * rho + (1 - rho) * q * _thresholded(tau) + _bias(weights, l1, l2)
    return bool(square * (ratio / pulled) ** 2 < 1)


def vanishing_response(penalty: Penalty, weights: Weights, alpha: float) -> float:
    """Return cV, with c the curvature of a loss that recovers the teacher as the penalty vanishes.

    >>> from statmech.convex.weights import Gauss
    >>> round(vanishing_response(Penalty(1.0), Sparse(0.1), 0.5), 4), vanishing_response(Penalty(0.0), Gauss(), 1.5)
    (0.4037, 2.0)
    """
    from scipy.optimize import brentq

    rho = sum(fraction for fraction, mean, variance in weights.pieces if mean or variance)
    if rho == 1 or penalty.share == 0:
        return 1 / (alpha - 1) if alpha > 1 else np.inf
    bias = _bias(weights, 1.0, (1 - penalty.share) / penalty.share)

    def slope(tau: float) -> float:  # M'/2
        return bias * tau - 2 * (1 - rho) * float(density(tau) - tau * cumulative(-tau))

    def excess(tau: float) -> float:
        return rho + bias * tau * tau + (1 - rho) * _thresholded(tau) - alpha

    tau = brentq(excess, brentq(slope, 0.0, WIDE, xtol=1e-15), np.sqrt(alpha / bias) + 1, xtol=1e-15)
    n = rho + 2 * (1 - rho) * float(cumulative(-tau))
    return n / (alpha - n)


def _tau(alpha: float, rho: float) -> float:
    """Return the threshold that leaves a fraction alpha of the weights nonzero."""
    from scipy.special import ndtri

    return -float(ndtri((alpha - rho) / (2 * (1 - rho))))


def _reach(alpha: float, rho: float, l1: float) -> float:
    """Solve the equation of V for u. The unit of `l1` is the slope of the loss."""
    from scipy.optimize import brentq

    def excess(u: float) -> float:
        return alpha * _held(u) - rho - 2 * (1 - rho) * float(cumulative(-l1 * u / np.sqrt(alpha * _lifted(u))))

    return float(brentq(excess, 1e-12, WIDE, xtol=1e-14)) if excess(WIDE) > 0 else WIDE


def _held(u: float) -> float:
    """Return a(u), the fraction of residuals that are pulled to 0."""
    return float(1 - 2 * cumulative(-u))


def _lifted(u: float) -> float:
    """Return b(u), the mean square of a standard normal clipped to [-u, u]."""
    from scipy.special import gammainc

    return float(gammainc(1.5, 0.5 * u * u) + 2 * u * u * cumulative(-u))


def _thresholded(tau: float) -> float:
    """Return the mean square of the soft threshold of a standard normal."""
    return 2 * float((1 + tau * tau) * cumulative(-tau) - tau * density(tau))


def _bias(weights: Weights, l1: float, l2: float) -> float:
    """Return the mean square of l1 sgn(w) + l2 w over the nonzero weights."""
    total = l2 * l2
    for fraction, mean, variance in weights.pieces:
        width = np.sqrt(variance)
        size = abs(mean)
        if width:
            size = 2 * width * density(mean / width) + mean * (1 - 2 * cumulative(-mean / width))
        total += fraction * ((l1 * l1 if mean or width else 0.0) + 2 * l1 * l2 * size)
    return float(total)


def recovered_from(teacher: Teacher, penalty: Penalty, weights: Weights) -> float:
    """Return the smallest alpha that lets an l1 norm recover sparse weights from noiseless outputs.

    It is NaN for other teachers, penalties or weights.
    """
    exact = isinstance(teacher, LinearTeacher) and teacher.noise == 0 and penalty.share == 1
    return l1_threshold(weights.rho) if exact and isinstance(weights, Sparse) else np.nan


@cache
def l1_threshold(rho: float) -> float:
    """Return the smallest alpha that lets the minimum l1 norm recover weights with a nonzero fraction rho.

    >>> round(l1_threshold(0.4), 6)
    0.749739
    """
    from scipy.optimize import brentq

    if rho == 1:
        return 1.0

    def pull(tau: float) -> float:  # half the slope in tau
        return rho * tau - 2 * (1 - rho) * float(density(tau) - tau * cumulative(-tau))

    tau = brentq(pull, 0.0, WIDE, xtol=1e-15, rtol=1e-14)
    return float(rho * (1 + tau * tau) + (1 - rho) * _thresholded(tau))
