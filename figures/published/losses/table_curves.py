"""Theory lines, titles and labels for the learning curves of real tables."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr

from figures.panels import combine_with_lines, modify_scenario
from statmech.data_sets import find_data_source
from statmech.real_table import is_data_set_name
from statmech.results.results import Results
from theory.solutions import solve_line

EXAMPLE_COUNT_LINE_POINTS = 150  # dense: the line bends sharply where P equals the number of columns
EXAMPLE_COUNT_AXIS_LABEL = "number of examples $P$"
TABLE_ERROR_LABELS = {"eps_y": r"label error $\epsilon_y$", "mse_y": "mean squared error"}
TABLE_THEORY_NOTE = "points: learners, mean and standard error; lines: theory, computed from the table alone"


def add_dense_theory_lines(simulation: xr.Dataset, theory: xr.Dataset) -> Results:
    """Combine results with theory on a dense grid of numbers of examples.

    Parameters
    ----------
    simulation, theory
        Results of learners of real tables, with the axis P.
    """
    P = np.geomspace(theory.P.values.min(), theory.P.values.max(), EXAMPLE_COUNT_LINE_POINTS)
    lines = solve_line(modify_scenario(theory, P=np.unique(P.round().astype(int)).tolist()))
    return combine_with_lines(
        simulation, theory, lines.expand_dims([dim for dim in theory.dims if dim not in lines.dims])
    )


def get_table_diagnoses(theory: xr.Dataset) -> dict[str, dict[str, Any]]:
    """Return the diagnosis of each table by the name of its inputs."""
    tables: dict[str, dict[str, Any]] = json.loads(theory.attrs["tables"])
    return tables


def get_table_title(inputs: str) -> str:
    """Return the title of a table from the name of its inputs.

    >>> get_table_title("rows digits-3-8"), get_table_title("rows mine.csv")
    ('digits 3 and 8', 'mine.csv')
    """
    rows = inputs.removeprefix("rows ")
    return find_data_source(rows).title if is_data_set_name(rows) else rows
