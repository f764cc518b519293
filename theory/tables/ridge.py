r"""The squared error of ridge regression on fresh rows, predicted from a table that is a sample of their population.

With P of such rows as examples the strength :math:`\lambda` of the penalty belongs to the z at which
:math:`k\,(P - \mathrm{df}) = N\lambda` (`theory.tables.resolvents`). The residuals of the whole table at z give the
error of P examples,

.. math:: \mathrm{mse}_P = \frac{|\mathbf y - \hat{\mathbf y}|^2/n}{(1-\mathrm{df}/n)^2}\;
          \frac{1 - \mathrm{df}_2/n}{1 - \mathrm{df}_2/P}, \qquad
          \mathrm{df}_2 = \mathrm{df} + k\,\frac{d\,\mathrm{df}}{dk},

whose first factor is the generalised cross-validation of all n rows (Golub, Heath & Wahba 1979). Inputs may have any
distribution of many directions; nothing is fitted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from statmech.real_table import RealTable, basis_of
from theory.tables.resolvents import Resolvent

LEAST, LARGEST, PLACES = 1e-8, 1e4, 60  # penalties among which the best is sought


class RidgeTable(NamedTuple):
    """A table in the eigenbasis of its rows: the squares of the target along each direction (r,), and of the rest."""

    resolvent: Resolvent
    squares: np.ndarray
    beyond: float  # the square of what no direction contains
    rows: int


def ridge_table(Z: np.ndarray, y: np.ndarray) -> RidgeTable:
    """The eigenbasis of a table.

    Parameters
    ----------
    Z
        Centred rows (n, N).
    y
        Centred targets (n,).
    """
    return RidgeTable(Resolvent((basis := basis_of(Z, y)).eigenvalues, *Z.shape), *basis[1:], len(Z))


def ridge_of(table: RealTable) -> RidgeTable:
    """The eigenbasis of a real table, with the target that learners see: labels are not centred."""
    basis, mean = table.basis, float(table.y.mean())
    beyond = basis.beyond + len(table.y) * mean**2
    return RidgeTable(Resolvent(basis.eigenvalues, *table.Z.shape), basis.squares, beyond, len(table.y))


def squared_errors(table: RidgeTable, P: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """The mean squared error on fresh rows, of targets with their noise (lanes,).

    Parameters
    ----------
    table
        The table.
    P
        Numbers of examples (lanes,), at most those of the table.
    lam
        Strengths of the penalty (lanes,).
    """
    z = _strength(table.resolvent, np.asarray(P, float), np.asarray(lam, float))
    resolvent, n, s = table.resolvent, table.rows, table.resolvent.eigenvalues[:, None]
    df, k = resolvent.effective(z), resolvent.population(z)
    df2 = df + k * resolvent.effective_slope(z) / resolvent.population_slope(z)
    residual = np.sum(table.squares[:, None] * (z / (s + z)) ** 2, axis=0) + table.beyond
    left: np.ndarray = residual / n / (1 - df / n) ** 2 * (1 - df2 / n) / (1 - df2 / P)
    return left


def training_errors(table: RidgeTable, P: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """The mean squared error of the P examples themselves (lanes,), the factor (1 - df/P)^2 smaller.

    Parameters
    ----------
    table, P, lam
        Those of `squared_errors`.
    """
    z = _strength(table.resolvent, np.asarray(P, float), np.asarray(lam, float))
    error: np.ndarray = squared_errors(table, P, lam) * (1 - table.resolvent.effective(z) / P) ** 2
    return error


def best_penalties(table: RidgeTable, P: np.ndarray) -> np.ndarray:
    """The penalty of the smallest squared error on fresh rows at each number of examples (lanes,)."""
    from scipy.optimize import minimize_scalar

    def best(examples: float) -> float:
        def error(log_lam: float) -> float:
            return float(squared_errors(table, np.array([examples]), np.exp([log_lam]))[0])

        scan = np.linspace(np.log(LEAST), np.log(LARGEST), PLACES)
        errors = squared_errors(table, np.full(PLACES, examples), np.exp(scan))
        at = int(np.nanargmin(errors))
        ends = scan[max(at - 1, 0)], scan[min(at + 1, PLACES - 1)]
        return float(np.exp(minimize_scalar(error, bounds=ends, method="bounded", options={"xatol": 1e-6}).x))

    return np.array([best(examples) for examples in np.asarray(P, float).tolist()])


def _strength(resolvent: Resolvent, P: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """The z of each number of examples and penalty, by bisection of ln z."""
    low, high = np.full(P.shape, np.log(1e-14)), np.full(P.shape, np.log(1e14))
    for _ in range(100):
        z = np.exp(0.5 * (low + high))
        excess = resolvent.population(z) * (P - resolvent.effective(z)) - resolvent.columns * lam
        low, high = np.where(excess < 0, np.log(z), low), np.where(excess < 0, high, np.log(z))
    return np.exp(0.5 * (low + high))
