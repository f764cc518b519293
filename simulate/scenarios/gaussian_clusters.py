"""Simulation of learners that minimise a convex loss on two clusters of examples.

Errors are averages over all inputs of the clusters, not over a sample.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from simulate.execution import units
from simulate.kernels.cluster_data import ClusterData, draw_cluster_data
from simulate.minimisers.method import minimise
from simulate.minimisers.newton import compute_cholesky_factor
from simulate.minimisers.problem import Minimum, Problem, make_missing_minimum
from simulate.minimisers.separability import Separation, find_separation
from simulate.minimisers.vanishing_penalty import minimise_vanishing_penalty
from simulate.scenarios.risk import MAX_MEASURABLE_RISK_GAP, compute_mean_loss
from statmech.numerics.gaussian import normal_cdf
from statmech.scenarios.gaussian_clusters import ClusterCell, Clusters
from theory.convex.best_lambda import cap_infinite_lambda
from theory.convex.clusters import find_best_cluster_lambdas

ZERO_STUDENT_VARIABLES = {"m_field": 0.0, "length_field": 0.0, "length": 0.0}


class Simulator(units.PerRunSimulator[ClusterCell]):
    """Simulator of learners that minimise a convex loss on two clusters, one run after the other."""

    source = "minimisation of a convex loss"
    scenario: Clusters

    def simulate(self, cell: ClusterCell, seed: int) -> dict[str, float]:
        """Simulate the variables of one run."""
        data, lam = draw_cluster_data(cell, self.scenario.key, seed), self.get_penalty_strength(cell)
        stretch = np.sqrt(_get_penalty_factors(cell))
        problem = make_cluster_problem(cell, data, lam, stretch)
        separated = find_separation(problem.B) if lam == 0 else None
        minimum = (
            make_missing_minimum(problem.B.shape[1]) if np.isnan(lam) else _minimise_problem(problem, separated, lam)
        )
        values: dict[str, float] = {"gap": minimum.gap, "converged": minimum.converged}
        if minimum.gap < MAX_MEASURABLE_RISK_GAP:
            values |= measure_student(cell, data, problem, minimum.w, stretch)
            if not cell.loss.kinks:
                bare = problem if lam > 0 else problem._replace(l2=0.0)
                values["V"] = compute_field_response(bare, minimum.w, np.sqrt(data.variances) / stretch)
        return values | {"separable": _is_separable(problem, separated, minimum)}

    def get_penalty_strength(self, cell: ClusterCell) -> float:
        """Return the penalty strength of a cell, where `best` minimises the error for N -> infinity."""
        return (
            cap_infinite_lambda(self._best_penalty_function(cell.shared_setting_values)[cell.alpha])
            if isinstance(cell.lam, str)
            else float(cell.lam)
        )

    @cached_property
    def _best_penalty_function(self) -> Any:
        """Function of a group of cells that returns the best penalty at each alpha, solved on first use."""
        groups: defaultdict[tuple[Any, ...], list[ClusterCell]] = defaultdict(list)
        for cell in self.scenario.cells():
            groups[cell.shared_setting_values].append(cell)

        @cache
        def solve_group(group: tuple[Any, ...]) -> Mapping[float, float]:
            members = groups[group]
            alphas, setting = list(dict.fromkeys(cell.alpha for cell in members)), members[0].setting
            best = find_best_cluster_lambdas(*setting[:2], np.array(alphas, float), setting.intercept)
            return dict(zip(alphas, best.tolist(), strict=True))

        return solve_group

    def check_resources(self) -> None:
        """Raise `ScenarioError` if the examples do not fit into memory."""
        for cell in self.scenario.cells():
            run = f"a run with {cell.P:,} examples in {cell.N:,} dimensions"
            units.check_run_memory("alpha", run, count_run_bytes(cell))

    def estimate_max_unit_bytes(self) -> float:
        """Return the bytes of the largest run."""
        return max(map(count_run_bytes, self.scenario.cells()))


def count_run_bytes(cell: ClusterCell) -> float:
    """Return the bytes of a run: three copies of the inputs and three matrices, larger with an intercept or V."""
    smaller = cell.N if cell.setting.intercept or not cell.loss.kinks else min(cell.P, cell.N)
    return 8.0 * 3 * (cell.P * cell.N + smaller**2)


def make_cluster_problem(cell: ClusterCell, data: ClusterData, lam: float, stretch: np.ndarray) -> Problem:
    """Make the problem of a run, with the variables weights times `stretch`, followed by the intercept.

    Parameters
    ----------
    cell, data
        The parameter combination, and its examples.
    lam
        Strength of the penalty. At 0 the problem has strength 1.
    stretch
        Roots of the penalty's factors (N,).
    """
    rows = data.X * (data.y / np.sqrt(cell.N))[:, None] / stretch
    free = int(cell.setting.intercept)
    rows = np.column_stack([rows, data.y]) if free else rows
    return Problem(rows, np.zeros(cell.P), cell.setting.loss, 0.0, lam if lam != 0 else 1.0, free)


def _minimise_problem(problem: Problem, separation: Separation | None, lam: float) -> Minimum:
    """Minimise the problem, in the limit of a vanishing penalty if lam = 0."""
    return minimise_vanishing_penalty(problem, separation) if lam == 0 else minimise(problem)


def measure_student(
    cell: ClusterCell, data: ClusterData, problem: Problem, stretched_weights: np.ndarray, stretch: np.ndarray
) -> dict[str, float]:
    """Measure the variables of a student, averaged over the clusters and over its examples.

    Parameters
    ----------
    cell, data, problem
        The parameter combination, its examples, and the minimised function.
    stretched_weights
        Weights times `stretch`, and the intercept.
    stretch
        Roots of the penalty's factors (N,).
    """
    w, b = stretched_weights[: cell.N] / stretch, float(stretched_weights[cell.N :].sum())
    x = problem.x(stretched_weights)
    values = {"train_loss": compute_mean_loss(problem, x), "eps_t": float(np.mean((1 - np.sign(x)) / 2))}
    if cell.setting.intercept:
        values["intercept"] = b
    if not w.any():
        return (
            values
            | ZERO_STUDENT_VARIABLES
            | {"eps_g": 0.5 if b == 0 else float(cell.setting.clusters.weights[int(b > 0)])}
        )
    m, Q = float(w @ data.half_centre_difference) / cell.N, float(np.sqrt(data.variances @ w**2 / cell.N))
    clusters = cell.setting.clusters
    means = clusters.centre_distances * m + np.array([b, -b])
    wrong = float(clusters.weights @ normal_cdf(-means / Q)) if Q > 0 else float(clusters.weights @ (means < 0))
    length = float(np.linalg.norm(w) / np.sqrt(cell.N))
    return values | {"m_field": m, "length_field": Q, "length": length, "eps_g": wrong}


def compute_field_response(problem: Problem, w: np.ndarray, deviations: np.ndarray) -> float:
    r"""Return V, the mean response of a field to a force acting on it, :math:`\mathrm{tr}\,\Sigma H^{-1}/N`.

    Parameters
    ----------
    problem, w
        The minimised function, with the Hessian H, and its minimum.
    deviations
        Standard deviations of the inputs around a centre (N,), in units of the problem's.
    """
    N = len(deviations)
    curved = int(np.count_nonzero(problem.loss.curvature(problem.x(w))))
    if problem.l2 == 0 and curved < np.count_nonzero(deviations):
        return np.inf
    root, _ = compute_cholesky_factor(problem, problem.x(w))
    forces = np.zeros((len(w), N))
    forces[np.arange(N), np.arange(N)] = deviations
    return float(np.sum(solve_triangular(root, forces, lower=True) ** 2)) / N


def _get_penalty_factors(cell: ClusterCell) -> np.ndarray:
    """Return the factors (N,) of the penalty on each coordinate."""
    axes = cell.inputs.axes(cell.N)
    return np.ones(cell.N) if axes is None else axes.ridge


def _is_separable(problem: Problem, separation: Separation | None, minimum: Minimum) -> bool:
    """Return True if the labels are linearly separable, testing the student itself first."""
    if separation is not None:
        return separation.exists
    P, N = problem.B.shape
    return P <= N or bool(np.all(problem.x(minimum.w) > 0)) or find_separation(problem.B).exists
