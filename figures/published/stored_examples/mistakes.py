r"""Mistakes of the perceptron until training error 0, below the bound :math:`(R/\gamma)^2` (Block, Novikoff).

Embedding strengths count mistakes, as w is the sum of the misclassified examples. With :math:`|\xi|^2=N` the bound is
:math:`N/\kappa^2` for the largest possible stability :math:`\kappa`. In theory kappa follows from the replica solution,
and in a simulation from the learner `max_stability` on the same examples.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.derived_data import select_last_recorded
from figures.panels import add_title_and_legend, draw_panel, make_figure
from figures.style import COLUMN_WIDTH
from statmech.errors import ConfigError
from statmech.results.results import as_results
from theory import mistake_bound
from theory.stored_examples.learning_curves_and_bounds import solve_learner_curve

AXES = ("learner", "alpha")  # sweep axes that this figure shows
SUPPORTED_VALUES = {"learner": ("perceptron", "max_stability")}
MISTAKE_BOUND_LINE_POINTS = 300
CAPTION = (
    r"Number of mistakes made by Rosenblatt's perceptron before it classifies all $P=\alpha N$ stored examples "
    r"correctly, divided by $N$, and the bound $1/\kappa^2$ of Block and Novikoff, with $\kappa$ the largest "
    r"stability: for each data set (mean over data sets), and from replica theory for $N\to\infty$ (line)."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw mistakes over N against alpha, with the bounds from each data set and from theory."""
    names = [str(name) for name in simulation.learner.values]
    if "strengths" not in simulation or "perceptron" not in names:
        raise ConfigError('the figure "mistakes" requires `strengths: true` and the learner perceptron')
    last, N = select_last_recorded(simulation), float(simulation.N)
    cell, alpha = (
        last.sel(learner="perceptron"),
        np.geomspace(last.alpha.min(), last.alpha.max(), MISTAKE_BOUND_LINE_POINTS),
    )
    runs, labels = cell.assign(made=cell.strengths.sum("example").where(cell.converged) / N), {"made": "mistakes / $N$"}
    if "max_stability" in names:
        largest_stability = last.sel(learner="max_stability").kappa
        runs["bound"], labels["bound"] = (
            largest_stability.copy(data=mistake_bound(1, largest_stability)),
            r"bound $1/\kappa^2$, simulation",
        )
    results, (figure, ax) = as_results(runs), make_figure(2.9, width=COLUMN_WIDTH)
    limit = mistake_bound(1, solve_learner_curve("max_stability", alpha, last.flip.item()).kappa)
    lines = ax.plot(alpha, limit, color="0.3", label=r"bound $1/\kappa^2$, theory")
    keys = draw_panel(ax, results, "alpha", labels, label="number / $N$", log="xy")
    return add_title_and_legend(figure, results, [*keys, *lines])
