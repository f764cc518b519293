r"""Thresholds in alpha: linear separability, recovery of the teacher, and Bayes-optimal transitions.

**Recovery** means that the minimum of a loss of noiseless outputs is the teacher itself. Then s and V
(`theory.convex.saddle_point`) are 0 at a fixed ratio. Let :math:`\sigma` be the slope of the loss next to its kink at
0, infinite in the limit of a vanishing penalty, and :math:`u = \sigma V/s`. A residual is pulled to 0 if it is smaller
than u, so that :math:`A = a(u) = 2\Phi(u)-1` and :math:`B = s^2 b(u)`, :math:`b(u) = \langle\min(z^2, u^2)\rangle`. The
hats are :math:`\hat V = \alpha a/V\to\infty` and :math:`\hat q = \alpha b\,(\sigma/u)^2`. The student follows each
nonzero weight of the teacher. Where the teacher's weight is 0, the student's is the soft threshold of
:math:`\sqrt{\hat q}\,\xi`. With :math:`\tau = \lambda_1/\sqrt{\hat q}` and a fraction :math:`\rho` of weights that are
not 0

.. math:: \alpha a(u) = \rho + 2(1-\rho)\Phi(-\tau)

is the equation of V, and the error grows in each step of the iteration to its solution by the factor

.. math:: \frac{s'^2}{s^2} = \left(\frac u{\sigma\alpha a}\right)^2
          \left\{\hat q\rho + 2(1-\rho)\,\hat q\left[(1+\tau^2)\Phi(-\tau)-\tau\varphi(\tau)\right]
          + \langle(\lambda_1\mathrm{sgn}\,w^* + \lambda_2w^*)^2\rangle\right\} .

The teacher is recovered where this factor is below 1. For :math:`\sigma\to\infty` and an l1 norm alone this is the
threshold of basis pursuit,

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

**Tables of thresholds.** `separability` and `l1_recovery` compute the thresholds for arrays of parameters.

**Transitions.** `transitions` finds the alpha where the recovered teacher becomes the Bayes-optimal state, and the
alpha where message passing reaches it (`theory.convex.bayes_optimal`).
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from statmech.convex.losses import Loss, Penalty
from statmech.convex.separability_thresholds import compute_separability_threshold
from statmech.convex.teachers import TEACHERS, LabelTeacher, LinearTeacher, Teacher
from statmech.convex.weight_distributions import Sparse, WeightDistribution
from statmech.errors import ScenarioError
from statmech.inputs.covariance_modes import Modes
from statmech.inputs.input_distributions import InputPopulation
from statmech.numerics.gaussian import normal_cdf, normal_density
from statmech.parameters.parameter_fields import get_parameters
from theory.convex.bayes_optimal import (
    SCANNED_LOG_PRECISIONS,
    StationaryStateScan,
    find_stable_states,
    is_noiseless,
    make_inference_cell,
    scan_stationary_states,
)

LABEL_TEACHER_NAMES = tuple(name for name, kind in TEACHERS.items() if issubclass(kind, LabelTeacher))
MAX_THRESHOLD_DEVIATIONS = 40.0  # upper end of root brackets, in standard deviations


def recovers_teacher(
    loss: Loss,
    teacher: Teacher,
    penalty: Penalty,
    weights: WeightDistribution,
    alpha: np.ndarray,
    lam: np.ndarray,
    inputs: InputPopulation | None = None,
) -> np.ndarray:
    """Return True above the recovery threshold, where the minimum of the penalised loss is the teacher (batch,).

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
    force = float(loss.one_sided_slopes(0.0)[1]) if 0.0 in loss.kinks else 0.0
    pairs = zip(alpha.tolist(), lam.tolist(), strict=True)
    if inputs:
        return np.array([_recovers_in_modes(force, inputs.modes, *pair) for pair in pairs], bool)
    return np.array([_recovers_isotropic(force, penalty, weights, *pair) for pair in pairs], bool)


