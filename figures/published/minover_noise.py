"""Figure 4 of the MinOver assignment (experiment C): eps_g against alpha for several fractions of flipped labels.

Lines: maximum stability, which with flipped labels exists up to alpha_c(flip) only, where they end. Beyond, MinOver
has no solution: it cycles among examples that contradict each other. The assignment's claims, at N = 20
(`statmech run minover_c`):

- "With at least 10 % of noise the vector of optimal stability cannot be found": true beyond alpha_c, 2.99 at 10 %; at
  alpha = 0.5 most runs converge even with random labels.
- "The predictions are mostly random guesses": no. At 10 % eps_g goes down to 0.29 near alpha = 3, and then *up* with
  more examples (0.39 at alpha = 10 after 100 epochs). Only 50 % noise gives random guessing, eps_g = 0.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from figures.published.helpers.stored_runs import HOLLOW, at_end, recorded_dimension, runs
from figures.style import COLUMN, look_of, styled
from theory import learning_curves

if TYPE_CHECKING:
    import xarray as xr

AXES = ("flip", "alpha")  # of the sweep, that this figure shows


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Points: as last recorded; lines up to alpha_c(flip)."""
    moment, last = recorded_dimension(simulation), at_end(simulation)
    figure = Figure(figsize=(COLUMN, 3.6))
    ax = figure.add_subplot()
    dense = np.linspace(float(last.alpha.min()), float(last.alpha.max()), 400)
    for index, flip in enumerate(last.flip.values):
        cell = last.sel(flip=flip)
        line = learning_curves(dense, float(flip)).eps_g.sel(learner="max_stability")
        ax.plot(dense, line, color=look_of(index)["color"])
        runs(ax, cell.alpha, cell, "eps_g", index, label=rf"$\lambda={flip:g}$")
    ax.set(xlabel=r"$\alpha=P/N$", ylabel=r"$\epsilon_g$", ylim=(0, 0.55))
    ax.set_title(f"$N={last.N.item()}$, {last[moment].item():g} {moment}; lines: $N=\\infty$")
    figure.legend(loc="outside lower center", ncols=3, title=HOLLOW, title_fontsize=7.5)
    return figure
