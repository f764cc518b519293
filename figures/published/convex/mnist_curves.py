r"""Learning curves of a real table: label error against the number of examples, with theory from the table alone."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.arrangement import check_parallel_axes
from figures.learning_curves import (
    EXAMPLE_COUNT_AXIS_LABEL,
    TABLE_ERROR_LABELS,
    TABLE_THEORY_NOTE,
    add_dense_theory_lines,
    get_table_diagnoses,
    get_table_title,
)
from figures.panels import add_title_and_legend, draw_panel, make_figure

LEARNER_KEYS = ("loss", "lam")  # swept in parallel (`zip`)
AXES = ("population", "loss_lam", "P")  # sweep axes that this figure shows
CAPTION = (
    r"Fraction of wrong labels for learners of $P$ rows of a real table. Held-out rows: examples are drawn without "
    r"replacement, and learners are tested on the other rows; all rows: examples are drawn with replacement, and "
    r"learners are tested on the whole table. Nothing is fitted: theory is computed from the table alone. Error bars "
    r"smaller than the markers are not visible."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the label error, one panel per population and one colour for each loss and penalty."""
    check_parallel_axes("mnist_curves", theory, LEARNER_KEYS)
    results = add_dense_theory_lines(simulation, theory)
    figure, axes = make_figure(3.2, 1, theory.sizes["population"], sharey=True, squeeze=False)
    keys = draw_panel(
        axes, results, "P", "eps_y", "loss_lam", split="population", label=TABLE_ERROR_LABELS["eps_y"], log="xy"
    )
    for ax in axes.flat:
        ax.set_xlabel(EXAMPLE_COUNT_AXIS_LABEL)
    [(table, diagnosis)] = get_table_diagnoses(theory).items()
    size = f"{get_table_title(table)}: {diagnosis['rows']:,} rows, $N$ = {diagnosis['columns']:,}"
    return add_title_and_legend(figure, results, keys, size, note=TABLE_THEORY_NOTE)