def _recovers_isotropic(
    kink_slope: float, penalty: Penalty, weights: WeightDistribution, alpha: float, lam: float
) -> bool:
    """Return True above the recovery threshold of isotropic inputs, for a slope `kink_slope` next to the kink."""
    if lam == 0 and alpha >= 1:
        return True
    if lam == 0:
        return bool(penalty.share) and _is_recovery_stable(weights, alpha, penalty.share, 1 - penalty.share, np.inf)
    return kink_slope > 0 and _is_recovery_stable(
        weights, alpha, lam * penalty.share, lam * (1 - penalty.share), kink_slope
    )


def _recovers_in_modes(kink_slope: float, modes: Modes, alpha: float, lam: float) -> bool:
    """Return True above the recovery threshold of inputs of unequal variance under an l2 penalty."""
    rank = modes.rank_fraction
    if lam == 0 or kink_slope == 0 or alpha <= rank:
        return lam == 0 and alpha >= rank
    u = _solve_residual_cutoff(alpha / rank, 1.0, 0.0)
    pulled, ratio, varying = alpha * _compute_pulled_fraction(u), u / kink_slope, modes.variances > 0
    bias = np.sum((modes.powers * (modes.ridge / np.where(varying, modes.variances, 1)) ** 2)[varying])
    return bool((rank * alpha * _clipped_normal_mean_square(u) / ratio**2 + lam**2 * bias) * (ratio / pulled) ** 2 < 1)


def _is_recovery_stable(weights: WeightDistribution, alpha: float, l1: float, l2: float, kink_slope: float) -> bool:
    """Return True above the recovery threshold, where iterating the saddle-point equations reduces a small error."""
    rho = sum(fraction for fraction, mean, variance in weights.pieces if mean or variance)
    if alpha <= rho:
        return False
    if np.isinf(kink_slope):
        tau = _find_soft_threshold(alpha, rho)
        q, pulled, ratio = (l1 / tau) ** 2, alpha, np.sqrt(alpha) * tau / l1
    else:
        u = _solve_residual_cutoff(alpha, rho, l1 / kink_slope)
        pulled, ratio = alpha * _compute_pulled_fraction(u), u / kink_slope
        q = alpha * _clipped_normal_mean_square(u) / ratio**2
        tau = l1 / np.sqrt(q)
    square = q * rho + (1 - rho) * q * _soft_threshold_mean_square(tau) + _penalty_gradient_mean_square(weights, l1, l2)
    return bool(square * (ratio / pulled) ** 2 < 1)


def compute_response_at_recovery(penalty: Penalty, weights: WeightDistribution, alpha: float) -> float:
    """Compute the product of curvature and V for a smooth loss above its recovery threshold as the penalty vanishes.

    >>> from statmech.convex.weight_distributions import Gauss
    >>> (
    ...     round(compute_response_at_recovery(Penalty(1.0), Sparse(0.1), 0.5), 4),
    ...     compute_response_at_recovery(Penalty(0.0), Gauss(), 1.5)
    ... )
    (0.4037, 2.0)
    """
    from scipy.optimize import brentq

    rho = sum(fraction for fraction, mean, variance in weights.pieces if mean or variance)
    if rho == 1 or penalty.share == 0:
        return 1 / (alpha - 1) if alpha > 1 else np.inf
    bias = _penalty_gradient_mean_square(weights, 1.0, (1 - penalty.share) / penalty.share)

    def slope(tau: float) -> float:  # M'/2
        return bias * tau - 2 * (1 - rho) * float(normal_density(tau) - tau * normal_cdf(-tau))

    def excess(tau: float) -> float:
        return rho + bias * tau * tau + (1 - rho) * _soft_threshold_mean_square(tau) - alpha

    tau = brentq(
        excess, brentq(slope, 0.0, MAX_THRESHOLD_DEVIATIONS, xtol=1e-15), np.sqrt(alpha / bias) + 1, xtol=1e-15
    )
    n = rho + 2 * (1 - rho) * float(normal_cdf(-tau))
    return n / (alpha - n)


