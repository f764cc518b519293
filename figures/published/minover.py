"""Figures of MinOver on stored examples: its stop rules, and the effect of its updates."""

from __future__ import annotations

from typing import Any

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.derived_data import select_last_recorded
from figures.panels import (
    add_panel_letters,
    add_title_and_legend,
    draw_guide,
    draw_panel,
    make_figure,
)
from figures.published_figure import PublishedFigure
from statmech.results.results import as_results
from statmech.students.learners import STOP_REASONS

STOP_FRACTION_GREYS = {"field-patience stops at $P+1$": "0.35", "later": "0.65", "never": "0.9"}


def draw_minover_stops(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the stops of field-patience, the epochs until a run ends, and eps_g relative to theory.

    `field-patience`, the code of the assignment's appendix, monitors the smallest field min w.xi S. A run that does not
    reach a positive field from w = 0 within P updates stops at update P + 1, regardless of its error (nine in ten runs
    at alpha = 10). In the other runs the field grows with |w| without limit until the last epoch. `stability-patience`
    monitors kappa, and stops every run after about 5 epochs. Kappa is then far from its maximum, but eps_g is close to
    its value after all epochs.
    """
    last, line = select_last_recorded(simulation), select_last_recorded(theory).isel(stop=0)
    runs = last.assign(epochs_made=last.updates_made / last.P, ratio=last.eps_g / line.eps_g)
    results, (figure, axes) = as_results(runs), make_figure(2.8, 1, 3)
    if "field-patience" in last.stop:
        _draw_stop_fractions(axes[0], last.sel(stop="field-patience"))
    else:
        axes[0].set_axis_off()
    keys = draw_panel(axes[1], results, "alpha", "epochs_made", "stop", label="updates made / $P$", log="y")
    draw_panel(axes[2], results, "alpha", "ratio", "stop", label=r"$\epsilon_g$ / theory", nested=True)
    draw_guide(axes[2], y=1, color="0.3", linestyle="-", linewidth=1.2)
    add_panel_letters(*axes)
    return add_title_and_legend(figure, results, keys + axes[0].get_legend_handles_labels()[0], columns=2)


minover_stops = PublishedFigure(
    draw=draw_minover_stops,
    axes=("stop", "alpha"),
    supported_values={"learner": ("minover",)},
    caption=(
        r"Stop rules of MinOver on $P=\alpha N$ stored examples: (a) fractions of runs that field-patience, the code "
        r"of the assignment's appendix, stops at update $P+1$, later, and never; (b) number of updates until a run "
        r"ends, in epochs of $P$ updates; (c) generalization error divided by the error of maximum stability for "
        r"$N\to\infty$. At one $\alpha$ all points use the same data sets; in (c) markers have different sizes, as "
        r"they overlap."
    ),
)


def _draw_stop_fractions(ax: Axes, cell: xr.Dataset) -> None:
    """Draw the fractions of runs that stop at update P + 1, later, or never."""
    stopped = cell.stopped_by == STOP_REASONS.index("field-patience")
    stopped_at_once = stopped & (cell.updates_made == cell.P + 1)
    width = float(cell.alpha.diff("alpha").min()) if cell.alpha.size > 1 else 1.0
    edge: dict[str, Any] = {"edgecolor": "0.2", "linewidth": 0.3, "bottom": 0.0 * cell.P}
    for (label, grey), is_in_group in zip(
        STOP_FRACTION_GREYS.items(), (stopped_at_once, stopped & ~stopped_at_once, ~stopped), strict=True
    ):
        ax.bar(cell.alpha, is_in_group.mean("seed"), width, color=grey, label=f"(a) {label}", **edge)
        edge["bottom"] = edge["bottom"] + is_in_group.mean("seed")
    ax.set(xlabel=r"$\alpha$ ($P$ / $N$)", ylabel="fraction of runs", ylim=(0, 1))
    ax.margins(x=0)
