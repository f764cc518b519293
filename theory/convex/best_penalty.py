"""Optimal penalties for all parameter combinations of a convex-loss scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.polynomial import Chebyshev

from statmech.results.dataset import make_empty_dataset
from statmech.scenarios.risk import Risk, RiskCell
from theory.convex.best_lambda import find_best_lambda as best_lambda_at
from theory.convex.best_lambda import get_cached_best_lambdas

LAMBDA_INTERPOLATION_DEGREE = 12  # degree of the Chebyshev polynomial in ln alpha
LAST_COEFFICIENT_REL_TOL = (
    1e-3  # relative to the smallest lambda; the interpolation is rejected if its last coefficients are larger
)

ExampleRatioFunction = Callable[[RiskCell], float]  # returns the ratio of examples to inputs


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
    >>> from statmech.scenarios.risk import Risk
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
    for members in group_cells_by_loss_setting(list(single.cells())):
        best = find_best_group_lambdas(members)
        for cell in members:
            lambdas[cell.index] = best[cell.alpha]
    return lambdas.drop_vars(["lam", "P", *([] if scenario.sized else ["N"])], errors="ignore").rename("best_lambda")


def get_alpha(cell: RiskCell) -> float:
    """Return a cell's number of examples per weight."""
    return cell.alpha


def group_cells_by_loss_setting(cells: Sequence[RiskCell]) -> list[list[RiskCell]]:
    """Group cells that differ only in alpha, lambda and N."""
    groups: dict[Any, list[RiskCell]] = {}
    for cell in cells:
        groups.setdefault(cell.loss_setting, []).append(cell)
    return list(groups.values())


def find_best_group_lambdas(members: Sequence[RiskCell]) -> Mapping[float, float]:
    """Find the best lambda at each alpha in a group of cells."""
    setting = members[0].loss_setting
    return get_cached_best_lambdas(*setting.learner, map(get_alpha, members), setting.inputs)


def interpolate_best_lambdas(members: Sequence[RiskCell]) -> Mapping[float, float]:
    """Find the best lambda at each alpha in a group by polynomial interpolation in ln alpha.

    Every alpha is solved if the polynomial does not converge. Near the best lambda, the error changes only by
    about 1e-6 if lambda changes by 1 %.
    """
    alphas = [cell.alpha for cell in members]
    if len(set(alphas)) <= LAMBDA_INTERPOLATION_DEGREE:
        return find_best_group_lambdas(members)
    setting, ends = members[0].loss_setting, [np.log(min(alphas)), np.log(max(alphas))]

    def solve_alphas(log_alpha: np.ndarray) -> np.ndarray:
        return best_lambda_at(*setting.learner, np.exp(log_alpha), setting.inputs)

    interpolation = Chebyshev.interpolate(solve_alphas, LAMBDA_INTERPOLATION_DEGREE, ends)
    line = evaluate_at_ratios(members, get_alpha, lambda alpha: interpolation(np.log(alpha)))
    # the last coefficients are not small if there are NaN, infinities, jumps or kinks
    return (
        line
        if np.all(np.abs(interpolation.coef[-2:]) <= LAST_COEFFICIENT_REL_TOL * min(line.values()))
        else find_best_group_lambdas(members)
    )


def evaluate_at_ratios(
    members: Sequence[RiskCell], ratio: ExampleRatioFunction, function: Callable[[np.ndarray], np.ndarray]
) -> dict[float, float]:
    """Evaluate a function at every distinct ratio of examples to inputs in a group of cells."""
    ratios = np.array(list(dict.fromkeys(map(ratio, members))), float)
    return dict(zip(ratios.tolist(), function(ratios).tolist(), strict=True))
