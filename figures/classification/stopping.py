"""Gaussian walks with stopping boundaries: decision errors compared with their target, and features evaluated.

The paper's eq (4), `as-printed`, standardises the last sum but not the partial sums. Without centring, its error rate
exceeds the target if the sums drift upwards: for a target of 0.01 and a mean of one standard deviation by a factor 3.8.
With centred sums the same level meets the target. A level that ignores the drift (grey) is too conservative.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures.legends import make_line_handle
from figures.panels import add_title_and_legend, draw_panel, make_figure, select_with_dense_theory, set_log_axes
from statmech.classification.stopping_boundaries import brownian_decision_error, compute_stopping_level
from statmech.results.results import Results

AXES = ("boundary", "mean", "error_rate")  # sweep axes that this figure shows
PANEL_MEAN, PANEL_ERROR_RATE = 1.0, 0.01
MIN_DRAWN_DECISION_ERROR = 1e-7  # smaller theoretical errors are not drawn
TARGET_LINE_POINTS = 200
INFINITE_CHECKS_STYLE: dict[str, Any] = {"linestyle": ":", "linewidth": 0.9}
TARGET_LINE_STYLE: dict[str, Any] = {"color": "0.3", "linewidth": 0.7}
IGNORED_DRIFT_LEVEL_STYLE: dict[str, Any] = {"color": "0.6", "linestyle": "--"}
CAPTION = (
    r"Gaussian walks that stop at a boundary; the complete sum has mean $m$ and standard deviation $\sigma$. (a), (b) "
    r"Decision errors: walks that stop although the complete sum is below 0. (c) Features evaluated. Full lines: "
    r"theory for the simulated number of checks of the partial sum (looks); dotted: infinitely many looks. Thin line: "
    r"the target $\epsilon_d$. Grey dashes: infinitely many looks at a constant level that is computed as if the sums "
    r"had no drift, $m=0$. A missing point means that no run had a decision error."
)
LINES_CAPTION = ""


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw errors against the target error rate and against the mean, and features against the target."""
    mean, rate = (
        _find_nearest_value(theory, "mean", PANEL_MEAN),
        _find_nearest_value(theory, "error_rate", PANEL_ERROR_RATE),
    )
    at_mean = select_with_dense_theory(simulation, theory, "error_rate", mean=mean)
    at_rate = select_with_dense_theory(simulation, theory, "mean", error_rate=rate)
    figure, (target_axes, drift_axes, features_axes) = make_figure(3.2, 1, 3)
    _draw_with_infinite_checks(target_axes, at_mean, "error_rate", "decision_error", "xy")
    _draw_with_infinite_checks(drift_axes, at_rate, "mean", "decision_error", "y")
    keys = _draw_with_infinite_checks(features_axes, at_mean, "error_rate", "features", "x")
    rates, means = _make_dense_values(theory.error_rate), _make_dense_values(theory["mean"])
    target_axes.plot(rates, rates, **TARGET_LINE_STYLE)
    drift_axes.plot(means, 0 * means + rate, **TARGET_LINE_STYLE)
    target_axes.plot(rates, _compute_driftless_level_error(rates, mean), **IGNORED_DRIFT_LEVEL_STYLE)
    drift_axes.plot(means, _compute_driftless_level_error(rate, means), **IGNORED_DRIFT_LEVEL_STYLE)
    title = rf"$m={mean:g}\,\sigma$"
    target_axes.set(xlabel=r"target $\epsilon_d$", ylabel="decision errors", title=title)
    drift_axes.set(xlabel=r"mean of the sum, $m/\sigma$", ylabel="decision errors", title=rf"$\epsilon_d={rate:g}$")
    features_axes.set(xlabel=r"target $\epsilon_d$", ylabel="features / $N$", title=title, ylim=(0, 1))
    for ax, log in ((target_axes, "xy"), (drift_axes, "y")):
        set_log_axes(ax, log)
    keys += [
        make_line_handle("theory, looks as simulated"),
        make_line_handle("theory, infinitely many looks", **INFINITE_CHECKS_STYLE),
        make_line_handle(r"target $\epsilon_d$", **TARGET_LINE_STYLE),
        make_line_handle("constant level for $m=0$", **IGNORED_DRIFT_LEVEL_STYLE),
    ]
    return add_title_and_legend(figure, at_mean, keys, columns=4)


def _draw_with_infinite_checks(ax: Axes, results: Results, axis: str, name: str, log: str) -> list[Line2D]:
    """Draw a variable for the simulated number of checks, and in the limit of infinitely many checks."""
    assert results.lines is not None
    lines = results.lines.where(results.lines > MIN_DRAWN_DECISION_ERROR)
    keys = draw_panel(ax, replace(results, lines=lines), axis, name, "boundary", log=log)
    for key, boundary in zip(keys, lines.boundary.values, strict=True):
        limit = lines[f"{name}_brownian"].sel(boundary=boundary)
        ax.plot(limit[axis], limit, color=key.get_color(), **INFINITE_CHECKS_STYLE)
    return keys


def _make_dense_values(values: xr.DataArray) -> np.ndarray:
    """Return a dense grid over the range of an axis, geometric if all values are positive."""
    low, high = float(values.min()), float(values.max())
    return np.geomspace(low, high, TARGET_LINE_POINTS) if low > 0 else np.linspace(low, high, TARGET_LINE_POINTS)


def _compute_driftless_level_error(error_rate: np.ndarray | float, mean: np.ndarray | float) -> np.ndarray:
    return np.asarray(brownian_decision_error(compute_stopping_level("constant", error_rate, 0.0, 1.0), mean, 1.0))


def _find_nearest_value(theory: xr.Dataset, coordinate: str, value: float) -> float:
    values = theory[coordinate].values
    return float(values[np.abs(values - value).argmin()])
