"""The best penalty of learners of a real table, used by theory and simulation."""

from __future__ import annotations

import numpy as np

from statmech.scenarios.labelled_rows import RowsCell
from statmech.table_populations import HeldOut
from theory.tables.fresh_rows import FreshRows
from theory.tables.row_errors import RowErrors
from theory.tables.table_rows import TableRows


def errors_of(cell: RowsCell) -> RowErrors:
    """Return the predictor of errors for a cell's table and population.

    Parameters
    ----------
    cell
        The parameter combination.
    """
    return (FreshRows if isinstance(cell.population, HeldOut) else TableRows)(cell.table, cell.intercept)


def best_along(cell: RowsCell, P: list[int]) -> dict[int, float]:
    """Find the penalty of the smallest error at each number of examples, NaN where the table does not determine it.

    Parameters
    ----------
    cell
        A parameter combination. Its number of examples is ignored.
    P
        The numbers of examples.
    """
    best = errors_of(cell).best_penalties(cell.loss, np.array(P, float), cell.model)
    return dict(zip(P, best.tolist(), strict=True))
