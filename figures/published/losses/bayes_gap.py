r"""Which loss, at which noise: eps_g of each loss with its best penalty over the Bayes-optimal one, against alpha."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from figures.labels import size_of
from figures.legends import line_with_points
from figures.published.dense_theory import dense
from figures.style import PAGE, label_of, look_of, points, styled

if TYPE_CHECKING:
    import xarray as xr

AXES = ("loss", "flip", "alpha")  # of the sweep, that this figure shows
CAPTION = (
    r"Generalization error of convex losses, each with its best l2 penalty, relative to the Bayes-optimal error for "
    r"$N\to\infty$, against $\alpha$, at several fractions of flipped labels; last: the Bayes-optimal student at "
    r"finite $N$, by message passing. All use the same data sets."
)


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """One panel per fraction of flips, one colour per loss."""
    lines, flips = dense(theory, "alpha"), theory.flip.values
    figure = Figure(figsize=(PAGE, 3.2))
    axes = np.atleast_1d(figure.subplots(1, len(flips), sharey=True))
    names, last = [str(name) for name in theory.loss.values], len(theory.loss)
    for ax, flip in zip(axes, flips, strict=True):
        ax.axhline(0, color=look_of(last)["color"])
        for index, name in enumerate(names):
            line, solved = lines.sel(flip=flip, loss=name), theory.sel(flip=flip, loss=name)
            runs = simulation.sel(flip=flip, loss=name)
            ax.plot(line.alpha, 100 * _above(line.eps_g, line), color=look_of(index)["color"])
            points(ax, runs.alpha, 100 * _above(runs.eps_g, solved), index)
        if "R_bayes" in simulation:
            error = np.arccos(simulation.R_bayes.sel(flip=flip).isel(loss=0)) / np.pi
            points(ax, simulation.alpha, 100 * _above(error, theory.sel(flip=flip).isel(loss=0)), last)
        ax.set(xlabel=r"$\alpha=P/N$", title=f"flip = {flip:g}")
    axes[0].set_ylabel(r"$\epsilon_g$ above Bayes (%)")
    keys = [line_with_points(index, label_of(name)) for index, name in enumerate(names)]
    keys.append(line_with_points(last, "Bayes-optimal"))
    figure.legend(handles=keys, loc="outside lower center", ncols=len(keys))
    figure.suptitle(size_of(simulation), fontsize=8)
    return figure


def _above(error: xr.DataArray, solved: xr.Dataset) -> xr.DataArray:
    """How much larger than the Bayes-optimal error, over it."""
    return error / (np.arccos(solved.R_bayes) / np.pi) - 1
