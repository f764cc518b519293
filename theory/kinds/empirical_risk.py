"""Replica-symmetric theory of learners that minimise a convex loss, for each parameter combination.

Runs have P = alpha N examples, rounded to an integer: theory is evaluated at P/N. `lam: best` has the same meaning in
runs and theory: the best penalty at alpha.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

from statmech.convex.separability_thresholds import compute_separability_threshold
from statmech.convex.teachers import LabelTeacher, Teacher
from statmech.convex.weight_distributions import WeightDistribution
from statmech.keys.sweep_grid import ensure_tuple
from statmech.kinds.empirical_risk import Risk, RiskCell
from statmech.students.ensemble_vote import majority_vote_error, mean_weight_vector_error
from theory.convex.bayes_optimal import solve_bayes_overlap
from theory.convex.best_lambda import (
    cap_infinite_lambda,
    find_best_group_lambdas,
    find_best_lambda,
    interpolate_best_lambdas,
)
from theory.convex.empirical_risk import make_convex_equations, solve_loss_minimum
from theory.convex.resampled_learners import compute_transverse_cosines, solve_bootstrap_minimum
from theory.convex.thresholds import get_recovery_threshold
from theory.kinds.cell_groups import (
    CellVariables,
    get_example_ratio,
    get_sample_size,
    omit_unused_penalties,
    solve_in_groups,
    solve_penalised_cells,
)
from theory.kinds.cell_groups import searched_penalties as searched_penalties

SOURCE = "replica-symmetric, N -> infinity"
LINE_POINTS = 60  # style: ok
MAX_VANISHING_PENALTY = 1e-3  # students with larger penalties have no peak in alpha


def find_singularities(scenario: Risk) -> dict[str, tuple[float, ...]]:
    """Return the values of alpha where the error of least squares or the length of a student may diverge.

    The error diverges or peaks, as the penalty vanishes, where the number of examples equals the number of directions
    of larger variance: 1 for inputs of equal variances. The length diverges where labels cease to be separable.
    """
    cells = [cell for cell in scenario.cells() if cell.lam != "best" and cell.lam <= MAX_VANISHING_PENALTY]
    alphas = {1.0, *filter(np.isfinite, map(_compute_critical_alpha, cells))}
    for inputs in ensure_tuple(scenario.inputs):
        if inputs.num_variance_groups > 1 and (modes := inputs.modes(1)) is not None:
            alphas |= {*np.cumsum(modes.shares[np.argsort(-modes.variances)]).round(12).tolist()}
    return {"alpha": tuple(sorted(alphas))}


def solve(scenario: Risk, cells: Sequence[RiskCell]) -> Iterator[CellVariables]:
    """Return the theoretical variables of each cell, evaluated at P/N.

    Values are NaN where the loss has no minimum.
    """
    if scenario.has_ensembles:
        return _solve_ensembles(scenario, cells, get_example_ratio, lambda cell: cell.num_learnt_examples / cell.P)
    return solve_penalised_cells(scenario, cells, get_example_ratio, find_best_group_lambdas, _solve_points)


def solve_line(scenario: Risk, cells: Sequence[RiskCell]) -> Iterator[CellVariables]:
    """Solve theory for a dense line, at alpha instead of P/N.

    The best penalty is omitted if no cell needs it.
    """
    if scenario.has_ensembles:
        return _solve_ensembles(scenario, cells, get_sample_size, lambda cell: cell.learnt_fraction)
    find_best_penalties = omit_unused_penalties(cells, interpolate_best_lambdas)
    return solve_penalised_cells(scenario, cells, get_sample_size, find_best_penalties, _solve_points)


def _solve_points(cell: RiskCell, alpha: np.ndarray, lam: np.ndarray) -> Mapping[str, np.ndarray | float]:
    """Return the theoretical variables of a risk cell at each alpha and lambda (batch,)."""
    setting = cell.loss_setting
    state = solve_loss_minimum(*setting.learner, alpha, lam, setting.inputs)._asdict()
    return state | _compute_references(cell, alpha)


def _solve_ensembles(
    scenario: Risk,
    cells: Sequence[RiskCell],
    get_alpha: Callable[[RiskCell], float],
    get_fraction: Callable[[RiskCell], float],
) -> Iterator[CellVariables]:
    """Return the theoretical variables of cells with ensembles of students that learn parts of the examples.

    Parameters
    ----------
    scenario, cells
        A scenario and its cells. Only its variables are returned.
    get_alpha
        Function that returns all examples per weight of a cell.
    get_fraction
        Function that returns the part of these examples that each student learns.
    """
    names = {*scenario.variables, *scenario.theory_only_variables}

    def solve_group(members: list[RiskCell]) -> Iterator[CellVariables]:
        points = [(get_alpha(cell), get_fraction(cell), cell.lam) for cell in members]
        unique = {point: index for index, point in enumerate(dict.fromkeys(points))}
        pair = _solve_pairs(members[0], *np.array(list(unique), float).T)
        for cell, point in zip(members, points, strict=True):
            values = {name: np.broadcast_to(array, len(unique))[unique[point]] for name, array in pair.items()}
            theta, c = values["eps_g"] * np.pi, values.pop("c")
            values |= {
                "q": np.cos(theta) ** 2 + c * np.sin(theta) ** 2 if cell.K > 1 else np.nan,
                "eps_g_majority_vote": majority_vote_error(theta, c, np.array(cell.K)),
                "eps_g_weight_mean": mean_weight_vector_error(theta, c, np.array(cell.K)),
            }
            yield {name: np.asarray(value) for name, value in values.items() if name in names}

    return solve_in_groups(cells, lambda cell: (cell.shared_setting, cell.is_bootstrap), solve_group)


def _solve_pairs(
    cell: RiskCell, alpha: np.ndarray, fraction: np.ndarray, lam: np.ndarray
) -> dict[str, np.ndarray | float]:
    """Return the variables of one student and the transverse cosine c of two students of an ensemble.

    Parameters
    ----------
    cell
        A cell of the group.
    alpha
        All examples per weight (batch,).
    fraction
        Part of the examples that each student learns (batch,).
    lam
        Strength of the penalty (batch,).
    """
    learner = cell.loss_setting.learner
    equations = make_convex_equations(*learner)
    state = (
        solve_bootstrap_minimum(equations, alpha, lam)
        if cell.is_bootstrap
        else solve_loss_minimum(*learner, alpha * fraction, lam)
    )
    c = compute_transverse_cosines(equations, state, alpha, fraction, cell.is_bootstrap)
    best_error = _compute_best_penalty_error(cell, alpha)
    return state._asdict() | {"c": c, "eps_g_best_lam": best_error} | _compute_references(cell, alpha)


def _compute_best_penalty_error(cell: RiskCell, alpha: np.ndarray) -> np.ndarray:
    """Compute the error of one student of all examples with its best penalty, at each alpha (batch,)."""
    learner = cell.loss_setting.learner
    unique, positions = np.unique(alpha, return_inverse=True)
    best = np.array([cap_infinite_lambda(lam) for lam in find_best_lambda(*learner, unique)])
    return solve_loss_minimum(*learner, unique, best).eps_g[positions]


def _compute_references(cell: RiskCell, alpha: np.ndarray) -> dict[str, np.ndarray | float]:
    """Compute the Bayes-optimal cosine and error of a risk cell at each alpha (batch,), and the critical alpha."""
    bayes = _compute_bayes_cosines(cell, alpha.tolist())
    return {"R_bayes": bayes, "eps_bayes": np.arccos(bayes) / np.pi, "alpha_c": _compute_critical_alpha(cell)}


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
