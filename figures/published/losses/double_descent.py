r"""Double descent: mean squared error and training loss of least squares against alpha, for several penalties."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from figures.inspection import AID
from figures.labels import size_of
from figures.legends import line_with_points
from figures.published.log_axes import logarithmic_alpha
from figures.style import PAGE, log_ticks, look_of, points, styled
from statmech.results.dataset import scenario_of
from theory.solve import solve_line

if TYPE_CHECKING:
    import xarray as xr

AXES = ("lam", "alpha")  # of the sweep, that this figure shows
NEEDS = ("noise",)
PLACES, PEAK = 61, 10 ** np.linspace(-0.3, 0.3, 81)  # of the lines: over all alphas, and around the peak at 1
LEAST = 1e-12  # of a training loss: what is less is rounding
CAPTION = (
    r"Least squares from $P=\alpha N$ outputs of a linear teacher with noise. Left: mean squared error of the field "
    r"without noise; right: mean loss of the examples. With a vanishing penalty ($\lambda=0$) the student fits all "
    r"examples up to $\alpha=1$ (dotted), where its error diverges; its training loss there is 0 and is not drawn."
)


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """One colour per penalty."""
    lines = _lines(theory)
    figure = Figure(figsize=(PAGE, 3.0))
    axes = figure.subplots(1, 2)
    for ax, name, label in zip(axes, ("mse", "train_loss"), ("mean squared error", "training loss"), strict=True):
        for index, lam in enumerate(theory.lam.values):
            line, runs = lines.sel(lam=lam)[name], simulation.sel(lam=lam)[name]
            ax.plot(line.alpha, line.where((line > 0) & np.isfinite(line)), color=look_of(index)["color"])
            points(ax, runs.alpha, runs.where(runs > LEAST), index, markersize=3)
        ax.axvline(1, linestyle=":", linewidth=0.8, color="0.3", zorder=0, gid=AID)
        logarithmic_alpha(ax)
        ax.set(yscale="log", ylabel=label)
        log_ticks(ax.yaxis)
    keys = [line_with_points(index, f"$\\lambda$ = {lam}") for index, lam in enumerate(theory.lam.values)]
    figure.legend(handles=keys, loc="outside lower center", ncols=len(keys))
    figure.suptitle(f"noise $\\sigma$ = {theory.noise.item():g}, {size_of(simulation)}", fontsize=8)
    return figure


def _lines(theory: xr.Dataset) -> xr.Dataset:
    """Theory from the first to the last alpha, at 1, too."""
    scenario, low, high = scenario_of(theory), float(theory.alpha.min()), float(theory.alpha.max())
    alpha = np.union1d(np.geomspace(low, high, PLACES), PEAK[(low < PEAK) & (high > PEAK)])
    return solve_line(type(scenario)(**{**scenario.config(), "alpha": alpha.tolist()}))
