r"""Errors of learners of a table's own rows, drawn with replacement: the table is the population.

With the eigenvalues :math:`s_a` of :math:`Z^TZ` of the n rows, the modes (`statmech.modes`) have the variances
:math:`\omega_a = Ns_a/n`, and each contains the fraction 1/N of the directions. Mode a explains the fraction
:math:`p_a = (\mathbf u_a\cdot\mathbf y)^2/|\mathbf y|^2` of the variance of a target y, with :math:`\mathbf u_a` the
rows' left singular vectors. The rest is the misfit. Within classes, with half the difference :math:`\mathbf d` of their
means, :math:`t_a = N(\mathbf d\cdot\mathbf v_a)^2`.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from statmech.convex.clusters import TwoClusters
from statmech.convex.losses import Loss, Square
from statmech.convex.teachers import LinearTeacher
from statmech.modes import Modes
from theory.convex.best_lambda import minimise_over_lambda
from theory.convex.cluster_averages import ClusterStabilities
from theory.convex.clusters import ClusterEquations, find_best_cluster_lambdas, solve_cluster_equations
from theory.convex.empirical_risk import describe_state
from theory.convex.mode_sums import ModeWeightEquations
from theory.convex.saddle_point import SOLUTION_RESIDUAL_TOL, ConvexEquations, PenaltyPoint, solve_saddle_point
from theory.tables.row_errors import MAX_CLASS_PENALTY, MIN_CLASS_PENALTY, RowErrorPredictor, SquaredErrors


class TableRowErrorPredictor(RowErrorPredictor):
    """Predictor of errors on the rows of the table itself."""

    @cached_property
    def clusters(self) -> TwoClusters:
        """Two clusters with the classes' means and common covariance. Directions without variance form one mode."""
        table, n, N = self.class_decomposition, len(self.table.Z), self.table.N
        s, squares, fractions = (
            table.resolvent.eigenvalues,
            table.mean_difference_squares,
            np.full(len(table.mean_difference_squares), 1 / N),
        )
        if num_flat := N - len(s):
            last = ((s, 0), (squares, table.mean_difference_residual), (fractions, num_flat / N))
            s, squares, fractions = (np.append(array, value) for array, value in last)
        return TwoClusters(table.positive_fraction, N * s / n, fractions, N * squares, np.ones_like(s))

    @cached_property
    def equations(self) -> ConvexEquations:
        """Saddle-point equations of least squares, with the target in units of its root mean square."""
        s, (n, N) = self.ridge_decomposition.resolvent.eigenvalues, self.table.Z.shape
        variances, fractions = np.append(N * s / n, 0.0), np.append(np.full(len(s), 1 / N), (N - len(s)) / N)
        powers = np.append(self.ridge_decomposition.target_squares / (n * self.target_mean_square), 0.0)
        return ConvexEquations(Square(), LinearTeacher(), ModeWeightEquations(Modes(variances, fractions, powers)))

    @property
    def target_mean_square(self) -> float:
        """Mean square of the target, or its variance if learners have an intercept."""
        return float(np.var(self.table.y) if self.intercept else np.mean(self.table.y**2))

    def solve_stabilities(self, loss: Loss, P: np.ndarray, lam: np.ndarray) -> tuple[TwoClusters, ClusterStabilities]:
        equations = ClusterEquations(loss, self.clusters, self.intercept and not self.clusters.is_balanced)
        solution = solve_cluster_equations(equations, P / self.table.N, lam)
        return self.clusters, equations.compute_stabilities(
            solution.x + np.where(solution.residual <= SOLUTION_RESIDUAL_TOL, 0.0, np.nan)
        )

    def predict_squared_errors(self, P: np.ndarray, lam: np.ndarray) -> SquaredErrors:
        alpha = P / self.table.N
        solution = solve_saddle_point(self.equations, alpha, lam, 0.0)
        state = describe_state(self.equations, solution, alpha, PenaltyPoint(np.log(lam), np.zeros_like(lam)))
        return SquaredErrors(self.target_mean_square * state.mse, 2 * self.target_mean_square * state.train_loss)

    def find_best_label_penalties(self, loss: Loss, P: np.ndarray) -> np.ndarray:
        return find_best_cluster_lambdas(loss, self.clusters, P / self.table.N, self.intercept)

    def find_best_squared_penalties(self, P: np.ndarray) -> np.ndarray:
        return np.clip(
            minimise_over_lambda(self.equations, P / self.table.N, 0.0, np.zeros(len(P), bool)),
            MIN_CLASS_PENALTY,
            MAX_CLASS_PENALTY,
        )
