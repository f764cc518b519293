r"""The strength of the penalty: eps_g of several losses against lambda, their minima, and the Bayes-optimal error."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures.panels import dense, finish, panel, with_lines
from figures.style import COLUMN, THEORY, look_of

AXES = ("loss", "lam")  # of the sweep, that this figure shows
CAPTION = (
    r"Generalization error of convex losses against the strength $\lambda$ of the l2 penalty. Stars: the minimum of "
    r"each loss; dotted: the Bayes-optimal error, which no student falls below."
)
MINIMUM: dict[str, Any] = {"marker": "*", "markersize": 9, "markeredgewidth": 0, "linestyle": "none"}
BAYES: dict[str, Any] = {"color": THEORY, "linestyle": ":", "linewidth": 1}


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw one colour per loss, with the minimum of each."""
    lines, figure = dense(theory, "lam"), Figure(figsize=(1.4 * COLUMN, 3.4))
    ax, results = figure.subplots(), with_lines(simulation, theory, lines)
    keys = panel(ax, results, "lam", "eps_g", "loss", log="x")
    for index, name in enumerate(theory.loss.values):
        _minimum(ax, theory.sel(loss=name), lines.sel(loss=name), look_of(index)["color"])
    bayes = np.arccos(float(theory.R_bayes.values.flat[0])) / np.pi
    ax.axhline(bayes, **BAYES)
    marks = [Line2D([], [], **MINIMUM, color=THEORY, label="minimum"), Line2D([], [], **BAYES, label="Bayes-optimal")]
    return finish(figure, results, [*keys, *marks], "alpha", "flip", columns=3)


def _minimum(ax: Any, solved: xr.Dataset, line: xr.Dataset, colour: str) -> None:
    """The best penalty, where it lies on the axis."""
    best = float(solved.lam_best.values.flat[0])
    if float(line.lam[0]) <= best <= float(line.lam[-1]):
        height = np.interp(np.log(best), np.log(line.lam), line.eps_g)
        ax.plot([best], [height], color=colour, **MINIMUM)
