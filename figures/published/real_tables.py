"""Figures of learning curves on real tables, with theory computed from each table alone."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.arrangement import check_parallel_axes
from figures.curves import select_position
from figures.labels import format_power_of_ten, unicode_from_latex
from figures.panels import add_title_and_legend, combine_with_lines, draw_panel, make_figure, modify_scenario
from figures.published_figure import PublishedFigure
from statmech.inputs.data_sets import find_data_source
from statmech.inputs.real_tables import (
    MAX_ROW_LENGTH_VARIANCE_RATIO,
    MIN_EFFECTIVE_DIRECTIONS,
    MIN_NOISELESS_R2,
    MIN_TRUSTED_ROWS_PER_COLUMN,
    is_data_set_name,
)
from statmech.results.results import Results
from theory.solutions import solve_line

EXAMPLE_COUNT_LINE_POINTS = 150  # dense: the line bends sharply where P equals the number of columns
PANEL_TITLE_FONT_SIZE = 6.3  # three panels leave room for 38 letters per line
EXAMPLE_COUNT_AXIS_LABEL = "number of examples $P$"
TABLE_ERROR_LABELS = {"eps_y": r"label error $\epsilon_y$", "mse_y": "mean squared error"}
TABLE_THEORY_NOTE = (
    "points: learners, mean and standard error; lines: theory from the table alone; $n$ rows, $N$ columns; "
    r"$\epsilon_y$: fraction of wrong labels"
)


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
    return json.loads(theory.attrs["tables"])


def get_table_title(inputs: str) -> str:
    """Return the title of a table from the name of its inputs.

    >>> get_table_title("rows digits-3-8"), get_table_title("rows mine.csv")
    ('digits 3 and 8', 'mine.csv')
    """
    rows = inputs.removeprefix("rows ")
    return find_data_source(rows).title if is_data_set_name(rows) else rows


TABLE_AND_LEARNER_KEYS = ("inputs", "loss", "lam")  # swept in parallel, by `zip`
TABLE_AND_LEARNER_AXIS = "inputs_loss_lam"


def draw_where_it_fails(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the errors of learners, one panel per table and one colour per population."""
    check_parallel_axes("where_it_fails", theory, TABLE_AND_LEARNER_KEYS)
    results, diagnosis_by_table = add_dense_theory_lines(simulation, theory), get_table_diagnoses(theory)
    figure, axes = make_figure(3.3, 1, theory.sizes[TABLE_AND_LEARNER_AXIS], squeeze=False)
    for index, ax in enumerate(axes.flat):
        at_table = theory.isel({TABLE_AND_LEARNER_AXIS: index})
        error = "eps_y" if at_table.eps_y.notnull().any() else "mse_y"
        table_results = select_position(results, {TABLE_AND_LEARNER_AXIS: index})
        keys = draw_panel(
            ax, table_results, "P", error, "population", label=TABLE_ERROR_LABELS[error], log="xy", dashes=True
        )
        ax.set_xlabel(EXAMPLE_COUNT_AXIS_LABEL)
        table, lam = str(at_table.inputs.item()), format_power_of_ten(f"{at_table.lam.item():g}")
        size, warnings = _describe_table_and_warnings(diagnosis_by_table[table])
        title_lines = [
            f"({'abcdefgh'[index]}) {get_table_title(table)}",
            rf"{at_table.loss.item()}, $\lambda$ = {unicode_from_latex(lam)}, {size}",
            warnings,
        ]
        ax.set_title("\n".join(title_lines), loc="left", fontsize=PANEL_TITLE_FONT_SIZE)
    return add_title_and_legend(figure, results, keys, note=TABLE_THEORY_NOTE)


where_it_fails = PublishedFigure(
    draw=draw_where_it_fails,
    axes=("population", TABLE_AND_LEARNER_AXIS, "P"),
    caption=(
        r"Errors of learners of $P$ rows of real tables that theory does not describe. Above each panel: numbers of "
        r"rows $n$ and columns $N$ of the table, and the reasons why theory fails: fewer than 30 effective "
        r"directions, squared lengths of rows that vary more than twice as much as for Gaussian rows (heavy tails), "
        r"fewer than ten rows per column, or a target that is an exact linear function of the inputs. Held-out "
        r"rows are not among the examples. Error bars smaller than the markers are not visible."
    ),
)


def _describe_table_and_warnings(diagnosis: dict[str, Any]) -> tuple[str, str]:
    """Describe the size of a table, and list the properties that invalidate theory."""
    rows, columns = diagnosis["rows"], diagnosis["columns"]
    is_out_by_text = {
        "few directions": diagnosis["directions"] < MIN_EFFECTIVE_DIRECTIONS,
        "heavy tails": diagnosis["tails"] > MAX_ROW_LENGTH_VARIANCE_RATIO,
        "few rows": rows < MIN_TRUSTED_ROWS_PER_COLUMN * columns,
        "exact target": diagnosis["R2"] > MIN_NOISELESS_R2,
    }
    warned = [text for text, is_out in is_out_by_text.items() if is_out]
    return f"$n$ = {rows:,}, $N$ = {columns:,}", f"fails: {', '.join(warned)}" if warned else "no warning"
