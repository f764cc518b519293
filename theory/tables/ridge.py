r"""The squared error of ridge regression on fresh rows, predicted from a table that samples their population.

For P examples from this population, the penalty :math:`\lambda` corresponds to the z that solves
:math:`k\,(P - \mathrm{df}) = N\lambda` (`theory.tables.resolvents`). The residuals of the centred table at z give the
error of P examples. Centring n rows and their targets leaves :math:`n' = n - 1` degrees of freedom: a rotation turns
them into n' rows without a mean. Then

.. math:: \mathrm{mse}_P = \left[\frac{|\mathbf y - \hat{\mathbf y}|^2/n'}{(1-\mathrm{df}/n')^2}\,
          (1 - \mathrm{df}_2/n') + \mu^2\right]\frac1{1 - \mathrm{df}_2/P}, \qquad
          \mathrm{df}_2 = \mathrm{df} + k\,\frac{d\,\mathrm{df}}{dk},

where the fraction is the generalised cross-validation of n' rows (Golub, Heath & Wahba 1979). :math:`\mu` is the mean
of a target that learners see uncentred, which acts as noise without an intercept. Inputs may have any distribution with
many directions, and nothing is fitted. An intercept fits the means of P examples: P - 1 degrees of freedom remain, and
the noise of the means multiplies the error by :math:`1 + 1/P` (`theory.tables.row_errors`). A table with no more rows
than columns does not determine the error if P is so large or the penalty so weak that no z > 0 solves the equation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from statmech.real_table import RealTable, TableEigenbasis, compute_table_eigenbasis
from theory.tables.resolvents import Resolvent

MIN_RIDGE_PENALTY, MAX_RIDGE_PENALTY, PENALTY_SCAN_POINTS = 1e-8, 1e4, 60  # grid of the search for the best penalty


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
    """Predict the mean squared error on fresh rows with noisy targets (batch,).

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
    error: np.ndarray = predict_squared_errors(table, P, lam) * (1 - table.resolvent.effective_directions(z) / P) ** 2
    return error


def find_best_ridge_penalties(table: RidgeDecomposition, P: np.ndarray) -> np.ndarray:
    """Find the penalty with the smallest squared error on fresh rows at each number of examples (batch,).

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
    """Solve for the penalty strength z of the sample by bisection of ln z, NaN without a solution (batch,)."""
    low, high = np.full(P.shape, np.log(1e-14)), np.full(P.shape, np.log(1e14))
    for _ in range(100):
        z = np.exp(0.5 * (low + high))
        excess = resolvent.population_penalty(z) * (P - resolvent.effective_directions(z)) - resolvent.num_columns * lam
        low, high = np.where(excess < 0, np.log(z), low), np.where(excess < 0, high, np.log(z))
    determined = resolvent.min_population_penalty * (P - resolvent.degrees_of_freedom) < resolvent.num_columns * lam
    return np.where(determined, np.exp(0.5 * (low + high)), np.nan)
