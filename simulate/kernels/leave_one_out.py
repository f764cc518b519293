r"""Leave-one-out fields: each row of a table is evaluated by a learner fitted without the row.

For a smooth loss one fit to all rows is enough: one step of Newton's method removes row i. With the rows
:math:`\mathbf b_i` of a problem's B, its Hessian H, and the slopes and curvatures of the loss at :math:`x_i`,

.. math:: v_i = \mathbf b_i^T H^{-1}\mathbf b_i, \qquad V_i = \frac{v_i}{1 - v_i\ell_i''}, \qquad
          x_i^{\setminus i} = x_i + V_i\,\ell_i',

the cavity equation of theory, row by row; exact for least squares (Rad & Maleki 2020). A loss with kinks has no such
step: its fields come from fits without a tenth of the rows.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from simulate.kernels.table_fits import fit_table_rows, make_table_problem
from simulate.minimisers.problem import Problem
from statmech.convex.losses import Loss
from statmech.real_table import RealTable

NUM_KINK_FOLDS = 10  # losses with kinks are refitted without each fold of rows
MIN_INTERCEPT_CURVATURE = 1e-12  # per row, where the loss has no curvature
MIN_ONE_MINUS_LEVERAGE = 1e-9  # lower bound of 1 - v l'', which is positive up to rounding


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
    >>> from statmech.labelled_table import make_labelled_table
    >>> from statmech.real_table import make_real_table
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
    arguments: np.ndarray = x + v / np.maximum(1 - v * curvature, MIN_ONE_MINUS_LEVERAGE) * problem.loss.slope(x)
    return arguments
