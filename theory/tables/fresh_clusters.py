r"""Errors of classifiers on fresh rows, predicted from a labelled table that samples the population.

No linear teacher describes real labels. The two classes are modelled as two clusters with the same covariance
(`theory.convex.clusters`). The equations of the weights depend on the clusters only by :math:`\varphi(k)` and

.. math:: T(k) = \sum_a\frac{t_a}{\omega_a + k}, \qquad k = \lambda/\hat V,

in the form

.. math:: V = \frac{\varphi}{\hat V}, \qquad m = \frac{\hat m\,T}{\hat V}, \qquad
          Q^2 = \frac{\hat m^2(T + kT') + \hat q\,(\varphi + k\varphi')}{\hat V^2} .

Both follow from the table. Its n rows minus the means of their classes have n - 2 degrees of freedom, whose resolvent
gives :math:`\varphi`. With half the difference :math:`\hat{\mathbf d}` of the classes' means,

.. math:: T(k) = (n - 2 - \mathrm{df})\;\hat{\mathbf d}^T(W^TW + z)^{-1}\hat{\mathbf d}
          - \tfrac14\Bigl(\frac1{n_+} + \frac1{n_-}\Bigr)\mathrm{df},

where the last term subtracts the noise of :math:`\hat{\mathbf d}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from statmech.convex.clusters import TwoClusters
from statmech.convex.losses import Loss
from statmech.numerics.gaussian import normal_cdf
from theory.convex.cluster_averages import ClusterStabilities
from theory.convex.clusters import (
    ClusterEquations,
    ClusterHats,
    WeightSolution,
    search_best_cluster_lambdas,
    solve_cluster_equations,
)
from theory.convex.penalised_fields import differentiate_by_logs
from theory.convex.saddle_point import SOLUTION_RESIDUAL_TOL
from theory.tables.resolvents import Resolvent

MAX_RELATIVE_PENALTY_K = 1e6  # in units of the largest variance; at larger k the penalty dominates
EIGENVALUE_REL_TOL = 1e-12  # smaller eigenvalues, relative to the largest, are rounding errors
MIN_CLASS_SIGNAL_TO_NOISE = 0.01  # ratio of T to its noise; smaller differences between classes are due to chance
MIN_SIGNAL_VARIANCE_RATIO = 1e-3  # (T + k T')/T relative to omega/(omega + k) at the largest variance omega


class ClassDecomposition(NamedTuple):
    """A labelled table in the eigenbasis of the covariance within classes.

    The vector d is half the difference between the class means.
    """

    resolvent: Resolvent
    mean_difference_squares: np.ndarray  # squared components of d in the eigenbasis (r,)
    mean_difference_residual: float  # squared length of the part of d outside the eigenbasis
    mean_difference_noise: float  # variance of d per unit variance of the rows
    positive_fraction: float  # fraction of the label +1


def make_class_decomposition(Z: np.ndarray, y: np.ndarray) -> ClassDecomposition:
    """Decompose the rows of two classes in the eigenbasis of their common covariance.

    Parameters
    ----------
    Z
        Centred rows (n, N) with mean |x|^2 = 1.
    y
        Labels +1 and -1 (n,).
    """
    (n, N), right = Z.shape, y > 0
    means = [Z[right].mean(axis=0), Z[~right].mean(axis=0)]
    residuals = Z - np.where(right[:, None], *means)
    s, axes = np.linalg.eigh(residuals.T @ residuals)
    nonzero = s > EIGENVALUE_REL_TOL * s[-1]
    half = 0.5 * (means[0] - means[1])
    squares = (half @ axes[:, nonzero]) ** 2
    noise = 0.25 * (1 / right.sum() + 1 / (~right).sum())
    residual_square = max(float(half @ half - squares.sum()), 0.0)
    residual_square = residual_square if residual_square > EIGENVALUE_REL_TOL * float(half @ half) else 0.0
    return ClassDecomposition(
        Resolvent(s[nonzero], n - 2, N), squares, residual_square, float(noise), float(right.mean())
    )


class _SpectralFunctions(NamedTuple):
    """The functions k phi, k T, k^2 (phi + k phi') and k^2 (T + k T') at each k (batch,), finite for all k."""

    response: np.ndarray
    signal: np.ndarray
    spread: np.ndarray
    signal_variance_function: np.ndarray


@dataclass(frozen=True, eq=False)
class FreshEquations(ClusterEquations):
    """Equations of a stability loss for fresh rows of a table. `clusters` describes only the labels."""

    table: ClassDecomposition | None = None

    def solve_penalised_weights(self, hats: ClusterHats, lam: np.ndarray) -> WeightSolution:
        """Solve the equations of the weights under the penalty."""
        max_k = MAX_RELATIVE_PENALTY_K * self.hebb_lambda_scale
        k = np.minimum(lam / np.maximum(hats.V, lam / max_k), max_k)
        logs, slope = (
            self._compute_log_spectral_functions(np.log(k)),
            differentiate_by_logs(self._compute_log_spectral_functions, np.log(k)[None])[:, 0],
        )
        log_lam = np.log(lam)
        log_m = np.log(hats.m) + logs[1] - log_lam
        of_q, of_m = np.exp(logs[2]) * hats.q / lam**2, np.exp(logs[3]) * (hats.m / lam) ** 2
        Q2 = of_q + of_m
        log_Q = 0.5 * np.log(Q2)

        def differentiate(part: np.ndarray) -> np.ndarray:
            """Return the derivatives with respect to a parameter that changes ln k by `part`."""
            Q = 0.5 * (of_q * slope[2] + of_m * slope[3]) / Q2
            return np.array([Q - slope[1], Q, slope[0]]) * part

        zeros = np.zeros_like(Q2)
        by_m, by_q = of_m / Q2, 0.5 * of_q / Q2
        by_lam = differentiate(np.where(k < max_k, 1.0, 0.0)) + np.array([zeros, zeros - 1, zeros - 1])
        return WeightSolution(
            np.array([log_Q - log_m, log_Q, logs[0] - log_lam]),
            np.array([by_m - 1, by_m, zeros]),
            np.array([by_q, by_q, zeros]),
            differentiate(np.where(k < max_k, -k / lam, 0.0)),
            by_lam,
        )

    @property
    def hebb_lambda_scale(self) -> float:
        """Scale of the penalty: the largest variance of the rows within classes, times N."""
        assert self.table is not None
        resolvent = self.table.resolvent
        return float(np.max(resolvent.eigenvalues) * resolvent.num_columns / resolvent.degrees_of_freedom)

    def _compute_log_spectral_functions(self, log_k: np.ndarray) -> np.ndarray:
        """Return the logarithms of the functions (4, ...) at ln k, (batch,) or (1, ..., batch).

        The logarithms are NaN if the classes do not differ.
        """
        with np.errstate(all="ignore"):  # classes may differ by no more than noise
            functions = np.log(np.array(self._compute_spectral_functions(np.exp(log_k.ravel()))))
        return functions.reshape(4, *log_k.shape[log_k.ndim > 1 :])

    def _compute_spectral_functions(self, k: np.ndarray) -> _SpectralFunctions:
        """Compute the functions of k from the table's resolvent."""
        table = self.table
        assert table is not None
        resolvent = table.resolvent
        z = resolvent.sample_penalty(k)
        s, square = resolvent.eigenvalues[:, None], table.mean_difference_squares[:, None]
        df, slope, per_k = (
            resolvent.effective_directions(z),
            resolvent.effective_directions_slope(z),
            1 / resolvent.population_penalty_slope(z),
        )
        left = resolvent.remaining_degrees(z)
        once = np.sum(square / (s + z), axis=0) + table.mean_difference_residual / z
        twice = np.sum(square / (s + z) ** 2, axis=0) + table.mean_difference_residual / z**2
        T = np.maximum(
            left * once - table.mean_difference_noise * df, MIN_CLASS_SIGNAL_TO_NOISE * table.mean_difference_noise * df
        )
        T_slope = (-slope * once - left * twice - table.mean_difference_noise * slope) * per_k
        phi, phi_slope = df / resolvent.num_columns, slope * per_k / resolvent.num_columns
        min_centre = MIN_SIGNAL_VARIANCE_RATIO * T * self.hebb_lambda_scale / (self.hebb_lambda_scale + k)
        centre = np.clip(T + k * T_slope, min_centre, T)  # noise of a short table can violate these bounds
        return _SpectralFunctions(k * phi, k * T, k**2 * (phi + k * phi_slope), k**2 * centre)


