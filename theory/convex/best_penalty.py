"""Optimal penalties for all parameter combinations of a convex-loss scenario."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.polynomial import Chebyshev

from statmech.results.dataset import make_empty_dataset
from statmech.scenarios.risk import Risk, RiskCell
from theory.convex.best_lambda import find_best_lambda as best_lambda_at
from theory.convex.best_lambda import get_cached_best_lambdas
from theory.convex.cell_groups import solve_in_groups

LAMBDA_INTERPOLATION_DEGREE = 12  # degree of the Chebyshev polynomial in ln alpha
LAST_COEFFICIENT_REL_TOL = (
    1e-3  # relative to the smallest lambda; the interpolation is rejected if its last coefficients are larger
)


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
    cells = list(single.cells())
    best = solve_in_groups(cells, lambda cell: cell.loss_setting, find_best_group_lambdas)
    for cell, lam in zip(cells, best, strict=True):
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
        return best_lambda_at(*setting.learner, np.exp(log_alpha), setting.inputs)

    interpolation = Chebyshev.interpolate(solve_alphas, LAMBDA_INTERPOLATION_DEGREE, ends)
    line = interpolation(np.log(alphas))
    # the last coefficients are not small if there are NaN, infinities, jumps or kinks
    if np.all(np.abs(interpolation.coef[-2:]) <= LAST_COEFFICIENT_REL_TOL * line.min()):
        return line.tolist()
    return find_best_group_lambdas(cells)
