r"""Real tables on which theory fails: errors against the number of examples, and the diagnosis of each table."""

from __future__ import annotations

from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from figures.labels import power
from figures.panels import finish, page, panel
from figures.published.losses.table_curves import ERRORS, EXAMPLES, NOTE, diagnoses, title_of, with_fine_lines
from figures.published.parallel_axes import check
from figures.series import sliced
from figures.style import SMALL
from statmech.table_diagnosis import FEW_DIRECTIONS, HEAVY, NOISELESS, ROWS_PER_COLUMN

TABLES = ("inputs", "loss", "lam")  # parallel axes of the sweep
ALONG = "inputs_loss_lam"
AXES = ("population", ALONG, "P")  # sweep axes that this figure shows
CAPTION = (
    r"Errors of learners of $P$ rows of real tables that theory does not describe, and above each the $n$ rows and $N$ "
    r"columns of the table and the warnings of its diagnosis: fewer than 30 effective directions, squared lengths of "
    r"rows that vary more than twice as much as those of Gaussian rows (tails), fewer than ten rows per column, or a "
    r"target that is an exact linear function of the inputs ($R^2=1$). Held-out rows are not among the examples. "
    r"Error bars smaller than the markers are not visible."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the errors of learners, a panel per table and a colour per population."""
    check("where_it_fails", theory, TABLES)
    results, diagnosis_by_table = with_fine_lines(simulation, theory), diagnoses(theory)
    figure, axes = page(3.3, 1, theory.sizes[ALONG], squeeze=False)
    for index, ax in enumerate(axes.flat):
        at_table = theory.isel({ALONG: index})
        error = "eps_y" if at_table.eps_y.notnull().any() else "mse_y"
        table_results = sliced(results, {ALONG: index})
        keys = panel(ax, table_results, "P", error, "population", label=ERRORS[error], log="xy", dashes=True)
        ax.set_xlabel(EXAMPLES)
        table, lam = str(at_table.inputs.item()), power(f"{at_table.lam.item():g}")
        learner = rf"{at_table.loss.item()} loss, $\lambda$ = {lam}"
        title_lines = [f"({'abcdefgh'[index]}) {title_of(table)}", learner, *_diagnosis(diagnosis_by_table[table])]
        ax.set_title("\n".join(title_lines), loc="left", fontsize=SMALL)
    return finish(figure, results, keys, note=NOTE)


def _diagnosis(found: dict[str, Any]) -> tuple[str, str]:
    """Describe the size of a table, and its properties outside the range of validity of theory."""
    rows, columns = found["rows"], found["columns"]
    is_out_by_text = {
        f"{found['directions']:.2g} directions": found["directions"] < FEW_DIRECTIONS,
        f"tails {found['tails']:.2g}": found["tails"] > HEAVY,
        f"$n/N$ = {rows / columns:.2g}": rows < ROWS_PER_COLUMN * columns,
        "$R^2$ = 1": found["R2"] > NOISELESS,
    }
    warned = [text for text, is_out in is_out_by_text.items() if is_out]
    return f"$n$ = {rows:,}, $N$ = {columns:,}", f"warning: {', '.join(warned)}" if warned else "no warning"
