r"""Learning curves of a real table: label error against the number of examples, with theory from the table alone."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.panels import finish, page, panel
from figures.published.losses.table_curves import ERRORS, EXAMPLES, NOTE, diagnoses, title_of, with_fine_lines
from figures.published.parallel_axes import check

LEARNERS = ("loss", "lam")  # parallel axes of the sweep
AXES = ("population", "loss_lam", "P")  # sweep axes that this figure shows
CAPTION = (
    r"Fraction of wrong labels of learners of $P$ rows of a real table. Held-out rows: examples are drawn without "
    r"replacement, and learners are tested on the other rows; all rows: drawn with replacement, and tested on the "
    r"whole table. Nothing is fitted: theory is computed from the table alone. Error bars smaller than the markers are "
    r"not visible."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the label error, a panel per population and a colour per loss and penalty."""
    check("mnist_curves", theory, LEARNERS)
    results = with_fine_lines(simulation, theory)
    figure, axes = page(3.2, 1, theory.sizes["population"], sharey=True, squeeze=False)
    keys = panel(axes, results, "P", "eps_y", "loss_lam", split="population", label=ERRORS["eps_y"], log="xy")
    for ax in axes.flat:
        ax.set_xlabel(EXAMPLES)
    [(table, diagnosis)] = diagnoses(theory).items()
    size = f"{title_of(table)}: {diagnosis['rows']:,} rows, $N$ = {diagnosis['columns']:,}"
    return finish(figure, results, keys, size, note=NOTE)
