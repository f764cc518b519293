"""Theory of gradient descent on a convex loss, with the errors at the minimum for comparison.

Runs have P = alpha N examples, rounded to an integer: theory is evaluated at P/N.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from statmech.convex.losses import DESCENT_ONLY_LOSSES
from statmech.keys.variables import STANDARD_ERROR_SUFFIX
from statmech.kinds.convex_fit import LossSetting
from statmech.kinds.gradient_descent import Descent, DescentCell
from theory.convex.bayes_optimal import solve_bayes_overlap
from theory.convex.best_lambda import cap_infinite_lambda, get_cached_best_lambdas
from theory.convex.empirical_risk import solve_loss_minimum
from theory.stored_examples.descent_dynamics import compute_descent_curves

SOURCE = "dynamical mean-field theory, N -> infinity"
LINE_POINTS = 31  # each point takes 0.1 to 1 seconds  # style: ok
LINE_ERROR_FACTOR = 5.0  # error of `solve_line` over error of `solve`

CellVariables = dict[str, np.ndarray]


def solve(scenario: Descent, cells: Sequence[DescentCell]) -> Iterator[CellVariables]:
    """Return the theoretical variables of each cell at its recorded steps, evaluated at P/N.

    Values are NaN after an overflow. Standard errors have the suffix `_error`. `best_epoch` and `eps_best` belong to
    the step with the smallest eps_g. `eps_limit` and `eps_best_lam` are eps_g of the minimum at the same and at the
    best penalty, NaN without a minimum.
    """
    return _solve_cells(cells, 1.0)


def solve_line(scenario: Descent, cells: Sequence[DescentCell]) -> Iterator[CellVariables]:
    """Solve theory for a dense line, with larger errors that `theory.smooth` smooths out."""
    return _solve_cells(cells, LINE_ERROR_FACTOR)


def _solve_cells(cells: Sequence[DescentCell], error_factor: float) -> Iterator[CellVariables]:
    cells_by_setting: dict[LossSetting, list[DescentCell]] = {}
    for cell in cells:
        cells_by_setting.setdefault(cell.loss_setting, []).append(cell)
    limits = {
        setting: _compute_reference_errors(setting, tuple(map(_get_ratio_alpha_lambda, members)))
        for setting, members in cells_by_setting.items()
    }
    return (
        _compute_variables(cell, error_factor) | limits[cell.loss_setting][_get_ratio_alpha_lambda(cell)]
        for cell in cells
    )


def _compute_variables(cell: DescentCell, error_factor: float) -> CellVariables:
    curve = compute_descent_curves(cell, error_factor)
    best = int(np.nanargmin(curve.eps_g))
    return {
        **curve.mean,
        **{name + STANDARD_ERROR_SUFFIX: error for name, error in curve.error.items()},
        "best_epoch": np.asarray(best * cell.batch),
        "eps_best": np.asarray(curve.eps_g[best]),
    }


RatioAlphaLambda = tuple[float, float, float]  # (P/N, alpha, lambda)


def _get_ratio_alpha_lambda(cell: DescentCell) -> RatioAlphaLambda:
    return cell.P / cell.N, cell.alpha, cell.lam


@lru_cache(maxsize=64)  # limits do not depend on the descent or its steps
def _compute_reference_errors(
    setting: LossSetting, points: tuple[RatioAlphaLambda, ...]
) -> dict[RatioAlphaLambda, CellVariables]:
    """Compute a descent's reference errors: at the minimum, at the best penalty, and of the Bayes-optimal student."""
    ratio, alpha, lam = np.array(points).T
    loss, teacher, _, weights = setting.learner
    bayes = np.arccos(np.sqrt(solve_bayes_overlap(teacher, weights, ratio))) / np.pi
    limit = best = np.full(len(points), np.nan)
    if type(loss) not in DESCENT_ONLY_LOSSES.values():  # descent-only losses have their minimum at w = 0
        lambdas = get_cached_best_lambdas(*setting.learner, alpha.tolist())
        best_lam = np.array([cap_infinite_lambda(lambdas[value]) for value in alpha.tolist()])
        errors = solve_loss_minimum(*setting.learner, np.tile(ratio, 2), np.append(lam, best_lam)).eps_g
        limit, best = np.split(errors, 2)
    arrays = {"eps_limit": limit, "eps_best_lam": best, "eps_bayes": bayes}
    return {point: {name: values[index] for name, values in arrays.items()} for index, point in enumerate(points)}