def make_fresh_equations(loss: Loss, table: ClassDecomposition, intercept: bool) -> FreshEquations:
    """Return the equations of a stability loss for fresh rows of a table.

    Parameters
    ----------
    loss
        A loss that depends on stabilities.
    table
        The table.
    intercept
        Whether the learner has an intercept, which has no penalty. The intercept is 0 for classes of equal size.
    """
    unit = np.ones(1)
    clusters = TwoClusters(table.positive_fraction, unit, unit, unit, unit)
    return FreshEquations(loss, clusters, intercept and not clusters.is_balanced, table)


def solve_fresh_stabilities(
    loss: Loss, table: ClassDecomposition, P: np.ndarray, lam: np.ndarray, intercept: bool
) -> tuple[FreshEquations, ClusterStabilities]:
    """Solve the equations for fresh rows and return them with the stabilities of fresh rows.

    The stabilities are NaN where the table does not determine them.

    Parameters
    ----------
    loss, table, intercept
        As in `make_fresh_equations`.
    P
        Numbers of examples (batch,).
    lam
        Strengths of the penalty (batch,), above 0.
    """
    equations = make_fresh_equations(loss, table, intercept)
    alpha = np.asarray(P, float) / table.resolvent.num_columns
    solution = solve_cluster_equations(equations, alpha, np.asarray(lam, float))
    return equations, equations.compute_stabilities(
        solution.x + np.where(solution.residual <= SOLUTION_RESIDUAL_TOL, 0.0, np.nan)
    )


def predict_fresh_errors(
    loss: Loss, table: ClassDecomposition, P: np.ndarray, lam: np.ndarray, intercept: bool = True
) -> np.ndarray:
    """Predict the error on fresh rows (batch,), NaN where the table does not determine it.

    Parameters
    ----------
    loss, table, P, lam, intercept
        As in `solve_fresh_stabilities`.
    """
    equations, stabilities = solve_fresh_stabilities(loss, table, P, lam, intercept)
    error_rate: np.ndarray = equations.clusters.weights @ normal_cdf(-stabilities.means / stabilities.Q)
    return error_rate


def find_best_fresh_row_penalties(loss: Loss, table: ClassDecomposition, P: np.ndarray, intercept: bool) -> np.ndarray:
    """Find the penalty with the smallest error on fresh rows at each number of examples (batch,)."""
    alpha = np.asarray(P, float) / table.resolvent.num_columns
    return search_best_cluster_lambdas(make_fresh_equations(loss, table, intercept), alpha)
