"""Learners on rows of a real table: their objective, and their errors on other rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simulate.minimisers.method import minimise
from simulate.minimisers.problem import Minimum, Problem, make_loss_argument_map
from statmech.convex.losses import Loss, convert_to_stability_loss
from statmech.real_table import RealTable


class TableErrors(NamedTuple):
    """The fraction of wrong labels (NaN for a numeric target), and the mean squared error of the target."""

    labels: float
    mean_squared_error: float


def make_table_problem(table: RealTable, loss: Loss, lam: float, row_indices: np.ndarray, intercept: bool) -> Problem:
    """Return the objective that a learner minimises on these rows.

    Parameters
    ----------
    table
        The table.
    loss
        The loss named in a config.
    lam
        Strength of the l2 penalty.
    row_indices
        The indices of the rows (P,), possibly repeated.
    intercept
        Whether the last weight is an intercept, which has no penalty.
    """
    labels, y = table.labels is not None, table.y[row_indices]
    B, c = make_loss_argument_map(table.Z[row_indices] * np.sqrt(table.N), y, labels)
    B = np.column_stack([B, y if labels else -np.ones(len(y))]) if intercept else B
    return Problem(B, c, convert_to_stability_loss(loss) if labels else loss, 0.0, lam, int(intercept))


def fit_table_rows(table: RealTable, loss: Loss, lam: float, row_indices: np.ndarray, intercept: bool) -> Minimum:
    """Minimise a loss on these rows.

    With an intercept, examples that all have one label give a constant learner with that label.

    Parameters
    ----------
    table, loss, lam, row_indices, intercept
        As in `make_table_problem`.
    """
    y = table.y[row_indices]
    if intercept and table.labels and np.ptp(y) == 0:  # the intercept of a logistic loss would be infinite
        return Minimum(np.append(np.zeros(table.N), y[0]), 0.0)
    return minimise(make_table_problem(table, loss, lam, row_indices, intercept))


def measure_table_errors(table: RealTable, w: np.ndarray, rows: np.ndarray | slice) -> TableErrors:
    """Measure the errors of weights on some rows.

    A field of 0 counts as half an error.

    Parameters
    ----------
    table
        The table.
    w
        Weights (N,), or weights and an intercept (N + 1,).
    rows
        The numbers of the rows.
    """
    fields, y = table.Z[rows] @ w[: table.N] + w[table.N :].sum(), table.y[rows]
    wrong = float(np.mean(0.5 - 0.5 * np.sign(fields) * y)) if table.labels else np.nan
    return TableErrors(wrong, float(np.mean((fields - y) ** 2)))
