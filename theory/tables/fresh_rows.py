"""Errors of learners of fresh rows: those of the population of which a table is a sample, without its own rows."""

from __future__ import annotations

import numpy as np

from statmech.convex.clusters import TwoClusters
from statmech.convex.losses import Loss
from theory.convex.cluster_averages import Stabilities
from theory.tables import fresh_clusters, ridge
from theory.tables.row_errors import RowErrors, Squares


class FreshRows(RowErrors):
    """Rows of the population, whose averages follow from the resolvent of the table (`theory.tables.resolvents`)."""

    def stabilities(self, loss: Loss, P: np.ndarray, lam: np.ndarray) -> tuple[TwoClusters, Stabilities]:
        equations, at = fresh_clusters.fresh_stabilities(loss, self.classes, P, lam)
        return equations.clusters, at

    def squares(self, P: np.ndarray, lam: np.ndarray) -> Squares:
        return Squares(ridge.squared_errors(self.ridge, P, lam), ridge.training_errors(self.ridge, P, lam))

    def best_of_labels(self, loss: Loss, P: np.ndarray) -> np.ndarray:
        return fresh_clusters.best_penalties(loss, self.classes, P)

    def best_of_squares(self, P: np.ndarray) -> np.ndarray:
        return ridge.best_penalties(self.ridge, P)
