r"""The binary perceptron: overlap with the teacher and free entropy against alpha, from two starting points."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.legends import make_line_handle
from figures.panels import (
    add_title_and_legend,
    combine_with_lines,
    draw_guide,
    draw_panel,
    make_figure,
    solve_dense_theory,
)
from figures.style import PAGE_WIDTH, SMALL_FONT_SIZE, THEORY_COLOUR

AXES = ("start", "alpha")  # sweep axes that this figure shows
TRANSITION_SYMBOLS = {"alpha_it": r"$\alpha_\mathrm{IT}$", "alpha_alg": r"$\alpha_\mathrm{alg}$"}
CAPTION = (
    r"Message passing that infers a teacher's weights from $P=\alpha N$ labels. (a) Overlap $m$ with the teacher after "
    r"the last step, for runs that start at the prior's mean or near the teacher; lines: fixed points of state "
    r"evolution, $N\to\infty$. (b) Free entropy per weight of both fixed points; the larger value is Bayes-optimal. "
    r"Dotted: for $\alpha\geq\alpha_\mathrm{IT}$ the examples determine the teacher, and for "
    r"$\alpha\geq\alpha_\mathrm{alg}$ message passing finds the teacher. At finite $N$ the transitions are smeared "
    r"out, and a run that starts near the teacher stays there although state evolution moves away."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw overlaps above and free entropies below, one colour per starting point."""
    results = combine_with_lines(
        *(part.isel(step=-1) for part in (simulation, theory, solve_dense_theory(theory, "alpha")))
    )
    figure, (above, below) = make_figure(4.6, 2, width=0.75 * PAGE_WIDTH, sharex=True, height_ratios=(2, 1))
    keys = draw_panel(above, results, "alpha", "m", "start", label="overlap $m$", dashes=True)
    draw_panel(below, results, "alpha", "free_entropy", "start", label="free entropy / $N$", dashes=True)
    above.set_xlabel("")
    for name, symbol in TRANSITION_SYMBOLS.items():
        alpha = float(theory[name].values.flat[0])
        if np.isfinite(alpha):  # NaN without a transition
            draw_guide(above, below, x=alpha, color=THEORY_COLOUR, linewidth=1)
            transform = above.get_xaxis_transform()
            above.annotate(
                f"{symbol} = {alpha:.3f}", (alpha, 1.01), xycoords=transform, fontsize=SMALL_FONT_SIZE, ha="center"
            )
    return add_title_and_legend(figure, results, [*keys, make_line_handle("transitions", linestyle=":")])
