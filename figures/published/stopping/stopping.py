"""Gaussian walks with stopping boundaries: decision errors compared with their target, and features evaluated.

The paper's eq (4), `as-printed`, standardises the last sum but not the partial sums. Without centring, its error rate
exceeds the target if the sums drift upwards: for a target of 0.01 and a mean of one standard deviation by a factor 3.8.
With centred sums the same level keeps the target. A level that ignores the drift (grey) is too conservative.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures.legends import entry
from figures.panels import along, finish, logarithmic, page, panel
from statmech.boundaries import error, threshold
from statmech.results.results import Results

AXES = ("boundary", "mean", "error_rate")  # sweep axes that this figure shows
AT_MEAN, AT_RATE = 1.0, 0.01
LEAST = 1e-7  # theory below this error is not drawn
PLACES = 200
LIMIT: dict[str, Any] = {"linestyle": ":", "linewidth": 0.9}
TARGET: dict[str, Any] = {"color": "0.3", "linewidth": 0.7}
IGNORED: dict[str, Any] = {"color": "0.6", "linestyle": "--"}
CAPTION = (
    r"Gaussian walks whose evaluation stops at a boundary, of mean $m$ and standard deviation $\sigma$ of the complete "
    r"sum. (a), (b) A decision error is a walk that stops although its complete sum is below 0. (c) Features "
    r"evaluated. Full lines: theory with as many checks of the partial sum (looks) as were simulated; dotted: with "
    r"infinitely many. Thin line: the target $\epsilon_d$. Grey dashes: infinitely many looks at a constant level that "
    r"is computed as if the sums had no drift, $m=0$. A missing point means that no run had a decision error."
)
LINES = ""


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw errors against the target error rate and against the mean, and features against the target."""
    mean, rate = _nearest(theory, "mean", AT_MEAN), _nearest(theory, "error_rate", AT_RATE)
    at_mean = along(simulation, theory, "error_rate", mean=mean)
    at_rate = along(simulation, theory, "mean", error_rate=rate)
    figure, (target_axes, drift_axes, features_axes) = page(3.2, 1, 3)
    _draw(target_axes, at_mean, "error_rate", "decision_error", "xy")
    _draw(drift_axes, at_rate, "mean", "decision_error", "y")
    keys = _draw(features_axes, at_mean, "error_rate", "features", "x")
    rates, means = _ends(theory.error_rate), _ends(theory["mean"])
    target_axes.plot(rates, rates, **TARGET)
    drift_axes.plot(means, 0 * means + rate, **TARGET)
    target_axes.plot(rates, _without_drift(rates, mean), **IGNORED)
    drift_axes.plot(means, _without_drift(rate, means), **IGNORED)
    title = rf"$m={mean:g}\,\sigma$"
    target_axes.set(xlabel=r"target $\epsilon_d$", ylabel="decision errors", title=title)
    drift_axes.set(xlabel=r"mean of the sum, $m/\sigma$", ylabel="decision errors", title=rf"$\epsilon_d={rate:g}$")
    features_axes.set(xlabel=r"target $\epsilon_d$", ylabel="features / $N$", title=title, ylim=(0, 1))
    for ax, log in ((target_axes, "xy"), (drift_axes, "y")):
        logarithmic(ax, log)
    keys += [
        entry("theory, looks as simulated"),
        entry("theory, infinitely many looks", **LIMIT),
        entry(r"target $\epsilon_d$", **TARGET),
        entry("constant level for $m=0$", **IGNORED),
    ]
    return finish(figure, at_mean, keys, columns=4)


def _draw(ax: Axes, results: Results, x: str, name: str, log: str) -> list[Line2D]:
    """Draw a variable with the simulated number of looks, and its limit of infinitely many looks."""
    assert results.lines is not None
    lines = results.lines.where(results.lines > LEAST)
    keys = panel(ax, replace(results, lines=lines), x, name, "boundary", log=log)
    for key, boundary in zip(keys, lines.boundary.values, strict=True):
        limit = lines[f"{name}_brownian"].sel(boundary=boundary)
        ax.plot(limit[x], limit, color=key.get_color(), **LIMIT)
    return keys


def _ends(values: xr.DataArray) -> np.ndarray:
    """Return many values over the range of an axis, equally spaced if the smallest is 0."""
    low, high = float(values.min()), float(values.max())
    return np.geomspace(low, high, PLACES) if low > 0 else np.linspace(low, high, PLACES)


def _without_drift(error_rate: np.ndarray | float, mean: np.ndarray | float) -> np.ndarray:
    return np.asarray(error(threshold("constant", error_rate, 0.0, 1.0), mean, 1.0))


def _nearest(theory: xr.Dataset, name: str, value: float) -> float:
    values = theory[name].values
    return float(values[np.abs(values - value).argmin()])
