"""Learning curves from stored examples: eps_g of every learner against alpha, with theory."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.derived_data import CONVERGENCE_FILL_NOTE, select_last_recorded
from figures.panels import (
    add_panel_letters,
    add_title_and_legend,
    combine_with_lines,
    draw_guide,
    draw_panel,
    make_figure,
    solve_dense_theory,
)

AXES = ("learner", "alpha")  # sweep axes that this figure shows
CAPTION = (
    r"Learning curves from $P=\alpha N$ stored examples: (a) generalization error of each learner; lines, in the "
    r"colours of the points: theory for $N\to\infty$ (not available for the perceptron; AdaTron tends to maximum "
    r"stability); (b) relative deviation from theory. All learners use the same data sets, so that their deviations "
    r"are correlated; in (b) markers differ in size because they overlap."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g on logarithmic axes, and its relative deviation from theory."""
    last, solved_theory, lines = (
        select_last_recorded(part) for part in (simulation, theory, solve_dense_theory(theory, "alpha"))
    )
    results = combine_with_lines(last.assign(deviation=last.eps_g / solved_theory.eps_g - 1), solved_theory, lines)
    figure, (error, deviation) = make_figure(3.4, 1, 2)
    keys = draw_panel(error, results, "alpha", "eps_g", "learner", log="xy", fill_converged=True)
    relative = r"$\epsilon_g$ / theory $-\,1$"
    draw_panel(
        deviation, results, "alpha", "deviation", "learner", label=relative, log="x", fill_converged=True, nested=True
    )
    draw_guide(deviation, y=0, color="0.3", linestyle="-")
    deviation.yaxis.set_major_formatter("{x:.0%}")
    add_panel_letters(error, deviation)
    return add_title_and_legend(figure, results, keys, note=CONVERGENCE_FILL_NOTE, columns=4)