def _find_soft_threshold(alpha: float, rho: float) -> float:
    """Return the soft threshold that leaves a fraction alpha of the weights nonzero."""
    from scipy.special import ndtri

    return -float(ndtri((alpha - rho) / (2 * (1 - rho))))


def _solve_residual_cutoff(alpha: float, rho: float, l1: float) -> float:
    """Solve a recovery threshold's equation of V for the residual cutoff u, with `l1` in units of the loss's slope."""
    from scipy.optimize import brentq

    def excess(u: float) -> float:
        return (
            alpha * _compute_pulled_fraction(u)
            - rho
            - 2 * (1 - rho) * float(normal_cdf(-l1 * u / np.sqrt(alpha * _clipped_normal_mean_square(u))))
        )

    return (
        float(brentq(excess, 1e-12, MAX_THRESHOLD_DEVIATIONS, xtol=1e-14))
        if excess(MAX_THRESHOLD_DEVIATIONS) > 0
        else MAX_THRESHOLD_DEVIATIONS
    )


def _compute_pulled_fraction(u: float) -> float:
    """Compute a(u), the fraction of residuals that training sets to 0."""
    return float(1 - 2 * normal_cdf(-u))


def _clipped_normal_mean_square(u: float) -> float:
    """Compute b(u), the mean square of a standard normal variable clipped to [-u, u]."""
    from scipy.special import gammainc

    return float(gammainc(1.5, 0.5 * u * u) + 2 * u * u * normal_cdf(-u))


def _soft_threshold_mean_square(tau: float) -> float:
    """Compute the mean square of a soft-thresholded standard normal variable."""
    return 2 * float((1 + tau * tau) * normal_cdf(-tau) - tau * normal_density(tau))


def _penalty_gradient_mean_square(weights: WeightDistribution, l1: float, l2: float) -> float:
    """Compute the mean square of l1 sgn(w) + l2 w for a recovery threshold, with zero weights counted as 0."""
    total = l2 * l2
    for fraction, mean, variance in weights.pieces:
        width = np.sqrt(variance)
        size = abs(mean)
        if width:
            size = 2 * width * normal_density(mean / width) + mean * (1 - 2 * normal_cdf(-mean / width))
        total += fraction * ((l1 * l1 if mean or width else 0.0) + 2 * l1 * l2 * size)
    return float(total)


def get_recovery_threshold(teacher: Teacher, penalty: Penalty, weights: WeightDistribution) -> float:
    """Return the alpha required to recover sparse weights from noiseless outputs by an l1 penalty.

    The threshold is NaN for other teachers, penalties and weights.
    """
    exact = isinstance(teacher, LinearTeacher) and teacher.noise == 0 and penalty.share == 1
    return find_l1_recovery_threshold(weights.rho) if exact and isinstance(weights, Sparse) else np.nan


@cache
def find_l1_recovery_threshold(rho: float) -> float:
    """Compute the threshold in alpha for recovering weights with a nonzero fraction rho by the minimum l1 norm.

    >>> round(find_l1_recovery_threshold(0.4), 6)
    0.749739
    """
    from scipy.optimize import brentq

    if rho == 1:
        return 1.0

    def pull(tau: float) -> float:  # half the derivative with respect to tau
        return rho * tau - 2 * (1 - rho) * float(normal_density(tau) - tau * normal_cdf(-tau))

    tau = brentq(pull, 0.0, MAX_THRESHOLD_DEVIATIONS, xtol=1e-15, rtol=1e-14)
    return float(rho * (1 + tau * tau) + (1 - rho) * _soft_threshold_mean_square(tau))


