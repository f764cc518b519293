r"""Learners on rows of a real table: their objective, errors on other rows, and leave-one-out fields.

A leave-one-out field evaluates a row of the table by a learner fitted without this row. For a smooth loss one fit to
all rows is enough: one step of Newton's method removes row i. With the rows :math:`\mathbf b_i` of a problem's B, its
Hessian H, and the slopes and curvatures of the loss at :math:`x_i`,

.. math:: v_i = \mathbf b_i^T H^{-1}\mathbf b_i, \qquad V_i = \frac{v_i}{1 - v_i\ell_i''}, \qquad
          x_i^{\setminus i} = x_i + V_i\,\ell_i',

the cavity equation of theory, row by row; exact for least squares (Rad & Maleki 2020). A loss with kinks has no such
step: its fields come from fits without a tenth of the rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from simulate.convex.minimisation_and_separability import minimise
from simulate.convex.objective_and_certificates import Minimum, Problem, make_loss_argument_map
from statmech.convex.losses import Loss, convert_to_stability_loss
from statmech.inputs.real_tables import RealTable

NUM_KINK_FOLDS = 10  # losses with kinks are refitted without each fold of rows
MIN_INTERCEPT_CURVATURE = 1e-12  # per row, where the loss has no curvature
MIN_ONE_MINUS_LEVERAGE = 1e-9  # lower bound of 1 - v l'', which is positive up to rounding


class TableErrors(NamedTuple):
    """The fraction of wrong labels (NaN for a numeric target), and the mean squared error of the target."""

    labels: float
    mean_squared_error: float


def make_table_problem(table: RealTable, loss: Loss, lam: float, row_indices: np.ndarray, intercept: bool) -> Problem:
    """Return the objective that a learner minimises on these rows of a table.

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
    """Fit weights to these rows of a table by minimising a loss.

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


def leave_one_out_loss_arguments(table: RealTable, loss: Loss, lam: float, intercept: bool) -> np.ndarray:
    """Compute the argument of the loss (n,) for each row, with a learner fitted without the row.

    The argument is the stability y h of a label, or the residual y - h of a number.

    Parameters
    ----------
    table
        The table.
    loss
        The loss named in a config.
    lam
        Strength of the l2 penalty, above 0.
    intercept
        Whether learners have an intercept, without a penalty.

    Examples
    --------
    >>> from statmech.convex.losses import Square
    >>> from statmech.inputs.real_tables import make_labelled_table
    >>> from statmech.inputs.real_tables import make_real_table
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(40) % 2
    >>> table = make_real_table(make_labelled_table(rng.standard_normal((40, 3)) + y[:, None], y))
    >>> leave_one_out_loss_arguments(table, Square(), 0.1, intercept=True)[:3].round(3)
    array([0.281, 0.271, 0.613])
    """
    all_rows = np.arange(len(table.y))
    problem = make_table_problem(table, loss, lam, all_rows, intercept)
    if not problem.loss.kinks:
        return leave_one_out_by_newton_step(problem, fit_table_rows(table, loss, lam, all_rows, intercept).w)
    x = np.empty(len(all_rows))
    order = np.random.default_rng(0).permutation(all_rows)
    for fold in range(NUM_KINK_FOLDS):
        rows = order[fold::NUM_KINK_FOLDS]
        w = fit_table_rows(table, loss, lam, np.setdiff1d(all_rows, rows), intercept).w
        x[rows] = problem.c[rows] + problem.B[rows] @ w
    return x


def leave_one_out_by_newton_step(problem: Problem, w: np.ndarray) -> np.ndarray:
    """Compute the leave-one-out argument of a smooth loss (P,) for each row by a Newton step.

    Parameters
    ----------
    problem
        A problem without an l1 norm, whose l2 penalty is above 0.
    w
        Its minimum.
    """
    x, rows, num_penalised = problem.x(w), problem.B, problem.B.shape[1] - problem.num_unpenalised_weights
    if num_penalised > len(rows):  # penalised weights lie in the span of the rows
        reduced = np.asarray(np.linalg.qr(rows[:, :num_penalised].T, mode="r")).T
        rows, num_penalised = np.column_stack([reduced, rows[:, num_penalised:]]), reduced.shape[1]
    curvature = problem.loss.curvature(x)
    ridge = np.full(rows.shape[1], problem.l2)
    ridge[num_penalised:] = MIN_INTERCEPT_CURVATURE * len(rows)
    H = (rows.T * curvature) @ rows + np.diag(ridge)
    v = np.sum(rows.T * cho_solve(cho_factor(H, lower=True), rows.T), axis=0)
    return x + v / np.maximum(1 - v * curvature, MIN_ONE_MINUS_LEVERAGE) * problem.loss.slope(x)
