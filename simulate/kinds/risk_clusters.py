"""Simulation of learners that minimise a convex loss on two clusters of examples.

Errors are averages over all inputs of the clusters, not over a sample.
"""

from __future__ import annotations

import numpy as np

from simulate.convex.minimisation_and_separability import find_separation, is_separable, minimise_risk
from simulate.convex.newton import compute_field_response
from simulate.convex.objective_and_certificates import Problem
from simulate.convex.training_data import ClusterData, draw_cluster_data
from simulate.kinds.empirical_risk import (
    MAX_MEASURABLE_RISK_GAP,
    PenalisedFitSimulator,
    compute_mean_loss,
)
from statmech.kinds.risk_clusters import ClusterCell, Clusters
from statmech.numerics.gaussian import normal_cdf
from theory.convex.gaussian_clusters import find_best_cluster_penalties

ZERO_STUDENT_VARIABLES = {"m_field": 0.0, "length_field": 0.0, "length": 0.0}


class Simulator(PenalisedFitSimulator[ClusterCell]):
    """Simulator of learners that minimise a convex loss on two clusters, one run after the other."""

    scenario: Clusters
    find_best_penalties = staticmethod(find_best_cluster_penalties)

    def simulate(self, cell: ClusterCell, seed: int) -> dict[str, float]:
        """Simulate one minimisation of a loss on examples of two clusters, and return its variables."""
        data, lam = draw_cluster_data(cell, self.scenario.key, seed), self.get_penalty_strength(cell)
        stretch = np.sqrt(_get_penalty_factors(cell))
        problem = make_cluster_problem(cell, data, lam, stretch)
        separated = find_separation(problem.B) if lam == 0 else None
        minimum = minimise_risk(problem, separated, lam)
        values: dict[str, float] = {"gap": minimum.gap, "converged": minimum.converged}
        if minimum.gap < MAX_MEASURABLE_RISK_GAP:
            values |= measure_student(cell, data, problem, minimum.w, stretch)
            if not cell.loss.kinks:
                bare = problem if lam > 0 else problem._replace(l2=0.0)
                values["V"] = compute_field_response(bare, minimum.w, np.sqrt(data.variances) / stretch)
        return values | {"separable": is_separable(problem, separated, minimum)}

    def count_run_bytes(self, cell: ClusterCell) -> float:
        """Return the bytes of a run: three copies of the inputs and three matrices, larger with an intercept or V."""
        smaller = cell.N if cell.setting.intercept or not cell.loss.kinks else min(cell.P, cell.N)
        return 8.0 * 3 * (cell.P * cell.N + smaller**2)


def make_cluster_problem(cell: ClusterCell, data: ClusterData, lam: float, stretch: np.ndarray) -> Problem:
    """Make the problem of minimising a loss on two clusters, in weights times `stretch` and the intercept.

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


def measure_student(
    cell: ClusterCell, data: ClusterData, problem: Problem, stretched_weights: np.ndarray, stretch: np.ndarray
) -> dict[str, float]:
    """Measure the variables of a student of two clusters, averaged over the clusters and over its examples.

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


def _get_penalty_factors(cell: ClusterCell) -> np.ndarray:
    """Return the factors (N,) of the penalty on each coordinate."""
    axes = cell.inputs.axes(cell.N)
    return np.ones(cell.N) if axes is None else axes.ridge
