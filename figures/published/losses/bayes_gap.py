r"""Excess of eps_g over the Bayes-optimal error against alpha, for each loss with its best penalty."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.legends import line_with_points
from figures.panels import dense, finish, guide, page, panel, with_lines
from figures.style import points

AXES = ("loss", "flip", "alpha")  # sweep axes that this figure shows
CAPTION = (
    r"Generalization error of convex losses, each with its best l2 penalty, relative to the Bayes-optimal error for "
    r"$N\to\infty$, against $\alpha$, at several fractions of flipped labels; last: the Bayes-optimal student at "
    r"finite $N$, by message passing. All use the same data sets."
)

# style of the reference student, whose error no other student can beat
BAYES: dict[str, Any] = {"color": "black", "linestyle": ":", "linewidth": 1.0, "zorder": 4}
POINT: dict[str, Any] = {"marker": "x", "color": "black", "markersize": 4, "zorder": 5}


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the excess error against alpha, a panel per fraction of flips and a colour per loss."""
    lines, flips = dense(theory, "alpha"), theory.flip.values
    lines, runs = (
        part.assign(above=_above(part.eps_g, reference)) for part, reference in ((lines, lines), (simulation, theory))
    )
    results, last = with_lines(runs, theory, lines), theory.sizes["loss"]
    figure, axes = page(3.2, 1, len(flips), sharey=True)
    keys = panel(axes, results, "alpha", "above", "loss", split="flip", label=r"excess of $\epsilon_g$ over Bayes (%)")
    for ax, flip in zip(figure.axes, flips, strict=True):
        guide(ax, y=0, **BAYES)
        if "R_bayes" in simulation:
            measured, at_flip = (part.sel(flip=flip).isel(loss=0) for part in (simulation, theory))
            points(ax, measured.alpha, _above(np.arccos(measured.R_bayes) / np.pi, at_flip), last, **POINT)
    return finish(figure, results, [*keys, line_with_points(last, "Bayes-optimal", **{**BAYES, **POINT})], "lam")


def _above(error: xr.DataArray, solved: xr.Dataset) -> xr.DataArray:
    """Compute the excess of an error over the Bayes-optimal error in per cent."""
    return 100 * (error / (np.arccos(solved.R_bayes) / np.pi) - 1)
