r"""The strength of the penalty: eps_g of several losses against lambda, their minima, and the Bayes-optimal error."""

from __future__ import annotations

from typing import Any

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
    modify_scenario,
)
from figures.style import COLUMN_WIDTH, MINIMUM_STAR_STYLE, THEORY_COLOUR
from theory.solutions import solve_line

AXES = ("loss", "lam")  # sweep axes that this figure shows
CAPTION = (
    r"Generalization error of convex losses against the strength $\lambda$ of the l2 penalty. Stars: the minimum of "
    r"each loss; dotted: the Bayes-optimal error, a lower bound for all students."
)
LAMBDA_LINE_POINTS = 101
BAYES_OPTIMAL_LINE_STYLE: dict[str, Any] = {"color": THEORY_COLOUR, "linestyle": ":", "linewidth": 1}


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g against lambda and mark the minima, one colour per loss."""
    lines, (figure, ax) = _solve_at_dense_penalties(theory), make_figure(3.4, width=1.4 * COLUMN_WIDTH)
    results = combine_with_lines(simulation, theory, lines)
    keys = draw_panel(ax, results, "lam", "eps_g", "loss", log="x")
    for key, name in zip(keys, theory.loss.values, strict=True):
        line, best = lines.sel(loss=name), float(theory.lam_best.sel(loss=name).values.flat[0])
        if float(line.lam[0]) <= best <= float(line.lam[-1]):
            ax.plot(
                best, np.interp(np.log(best), np.log(line.lam), line.eps_g), color=key.get_color(), **MINIMUM_STAR_STYLE
            )
    draw_guide(ax, y=np.arccos(float(theory.R_bayes.values.flat[0])) / np.pi, **BAYES_OPTIMAL_LINE_STYLE)
    marks = [
        make_line_handle("minimum", **MINIMUM_STAR_STYLE),
        make_line_handle("Bayes-optimal", **BAYES_OPTIMAL_LINE_STYLE),
    ]
    return add_title_and_legend(figure, results, [*keys, *marks], "alpha", "flip", columns=5)


def _solve_at_dense_penalties(theory: xr.Dataset) -> xr.Dataset:
    """Solve theory at geometrically spaced penalties."""
    lam = np.geomspace(float(theory.lam.min()), float(theory.lam.max()), LAMBDA_LINE_POINTS)
    return solve_line(modify_scenario(theory, lam=lam.tolist()))
