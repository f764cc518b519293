"""Growth of the number of evaluated features with N.

Behind a level of so many standard deviations, tau = a sqrt(N). Where each feature adds to the mean the way there takes
tau / drift features, a square root of N; where the whole sum has a mean of so many standard deviations, whatever the
number of features, a fraction of N is evaluated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from figures.style import COLUMN, look_of, points, styled
from statmech.statistics import standard_error

if TYPE_CHECKING:
    import xarray as xr

AXES = ("mean_drift", "N")  # of the sweep, that this figure shows


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Features evaluated against N, and the slopes of simulation and theory over its upper half."""
    figure = Figure(figsize=(COLUMN, 3.9))
    ax = figure.subplots()
    N = theory.N.values
    for index in range(theory.sizes["mean_drift"]):
        cloud, line = (part.isel(mean_drift=index) for part in (simulation, theory))
        ax.plot(N, N * line.features, color=look_of(index)["color"])
        ax.plot(N, N * line.features_brownian, color=look_of(index)["color"], linestyle=":", linewidth=0.9)
        points(ax, N, cloud.N * cloud.features, index, label=f"{_mean_label(line)}\n{_slopes(cloud, line)}")
    ax.plot(N, N, color="0.5", linewidth=0.7, linestyle="--", label="all")
    title = rf"{theory.boundary.item()}, $\delta={theory.delta.item():g}$"
    ax.set(xscale="log", yscale="log", xlabel="features $N$", ylabel="features evaluated", title=title)
    figure.legend(loc="outside lower center")
    return figure


def _mean_label(cell: xr.Dataset) -> str:
    if cell.drift:
        return rf"$E\,S_N={cell.drift.item():g}\sqrt{{N}}$ std"
    return rf"$E\,S_N={cell['mean'].item():g}$ std"


def _slopes(cloud: xr.Dataset, line: xr.Dataset) -> str:
    """Of log features against log N, seed by seed, and in theory."""
    upper = line.N.values >= np.median(line.N)
    if upper.sum() < 2 or cloud.sizes["seed"] < 2:
        return ""
    log_N = np.log(line.N.values[upper])

    def slope(fraction: Any) -> Any:
        return 1 + np.polyfit(log_N, np.log(fraction).T, 1)[0]

    slopes = slope(cloud.features.transpose("seed", "N").values[:, upper])
    measured = rf"{slopes.mean():.3f} $\pm$ {standard_error(slopes):.3f}"
    return f"slope {measured}; theory {slope(line.features.values[upper]):.3f}"
