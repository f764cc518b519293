r"""Real tables on which theory fails: errors against the number of examples, and the diagnosis of each table."""

from __future__ import annotations

from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from figures.arrangement import check_parallel_axes
from figures.curves import select_position
from figures.labels import format_power_of_ten
from figures.learning_curves import (
    EXAMPLE_COUNT_AXIS_LABEL,
    TABLE_ERROR_LABELS,
    TABLE_THEORY_NOTE,
    add_dense_theory_lines,
    get_table_diagnoses,
    get_table_title,
)
from figures.panels import add_title_and_legend, draw_panel, make_figure
from figures.style import SMALL_FONT_SIZE
from statmech.inputs.real_tables import (
    MAX_ROW_LENGTH_VARIANCE_RATIO,
    MIN_EFFECTIVE_DIRECTIONS,
    MIN_NOISELESS_R2,
    MIN_TRUSTED_ROWS_PER_COLUMN,
)

TABLE_AND_LEARNER_KEYS = ("inputs", "loss", "lam")  # swept in parallel, by `zip`
TABLE_AND_LEARNER_AXIS = "inputs_loss_lam"
AXES = ("population", TABLE_AND_LEARNER_AXIS, "P")  # sweep axes that this figure shows
CAPTION = (
    r"Errors of learners of $P$ rows of real tables that theory does not describe. Above each panel: numbers of rows "
    r"$n$ and columns $N$ of the table, and the warnings of its diagnosis: fewer than 30 effective directions, squared "
    r"lengths of rows that vary more than twice as much as for Gaussian rows (tails), fewer than ten rows per column, "
    r"or a target that is an exact linear function of the inputs ($R^2=1$). Held-out rows are not among the examples. "
    r"Error bars smaller than the markers are not visible."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
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
        learner = rf"{at_table.loss.item()} loss, $\lambda$ = {lam}"
        title_lines = [
            f"({'abcdefgh'[index]}) {get_table_title(table)}",
            learner,
            *_describe_table_and_warnings(diagnosis_by_table[table]),
        ]
        ax.set_title("\n".join(title_lines), loc="left", fontsize=SMALL_FONT_SIZE)
    return add_title_and_legend(figure, results, keys, note=TABLE_THEORY_NOTE)


def _describe_table_and_warnings(diagnosis: dict[str, Any]) -> tuple[str, str]:
    """Describe the size of a table, and list the properties that invalidate theory."""
    rows, columns = diagnosis["rows"], diagnosis["columns"]
    is_out_by_text = {
        f"{diagnosis['directions']:.2g} directions": diagnosis["directions"] < MIN_EFFECTIVE_DIRECTIONS,
        f"tails {diagnosis['tails']:.2g}": diagnosis["tails"] > MAX_ROW_LENGTH_VARIANCE_RATIO,
        f"$n/N$ = {rows / columns:.2g}": rows < MIN_TRUSTED_ROWS_PER_COLUMN * columns,
        "$R^2$ = 1": diagnosis["R2"] > MIN_NOISELESS_R2,
    }
    warned = [text for text, is_out in is_out_by_text.items() if is_out]
    return f"$n$ = {rows:,}, $N$ = {columns:,}", f"warning: {', '.join(warned)}" if warned else "no warning"
