r"""Figure 4 of the MinOver assignment (experiment C): eps_g against alpha for several fractions of flipped labels.

Lines show maximum stability, which for flipped labels exists only up to alpha_c(flip), where the lines end. Above this
value MinOver has no solution and cycles among contradictory examples. docs/gallery/minover_c.md measures the claims of
the assignment, and shows that flipping only labels +1 is equivalent to flipping all with half the probability.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.derived_data import CONVERGENCE_FILL_NOTE, get_recorded_dimension, select_last_recorded
from figures.legends import make_line_handle
from figures.panels import add_title_and_legend, combine_with_lines, draw_panel, make_figure, solve_dense_theory
from theory import noisy_capacity

AXES = ("flip", "alpha")  # sweep axes that this figure shows
SUPPORTED_VALUES = {"learner": ("minover",)}
CAPACITY_TICK_STYLE: dict[str, Any] = {"marker": "|", "markersize": 10, "markeredgewidth": 1.4, "linestyle": "none"}
CAPTION = (
    r"Last recorded generalization error of MinOver on $P=\alpha N$ stored examples, whose labels are flipped with "
    r"probability $p_f$. Lines, in the colours of the points: replica theory of maximum stability for $N\to\infty$; "
    r"with noise the lines end, at the vertical ticks, at the capacity $\alpha_c(p_f)$, above which no perceptron "
    r"classifies all examples correctly."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the last recorded eps_g of the runs, and lines that end in a tick at alpha_c(flip)."""
    recorded_unit, (figure, ax), lines = (
        get_recorded_dimension(simulation),
        make_figure(3.4),
        select_last_recorded(solve_dense_theory(theory, "alpha")),
    )
    results = combine_with_lines(select_last_recorded(simulation), select_last_recorded(theory), lines)
    keys = draw_panel(ax, results, "alpha", "eps_g", "flip", fill_converged=True)
    for key, flip in zip(keys, lines.flip.values, strict=True):
        line, end = lines.eps_g.sel(flip=flip).squeeze(), float(noisy_capacity(flip))
        if end < float(lines.alpha[-1]) and np.isfinite(line).any():
            ax.plot(end, line.values[np.isfinite(line)][-1], color=key.get_color(), zorder=6, **CAPACITY_TICK_STYLE)
    ax.set_ylim(bottom=0)
    keys.append(make_line_handle(r"capacity $\alpha_c(p_f)$", **CAPACITY_TICK_STYLE))
    recorded_text = f"{results.either[recorded_unit].item():g} {recorded_unit}"
    return add_title_and_legend(figure, results, keys, columns=4, note=f"{recorded_text}; {CONVERGENCE_FILL_NOTE}")
