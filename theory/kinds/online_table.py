"""Theory of a student that learns rows of a real table online, from the statistics of the table's classes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import numpy as np

from statmech.errors import ScenarioError
from statmech.kinds.online_table import OnlineRows, OnlineRowsCell
from theory.convex.real_tables import TableRowErrorPredictor
from theory.online.gaussian_clusters import solve_cells

SOURCE = "order-parameter equations of the classes of a table, N -> infinity"


def attributes(scenario: OnlineRows) -> dict[str, str]:
    """Return the diagnosis of each table as JSON."""
    return {"tables": json.dumps(scenario.diagnose_tables())}


def solve(scenario: OnlineRows, cells: Sequence[OnlineRowsCell]) -> Iterator[dict[str, np.ndarray]]:
    """Yield the theoretical variables of each cell with table rows learnt online, in order."""
    if problems := list(scenario.find_input_file_problems()):
        raise ScenarioError(problems)
    tables = {cell.inputs: cell.table for cell in cells}
    clusters = {inputs: TableRowErrorPredictor(table).clusters for inputs, table in tables.items()}
    trajectories = solve_cells(((cell, clusters[cell.inputs]) for cell in cells), scenario.t)
    for trajectory in trajectories:
        values = trajectory._asdict()
        yield {"eps_y": values.pop("eps_g"), **values}
