r"""Errors of learners of a real table: on fresh rows of its population, or on the table's own rows.

**Two models.** No linear teacher describes real labels. Label errors follow from two clusters with the classes' means
and common covariance (`theory.convex.gaussian_clusters`), whose stabilities are normal in each class with means
:math:`\mu_y` and standard deviation Q. A squared error depends only on the covariances of inputs and target, for any
distribution of the target. The squared error of the clusters, :math:`\langle(1-\mu_y)^2\rangle + Q^2`, agrees up to
terms of order 1/N.

**Two populations.** Subclasses of `RowErrorPredictor` define the population of the rows. Fresh rows come from the
population that the table samples, and are not rows of the table. Otherwise the table itself is the population, and
learners draw its rows with replacement. Theory and simulation share the best penalties for a table.

**Resolvent.** The resolvent of a table estimates averages over the covariance of a population from a sample of n rows.
The eigenvalues of a sample covariance are more spread than the eigenvalues of the population covariance. Let
:math:`\omega_a` be the eigenvalues of N times the population covariance. Theory of a learner with an l2 penalty depends
on them only by functions of one number k > 0, such as

.. math:: \varphi(k) = \sum_a\nu_a\frac{\omega_a}{\omega_a + k},

and these follow from the sample at another penalty strength z. With the eigenvalues :math:`s_i` of :math:`Z^TZ`, for
centred rows Z with n' degrees of freedom,

.. math:: \mathrm{df}(z) = \sum_i\frac{s_i}{s_i + z} = N\varphi(k), \qquad k = \frac{Nz}{n' - \mathrm{df}(z)} .

(The relation is that of generalised cross-validation: Golub, Heath & Wahba 1979; for kernels and real data Jacot,
Simsek, Spadaro, Hongler & Gabriel 2020, Wei, Hu & Steinhardt 2022.)

**Label errors on fresh rows.** The equations of the weights depend on the clusters only by :math:`\varphi(k)` and

.. math:: T(k) = \sum_a\frac{t_a}{\omega_a + k}, \qquad k = \lambda/\hat V,

in the form

.. math:: V = \frac{\varphi}{\hat V}, \qquad m = \frac{\hat m\,T}{\hat V}, \qquad
          Q^2 = \frac{\hat m^2(T + kT') + \hat q\,(\varphi + k\varphi')}{\hat V^2} .

Both functions follow from the table. Its n rows minus the means of their classes, W, have n - 2 degrees of freedom, and
their resolvent gives :math:`\varphi`. With half the difference :math:`\hat{\mathbf d}` of the classes' means,

.. math:: T(k) = (n - 2 - \mathrm{df})\;\hat{\mathbf d}^T(W^TW + z)^{-1}\hat{\mathbf d}
          - \tfrac14\Bigl(\frac1{n_+} + \frac1{n_-}\Bigr)\mathrm{df},

where the last term subtracts the noise of :math:`\hat{\mathbf d}`.

**Squared errors on fresh rows.** For P examples from the population, the penalty :math:`\lambda` of ridge regression
corresponds to the z that solves :math:`k\,(P - \mathrm{df}) = N\lambda`. The residuals of the centred table at z give
the error of P examples. Centring n rows and their targets leaves :math:`n' = n - 1` degrees of freedom: a rotation
turns them into n' rows without a mean. Then

.. math:: \mathrm{mse}_P = \left[\frac{|\mathbf y - \hat{\mathbf y}|^2/n'}{(1-\mathrm{df}/n')^2}\,
          (1 - \mathrm{df}_2/n') + \mu^2\right]\frac1{1 - \mathrm{df}_2/P}, \qquad
          \mathrm{df}_2 = \mathrm{df} + k\,\frac{d\,\mathrm{df}}{dk},

where the fraction is the generalised cross-validation of n' rows (Golub, Heath & Wahba 1979). :math:`\mu` is the mean
of a target that learners see uncentred, which acts as noise without an intercept. Inputs may have any distribution with
many directions, and nothing is fitted. An intercept fits the means of P examples: P - 1 degrees of freedom remain, and
the noise of the means multiplies the error by :math:`1 + 1/P`. A table with no more rows than columns does not
determine the error if P is so large or the penalty so weak that no z > 0 solves the equation.

**Errors on the table's own rows.** With the eigenvalues :math:`s_a` of :math:`Z^TZ` of the n rows, the modes
(`statmech.inputs.covariance_modes`) have the variances :math:`\omega_a = Ns_a/n`, and each contains the fraction 1/N of
the directions. Mode a explains the fraction :math:`p_a = (\mathbf u_a\cdot\mathbf y)^2/|\mathbf y|^2` of the variance
of a target y, with :math:`\mathbf u_a` the rows' left singular vectors. The rest is the misfit. Within classes, with
half the difference :math:`\mathbf d` of their means, :math:`t_a = N(\mathbf d\cdot\mathbf v_a)^2`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from statmech.convex.gaussian_clusters import TwoClusters
from statmech.convex.losses import Loss, Square, convert_to_stability_loss
from statmech.convex.teachers import LinearTeacher
from statmech.inputs.covariance_modes import Modes
from statmech.inputs.real_tables import HeldOutRowsPopulation, RealTable, TableEigenbasis, compute_table_eigenbasis
from statmech.kinds.convex_fit import BEST_PENALTY_KEYWORD
from statmech.kinds.risk_table import LabelledRowsCell
from statmech.numerics.gaussian import normal_cdf
from theory.convex.best_lambda import minimise_over_lambda
from theory.convex.empirical_risk import describe_state
from theory.convex.gaussian_clusters import (
    ClusterEquations,
    ClusterHats,
    ClusterStabilities,
    WeightSolution,
    average_cluster_training_loss,
    average_over_clusters,
    find_best_cluster_lambdas,
    search_best_cluster_lambdas,
    solve_cluster_equations,
)
from theory.convex.saddle_point import SOLUTION_RESIDUAL_TOL, ConvexEquations, PenaltyPoint, solve_saddle_point
from theory.convex.weight_averages import ModeWeightEquations, differentiate_by_logs

MAX_PENALTY_NEWTON_STEPS = 200  # Newton's method converges from above
SAMPLE_PENALTY_REL_TOL = 1e-14  # relative change of z in the last step
MAX_RELATIVE_PENALTY_K = 1e6  # in units of the largest variance; at larger k the penalty dominates
EIGENVALUE_REL_TOL = 1e-12  # smaller eigenvalues, relative to the largest, are rounding errors
MIN_CLASS_SIGNAL_TO_NOISE = 0.01  # ratio of T to its noise; smaller differences between classes are due to chance
MIN_SIGNAL_VARIANCE_RATIO = 1e-3  # (T + k T')/T relative to omega/(omega + k) at the largest variance omega
MIN_RIDGE_PENALTY, MAX_RIDGE_PENALTY, PENALTY_SCAN_POINTS = 1e-8, 1e4, 60  # grid of the search for the best penalty
MIN_CLASS_PENALTY, MAX_CLASS_PENALTY = 1e-6, 1e6  # substitutes for a vanishing and for an infinite penalty
ERROR_MODEL_NAMES = ("auto", "clusters", "moments")


@dataclass(frozen=True, eq=False)
class Resolvent:
    """Resolvent of a table: nonzero eigenvalues s (r,) of its centred rows, degrees of freedom, and columns."""

    eigenvalues: np.ndarray
    degrees_of_freedom: int
    num_columns: int

    def effective_directions(self, z: np.ndarray) -> np.ndarray:
        """Return the effective number of directions df at each z (batch,)."""
        s = self.eigenvalues[:, None]
        return np.sum(s / (s + z), axis=0)

    def effective_directions_slope(self, z: np.ndarray) -> np.ndarray:
        """Return the derivative of df with respect to z."""
        s = self.eigenvalues[:, None]
        return -np.sum(s / (s + z) ** 2, axis=0)

    def remaining_degrees(self, z: np.ndarray) -> np.ndarray:
        """Return the degrees of freedom minus df, without cancellation."""
        s = self.eigenvalues[:, None]
        return self.degrees_of_freedom - len(s) + np.sum(z / (s + z), axis=0)

    def population_penalty(self, z: np.ndarray) -> np.ndarray:
        """Return the penalty strength k of the population at each z of the sample."""
        return self.num_columns * z / self.remaining_degrees(z)

    def population_penalty_slope(self, z: np.ndarray) -> np.ndarray:
        """Return the derivative of k with respect to z."""
        s = self.eigenvalues[:, None]
        rise = self.degrees_of_freedom - len(s) + np.sum((z / (s + z)) ** 2, axis=0)
        return self.num_columns * rise / self.remaining_degrees(z) ** 2

    @cached_property
    def min_population_penalty(self) -> float:
        """Smallest k that the table determines: 0 if it has more rows than columns, otherwise k at z = 0."""
        if len(self.eigenvalues) < self.degrees_of_freedom:
            return 0.0
        return float(self.num_columns / np.sum(1 / self.eigenvalues))

    def sample_penalty(self, k: np.ndarray) -> np.ndarray:
        """Return the penalty strength z of a table's sample at each k of the population (batch,).

        Newton's method finds the root of the convex function :math:`Nz/k + \\mathrm{df}(z) - n'` from above. The result
        is NaN for k up to `min_population_penalty`.
        """
        z = np.where(k > self.min_population_penalty, k * self.degrees_of_freedom / self.num_columns, np.nan)
        for _ in range(MAX_PENALTY_NEWTON_STEPS):
            step = (self.num_columns * z / k + self.effective_directions(z) - self.degrees_of_freedom) / (
                self.num_columns / k + self.effective_directions_slope(z)
            )
            z = z - step
            if not np.any(np.abs(step) > SAMPLE_PENALTY_REL_TOL * z):
                break
        return z


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
    """Decompose the table rows of two classes in the eigenbasis of their common covariance.

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
        """Solve the equations of the weights for fresh rows of a table under the penalty."""
        max_k = MAX_RELATIVE_PENALTY_K * self.hebb_lambda_scale
        k = np.minimum(lam / np.maximum(hats.V, lam / max_k), max_k)
        logs = self._compute_log_spectral_functions(np.log(k))
        slope = differentiate_by_logs(self._compute_log_spectral_functions, np.log(k)[None])[:, 0]
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
        df = resolvent.effective_directions(z)
        slope = resolvent.effective_directions_slope(z)
        per_k = 1 / resolvent.population_penalty_slope(z)
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
    """Solve the equations for fresh rows of a table and return them with the stabilities of these rows.

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
    return equations.clusters.weights @ normal_cdf(-stabilities.means / stabilities.Q)


def find_best_fresh_row_penalties(loss: Loss, table: ClassDecomposition, P: np.ndarray, intercept: bool) -> np.ndarray:
    """Find the penalty with the smallest error on fresh rows at each number of examples (batch,)."""
    alpha = np.asarray(P, float) / table.resolvent.num_columns
    return search_best_cluster_lambdas(make_fresh_equations(loss, table, intercept), alpha)


class RidgeDecomposition(NamedTuple):
    """A table in the eigenbasis of its rows."""

    resolvent: Resolvent
    target_squares: np.ndarray  # squared components of the centred target in the eigenbasis (r,)
    target_residual_square: float  # squared length of the target's part outside the eigenbasis
    squared_target_mean: float  # unbiased estimate of the squared mean of the target that learners see


def make_ridge_decomposition(Z: np.ndarray, y: np.ndarray) -> RidgeDecomposition:
    """Decompose a table in its eigenbasis.

    Parameters
    ----------
    Z
        Centred rows (n, N).
    y
        Centred targets (n,).
    """
    return _make_decomposition_from_basis(compute_table_eigenbasis(Z, y), *Z.shape)


def decompose_real_table(table: RealTable, intercept: bool) -> RidgeDecomposition:
    """Decompose a real table in its eigenbasis, with the target that learners see.

    Parameters
    ----------
    table
        The table.
    intercept
        Whether learners have an intercept, which explains the mean of labels. Numerical targets have mean 0.
    """
    y, mean_is_seen = table.y, table.labels and not intercept
    mean_square = float(y.mean() ** 2 - np.var(y, ddof=1) / len(y)) if mean_is_seen else 0.0
    return _make_decomposition_from_basis(table.basis, len(table.Z), table.N, mean_square)


def _make_decomposition_from_basis(
    basis: TableEigenbasis, rows: int, columns: int, mean_square: float = 0.0
) -> RidgeDecomposition:
    return RidgeDecomposition(
        Resolvent(basis.eigenvalues, rows - 1, columns),
        basis.target_squares,
        basis.unexplained_target_square,
        mean_square,
    )


def predict_squared_errors(table: RidgeDecomposition, P: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """Predict the mean squared error on fresh rows of a table with noisy targets (batch,).

    The error is NaN where the table does not determine it.

    Parameters
    ----------
    table
        The table.
    P
        Degrees of freedom of the examples (batch,).
    lam
        Strengths of the penalty (batch,).
    """
    z = _solve_sample_penalty(table.resolvent, np.asarray(P, float), np.asarray(lam, float))
    resolvent, s = table.resolvent, table.resolvent.eigenvalues[:, None]
    df, k = resolvent.effective_directions(z), resolvent.population_penalty(z)
    df2 = df + k * resolvent.effective_directions_slope(z) / resolvent.population_penalty_slope(z)
    residual = np.sum(table.target_squares[:, None] * (z / (s + z)) ** 2, axis=0) + table.target_residual_square
    error: np.ndarray = (
        residual * (resolvent.degrees_of_freedom - df2) / resolvent.remaining_degrees(z) ** 2
        + table.squared_target_mean
    )
    return error / (1 - df2 / P)


def predict_squared_training_errors(table: RidgeDecomposition, P: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """Predict the mean squared training error (batch,), which is (1 - df/P)^2 times the error on fresh rows.

    Parameters
    ----------
    table, P, lam
        As in `predict_squared_errors`.
    """
    z = _solve_sample_penalty(table.resolvent, np.asarray(P, float), np.asarray(lam, float))
    return predict_squared_errors(table, P, lam) * (1 - table.resolvent.effective_directions(z) / P) ** 2


def find_best_ridge_penalties(table: RidgeDecomposition, P: np.ndarray) -> np.ndarray:
    """Find the penalty with the smallest squared error on fresh rows of a table at each number of examples (batch,).

    Penalties are compared only if the table determines their error. The result is NaN if there is no such penalty.
    """
    from scipy.optimize import minimize_scalar

    def find_best_penalty(examples: float) -> float:
        def error(log_lam: float) -> float:
            return float(predict_squared_errors(table, np.array([examples]), np.exp([log_lam]))[0])

        scan = np.linspace(np.log(MIN_RIDGE_PENALTY), np.log(MAX_RIDGE_PENALTY), PENALTY_SCAN_POINTS)
        errors = predict_squared_errors(table, np.full(PENALTY_SCAN_POINTS, examples), np.exp(scan))
        scan, errors = scan[np.isfinite(errors)], errors[np.isfinite(errors)]
        if not len(scan):
            return np.nan
        index = int(np.argmin(errors))
        ends = scan[max(index - 1, 0)], scan[min(index + 1, len(scan) - 1)]
        return float(np.exp(minimize_scalar(error, bounds=ends, method="bounded", options={"xatol": 1e-6}).x))

    return np.array([find_best_penalty(examples) for examples in np.asarray(P, float).tolist()])


def _solve_sample_penalty(resolvent: Resolvent, P: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """Solve for the penalty strength z of a table's sample by bisection of ln z, NaN without a solution (batch,)."""
    low, high = np.full(P.shape, np.log(1e-14)), np.full(P.shape, np.log(1e14))
    for _ in range(100):
        z = np.exp(0.5 * (low + high))
        excess = resolvent.population_penalty(z) * (P - resolvent.effective_directions(z)) - resolvent.num_columns * lam
        low, high = np.where(excess < 0, np.log(z), low), np.where(excess < 0, high, np.log(z))
    determined = resolvent.min_population_penalty * (P - resolvent.degrees_of_freedom) < resolvent.num_columns * lam
    return np.where(determined, np.exp(0.5 * (low + high)), np.nan)


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
        """Predict the errors on rows of a table, NaN where the table does not determine them.

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
        """Find the penalty (batch,) with the smallest label error on a table, or squared error without labels.

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
        """Predict the errors on rows of a table at finite penalties."""
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
        """Predict the errors on rows of a table by the model of two clusters, the squared error if `square` is True."""
        clusters, stabilities = self.solve_stabilities(loss, P, lam)
        with np.errstate(all="ignore"):
            training = average_cluster_training_loss(loss, clusters, stabilities, loss)
            error_rate = clusters.weights @ normal_cdf(-stabilities.means / stabilities.Q)
        mse = clusters.weights @ (1 - stabilities.means) ** 2 + stabilities.Q**2 if square else np.full(len(P), np.nan)
        if self.intercept and loss.kinks:  # the equations fail at w = 0, where all answers are the more frequent label
            error_rate = np.where(np.isnan(error_rate), clusters.weights.min(), error_rate)
        return RowErrorValues(error_rate, mse, training.error, training.loss)


class FreshRowErrorPredictor(RowErrorPredictor):
    """Predictor of errors on fresh rows, based on the resolvent of the table."""

    def solve_stabilities(self, loss: Loss, P: np.ndarray, lam: np.ndarray) -> tuple[TwoClusters, ClusterStabilities]:
        equations, row_stabilities = solve_fresh_stabilities(loss, self.class_decomposition, P, lam, self.intercept)
        return equations.clusters, row_stabilities

    def positions(self, loss: Loss, P: np.ndarray, lam: np.ndarray) -> np.ndarray:
        r"""Compute the mean stabilities of both classes of a table in units of their standard deviation (2, batch).

        Among P rows a fraction :math:`\pi_+ \pm \sqrt{\pi_+\pi_-/P}` has the label +1. The intercept follows this
        fraction as :math:`\partial b/\partial\pi_+ = (\langle g\rangle_+ + \langle g\rangle_-)/A = C/(2\pi_+\pi_-A)`,
        at constant weights (`theory.convex.gaussian_clusters`). This adds :math:`C^2/(4\pi_+\pi_-A^2P)` to
        :math:`Q^2`.

        Parameters
        ----------
        loss, P, lam
            The loss, numbers of examples (batch,) and penalties (batch,).
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
            predict_squared_errors(self.ridge_decomposition, P, lam),
            predict_squared_training_errors(self.ridge_decomposition, P, lam),
        )

    def find_best_label_penalties(self, loss: Loss, P: np.ndarray) -> np.ndarray:
        return find_best_fresh_row_penalties(loss, self.class_decomposition, P, self.intercept)

    def get_penalty_bounds(self, model: str = "auto") -> tuple[float, float]:
        squares = self.table.labels is None or model == "moments"
        return (MIN_RIDGE_PENALTY, MAX_RIDGE_PENALTY) if squares else super().get_penalty_bounds(model)

    def find_best_squared_penalties(self, P: np.ndarray) -> np.ndarray:
        return find_best_ridge_penalties(self.ridge_decomposition, P)


class TableRowErrorPredictor(RowErrorPredictor):
    """Predictor of errors on the rows of the table itself."""

    @cached_property
    def clusters(self) -> TwoClusters:
        """Two clusters with the means and the common covariance of a table's classes.

        Directions without variance form one mode.
        """
        table, n, N = self.class_decomposition, len(self.table.Z), self.table.N
        s = table.resolvent.eigenvalues
        squares = table.mean_difference_squares
        fractions = np.full(len(table.mean_difference_squares), 1 / N)
        if num_flat := N - len(s):
            last = ((s, 0), (squares, table.mean_difference_residual), (fractions, num_flat / N))
            s, squares, fractions = (np.append(array, value) for array, value in last)
        return TwoClusters(table.positive_fraction, N * s / n, fractions, N * squares, np.ones_like(s))

    @cached_property
    def equations(self) -> ConvexEquations:
        """Saddle-point equations of least squares, with the table's target in units of its root mean square."""
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


def make_row_error_predictor(cell: LabelledRowsCell) -> RowErrorPredictor:
    """Return the predictor of errors for a cell's table and population.

    Parameters
    ----------
    cell
        The parameter combination.
    """
    return (FreshRowErrorPredictor if isinstance(cell.population, HeldOutRowsPopulation) else TableRowErrorPredictor)(
        cell.table, cell.intercept
    )


def find_best_penalties(cells: Sequence[LabelledRowsCell]) -> list[float]:
    """Find the penalty with the smallest error on a table for each cell, NaN if undetermined or not needed at this P.

    Parameters
    ----------
    cells
        Parameter combinations that differ only in the penalty and the number of examples.
    """
    first, sizes = cells[0], list(dict.fromkeys(cell.P for cell in cells if cell.lam == BEST_PENALTY_KEYWORD))
    if not sizes:
        return [np.nan] * len(cells)
    best = make_row_error_predictor(first).find_best_penalties(first.loss, np.array(sizes, float), first.model)
    best_by_size = dict(zip(sizes, best.tolist(), strict=True))
    return [best_by_size.get(cell.P, np.nan) for cell in cells]
