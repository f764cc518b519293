"""Best penalties for learning a real table, shared by theory and simulation."""

from __future__ import annotations

import numpy as np

from statmech.scenarios.labelled_rows import LabelledRowsCell
from statmech.table_populations import HeldOutRowsPopulation
from theory.tables.fresh_rows import FreshRowErrorPredictor
from theory.tables.row_errors import RowErrorPredictor
from theory.tables.table_rows import TableRowErrorPredictor


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


def find_best_penalties(cell: LabelledRowsCell, P: list[int]) -> dict[int, float]:
    """Find the penalty with the smallest error at each number of examples, NaN where it is undetermined.

    Parameters
    ----------
    cell
        A parameter combination. Its number of examples is ignored.
    P
        The numbers of examples.
    """
    best = make_row_error_predictor(cell).find_best_penalties(cell.loss, np.array(P, float), cell.model)
    return dict(zip(P, best.tolist(), strict=True))
