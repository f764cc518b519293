r"""The strength of the penalty: eps_g of several losses against lambda, their minima, and the Bayes-optimal error."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.legends import entry
from figures.panels import finish, guide, page, panel, scenario_with, with_lines
from figures.style import COLUMN, STAR, THEORY
from theory.solutions import solve_line

AXES = ("loss", "lam")  # sweep axes that this figure shows
CAPTION = (
    r"Generalization error of convex losses against the strength $\lambda$ of the l2 penalty. Stars: the minimum of "
    r"each loss; dotted: the Bayes-optimal error, a lower bound for all students."
)
PLACES = 101
BAYES: dict[str, Any] = {"color": THEORY, "linestyle": ":", "linewidth": 1}


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g against lambda with the minimum of each loss, which has a colour."""
    lines, (figure, ax) = _lines(theory), page(3.4, width=1.4 * COLUMN)
    results = with_lines(simulation, theory, lines)
    keys = panel(ax, results, "lam", "eps_g", "loss", log="x")
    for key, name in zip(keys, theory.loss.values, strict=True):
        line, best = lines.sel(loss=name), float(theory.lam_best.sel(loss=name).values.flat[0])
        if float(line.lam[0]) <= best <= float(line.lam[-1]):
            ax.plot(best, np.interp(np.log(best), np.log(line.lam), line.eps_g), color=key.get_color(), **STAR)
    guide(ax, y=np.arccos(float(theory.R_bayes.values.flat[0])) / np.pi, **BAYES)
    marks = [entry("minimum", **STAR), entry("Bayes-optimal", **BAYES)]
    return finish(figure, results, [*keys, *marks], "alpha", "flip", columns=5)


def _lines(theory: xr.Dataset) -> xr.Dataset:
    """Solve theory from the smallest penalty to the largest, in equal ratios."""
    lam = np.geomspace(float(theory.lam.min()), float(theory.lam.max()), PLACES)
    return solve_line(scenario_with(theory, lam=lam.tolist()))
