r"""Message passing step by step: the overlap with the teacher of runs, and that of state evolution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from figures.labels import size_of
from figures.legends import line_with_points
from figures.style import PAGE, label_of, look_of, points, styled

if TYPE_CHECKING:
    import xarray as xr

AXES = ("prior", "alpha")  # of the sweep, that this figure shows
CAPTION = (
    r"Overlap $m$ with the teacher of message passing after each step, for several $\alpha$ (colours) and priors of "
    r"the weights (panels). Lines: state evolution, $N\to\infty$, drawn from step to step."
)


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """One panel per prior, one colour per alpha."""
    priors, alphas = theory.prior.values, theory.alpha.values
    figure = Figure(figsize=(PAGE, 3.0))
    axes = np.atleast_1d(figure.subplots(1, len(priors), sharey=True))
    for ax, prior in zip(axes, priors, strict=True):
        for index, alpha in enumerate(alphas):
            line, runs = theory.sel(prior=prior, alpha=alpha), simulation.sel(prior=prior, alpha=alpha)
            ax.plot(line.step, line.m, color=look_of(index)["color"])
            points(ax, runs.step, runs.m, index, markersize=3)
        ax.set(xlabel="step $t$", title=label_of(str(prior)))
    axes[0].set_ylabel("overlap $m$")
    keys = [line_with_points(index, f"$\\alpha$ = {alpha:g}") for index, alpha in enumerate(alphas)]
    figure.legend(handles=keys, loc="outside lower center", ncols=len(keys))
    figure.suptitle(size_of(simulation), fontsize=8)
    return figure
