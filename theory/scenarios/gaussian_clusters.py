"""Theory of convex losses on two Gaussian clusters, for each parameter combination at its P/N.

`lam: best` has the same meaning in runs and theory: the best penalty at alpha.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from statmech.convex.clusters import compute_best_plane_error, compute_cluster_separability_threshold
from statmech.scenarios.gaussian_clusters import ClusterCell, Clusters, ClusterSetting
from statmech.scenarios.risk import BEST_PENALTY_KEYWORD
from theory.convex.best_lambda import MAX_SEARCHED_LAMBDA, cap_infinite_lambda
from theory.convex.clusters import find_best_cluster_lambdas, solve_cluster_minimum

SOURCE = "replica-symmetric, N -> infinity"

CellVariables = dict[str, np.ndarray]
ExampleRatioFunction = Callable[[ClusterCell], float]  # number of examples divided by number of inputs


def solve(scenario: Clusters, cells: Sequence[ClusterCell]) -> Iterator[CellVariables]:
    """Return the theoretical variables of each cell, evaluated at P/N.

    Values are NaN where the loss has no minimum.
    """
    return _solve_cells(cells, lambda cell: cell.P / cell.N)


def solve_line(scenario: Clusters, cells: Sequence[ClusterCell]) -> Iterator[CellVariables]:
    """Solve theory for a dense line, at alpha instead of P/N.

    The best penalty is omitted if no cell needs it.
    """
    return _solve_cells(cells, lambda cell: cell.alpha, any(cell.lam == BEST_PENALTY_KEYWORD for cell in cells))


def searched_penalties(cell: ClusterCell) -> tuple[float, float]:
    """Return the search range of the best penalty.

    The best penalty may be 0, which is a limit and not an edge of the search.
    """
    return 0.0, MAX_SEARCHED_LAMBDA


def _solve_cells(
    cells: Sequence[ClusterCell], ratio: ExampleRatioFunction, with_best: bool = True
) -> Iterator[CellVariables]:
    groups: dict[tuple[Any, ...], list[ClusterCell]] = {}
    for cell in cells:
        groups.setdefault(cell.shared_setting_values, []).append(cell)
    variables: dict[tuple[int, ...], CellVariables] = {}
    for members in groups.values():
        variables.update(_solve_group(members, ratio, with_best))
    return (variables[cell.index] for cell in cells)


def _solve_group(
    members: list[ClusterCell], ratio: ExampleRatioFunction, with_best: bool
) -> dict[tuple[int, ...], CellVariables]:
    setting = members[0].setting
    alphas = [cell.alpha for cell in members]
    best = _find_best_penalties(setting, alphas) if with_best else dict.fromkeys(alphas, np.nan)
    points = [
        (ratio(cell), cap_infinite_lambda(best[cell.alpha]) if cell.lam == BEST_PENALTY_KEYWORD else float(cell.lam))
        for cell in members
    ]
    unique = list(dict.fromkeys(points))
    alpha, lam = np.array(unique).T
    state = solve_cluster_minimum(setting.loss, setting.clusters, alpha, lam, setting.intercept)._asdict()
    point_index = {point: index for index, point in enumerate(unique)}
    positives = setting.clusters.positives
    shared = {
        "alpha_c": compute_cluster_separability_threshold(setting.clusters, setting.intercept),
        "eps_known": compute_best_plane_error(setting.clusters.separation, positives),
    }
    variables: dict[tuple[int, ...], CellVariables] = {}
    for cell, point in zip(members, points, strict=True):
        cell_variables = {
            "lam_best": best[cell.alpha],
            "eps_bayes": compute_best_plane_error(setting.clusters.compute_learnt_separation(ratio(cell)), positives),
            **shared,
        }
        variables[cell.index] = {name: np.asarray(values[point_index[point]]) for name, values in state.items()}
        variables[cell.index] |= {name: np.asarray(value) for name, value in cell_variables.items()}
        if not setting.intercept:
            del variables[cell.index]["intercept"]
    return variables


def _find_best_penalties(setting: ClusterSetting, alphas: list[float]) -> dict[float, float]:
    """Find the best penalty lambda at each alpha."""
    different = list(dict.fromkeys(alphas))
    return dict(
        zip(different, find_best_cluster_lambdas(*setting[:2], np.array(different), setting.intercept), strict=True)
    )
