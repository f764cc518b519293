"""Growth of the number of evaluated features with N.

Behind a level of so many standard deviations, tau = a sqrt(N). Where each feature adds to the mean the way there takes
tau / drift features, a square root of N; where the whole sum has a mean of so many standard deviations, whatever the
number of features, a fraction of N is evaluated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures.published.dense_theory import dense
from figures.style import COLUMN, DASHES, look_of, points, styled
from statmech.boundaries import BOUNDARIES
from statmech.numerics.statistics import standard_error

if TYPE_CHECKING:
    import xarray as xr

AXES = ("mean_drift", "N")  # of the sweep, that this figure shows
ALL: dict[str, Any] = {"color": "0.5", "linewidth": 0.8, "linestyle": ":"}
CAPTION = (
    r"Mean number of features that a Gaussian walk evaluates before it stops at the boundary, or ends, against the "
    r"number $N$ of features there are. The mean $m$ of the complete sum is one standard deviation $\sigma$ whatever "
    r"$N$, or grows as $N^{1/2}\sigma$ because every feature has the same mean. Slopes are those of straight lines "
    r"fitted to the logarithms over the upper half of the values of $N$. Dotted: all features."
)


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Features evaluated against N, and the slopes of simulation and theory over its upper half."""
    lines = dense(theory, "N")
    figure = Figure(figsize=(COLUMN, 3.9))
    ax, handles = figure.subplots(), []
    for index in range(theory.sizes["mean_drift"]):
        cloud, line, curve = (part.isel(mean_drift=index) for part in (simulation, theory, lines))
        look = {**look_of(index), "linestyle": DASHES[index % len(DASHES)]}
        ax.plot(curve.N, curve.N * curve.features, **{**look, "marker": None})
        points(ax, theory.N, cloud.N * cloud.features, index)
        label = f"{_mean_label(line)}\n{_slopes(cloud, line)}".strip()
        handles.append(Line2D([], [], markerfacecolor="white", label=label, **look))
    ax.plot(theory.N, theory.N, **ALL)
    title = rf"{BOUNDARIES[theory.boundary.item()].label}, $\delta={theory.delta.item():g}$"
    ax.set(xscale="log", yscale="log", xlabel="features $N$", ylabel="features evaluated", title=title)
    figure.legend(handles=[*handles, Line2D([], [], label="all features", **ALL)], loc="outside lower center")
    return figure


def _mean_label(cell: xr.Dataset) -> str:
    if cell.drift:
        return rf"$m={cell.drift.item():g}\,\sqrt{{N}}\,\sigma$"
    return rf"$m={cell['mean'].item():g}\,\sigma$"


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
