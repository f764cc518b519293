"""Optimal penalties of convex fits, and solution of parameter combinations in groups that share a setting.

Groups: the cells of a scenario with the same setting are solved together, with given or with best penalties.

Best penalties are found for all parameter combinations of a scenario with a convex loss.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import xarray as xr
from numpy.polynomial import Chebyshev

from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import Cell
from statmech.kinds.convex_fit import BEST_PENALTY_KEYWORD, PenalisedCell
from statmech.kinds.empirical_risk import Risk, RiskCell
from statmech.stores.dataset import make_empty_dataset
from theory.convex.best_lambda import MAX_SEARCHED_LAMBDA, cap_infinite_lambda, get_cached_best_lambdas
from theory.convex.best_lambda import find_best_lambda as best_lambda_at

CellVariables = dict[str, np.ndarray]
C = TypeVar("C", bound=Cell)
PenalisedCellT = TypeVar("PenalisedCellT", bound=PenalisedCell)
T = TypeVar("T")


def solve_in_groups(
    cells: Sequence[C], get_setting: Callable[[C], Hashable], solve_group: Callable[[list[C]], Iterable[T]]
) -> Iterator[T]:
    """Solve all cells with the same setting together, and return the results in the order of the cells.

    Parameters
    ----------
    cells
        The cells.
    get_setting
        Function that returns the common setting of a group.
    solve_group
        Function that returns the result of each cell in a group.
    """
    groups: dict[Hashable, list[C]] = {}
    for cell in cells:
        groups.setdefault(get_setting(cell), []).append(cell)
    results = {
        cell.index: result
        for members in groups.values()
        for cell, result in zip(members, solve_group(members), strict=True)
    }
    return (results[cell.index] for cell in cells)


def solve_penalised_cells(
    scenario: AbstractScenario,
    cells: Sequence[PenalisedCellT],
    get_size: Callable[[PenalisedCellT], float],
    find_best_penalties: Callable[[Sequence[PenalisedCellT]], Iterable[float]],
    solve_points: Callable[[PenalisedCellT, np.ndarray, np.ndarray], Mapping[str, np.ndarray | float]],
) -> Iterator[CellVariables]:
    """Return the theoretical variables of each cell, with `lam: best` replaced by the best penalty.

    Equal numbers of examples and penalties are solved once per group. `lam_best` is the best penalty of each cell.

    Parameters
    ----------
    scenario, cells
        A scenario and its cells. Only its variables are returned.
    get_size
        Function that returns the number of examples, or the ratio to the number of inputs, that a cell is solved at.
    find_best_penalties
        Function that returns the best penalty of each cell in a group, NaN where it is unknown or not needed.
    solve_points
        Function of a group's first cell, sizes (batch,) and penalties (batch,). It returns variables (batch,), or
        numbers that apply to the whole group.
    """
    names = {*scenario.variables, *scenario.theory_only_variables}

    def solve_group(members: list[PenalisedCellT]) -> Iterator[CellVariables]:
        best = list(find_best_penalties(members))
        points = [
            (get_size(cell), cap_infinite_lambda(penalty) if cell.lam == BEST_PENALTY_KEYWORD else float(cell.lam))
            for cell, penalty in zip(members, best, strict=True)
        ]
        unique = {point: index for index, point in enumerate(dict.fromkeys(points))}
        sizes, lam = np.array(list(unique), float).T
        solution = solve_points(members[0], sizes, lam)
        arrays = {name: np.broadcast_to(values, sizes.shape) for name, values in solution.items() if name in names}
        for point, penalty in zip(points, best, strict=True):
            values = {name: np.asarray(array[unique[point]]) for name, array in arrays.items()}
            yield values | {"lam_best": np.asarray(penalty)}

    return solve_in_groups(cells, lambda cell: cell.shared_setting, solve_group)


def get_example_ratio(cell: Any) -> float:
    """Return the number of examples per input of a run, P/N, which differs slightly from alpha."""
    return float(cell.P / cell.N)


def get_sample_size(cell: PenalisedCell) -> float:
    """Return the number of examples per input that a config defines, or of the rows of a table."""
    return cell.sample_size


def searched_penalties(cell: PenalisedCell) -> tuple[float, float]:
    """Return the search range of the best penalty.

    The best penalty may be 0, which is a limit and not an edge of the search.
    """
    return 0.0, MAX_SEARCHED_LAMBDA


def omit_unused_penalties(
    cells: Sequence[PenalisedCellT], find_best_penalties: Callable[[Sequence[PenalisedCellT]], Iterable[float]]
) -> Callable[[Sequence[PenalisedCellT]], Iterable[float]]:
    """Return a search for best penalties that returns NaN if no cell of the line needs one."""
    if any(cell.lam == BEST_PENALTY_KEYWORD for cell in cells):
        return find_best_penalties
    return lambda members: [np.nan] * len(members)


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
