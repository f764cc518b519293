"""Learning curves from stored examples: eps_g of every learner against alpha, with its theory curve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from figures.published.helpers.log_axes import logarithmic_alpha, logarithmic_error
from figures.published.helpers.stored_runs import HOLLOW, at_end, runs
from figures.style import PAGE, label_of, look_of, styled
from statmech.learners import LEARNERS
from theory import learning_curves

if TYPE_CHECKING:
    import xarray as xr

AXES = ("learner", "alpha")  # of the sweep, that this figure shows


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Both axes logarithmic; eps_g on the left, its relative deviation from theory on the right."""
    last, expected = at_end(simulation), at_end(theory)
    dense = np.geomspace(float(last.alpha.min()), float(last.alpha.max()), 300)
    curves = learning_curves(dense, float(last.flip)).eps_g
    figure = Figure(figsize=(PAGE, 3.4))
    error, deviation = figure.subplots(1, 2)
    deviation.axhline(0, color="0.3", linewidth=0.8)
    for index, name in enumerate(map(str, last.learner.values)):
        cell, limit = last.sel(learner=name), LEARNERS[name].limit
        if limit is not None:
            error.plot(dense, curves.sel(learner=limit), color=look_of(index)["color"], zorder=1)
            relative = cell.assign(eps_g=cell.eps_g / expected.eps_g.sel(learner=name) - 1)
            runs(deviation, cell.alpha * (1 + 0.012 * (index - 3)), relative, "eps_g", index)
        runs(error, cell.alpha, cell, "eps_g", index, label=label_of(name))
    for ax in (error, deviation):
        logarithmic_alpha(ax)
    error.set(title=rf"$\epsilon_g$, $N={last.N.item()}$; lines: $N=\infty$")
    logarithmic_error(error)
    deviation.yaxis.set_major_formatter("{x:.0%}")
    deviation.set_title(r"$\epsilon_g$ over theory $-\,1$")
    figure.legend(loc="outside lower center", ncols=7, title=HOLLOW, title_fontsize=7.5, columnspacing=1.0)
    return figure
