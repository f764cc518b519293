"""Best penalties for learning a real table, shared by theory and simulation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from statmech.scenarios.convex_fit import BEST_PENALTY_KEYWORD
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


def find_best_penalties(cells: Sequence[LabelledRowsCell]) -> list[float]:
    """Find the penalty with the smallest error of each cell, NaN if undetermined or if no cell with this P needs it.

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
