"""Theory lines, titles and labels for the learning curves of real tables."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr

from figures.panels import scenario_with, with_lines
from statmech.data_sets import source
from statmech.real_table import is_data_set
from statmech.results.results import Results
from theory.solutions import solve_line

PLACES = 150  # many, as the line bends sharply if examples are as many as columns
EXAMPLES = "number of examples $P$"
ERRORS = {"eps_y": r"label error $\epsilon_y$", "mse_y": "mean squared error"}
NOTE = "points: learners, mean and standard error; lines: theory, computed from the table alone"


def with_fine_lines(simulation: xr.Dataset, theory: xr.Dataset) -> Results:
    """Add theory at many numbers of examples to results.

    Parameters
    ----------
    simulation, theory
        Results of learners of real tables, with the axis P.
    """
    P = np.geomspace(theory.P.values.min(), theory.P.values.max(), PLACES)
    lines = solve_line(scenario_with(theory, P=np.unique(P.round().astype(int)).tolist()))
    return with_lines(simulation, theory, lines.expand_dims([dim for dim in theory.dims if dim not in lines.dims]))


def diagnoses(theory: xr.Dataset) -> dict[str, dict[str, Any]]:
    """Return the diagnosis of each table by the name of its inputs."""
    tables: dict[str, dict[str, Any]] = json.loads(theory.attrs["tables"])
    return tables


def title_of(inputs: str) -> str:
    """Return the title of a table from the name of its inputs.

    >>> title_of("rows digits-3-8"), title_of("rows mine.csv")
    ('digits 3 and 8', 'mine.csv')
    """
    rows = inputs.removeprefix("rows ")
    return source(rows).title if is_data_set(rows) else rows
