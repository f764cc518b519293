"""Theory of convex losses on rows of a real table, for each parameter combination."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from statmech.errors import ScenarioError
from statmech.scenarios.labelled_rows import LabelledRows, LabelledRowsCell
from statmech.scenarios.risk import BEST_PENALTY_KEYWORD
from theory.tables.best_penalties import find_best_penalties, make_row_error_predictor

SOURCE = "clusters or covariances of a table, N -> infinity"
LINE_POINTS = 60  # style: ok

CellVariables = dict[str, np.ndarray]


def attributes(scenario: LabelledRows) -> dict[str, str]:
    """Return the diagnosis of each table as JSON."""
    return {"tables": json.dumps(scenario.diagnose_tables())}


def solve(scenario: LabelledRows, cells: Sequence[LabelledRowsCell]) -> Iterator[CellVariables]:
    """Return the theoretical variables of each cell.

    Values are NaN where the table does not determine them.
    """
    if problems := list(scenario.find_input_file_problems()):
        raise ScenarioError(problems)
    groups: dict[tuple[Any, ...], list[LabelledRowsCell]] = {}
    for cell in cells:
        groups.setdefault(cell.shared_setting_values, []).append(cell)
    variables: dict[tuple[int, ...], CellVariables] = {}
    for members in groups.values():
        variables.update(_solve_group(members))
    return (variables[cell.index] for cell in cells)


def searched_penalties(cell: LabelledRowsCell) -> tuple[float, float]:
    """Return the smallest and the largest penalty of the search for the best penalty."""
    return make_row_error_predictor(cell).get_penalty_bounds(cell.model)


def _solve_group(members: list[LabelledRowsCell]) -> dict[tuple[int, ...], CellVariables]:
    first = members[0]
    optimised_sizes = list(dict.fromkeys(cell.P for cell in members if cell.lam == BEST_PENALTY_KEYWORD))
    best = find_best_penalties(first, optimised_sizes) if optimised_sizes else {}
    points = [(cell.P, best[cell.P] if cell.lam == BEST_PENALTY_KEYWORD else float(cell.lam)) for cell in members]
    unique = list(dict.fromkeys(points))
    P, lam = np.array(unique, float).T
    state = make_row_error_predictor(first).predict_errors(first.loss, P, lam, first.model)._asdict()
    point_index = {point: index for index, point in enumerate(unique)}
    return {
        cell.index: {
            **{name: np.asarray(values[point_index[point]]) for name, values in state.items()},
            "lam_best": np.asarray(best.get(cell.P, np.nan)),
        }
        for cell, point in zip(members, points, strict=True)
    }
