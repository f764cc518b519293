r"""Penalty strengths that minimise the generalization error, in the limit N -> infinity.

The search minimises the angle to a teacher of labels, or the error of the field of a linear teacher. In both cases this
is the first unknown x_0 of the equations. Newton's method also gives the slope of x_0 in :math:`\ln\lambda`, and the
best lambda is a root of this slope. Solutions are followed from a large lambda to a small one, and every change of sign
of the slope is bracketed. `best_lambda` finds the penalties of all parameter combinations of a scenario, and theory of
`lam: best` uses the same search, interpolated along dense lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.polynomial import Chebyshev

from statmech.convex.losses import Loss, Penalty, Square
from statmech.convex.teachers import Teacher
from statmech.convex.weight_distributions import WeightDistribution
from statmech.inputs.input_distributions import InputPopulation
from statmech.kinds.empirical_risk import Risk, RiskCell
from statmech.stores.dataset import make_empty_dataset
from theory.convex.empirical_risk import make_convex_equations
from theory.convex.saddle_point import (
    ConvexEquations,
    PenaltyEquations,
    PenaltyPoint,
    SaddlePointSolution,
    estimate_moderate_l1_log_lambda,
    follow_solution,
    solve_saddle_point,
)
from theory.convex.thresholds import recovers_teacher

if TYPE_CHECKING:
    import xarray as xr

MAX_SEARCHED_LAMBDA, MIN_SEARCHED_LAMBDA = 1e6, 1e-10  # search range for the best lambda
MAX_SCANNED_L1_STRENGTH_RATIO = 16.0  # relative to the strength from `estimate_moderate_l1_log_lambda`
# fine enough for the hinge loss, whose minimum spans a factor of 10 in lambda
LOG_LAMBDA_SCAN_STEP = np.log(6.0)
L1_LOG_LAMBDA_SCAN_STEP = np.log(2.0)
# smaller slopes count as 0: the error of the hinge loss is flat at small and large lambda
FLAT_SLOPE_TOL = 1e-11
L1_FLAT_SLOPE_TOL = 1e-9
EQUAL_ERROR_TOL = 1e-9  # closer generalization errors count as equal
LOG_LAMBDA_TOL = 1e-6  # smallest step of the search, which leaves an error below 1e-10
LAMBDA_INTERPOLATION_DEGREE = 12  # degree of the Chebyshev polynomial in ln alpha
LAST_COEFFICIENT_REL_TOL = (
    1e-3  # relative to the smallest lambda; the interpolation is rejected if its last coefficients are larger
)
SCAN_RESIDUAL_TOL = 1e-6  # loose, since the last Newton step squares the residual
_BEST_LAMBDA_CACHE: dict[
    tuple[Loss, Teacher, Penalty, WeightDistribution, InputPopulation | None], dict[float, float]
] = {}
_BEST_LAMBDA_LOCK = Lock()  # simulations in several threads share the cache


def best_lambda(scenario: Risk) -> xr.DataArray:
    r"""Find the penalty that minimises the generalization error, in the limit N -> infinity.

    The error is measured on noiseless labels, or on the field of a linear teacher. For the square loss the best penalty
    does not depend on alpha: it equals :math:`(1-a^2)/a^2` for labels, with :math:`a^2 = (1-2f)^2\,2/\pi` for a sign
    teacher with flips f, and the variance of the noise for a linear teacher.

    Parameters
    ----------
    scenario : Risk
        The learner, teacher and inputs. `lam` and `N` are ignored.

    Returns
    -------
    xarray.DataArray
        On the sweep axes except lam and N: 0 where the error decreases as the penalty vanishes, infinite where it
        still decreases at lam = 1e6, NaN where the equations were not solved.

    Examples
    --------
    >>> from statmech.kinds.empirical_risk import Risk
    >>> scenario = Risk(loss=["square", "logistic"], alpha=3, flip=[0, 0.1], seeds=2)
    >>> best_lambda(scenario).values.round(6)
    array([[0.570796, 1.454369],
           [0.009296, 0.32169 ]])
    """
    config = scenario.config()
    if not scenario.sized:
        config["N"] = config["N"][0] if isinstance(config["N"], list) else config["N"]
    single = Risk(**{**config, "lam": 1.0})
    lambdas = make_empty_dataset(single, seeds=None).lam_best
    groups: dict[Any, list[RiskCell]] = {}
    for cell in single.cells():
        groups.setdefault(cell.loss_setting, []).append(cell)
    for members in groups.values():
        for cell, lam in zip(members, find_best_group_lambdas(members), strict=True):
            lambdas[cell.index] = lam
    return lambdas.drop_vars(["lam", "P", *([] if scenario.sized else ["N"])], errors="ignore").rename("best_lambda")


def find_best_group_lambdas(cells: Sequence[RiskCell]) -> list[float]:
    """Find the best lambda of each cell, where all cells have the same setting."""
    setting, alphas = cells[0].loss_setting, [cell.alpha for cell in cells]
    best = get_cached_best_lambdas(*setting.learner, alphas, setting.inputs)
    return [best[alpha] for alpha in alphas]


def interpolate_best_lambdas(cells: Sequence[RiskCell]) -> list[float]:
    """Find the best lambda of each cell by polynomial interpolation in ln alpha.

    Every alpha is solved if the polynomial does not converge. Near the best lambda, the error changes only by
    about 1e-6 if lambda changes by 1 %.
    """
    alphas = np.array([cell.alpha for cell in cells], float)
    if len(set(alphas)) <= LAMBDA_INTERPOLATION_DEGREE:
        return find_best_group_lambdas(cells)
    setting, ends = cells[0].loss_setting, [np.log(alphas.min()), np.log(alphas.max())]

    def solve_alphas(log_alpha: np.ndarray) -> np.ndarray:
        return find_best_lambda(*setting.learner, np.exp(log_alpha), setting.inputs)

    interpolation = Chebyshev.interpolate(solve_alphas, LAMBDA_INTERPOLATION_DEGREE, ends)
    line = interpolation(np.log(alphas))
    # the last coefficients are not small if there are NaN, infinities, jumps or kinks
    if np.all(np.abs(interpolation.coef[-2:]) <= LAST_COEFFICIENT_REL_TOL * line.min()):
        return line.tolist()
    return find_best_group_lambdas(cells)


def find_best_lambda(
    loss: Loss,
    teacher: Teacher,
    penalty: Penalty,
    weights: WeightDistribution,
    alpha: np.ndarray,
    inputs: InputPopulation | None = None,
) -> np.ndarray:
    """Find the best lambda at each alpha (batch,).

    It is 0 where the error falls until the penalty vanishes, infinite where the error still falls at lambda = 1e6, and
    NaN where the equations were not solved. For the square loss with an l2 norm a closed form is used.

    Parameters
    ----------
    loss, teacher, penalty, weights
        The learner, and the distribution of the teacher's weights.
    alpha
        Examples per weight (batch,).
    inputs
        Inputs of unequal variance, or None for isotropic inputs.

    Examples
    --------
    >>> from statmech.convex.losses import Square
    >>> from statmech.convex.teachers import LinearTeacher
    >>> from statmech.convex.weight_distributions import Gauss
    >>> find_best_lambda(Square(), LinearTeacher(noise=0.5), Penalty(), Gauss(), np.array([0.5, 2.0])).round(9)
    array([0.25, 0.25])
    """
    if type(loss) is Square and not penalty.share:
        equations = make_convex_equations(loss, teacher, penalty, weights, inputs)
        if equations.weight_equations.prior_to_penalty_ratio is not None:
            return np.full(
                len(alpha), _compute_best_ridge_lambda(equations, equations.weight_equations.prior_to_penalty_ratio)
            )
    return search_best_lambda(loss, teacher, penalty, weights, alpha, inputs)


def _compute_best_ridge_lambda(equations: ConvexEquations, prior_to_penalty_ratio: float) -> float:
    """Return the noise-to-signal ratio of the outputs, the best lambda of the square loss at every alpha."""
    signal = equations.label_field_correlation**2 * equations.weight_equations.signal_fraction
    lam = prior_to_penalty_ratio * (equations.noise**2 + (1 - signal)) / signal if signal > 0 else np.inf
    return np.inf if lam > MAX_SEARCHED_LAMBDA else 0.0 if lam < MIN_SEARCHED_LAMBDA else lam


def search_best_lambda(
    loss: Loss,
    teacher: Teacher,
    penalty: Penalty,
    weights: WeightDistribution,
    alpha: np.ndarray,
    inputs: InputPopulation | None = None,
) -> np.ndarray:
    """Find the best lambda at each alpha (batch,) by numerical search, for any loss.

    Parameters
    ----------
    loss, teacher, penalty, weights, alpha, inputs
        As in `find_best_lambda`.
    """
    equations = make_convex_equations(loss, teacher, penalty, weights, inputs)
    exact = recovers_teacher(loss, teacher, penalty, weights, alpha, 0 * alpha, inputs)
    return minimise_over_lambda(equations, alpha, penalty.share, exact)


def minimise_over_lambda(
    equations: PenaltyEquations, alpha: np.ndarray, l1_fraction: float, best_is_zero: np.ndarray
) -> np.ndarray:
    """Find the lambda that minimises the first unknown, which increases with the generalization error.

    Parameters
    ----------
    equations, alpha
        The equations, and examples per weight (batch,).
    l1_fraction
        The fraction of the l1 norm.
    best_is_zero
        True where the best lambda is known to be 0 (batch,).
    """
    scan = _scan_lambda(equations, alpha, l1_fraction)
    slopes = np.array([solution.tangent[0] for _, solution in scan])
    values = np.array([solution.x[0] for _, solution in scan])
    flat = L1_FLAT_SLOPE_TOL if l1_fraction else FLAT_SLOPE_TOL
    signs = _compute_slope_signs(slopes, values, flat)
    lam, min_values = _find_best_limit_lambda(signs, values)
    lam[best_is_zero] = 0.0
    plateau_ends = (np.abs(slopes[:-1]) <= flat) & (np.abs(np.diff(values, axis=0)) > EQUAL_ERROR_TOL)
    turns = (signs[1:] < 0) & ((signs[:-1] > 0) | plateau_ends)
    unvisited = turns & ~best_is_zero
    # refine every local minimum, since the first need not be the global one
    while len(elements := np.flatnonzero(unvisited.any(axis=0))):
        indices = np.argmax(unvisited[:, elements], axis=0)
        unvisited[indices, elements] = False
        high, low = (select_scan_points(scan, indices + step, elements) for step in (0, 1))
        root, value = _find_slope_root(equations, alpha[elements], l1_fraction, low, high, flat)
        better = value < min_values[elements] - EQUAL_ERROR_TOL**1.5
        lam[elements], min_values[elements] = np.where(
            better, [np.exp(root), value], [lam[elements], min_values[elements]]
        )
    return lam


def get_cached_best_lambdas(
    loss: Loss,
    teacher: Teacher,
    penalty: Penalty,
    weights: WeightDistribution,
    alphas: Iterable[float],
    inputs: InputPopulation | None = None,
) -> Mapping[float, float]:
    """Return the best lambda at each alpha, cached within this process.

    All values of alpha missing from the cache are solved in one batch.

    Parameters
    ----------
    loss, teacher, penalty, weights
        The learner, and the distribution of the teacher's weights.
    alphas
        Examples per weight.
    inputs
        Inputs of unequal variance, or None for isotropic inputs.
    """
    with _BEST_LAMBDA_LOCK:
        cached_lambdas = _BEST_LAMBDA_CACHE.setdefault((loss, teacher, penalty, weights, inputs), {})
        new = [alpha for alpha in dict.fromkeys(alphas) if alpha not in cached_lambdas]
        if new:
            new_lambdas = find_best_lambda(loss, teacher, penalty, weights, np.array(new, float), inputs)
            cached_lambdas.update(zip(new, new_lambdas.tolist(), strict=True))
    return cached_lambdas


def cap_infinite_lambda(best_lambda: float) -> float:
    """Replace an infinite best lambda by the upper bound of the search."""
    return min(best_lambda, MAX_SEARCHED_LAMBDA)


def _compute_slope_signs(slopes: np.ndarray, values: np.ndarray, flat: float) -> np.ndarray:
    """Compute the signs of the error's slopes (points, batch) on a scan of decreasing lambda.

    Where the slope is 0, the sign is taken from the change of the error since the previous point. If the error has not
    changed, the previous sign is kept. At the first point, a slope of 0 gets the sign -1.
    """
    signs = np.sign(np.where(np.abs(slopes) > flat, slopes, 0.0))
    signs[0] = np.where(signs[0] == 0, -1.0, signs[0])
    for (previous, current), (above, value) in zip(pairwise(signs), pairwise(values), strict=True):
        change = np.where(np.abs(above - value) > EQUAL_ERROR_TOL, np.sign(above - value), 0.0)
        is_flat = current == 0
        current[is_flat] = np.where(change[is_flat] == 0, previous[is_flat], change[is_flat])
    return signs


def _find_best_limit_lambda(signs: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the limit lambda = 0 or infinity with the smaller error, and this error.

    A limit is a candidate if the error decreases towards it, or is flat near lambda = 0. Without candidates, the
    result is NaN with an infinite error.
    """
    top = np.where(signs[0] < 0, values[0], np.inf)
    level = np.isclose(values[-1], values[-2], rtol=0, atol=EQUAL_ERROR_TOL)
    bottom = np.where((signs[-1] > 0) | level, values[-1], np.inf)
    min_value = np.minimum(top, bottom)
    return np.where(np.isinf(min_value), np.nan, np.where(bottom < top - EQUAL_ERROR_TOL, 0.0, np.inf)), min_value


