"""Errors on fresh rows: rows of the population that a table samples, other than the table's own rows."""

from __future__ import annotations

import numpy as np

from statmech.convex.clusters import TwoClusters
from statmech.convex.losses import Loss, convert_to_stability_loss
from theory.convex.cluster_averages import ClusterStabilities, average_over_clusters
from theory.tables import fresh_clusters, ridge
from theory.tables.row_errors import RowErrorPredictor, SquaredErrors


class FreshRowErrorPredictor(RowErrorPredictor):
    """Predictor of errors on fresh rows, based on the resolvent of the table (`theory.tables.resolvents`)."""

    def solve_stabilities(self, loss: Loss, P: np.ndarray, lam: np.ndarray) -> tuple[TwoClusters, ClusterStabilities]:
        equations, row_stabilities = fresh_clusters.solve_fresh_stabilities(
            loss, self.class_decomposition, P, lam, self.intercept
        )
        return equations.clusters, row_stabilities

    def positions(self, loss: Loss, P: np.ndarray, lam: np.ndarray) -> np.ndarray:
        r"""Compute the mean stabilities of both classes in units of their standard deviation (2, batch).

        Among P rows a fraction :math:`\pi_+ \pm \sqrt{\pi_+\pi_-/P}` has the label +1. The intercept follows this
        fraction as :math:`\partial b/\partial\pi_+ = (\langle g\rangle_+ + \langle g\rangle_-)/A = C/(2\pi_+\pi_-A)`,
        at constant weights (`theory.convex.cluster_averages`). This adds :math:`C^2/(4\pi_+\pi_-A^2P)` to
        :math:`Q^2`.

        Parameters
        ----------
        loss, P, lam
            As in `described`.
        """
        kind = convert_to_stability_loss(loss)
        clusters, stabilities = self.solve_stabilities(kind, P, lam)
        if not self.intercept:
            return stabilities.means / stabilities.Q
        with np.errstate(all="ignore"):
            A, _, C, _ = average_over_clusters(kind, clusters, stabilities).values
            return stabilities.means / np.sqrt(stabilities.Q**2 + (C / A) ** 2 / (4 * np.prod(clusters.weights) * P))

    def predict_squared_errors(self, P: np.ndarray, lam: np.ndarray) -> SquaredErrors:
        return SquaredErrors(
            ridge.predict_squared_errors(self.ridge_decomposition, P, lam),
            ridge.predict_squared_training_errors(self.ridge_decomposition, P, lam),
        )

    def find_best_label_penalties(self, loss: Loss, P: np.ndarray) -> np.ndarray:
        return fresh_clusters.find_best_fresh_row_penalties(loss, self.class_decomposition, P, self.intercept)

    def get_penalty_bounds(self, model: str = "auto") -> tuple[float, float]:
        squares = self.table.labels is None or model == "moments"
        return (ridge.MIN_RIDGE_PENALTY, ridge.MAX_RIDGE_PENALTY) if squares else super().get_penalty_bounds(model)

    def find_best_squared_penalties(self, P: np.ndarray) -> np.ndarray:
        return ridge.find_best_ridge_penalties(self.ridge_decomposition, P)