def separability(
    teacher: str = "sign",
    *,
    flip: ArrayLike | None = None,
    gain: ArrayLike | None = None,
    noise: ArrayLike | None = None,
) -> np.ndarray:
    r"""Compute the threshold in alpha for linear separability of a teacher's labels.

    For smaller alpha, labels are separable and logistic regression without a penalty has no solution. With v the
    teacher's field times its label and :math:`\xi` a standard normal,

    .. math:: \frac1{\alpha_c} = \min_t\,\langle(\xi - tv)_+^2\rangle

    (Candes & Sur 2020, eq 3, there with an intercept). With flips it is `noisy_capacity`.

    Parameters
    ----------
    teacher
        "sign" (with `flip`), "probit" (`noise`, the standard deviation) or "logit" (`gain`).
    flip, gain, noise : array_like
        The parameter of the teacher, by default no flips, no noise and gain 1.

    Returns
    -------
    array
        P/N, in the shape of the parameter: 2 for labels independent of the teacher, infinite for labels without noise.

    Raises
    ------
    ScenarioError
        For another teacher, a parameter that this teacher does not have, or a value outside its bounds.

    Examples
    --------
    >>> separability("logit", gain=[1, 5]).round(6)
    array([2.278221, 5.403891])
    >>> separability("sign", flip=[0, 0.1]).round(6)
    array([     inf, 2.992286])
    """
    parameters = {
        name: value for name, value in (("flip", flip), ("gain", gain), ("noise", noise)) if value is not None
    }
    kind = _check_label_teacher(teacher, parameters)
    names = [field.name for field in fields(kind)]
    values = np.broadcast_arrays(*(np.asarray(parameters.get(name, getattr(kind(), name)), float) for name in names))
    points = zip(*(value.ravel().tolist() for value in values), strict=True)
    alphas = [compute_separability_threshold(kind(**dict(zip(names, point, strict=True)))) for point in points]
    return np.array(alphas).reshape(values[0].shape)[()]


def _check_label_teacher(name: str, parameters: dict[str, ArrayLike]) -> type[LabelTeacher]:
    """Return the class of the label teacher of a separability threshold after checking the given parameters."""
    kind = TEACHERS.get(name)
    if kind is None or not issubclass(kind, LabelTeacher):
        raise ScenarioError([(("teacher",), f"must be one of {', '.join(LABEL_TEACHER_NAMES)}, not {name}")])
    keys = get_parameters(kind)
    for key, values in parameters.items():
        if key not in keys:
            raise ScenarioError([((key,), f"teacher {name} takes {', '.join(keys)}, not {key}")])
        for value in np.ravel(values).tolist():
            if problem := keys[key].problem(value):
                raise ScenarioError([((key,), problem)])
    return kind


def l1_recovery(rho: ArrayLike) -> np.ndarray:
    r"""Compute the threshold in alpha for recovering sparse weights from noiseless outputs by the minimum l1 norm.

    .. math:: \alpha_c = \min_\tau\,\left\{\rho(1+\tau^2)
              + 2(1-\rho)\left[(1+\tau^2)\Phi(-\tau) - \tau\varphi(\tau)\right]\right\}

    (Donoho & Tanner 2009; in this form Donoho, Maleki & Montanari 2009, eq 4).

    Parameters
    ----------
    rho : array_like
        Fraction of nonzero weights, above 0 and at most 1.

    Returns
    -------
    array
        Examples per weight, in the shape of `rho`.

    Raises
    ------
    ScenarioError
        For rho outside (0, 1].

    Examples
    --------
    >>> l1_recovery([0.1, 0.2, 0.4, 1]).round(6)
    array([0.328794, 0.51113 , 0.749739, 1.      ])
    """
    rho = np.asarray(rho, float)
    bad = rho[~((rho > 0) & (rho <= 1))]
    if bad.size:
        raise ScenarioError([(("rho",), f"must be greater than 0 and at most 1, not {bad[0]:g}")])
    return np.array([find_l1_recovery_threshold(value) for value in rho.ravel().tolist()]).reshape(rho.shape)[()]


