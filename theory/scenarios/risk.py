"""Replica-symmetric theory of learners that minimise a convex loss, for each parameter combination.

Runs have P = alpha N examples, rounded to an integer: theory is evaluated at P/N. `lam: best` has the same meaning in
runs and theory: the best penalty at alpha.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

from statmech.convex.separability import compute_separability_threshold
from statmech.convex.teachers import LabelTeacher, Teacher
from statmech.convex.weights import WeightDistribution
from statmech.scenarios.risk import Risk, RiskCell
from theory.convex.bayes_optimal import solve_bayes_overlap
from theory.convex.best_lambda import MAX_SEARCHED_LAMBDA, cap_infinite_lambda
from theory.convex.best_penalty import (
    ExampleRatioFunction,
    evaluate_at_ratios,
    find_best_group_lambdas,
    get_alpha,
    group_cells_by_loss_setting,
    interpolate_best_lambdas,
)
from theory.convex.empirical_risk import solve_loss_minimum
from theory.convex.recovery import get_recovery_threshold

SOURCE = "replica-symmetric, N -> infinity"
LINE_POINTS = 60  # style: ok
SINGULARITIES = {"alpha": (1.0,)}  # least squares without a penalty has infinite errors at alpha = 1

CellVariables = dict[str, np.ndarray]
BestPenaltySearch = Callable[[Sequence[RiskCell]], Mapping[float, float]]


def solve(scenario: Risk, cells: Sequence[RiskCell]) -> Iterator[CellVariables]:
    """Return the theoretical variables of each cell, evaluated at P/N.

    Values are NaN where the loss has no minimum.
    """
    return _solve_cells(scenario, cells, lambda cell: cell.P / cell.N, find_best_group_lambdas)


def solve_line(scenario: Risk, cells: Sequence[RiskCell]) -> Iterator[CellVariables]:
    """Solve theory for a dense line, at alpha instead of P/N.

    The best penalty is omitted if no cell needs it.
    """
    return _solve_cells(
        scenario,
        cells,
        get_alpha,
        interpolate_best_lambdas if any(cell.lam == "best" for cell in cells) else _make_nan_penalties,
    )


def searched_penalties(cell: RiskCell) -> tuple[float, float]:
    """Return the search range of the best penalty.

    The best penalty may be 0, which is a limit and not an edge of the search.
    """
    return 0.0, MAX_SEARCHED_LAMBDA


def _make_nan_penalties(members: Sequence[RiskCell]) -> dict[float, float]:
    return dict.fromkeys(map(get_alpha, members), np.nan)


def _solve_cells(
    scenario: Risk, cells: Sequence[RiskCell], ratio: ExampleRatioFunction, find_best_penalties: BestPenaltySearch
) -> Iterator[CellVariables]:
    names = {*scenario.variables, *scenario.theory_only_variables}
    variables: dict[tuple[int, ...], CellVariables] = {}
    for members in group_cells_by_loss_setting(cells):
        variables.update(_solve_group(members, ratio, find_best_penalties))
    return ({name: values for name, values in variables[cell.index].items() if name in names} for cell in cells)


def _compute_bayes_cosines(members: Sequence[RiskCell], ratio: ExampleRatioFunction) -> dict[float, float]:
    """Return the cosine of the Bayes-optimal student at each ratio of a group.

    The cosine is NaN for inputs of unequal variance.
    """
    first = members[0]
    if first.loss_setting.inputs:
        return dict.fromkeys(map(ratio, members), np.nan)
    return evaluate_at_ratios(
        members, ratio, lambda alphas: _compute_bayes_cosine(first.teacher, first.weights, tuple(alphas.tolist()))
    )


@lru_cache(maxsize=16)  # losses and penalties share the cosines
def _compute_bayes_cosine(teacher: Teacher, weights: WeightDistribution, alphas: tuple[float, ...]) -> np.ndarray:
    return np.sqrt(solve_bayes_overlap(teacher, weights, np.array(alphas)))


def _solve_group(
    members: list[RiskCell], ratio: ExampleRatioFunction, find_best_penalties: BestPenaltySearch
) -> dict[tuple[int, ...], CellVariables]:
    first, bayes, best = members[0], _compute_bayes_cosines(members, ratio), find_best_penalties(members)
    points = [
        (ratio(cell), cap_infinite_lambda(best[cell.alpha]) if cell.lam == "best" else cell.lam) for cell in members
    ]
    unique = list(dict.fromkeys(points))
    alpha, lam = np.array(unique, float).T
    state = solve_loss_minimum(*first.loss_setting.learner, alpha, lam, first.loss_setting.inputs)
    point_index = {point: index for index, point in enumerate(unique)}
    shared = {"alpha_c": np.asarray(_compute_critical_alpha(first))}
    return {
        cell.index: {
            **{name: np.asarray(values[point_index[point]]) for name, values in state._asdict().items()},
            "lam_best": np.asarray(best[cell.alpha]),
            "R_bayes": np.asarray(bayes[ratio(cell)]),
            **shared,
        }
        for cell, point in zip(members, points, strict=True)
    }


def _compute_critical_alpha(cell: RiskCell) -> float:
    """Return the critical alpha of separability, or of weight recovery by an l1 norm.

    Labels are separable below this alpha. Sparse weights are recovered from noiseless outputs above it.
    """
    if isinstance(cell.teacher, LabelTeacher):
        modes = cell.loss_setting.inputs.modes if cell.loss_setting.inputs else None
        return (
            compute_separability_threshold(cell.teacher, modes.signal_fraction, modes.rank_fraction)
            if modes
            else compute_separability_threshold(cell.teacher)
        )
    return get_recovery_threshold(cell.teacher, cell.penalty, cell.weights)
