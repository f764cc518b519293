"""Learners that go down a convex loss: the theory of each parameter combination, and what the minimum would reach.

Runs have P = alpha N examples, rounded to a whole number: their theory is that of P/N.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from statmech.convex.losses import OF_DESCENT
from statmech.scenarios.convex_setting import Setting
from statmech.scenarios.descent import Descent, DescentCell
from statmech.scenarios.variables import ERROR
from theory.convex.bayes_optimal import bayes_overlap
from theory.convex.best_lambda import best_lambdas, taken
from theory.convex.empirical_risk import minimum
from theory.descent.replicas import curves

SOURCE = "dynamical mean-field theory, N -> infinity"
PLACES = 17  # of a line: each costs a tenth of a second to a second,
SLACK = 5.0  # with errors that may be as many times larger as those of `solve`

Values = dict[str, np.ndarray]


def solve(scenario: Descent, cells: Sequence[DescentCell]) -> Iterator[Values]:
    """The variables of each cell at its recorded steps, at its P/N; NaN from the step on at which a number overflows.

    Their standard errors have the suffix `_error`. `best_epoch` and `eps_best` are those of the smallest eps_g of all
    steps up to the last; `eps_limit` is eps_g of the minimum at the same penalty, and `eps_best_lam` at the best one,
    NaN where there is no minimum.
    """
    return _solved(cells, 1.0)


def solve_line(scenario: Descent, cells: Sequence[DescentCell]) -> Iterator[Values]:
    """Solve for a line, with larger errors, which `theory.smooth` takes out of it."""
    return _solved(cells, SLACK)


def _solved(cells: Sequence[DescentCell], slack: float) -> Iterator[Values]:
    of_setting: dict[Setting, list[DescentCell]] = {}
    for cell in cells:
        of_setting.setdefault(cell.setting, []).append(cell)
    limits = {setting: _limits(setting, tuple(map(_point, members))) for setting, members in of_setting.items()}
    return (_values(cell, slack) | limits[cell.setting][_point(cell)] for cell in cells)


def _values(cell: DescentCell, slack: float) -> Values:
    found = curves(cell, slack)
    best = int(np.nanargmin(found.eps_g))
    return {
        **found.mean,
        **{name + ERROR: error for name, error in found.error.items()},
        "best_epoch": np.asarray(best * cell.batch),
        "eps_best": np.asarray(found.eps_g[best]),
    }


Point = tuple[float, float, float]  # P/N, alpha, and lambda


def _point(cell: DescentCell) -> Point:
    return cell.P / cell.N, cell.alpha, cell.lam


@lru_cache(maxsize=64)  # they depend on neither the descent nor its steps
def _limits(setting: Setting, points: tuple[Point, ...]) -> dict[Point, Values]:
    """The errors of the minimum, of the best one and of the Bayes-optimal student at each point."""
    ratio, alpha, lam = np.array(points).T
    loss, teacher, _, weights = setting.learner
    bayes = np.arccos(np.sqrt(bayes_overlap(teacher, weights, ratio))) / np.pi
    limit = best = np.full(len(points), np.nan)
    if type(loss) not in OF_DESCENT.values():  # whose minimum is w = 0
        found = best_lambdas(*setting.learner, alpha.tolist())
        best_lam = np.array([taken(found[one]) for one in alpha.tolist()])
        both = minimum(*setting.learner, np.tile(ratio, 2), np.append(lam, best_lam)).eps_g
        limit, best = np.split(both, 2)
    named = {"eps_limit": limit, "eps_best_lam": best, "eps_bayes": bayes}
    return {point: {name: values[at] for name, values in named.items()} for at, point in enumerate(points)}
