"""Learning curves from stored examples: eps_g of every learner against alpha, with theory."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.panels import dense, finish, guide, letters, page, panel, with_lines
from figures.published.stored_examples.stored_runs import HOLLOW, at_end

AXES = ("learner", "alpha")  # sweep axes that this figure shows
CAPTION = (
    r"Learning curves from $P=\alpha N$ stored examples: (a) generalization error of each learner; lines, in the "
    r"colours of the points: theory for $N\to\infty$ (not available for the perceptron; AdaTron tends to maximum "
    r"stability); (b) relative deviation from theory. All learners use the same data sets, so that their deviations "
    r"are correlated; in (b) markers have different sizes, as they overlap."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g on logarithmic axes, and its relative deviation from theory."""
    last, solved_theory, lines = (at_end(part) for part in (simulation, theory, dense(theory, "alpha")))
    results = with_lines(last.assign(deviation=last.eps_g / solved_theory.eps_g - 1), solved_theory, lines)
    figure, (error, deviation) = page(3.4, 1, 2)
    keys = panel(error, results, "alpha", "eps_g", "learner", log="xy", filled=True)
    relative = r"$\epsilon_g$ / theory $-\,1$"
    panel(deviation, results, "alpha", "deviation", "learner", label=relative, log="x", filled=True, nested=True)
    guide(deviation, y=0, color="0.3", linestyle="-")
    deviation.yaxis.set_major_formatter("{x:.0%}")
    letters(error, deviation)
    return finish(figure, results, keys, note=HOLLOW, columns=4)