class Transitions(NamedTuple):
    """Thresholds of first-order transitions, NaN if the overlap is a continuous function of alpha."""

    alpha_it: float
    alpha_alg: float


def transitions(prior: str, teacher: str = "sign", **parameters: float) -> Transitions:
    r"""Find the information-theoretic and algorithmic thresholds in alpha for recovering a teacher.

    At alpha_it the state of the recovered teacher (with noise: the state of small error) has the same free entropy as
    the state that message passing reaches from the prior. At alpha_alg, the first maximum of
    :math:`\alpha(\hat q) = \hat q/I(\Delta(\hat q))`, it becomes the only state. For the equations see
    `theory.convex.bayes_optimal`.

    Parameters
    ----------
    prior : str
        Distribution of the teacher's weights: `gauss`, `binary`, `sparse`.
    teacher : str
        `sign`, `probit`, `logit` or `linear`.
    **parameters
        Of prior and teacher: `rho`, `flip`, `noise`, `gain`.

    Returns
    -------
    Transitions
        `alpha_it` and `alpha_alg`, NaN if the overlap is a continuous function of alpha. They are equal if the overlap
        reaches 1 continuously, as for Gaussian weights and outputs without noise.

    Raises
    ------
    ScenarioError
        For an unknown name, or a value out of bounds.

    Examples
    --------
    >>> [round(alpha, 6) for alpha in transitions("binary")]       # Gyorgyi 1990: 1.245
    [1.244684, 1.492632]
    >>> [round(alpha, 6) for alpha in transitions("sparse", "linear", rho=0.4)]
    [0.4, 0.589246]
    >>> transitions("gauss", "logit", gain=2.0)
    Transitions(alpha_it=nan, alpha_alg=nan)
    """
    cell = make_inference_cell(prior, teacher, parameters)
    return Transitions(*find_transition_alphas(cell.teacher, cell.weights))


def find_transition_alphas(teacher: Teacher, weights: WeightDistribution) -> tuple[float, float]:
    """Find the information-theoretic and algorithmic thresholds (alpha_it, alpha_alg), or NaN.

    Free entropies are equal at alpha_it, and alpha(precision) has its first maximum at alpha_alg.

    >>> from statmech.convex.teachers import SignTeacher
    >>> from statmech.convex.weight_distributions import Binary
    >>> [round(alpha, 9) for alpha in find_transition_alphas(SignTeacher(), Binary())]
    [1.24468399, 1.492631818]
    """
    scan = scan_stationary_states(teacher, weights)
    first = scan.rising_parts[0]
    if (
        len(scan.rising_parts) == 1 and first.log_precision[-1] == SCANNED_LOG_PRECISIONS[-1]
    ):  # alpha(precision) is monotone
        limit = scan.recovery_alpha if is_noiseless(teacher) else np.nan
        return limit, limit
    highest = float(np.exp(first.log_alpha[-1]))
    return _find_equal_entropy_alpha(teacher, weights, scan, highest), highest


def _find_equal_entropy_alpha(
    teacher: Teacher, weights: WeightDistribution, scan: StationaryStateScan, max_alpha: float
) -> float:
    """Find the threshold where the free entropy of a later state equals the free entropy of the first state."""
    from scipy.optimize import brentq

    if is_noiseless(teacher):
        return scan.recovery_alpha

    def gain(log_alpha: float) -> float:
        first_entropy, *later_entropies = (
            state.free_entropy[0] for state in find_stable_states(teacher, weights, np.exp([log_alpha]))
        )
        return float(np.nanmax(later_entropies) - first_entropy)

    lowest = min([scan.recovery_alpha, *(float(np.exp(part.log_alpha[0])) for part in scan.rising_parts[1:])])
    low, high = np.log(max(lowest, 1e-9 * max_alpha)) + 1e-12, np.log(max_alpha) - 1e-12
    return float(np.exp(brentq(gain, low, high, xtol=1e-15)))
