"""Growth of the number of evaluated features with N.

A level of a standard deviations is tau = a sqrt(N). If each feature adds to the mean, a walk reaches the level after
tau / drift features, which is proportional to sqrt(N). If the mean of the complete sum is a fixed number of standard
deviations for every N, a fraction of N is evaluated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.panels import add_title_and_legend, combine_with_lines, draw_panel, make_figure, solve_dense_theory
from figures.style import COLUMN_WIDTH
from statmech.classification.stopping_boundaries import BOUNDARIES
from statmech.numerics.statistics import standard_error

AXES = ("mean_feature_mean", "N")  # sweep axes that this figure shows
ALL_FEATURES_STYLE: dict[str, Any] = {"color": "0.5", "linewidth": 0.8, "linestyle": ":"}
CAPTION = (
    r"Mean number of features that a Gaussian walk evaluates before it stops at the boundary or ends, against the "
    r"total number $N$ of features. The mean $m$ of the complete sum is one standard deviation $\sigma$ for every $N$, "
    r"or grows as $N^{1/2}\sigma$ because every feature has the same mean. Slopes: straight lines fitted to the "
    r"logarithms over the upper half of the values of $N$. Dotted: all features."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw features evaluated against N, with the slopes of simulation and theory at large N."""
    runs, theory, lines = (
        part.assign(number=part.N * part.features) for part in (simulation, theory, solve_dense_theory(theory, "N"))
    )
    results, (figure, ax) = combine_with_lines(runs, theory, lines), make_figure(3.9, width=COLUMN_WIDTH)
    keys = draw_panel(ax, results, "N", "number", "mean_feature_mean", log="xy", dashes=True)
    for index, key in enumerate(keys):
        cloud, line = (part.isel(mean_feature_mean=index) for part in (simulation, theory))
        key.set_label(f"{_format_mean_label(line)}\n{_format_slope_label(cloud, line)}".strip())
    [all_features] = ax.plot(theory.N, theory.N, label="all features", **ALL_FEATURES_STYLE)
    title = rf"{BOUNDARIES[theory.boundary.item()].label}, $\epsilon_d={theory.error_rate.item():g}$"
    ax.set(xlabel="features $N$", ylabel="features evaluated", title=title)
    return add_title_and_legend(figure, results, [*keys, all_features], columns=1)


def _format_mean_label(cell: xr.Dataset) -> str:
    if cell.feature_mean:
        return rf"$m={cell.feature_mean.item():g}\,\sqrt{{N}}\,\sigma$"
    return rf"$m={cell['mean'].item():g}\,\sigma$"


def _format_slope_label(runs: xr.Dataset, solved: xr.Dataset) -> str:
    """Return a label with the log-log slopes of features against N, in simulation and theory."""
    upper = solved.N.values >= np.median(solved.N)
    if upper.sum() < 2 or runs.sizes["seed"] < 2:
        return ""
    log_N = np.log(solved.N.values[upper])

    def fit_slope(fraction: Any) -> Any:
        return 1 + np.polyfit(log_N, np.log(fraction).T, 1)[0]

    slopes = fit_slope(runs.features.transpose("seed", "N").values[:, upper])
    measured = rf"{slopes.mean():.3f} $\pm$ {standard_error(slopes):.3f}"
    return f"slope {measured}; theory {fit_slope(solved.features.values[upper]):.3f}"
