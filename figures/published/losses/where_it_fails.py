r"""Real tables on which theory fails: errors against the number of examples, with the diagnosis that warns of it."""

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

TABLES = ("inputs", "loss", "lam")  # side by side
ALONG = "inputs_loss_lam"
AXES = ("population", ALONG, "P")  # of the sweep, that this figure shows
CAPTION = (
    r"Errors of learners of $P$ rows of real tables that theory does not describe, and above each the $n$ rows and $N$ "
    r"columns of the table and what the diagnosis warns of: fewer than 30 effective directions, squared lengths of "
    r"rows that vary more than twice as much as those of Gaussian rows (tails), fewer than ten rows per column, or a "
    r"target that is an exact linear function of the inputs ($R^2=1$). Held-out rows are those that are no examples. "
    r"Bars that are not seen are smaller than their points."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw a panel per table, one colour per population."""
    check("where_it_fails", theory, TABLES)
    results, found = with_fine_lines(simulation, theory), diagnoses(theory)
    figure, axes = page(3.3, 1, theory.sizes[ALONG], squeeze=False)
    for place, ax in enumerate(axes.flat):
        here = theory.isel({ALONG: place})
        error = "eps_y" if here.eps_y.notnull().any() else "mse_y"
        shown = sliced(results, {ALONG: place})
        keys = panel(ax, shown, "P", error, "population", label=ERRORS[error], log="xy", dashes=True)
        ax.set_xlabel(EXAMPLES)
        table, lam = str(here.inputs.item()), power(f"{here.lam.item():g}")
        learner = rf"{here.loss.item()} loss, $\lambda$ = {lam}"
        words = [f"({'abcdefgh'[place]}) {title_of(table)}", learner, *_diagnosis(found[table])]
        ax.set_title("\n".join(words), loc="left", fontsize=SMALL)
    return finish(figure, results, keys, note=NOTE)


def _diagnosis(found: dict[str, Any]) -> tuple[str, str]:
    """The size of a table, and its numbers that are out of the range in which theory holds."""
    rows, columns = found["rows"], found["columns"]
    out = {
        f"{found['directions']:.2g} directions": found["directions"] < FEW_DIRECTIONS,
        f"tails {found['tails']:.2g}": found["tails"] > HEAVY,
        f"$n/N$ = {rows / columns:.2g}": rows < ROWS_PER_COLUMN * columns,
        "$R^2$ = 1": found["R2"] > NOISELESS,
    }
    warned = [words for words, is_out in out.items() if is_out]
    return f"$n$ = {rows:,}, $N$ = {columns:,}", f"warning: {', '.join(warned)}" if warned else "no warning"