ScanPoint = tuple[np.ndarray, SaddlePointSolution]  # ln lambda (batch,), and the solution at these values


def _scan_lambda(equations: PenaltyEquations, alpha: np.ndarray, l1_fraction: float) -> list[ScanPoint]:
    """Solve the equations on a grid of decreasing lambda, to bracket the best lambda."""
    log_lam = np.full(len(alpha), np.log(MAX_SEARCHED_LAMBDA))
    stride = L1_LOG_LAMBDA_SCAN_STEP if l1_fraction else LOG_LAMBDA_SCAN_STEP
    if l1_fraction:
        log_lam = np.minimum(
            log_lam,
            estimate_moderate_l1_log_lambda(equations, alpha) + np.log(MAX_SCANNED_L1_STRENGTH_RATIO / l1_fraction),
        )
    l1_fractions = np.full(len(alpha), l1_fraction)
    scan = [(log_lam, solve_saddle_point(equations, alpha, np.exp(log_lam), l1_fraction))]
    while np.any(log_lam > np.log(MIN_SEARCHED_LAMBDA)):
        lower = np.maximum(log_lam - stride, np.log(MIN_SEARCHED_LAMBDA))
        begin, end = PenaltyPoint(log_lam, l1_fractions), PenaltyPoint(lower, l1_fractions)
        scan.append((lower, follow_solution(equations, alpha, scan[-1][1], begin, end, SCAN_RESIDUAL_TOL)))
        log_lam = lower
    return scan


