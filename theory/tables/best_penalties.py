"""Best penalties for learning a real table, shared by theory and simulation."""

from __future__ import annotations

import numpy as np

from statmech.scenarios.labelled_rows import RowsCell
from statmech.table_populations import HeldOut
from theory.tables.fresh_rows import FreshRowErrors
from theory.tables.row_errors import RowErrors
from theory.tables.table_rows import TableRowErrors


def make_row_errors(cell: RowsCell) -> RowErrors:
    """Return the predictor of errors for a cell's table and population.

    Parameters
    ----------
    cell
        The parameter combination.
    """
    return (FreshRowErrors if isinstance(cell.population, HeldOut) else TableRowErrors)(cell.table, cell.intercept)


def find_best_penalties(cell: RowsCell, P: list[int]) -> dict[int, float]:
    """Find the penalty with the smallest error at each number of examples, NaN where it is undetermined.

    Parameters
    ----------
    cell
        A parameter combination. Its number of examples is ignored.
    P
        The numbers of examples.
    """
    best = make_row_errors(cell).find_best_penalties(cell.loss, np.array(P, float), cell.model)
    return dict(zip(P, best.tolist(), strict=True))
