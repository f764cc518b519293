"""Any study of classifiers on data: what a sweep's cells come to, a row for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from figures.style import PAGE, look_of, styled
from statmech.results.paired_tests import verdicts
from statmech.results.study_tables import cell_label
from statmech.scenarios.cross_validation import STUDY

if TYPE_CHECKING:
    import xarray as xr

AXES: tuple[str, ...] | None = None  # any
MOST = 40  # cells
SHOWN = ("accuracy", "weights", "features")


@styled
def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """Accuracy (open: of the examples learnt from), weights and features evaluated: those that the cells have."""
    every = list(verdicts(simulation))
    cells = every[:MOST]
    shown = [name for name in SHOWN if any(cell.means[name] == cell.means[name] for cell in cells)]
    figure = Figure(figsize=(PAGE, 1.0 + 0.22 * len(cells)))
    rows = range(len(cells))
    for ax, name in zip(figure.subplots(1, len(shown), sharey=True, squeeze=False)[0], shown, strict=True):
        error = [cell.error for cell in cells] if name == "accuracy" else None
        ax.errorbar([cell.means[name] for cell in cells], rows, xerr=error, linestyle="none", **look_of(0))
        if name == "accuracy":
            trained = [cell.means["accuracy_training"] for cell in cells]
            ax.plot(trained, rows, "o", color=look_of(0)["color"], markerfacecolor="white", zorder=1)
        ax.set(xlabel=STUDY[name].symbol, yticks=rows)
        ax.grid(axis="y", color="0.9", linewidth=0.6)
        ax.tick_params(axis="y", length=0)
        ax.set_yticklabels([f"{cell.cell.get('data', '')} {cell_label(cell)}".strip() for cell in cells])
    ax.invert_yaxis()
    if len(every) > MOST:
        figure.suptitle(f"the first {MOST} of {len(every)} cells", fontsize=8)
    return figure
