"""Replica-symmetric theory of learners that minimise a convex loss, for each parameter combination.

Runs have P = alpha N examples, rounded to an integer: theory is evaluated at P/N. `lam: best` has the same meaning in
runs and theory: the best penalty at alpha.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

from statmech.convex.separability_thresholds import compute_separability_threshold
from statmech.convex.teachers import LabelTeacher, Teacher
from statmech.convex.weight_distributions import WeightDistribution
from statmech.keys.sweep_grid import ensure_tuple
from statmech.kinds.empirical_risk import Risk, RiskCell
from theory.convex.bayes_optimal import solve_bayes_overlap
from theory.convex.best_lambda import find_best_group_lambdas, interpolate_best_lambdas
from theory.convex.empirical_risk import solve_loss_minimum
from theory.convex.thresholds import get_recovery_threshold
from theory.kinds.cell_groups import (
    CellVariables,
    get_example_ratio,
    get_sample_size,
    omit_unused_penalties,
    solve_penalised_cells,
)
from theory.kinds.cell_groups import searched_penalties as searched_penalties

SOURCE = "replica-symmetric, N -> infinity"
LINE_POINTS = 60  # style: ok


def find_singularities(scenario: Risk) -> dict[str, tuple[float, ...]]:
    """Return the values of alpha where the error of least squares diverges or peaks as the penalty vanishes.

    There the number of examples equals the number of directions of larger variance: 1 for inputs of equal variances.
    """
    alphas = {1.0}
    for inputs in ensure_tuple(scenario.inputs):
        if inputs.num_variance_groups > 1 and (modes := inputs.modes(1)) is not None:
            alphas |= {*np.cumsum(modes.shares[np.argsort(-modes.variances)]).round(12).tolist()}
    return {"alpha": tuple(sorted(alphas))}


def solve(scenario: Risk, cells: Sequence[RiskCell]) -> Iterator[CellVariables]:
    """Return the theoretical variables of each cell, evaluated at P/N.

    Values are NaN where the loss has no minimum.
    """
    return solve_penalised_cells(scenario, cells, get_example_ratio, find_best_group_lambdas, _solve_points)


def solve_line(scenario: Risk, cells: Sequence[RiskCell]) -> Iterator[CellVariables]:
    """Solve theory for a dense line, at alpha instead of P/N.

    The best penalty is omitted if no cell needs it.
    """
    find_best_penalties = omit_unused_penalties(cells, interpolate_best_lambdas)
    return solve_penalised_cells(scenario, cells, get_sample_size, find_best_penalties, _solve_points)


def _solve_points(cell: RiskCell, alpha: np.ndarray, lam: np.ndarray) -> Mapping[str, np.ndarray | float]:
    """Return the theoretical variables of a risk cell at each alpha and lambda (batch,)."""
    setting = cell.loss_setting
    state = solve_loss_minimum(*setting.learner, alpha, lam, setting.inputs)._asdict()
    return state | {"R_bayes": _compute_bayes_cosines(cell, alpha.tolist()), "alpha_c": _compute_critical_alpha(cell)}


def _compute_bayes_cosines(cell: RiskCell, alphas: list[float]) -> np.ndarray | float:
    """Return the Bayes-optimal cosine of a risk cell at each alpha, or NaN for inputs of unequal variance."""
    if cell.loss_setting.inputs:
        return np.nan
    cosines = _compute_bayes_cosine(cell.teacher, cell.weights, tuple(dict.fromkeys(alphas)))
    return np.array([cosines[alpha] for alpha in alphas])


@lru_cache(maxsize=16)  # losses and penalties share the cosines
def _compute_bayes_cosine(
    teacher: Teacher, weights: WeightDistribution, alphas: tuple[float, ...]
) -> dict[float, float]:
    cosines = np.sqrt(solve_bayes_overlap(teacher, weights, np.array(alphas)))
    return dict(zip(alphas, cosines.tolist(), strict=True))


def _compute_critical_alpha(cell: RiskCell) -> float:
    """Return the critical alpha of a risk cell: for separability, or for recovery by an l1 norm.

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
