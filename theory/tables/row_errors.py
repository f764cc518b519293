r"""Errors of learners of a real table: label errors by a model of two clusters, squared errors by covariances.

Label errors follow from two clusters with the classes' means and common covariance, whose stabilities are normal in
each class with means :math:`\mu_y` and standard deviation Q. A squared error depends only on the covariances of inputs
and target, for any distribution of the target. The squared error of the clusters,
:math:`\langle(1-\mu_y)^2\rangle + Q^2`, agrees up to terms of order 1/N. Subclasses define the population of the rows:
the table itself (`theory.tables.table_rows`), or the population that the table samples (`theory.tables.fresh_rows`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from statmech.convex.clusters import TwoClusters
from statmech.convex.losses import Loss, Square, convert_to_stability_loss
from statmech.numerics.gaussian import normal_cdf
from statmech.real_table import RealTable
from theory.convex.cluster_averages import ClusterStabilities, average_cluster_training_loss
from theory.tables.fresh_clusters import ClassDecomposition, make_class_decomposition
from theory.tables.ridge import RidgeDecomposition, decompose_real_table

MIN_CLASS_PENALTY, MAX_CLASS_PENALTY = 1e-6, 1e6  # substitutes for a vanishing and for an infinite penalty
ERROR_MODEL_NAMES = ("auto", "clusters", "moments")


class RowErrorValues(NamedTuple):
    """Label errors and squared errors on the rows of the population and on the examples, arrays (batch,)."""

    eps_y: np.ndarray
    mse_y: np.ndarray
    eps_t: np.ndarray
    train_loss: np.ndarray


class SquaredErrors(NamedTuple):
    """Mean squared errors on the rows of the population and on the examples, arrays (batch,)."""

    fresh: np.ndarray
    training: np.ndarray


@dataclass(frozen=True, eq=False)
class RowErrorPredictor(ABC):
    """Predictor of errors for a table. Subclasses define the population of the rows.

    Parameters
    ----------
    table
        The table.
    intercept
        Whether learners have an intercept, which has no penalty.
    """

    table: RealTable
    intercept: bool = True

    @abstractmethod
    def solve_stabilities(self, loss: Loss, P: np.ndarray, lam: np.ndarray) -> tuple[TwoClusters, ClusterStabilities]:
        """Return the clusters and the stabilities of learners with a stability loss."""

    @abstractmethod
    def predict_squared_errors(self, P: np.ndarray, lam: np.ndarray) -> SquaredErrors:
        """Predict the squared errors of least squares for examples with P degrees of freedom."""

    @abstractmethod
    def find_best_label_penalties(self, loss: Loss, P: np.ndarray) -> np.ndarray:
        """Find the penalty with the smallest label error."""

    @abstractmethod
    def find_best_squared_penalties(self, P: np.ndarray) -> np.ndarray:
        """Find the penalty with the smallest squared error."""

    @cached_property
    def class_decomposition(self) -> ClassDecomposition:
        """Decomposition of the table into two classes."""
        return make_class_decomposition(self.table.Z, self.table.y)

    @cached_property
    def ridge_decomposition(self) -> RidgeDecomposition:
        """Decomposition of the table in its eigenbasis."""
        return decompose_real_table(self.table, self.intercept)

    def predict_errors(self, loss: Loss, P: np.ndarray, lam: np.ndarray, model: str = "auto") -> RowErrorValues:
        """Predict the errors, NaN where the table does not determine them.

        Parameters
        ----------
        loss
            The loss as in a config.
        P
            Numbers of examples (batch,).
        lam
            Strengths of the penalty (batch,), NaN to skip an element.
        model
            One of `ERROR_MODEL_NAMES`: `auto` predicts label errors by `clusters` and squared errors by `moments`.
        """
        result = RowErrorValues(*(np.full(len(P), np.nan) for _ in RowErrorValues._fields))
        is_finite = np.isfinite(lam)
        if is_finite.any():
            state = self._predict_finite_lam_errors(loss, P[is_finite], lam[is_finite], model)
            for values, part in zip(result, state, strict=True):
                values[is_finite] = part
        return result

    def find_best_penalties(self, loss: Loss, P: np.ndarray, model: str = "auto") -> np.ndarray:
        """Find the penalty (batch,) with the smallest label error, or squared error if labels are not predicted.

        Parameters
        ----------
        loss, P, model
            As in `predict_errors`.
        """
        if self.table.labels is None or model == "moments":
            return self.find_best_squared_penalties(P)
        return np.clip(
            self.find_best_label_penalties(convert_to_stability_loss(loss), P), MIN_CLASS_PENALTY, MAX_CLASS_PENALTY
        )

    def get_penalty_bounds(self, model: str = "auto") -> tuple[float, float]:
        """Return the bounds of the search for the best penalty."""
        return MIN_CLASS_PENALTY, MAX_CLASS_PENALTY

    def _predict_finite_lam_errors(self, loss: Loss, P: np.ndarray, lam: np.ndarray, model: str) -> RowErrorValues:
        """Predict the errors at finite penalties."""
        nans, square = np.full(len(P), np.nan), isinstance(loss, Square)
        state = RowErrorValues(nans, nans, nans, nans)
        if self.table.labels is not None and model != "moments":
            state = self._predict_errors_by_clusters(convert_to_stability_loss(loss), P, lam, square)
        if square and model != "clusters":
            squares = self.predict_squared_errors(P - self.intercept, lam)
            means = 1 + self.intercept / P
            training = 0.5 * squares.training * (1 - self.intercept / P)
            state = state._replace(mse_y=squares.fresh * means, train_loss=training)
        return state

    def _predict_errors_by_clusters(self, loss: Loss, P: np.ndarray, lam: np.ndarray, square: bool) -> RowErrorValues:
        """Predict the errors by the model of two clusters, with the squared error if `square` is True."""
        clusters, stabilities = self.solve_stabilities(loss, P, lam)
        with np.errstate(all="ignore"):
            training = average_cluster_training_loss(loss, clusters, stabilities, loss)
            error_rate = clusters.weights @ normal_cdf(-stabilities.means / stabilities.Q)
        mse = clusters.weights @ (1 - stabilities.means) ** 2 + stabilities.Q**2 if square else np.full(len(P), np.nan)
        if self.intercept and loss.kinks:  # the equations fail at w = 0, where all answers are the more frequent label
            error_rate = np.where(np.isnan(error_rate), clusters.weights.min(), error_rate)
        return RowErrorValues(error_rate, mse, training.error, training.loss)
