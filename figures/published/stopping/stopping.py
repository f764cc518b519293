"""Gaussian walks with stopping boundaries: decision errors compared with their target, and features evaluated.

The paper's eq (4), `as-printed`, standardises the last sum but not the partial ones: compared with the sums themselves
it exceeds its target as soon as they drift upwards, at E S = one standard deviation by a factor 3.8 for delta = 0.01.
On centred sums the same number keeps the target. A level that ignores the drift (grey) is too conservative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures.published.dense_theory import dense
from figures.style import PAGE, THEORY, look_of, points, styled
from statmech.boundaries import BOUNDARIES, error, threshold

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

AXES = ("boundary", "mean", "delta")  # of the sweep, that this figure shows
AT_MEAN, AT_DELTA = 1.0, 0.01
LEAST = 1e-7  # decision error, below which theory is not drawn
LIMIT: dict[str, Any] = {"linestyle": ":", "linewidth": 0.9}
TARGET: dict[str, Any] = {"color": "0.3", "linewidth": 0.7}
IGNORED: dict[str, Any] = {"color": "0.6", "linestyle": "--"}
CAPTION = (
    r"Gaussian walks whose evaluation stops at a boundary, of mean $m$ and standard deviation $\sigma$ of the complete "
    r"sum. A decision error is a walk that stops although its complete sum is below 0. Full lines: theory with as many "
    r"looks at the sum as were simulated; dotted: with infinitely many. Thin line: the target $\delta$. Grey dashes: "
    r"infinitely many looks at a constant level that is computed as if the sums had no drift, $m=0$. Where a point is "
    r"missing no decision error was seen."
)
LINES = ""


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Errors against delta and against the mean, features against delta; lines: theory at these looks, and of many."""
    figure = Figure(figsize=(PAGE, 3.0))
    kept, drifting, saved = figure.subplots(1, 3)
    mean, delta = _nearest(theory, "mean", AT_MEAN), _nearest(theory, "delta", AT_DELTA)
    at_mean = Parts(simulation.sel(mean=mean), dense(theory, "delta", mean=mean))
    at_delta = Parts(simulation.sel(delta=delta), dense(theory, "mean", delta=delta))
    for index, boundary in enumerate(map(str, theory.boundary.values)):
        _draw(kept, at_mean.of(boundary), "decision_error", "delta", index)
        _draw(drifting, at_delta.of(boundary), "decision_error", "mean", index)
        _draw(saved, at_mean.of(boundary), "features", "delta", index)
    deltas, means = at_mean.line["delta"].values, at_delta.line["mean"].values
    kept.plot(deltas, deltas, **TARGET)
    drifting.plot(means, 0 * means + delta, **TARGET)
    kept.plot(deltas, _without_drift(deltas, mean), **IGNORED)
    drifting.plot(means, _without_drift(delta, means), **IGNORED)
    title = rf"$m={mean:g}\,\sigma$"
    kept.set(xscale="log", yscale="log", xlabel=r"target $\delta$", ylabel="decision errors", title=title)
    drifting.set(yscale="log", xlabel=r"mean of the sum, $m/\sigma$", title=rf"$\delta={delta:g}$")
    drifting.set_ylabel("decision errors")
    saved.set(xscale="log", xlabel=r"target $\delta$", ylabel="fraction of features evaluated", title=title)
    saved.set_ylim(0, 1)
    figure.legend(handles=_handles(theory), loc="outside lower center", ncols=4)
    return figure


class Parts(NamedTuple):
    """Simulation and dense theory of the same parameter combinations."""

    cloud: xr.Dataset
    line: xr.Dataset

    def of(self, boundary: str) -> Parts:
        return Parts(self.cloud.sel(boundary=boundary), self.line.sel(boundary=boundary))


def _draw(ax: Axes, one: Parts, name: str, along: str, index: int) -> None:
    cloud, line = one
    colour = look_of(index)["color"]
    ax.plot(line[along], line[name].where(line[name] > LEAST), color=colour)
    limit = line[f"{name}_brownian"]
    ax.plot(line[along], limit.where(limit > LEAST), color=colour, **LIMIT)
    seen = cloud.isel({along: np.flatnonzero(cloud[name].mean("seed") > 0)})  # zero has no logarithm
    points(ax, seen[along], seen[name], index)


def _without_drift(delta: np.ndarray | float, mean: np.ndarray | float) -> np.ndarray:
    return np.asarray(error(threshold("constant", delta, 0.0, 1.0), mean, 1.0))


def _nearest(theory: xr.Dataset, name: str, value: float) -> float:
    return float(theory[name].sel({name: value}, method="nearest"))


def _handles(theory: xr.Dataset) -> list[Line2D]:
    """Boundaries by colour and marker, and the kinds of lines."""
    white: dict[str, Any] = {"markerfacecolor": "white"}
    names = [str(name) for name in theory.boundary.values]
    return [
        *(Line2D([], [], label=BOUNDARIES[name].label, **look_of(index), **white) for index, name in enumerate(names)),
        Line2D([], [], color=THEORY, label="theory, looks as simulated"),
        Line2D([], [], color=THEORY, label="theory, infinitely many looks", **LIMIT),
        Line2D([], [], label=r"target $\delta$", **TARGET),
        Line2D([], [], label="constant level for $m=0$", **IGNORED),
    ]
