"""Theory of convex losses on rows of a real table, for each parameter combination."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import numpy as np

from statmech.errors import ScenarioError
from statmech.kinds.risk_table import LabelledRows, LabelledRowsCell
from theory.convex.real_tables import find_best_penalties, make_row_error_predictor
from theory.kinds.cell_groups import CellVariables, get_sample_size, solve_penalised_cells

SOURCE = "clusters or covariances of a table, N -> infinity"
LINE_POINTS = 60  # style: ok


def attributes(scenario: LabelledRows) -> dict[str, str]:
    """Return the diagnosis of each table as JSON."""
    return {"tables": json.dumps(scenario.diagnose_tables())}


def solve(scenario: LabelledRows, cells: Sequence[LabelledRowsCell]) -> Iterator[CellVariables]:
    """Return the theoretical variables of each cell.

    Values are NaN where the table does not determine them.
    """
    if problems := list(scenario.find_input_file_problems()):
        raise ScenarioError(problems)
    return solve_penalised_cells(scenario, cells, get_sample_size, find_best_penalties, _solve_points)


def searched_penalties(cell: LabelledRowsCell) -> tuple[float, float]:
    """Return the smallest and the largest penalty of the search for the best penalty."""
    return make_row_error_predictor(cell).get_penalty_bounds(cell.model)


def _solve_points(cell: LabelledRowsCell, P: np.ndarray, lam: np.ndarray) -> dict[str, np.ndarray]:
    """Return the theoretical errors of a risk cell with a table at each number of examples and lambda (batch,)."""
    return make_row_error_predictor(cell).predict_errors(cell.loss, P, lam, cell.model)._asdict()