def select_scan_points(scan: list[ScanPoint], indices: np.ndarray, elements: np.ndarray) -> ScanPoint:
    """Select one scan point for each batch element in `elements`, at the scan positions `indices`."""
    where = np.stack([log_lam for log_lam, _ in scan])[indices, elements]
    parts = (np.stack([solution[k] for _, solution in scan]) for k in range(3))
    return where, SaddlePointSolution(*(np.moveaxis(part, 0, -1)[..., elements, indices] for part in parts))


def _find_slope_root(
    equations: PenaltyEquations, alpha: np.ndarray, l1_fraction: float, low: ScanPoint, high: ScanPoint, flat: float
) -> tuple[np.ndarray, np.ndarray]:
    """Find the minimum of the error between two lambdas, a root of its slope, by Chandrupatla's method, and x_0 there.

    Parameters
    ----------
    equations, alpha, l1_fraction
        The equations, examples per weight (batch,), and the fraction of the l1 norm.
    low, high
        Scan points at the ends of the bracket. The slope is negative at `low`, and not negative at `high`.
    flat
        Smaller slopes count as 0.
    """
    active, root, value = np.arange(len(alpha)), low[0].copy(), 0 * alpha
    bracket = np.array([low[0], high[0], high[0]])  # latest, opposite (across the root) and previous point
    slopes = np.array([low[1].tangent[0], high[1].tangent[0]])
    plateaus = np.where(np.abs(slopes) <= flat, np.array([low[1].x[0], high[1].x[0]]), np.nan)
    slopes = np.array([np.minimum(slopes[0], -flat), *2 * [np.maximum(slopes[1], flat)]])
    state = low[1]._replace(residual=0 * alpha)
    for _ in range(60):
        new = bracket[0] + _compute_step_fraction(bracket, slopes) * (bracket[1] - bracket[0])
        l1_fractions = np.full(len(active), l1_fraction)
        state = follow_solution(
            equations, alpha[active], state, PenaltyPoint(bracket[0], l1_fractions), PenaltyPoint(new, l1_fractions)
        )
        slope = _sign_flat_slopes(state.tangent[0], np.abs(state.x[0] - plateaus[:, active]) < EQUAL_ERROR_TOL, flat)
        root[active], value[active] = np.where(np.isfinite(slope), new, np.nan), state.x[0]
        unfinished = (np.abs(new - bracket[0]) > LOG_LAMBDA_TOL) & np.isfinite(slope) & (slope != 0)
        past_root = slope * slopes[0] < 0
        bracket = _update_bracket(new, bracket, past_root)[:, unfinished]
        slopes = _update_bracket(slope, slopes, past_root)[:, unfinished]
        active, state = active[unfinished], state.select_elements(unfinished)
        if not len(active):
            break
    return root, value


