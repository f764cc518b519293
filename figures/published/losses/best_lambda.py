r"""The strength of the penalty: eps_g of several losses against lambda, their minima, and the Bayes-optimal error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures.labels import size_of
from figures.legends import line_with_points
from figures.published.dense_theory import dense
from figures.style import COLUMN, THEORY, label_of, log_ticks, look_of, points, styled

if TYPE_CHECKING:
    import xarray as xr

AXES = ("loss", "lam")  # of the sweep, that this figure shows
CAPTION = (
    r"Generalization error of convex losses against the strength $\lambda$ of the l2 penalty. Stars: the minimum of "
    r"each loss; dotted: the Bayes-optimal error, which no student falls below."
)


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """One colour per loss."""
    lines = dense(theory, "lam")
    figure = Figure(figsize=(1.4 * COLUMN, 3.4))
    ax = figure.subplots()
    for index, name in enumerate(theory.loss.values):
        line, runs = lines.sel(loss=name), simulation.sel(loss=name)
        ax.plot(line.lam, line.eps_g, color=look_of(index)["color"])
        points(ax, runs.lam, runs.eps_g, index)
        _minimum(ax, theory.sel(loss=name), line, look_of(index)["color"])
    bayes = np.arccos(float(theory.R_bayes.values.flat[0])) / np.pi
    ax.axhline(bayes, linestyle=":", color=THEORY, linewidth=1)
    ax.set(xscale="log", xlabel=r"$\lambda$", ylabel=r"$\epsilon_g$")
    log_ticks(ax.xaxis)
    keys = [line_with_points(index, label_of(str(name))) for index, name in enumerate(theory.loss.values)]
    figure.legend(handles=[*keys, *_marks()], loc="outside lower center", ncols=3)
    noise = f"flip = {theory.flip.item():g}, " if "flip" in theory.coords else ""
    figure.suptitle(f"$\\alpha$ = {theory.alpha.item():g}, {noise}{size_of(simulation)}", fontsize=8)
    return figure


def _minimum(ax: Any, solved: xr.Dataset, line: xr.Dataset, colour: str) -> None:
    """The best penalty, where it lies on the axis."""
    best = float(solved.lam_best.values.flat[0])
    if float(line.lam[0]) <= best <= float(line.lam[-1]):
        height = np.interp(np.log(best), np.log(line.lam), line.eps_g)
        ax.plot([best], [height], "*", color=colour, markersize=9, markeredgewidth=0)


def _marks() -> list[Line2D]:
    return [
        Line2D([], [], marker="*", markersize=9, color=THEORY, linestyle="none", label="minimum"),
        Line2D([], [], color=THEORY, linestyle=":", linewidth=1, label="Bayes-optimal"),
    ]
