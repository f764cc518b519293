"""Replica-symmetric theory of learners that minimise a convex loss, for each parameter combination.

Runs have P = alpha N examples, rounded to an integer: theory is evaluated at P/N. `lam: best` is the same in runs and
theory: the best penalty at alpha.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

from statmech.convex.separability import separable_below
from statmech.convex.teachers import LabelTeacher, Teacher
from statmech.convex.weights import Weights
from statmech.scenarios.risk import Risk, RiskCell
from theory.convex.bayes_optimal import bayes_overlap
from theory.convex.best_lambda import LARGEST, taken
from theory.convex.best_penalty import Ratio, alpha_of, at_each, best_along, best_of, grouped
from theory.convex.empirical_risk import minimum
from theory.convex.recovery import recovered_from

SOURCE = "replica-symmetric, N -> infinity"
LINE_POINTS = 60  # style: ok
SINGULARITIES = {"alpha": (1.0,)}  # least squares without a penalty has infinite errors at alpha = 1

Values = dict[str, np.ndarray]
Best = Callable[[Sequence[RiskCell]], Mapping[float, float]]


def solve(scenario: Risk, cells: Sequence[RiskCell]) -> Iterator[Values]:
    """Return the variables of each cell at its P/N.

    Values are NaN where the loss has no minimum.
    """
    return _solved(scenario, cells, lambda cell: cell.P / cell.N, best_of)


def solve_line(scenario: Risk, cells: Sequence[RiskCell]) -> Iterator[Values]:
    """Solve for a line, at alpha itself instead of P/N.

    The best penalty is omitted if no cell needs it.
    """
    return _solved(scenario, cells, alpha_of, best_along if any(cell.lam == "best" for cell in cells) else _unknown)


def searched_penalties(cell: RiskCell) -> tuple[float, float]:
    """Return the search range of the best penalty.

    The best penalty may vanish: 0 is a limit and not an edge.
    """
    return 0.0, LARGEST


def _unknown(members: Sequence[RiskCell]) -> dict[float, float]:
    return dict.fromkeys(map(alpha_of, members), np.nan)


def _solved(scenario: Risk, cells: Sequence[RiskCell], ratio: Ratio, best_of_group: Best) -> Iterator[Values]:
    names = {*scenario.variables, *scenario.theory_only}
    variables: dict[tuple[int, ...], Values] = {}
    for members in grouped(cells):
        variables.update(_of_group(members, ratio, best_of_group))
    return ({name: values for name, values in variables[cell.index].items() if name in names} for cell in cells)


def _bayes_of(members: Sequence[RiskCell], ratio: Ratio) -> dict[float, float]:
    """Return the cosine of the Bayes-optimal student at each ratio of a group.

    It is NaN for inputs of unequal variance.
    """
    first = members[0]
    if first.setting.inputs:
        return dict.fromkeys(map(ratio, members), np.nan)
    return at_each(members, ratio, lambda alphas: _bayes_cosine(first.teacher, first.weights, tuple(alphas.tolist())))


@lru_cache(maxsize=16)  # losses and penalties share the cosines
def _bayes_cosine(teacher: Teacher, weights: Weights, alphas: tuple[float, ...]) -> np.ndarray:
    return np.sqrt(bayes_overlap(teacher, weights, np.array(alphas)))


def _of_group(members: list[RiskCell], ratio: Ratio, best_of_group: Best) -> dict[tuple[int, ...], Values]:
    first, bayes, best = members[0], _bayes_of(members, ratio), best_of_group(members)
    points = [(ratio(cell), taken(best[cell.alpha]) if cell.lam == "best" else cell.lam) for cell in members]
    unique = list(dict.fromkeys(points))
    alpha, lam = np.array(unique, float).T
    state = minimum(*first.setting.learner, alpha, lam, first.setting.inputs)
    point_index = {point: index for index, point in enumerate(unique)}
    shared = {"alpha_c": np.asarray(_threshold(first))}
    return {
        cell.index: {
            **{name: np.asarray(values[point_index[point]]) for name, values in state._asdict().items()},
            "lam_best": np.asarray(best[cell.alpha]),
            "R_bayes": np.asarray(bayes[ratio(cell)]),
            **shared,
        }
        for cell, point in zip(members, points, strict=True)
    }


def _threshold(cell: RiskCell) -> float:
    """Return the critical alpha for separable labels, or for recovery of the weights by an l1 norm.

    Labels are separable below it. Sparse weights are recovered from noiseless outputs above it.

    Recovery refers to sparse weights and noiseless outputs.
    """
    if isinstance(cell.teacher, LabelTeacher):
        modes = cell.setting.inputs.modes if cell.setting.inputs else None
        return separable_below(cell.teacher, modes.signal, modes.rank) if modes else separable_below(cell.teacher)
    return recovered_from(cell.teacher, cell.penalty, cell.weights)