def _sign_flat_slopes(slope: np.ndarray, equals_end: np.ndarray, flat: float) -> np.ndarray:
    """Replace negligible slopes by small slopes with the sign at the end of the bracket with equal error.

    `equals_end` (2, batch) is True where the error equals the error at the lower and at the upper end.
    """
    low, high = equals_end & (np.abs(slope) <= flat)
    return np.where(low, -flat, np.where(high, flat, slope))


def _update_bracket(new: np.ndarray, bracket: np.ndarray, past_root: np.ndarray) -> np.ndarray:
    """Update the three points of a bracket with a new point.

    `past_root` is True if the new point and the latest point lie on opposite sides of the root.
    """
    latest, opposite, _ = bracket
    return np.array([new, np.where(past_root, latest, opposite), np.where(past_root, opposite, latest)])


def _compute_step_fraction(bracket: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Compute the next step of the search for the best lambda, by inverse quadratic interpolation or bisection.

    The step is a fraction of the bracket.
    """
    (a, b, c), (f, g, h) = bracket, slopes
    with np.errstate(all="ignore"):
        part, rise = (a - b) / (c - b), (f - g) / (h - g)
        quadratic = f / (g - f) * h / (g - h) + (c - a) / (b - a) * f / (h - f) * g / (h - g)
    return np.where((rise**2 < part) & ((1 - rise) ** 2 < 1 - part), quadratic, 0.5)
