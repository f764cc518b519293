"""Gaussian walks with stopping boundaries: decision errors compared with their target, and features evaluated.

The paper's eq (4), `as-printed`, standardises the last sum but not the partial ones: compared with the sums themselves
it exceeds its target as soon as they drift upwards, at E S = one standard deviation by a factor 3.8 for delta = 0.01.
On centred sums the same number keeps the target. A level that ignores the drift (grey) is too conservative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from figures.style import PAGE, look_of, points, styled
from statmech.boundaries import error, threshold

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

AXES = ("boundary", "mean", "delta")  # of the sweep, that this figure shows
AT_MEAN, AT_DELTA = 1.0, 0.01


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Errors against delta and against the mean, features against delta; lines: theory at these looks, and of many."""
    figure = Figure(figsize=(PAGE, 2.75))
    kept, drifting, saved = figure.subplots(1, 3)
    at_mean, at_delta = (
        {name: _nearest(theory, name, value)} for name, value in (("mean", AT_MEAN), ("delta", AT_DELTA))
    )
    for index, boundary in enumerate(map(str, theory.boundary.values)):
        one = Parts(simulation.sel(boundary=boundary), theory.sel(boundary=boundary))
        _draw(kept, one.sel(at_mean), "decision_error", "delta", index, boundary)
        _draw(drifting, one.sel(at_delta), "decision_error", "mean", index)
        _draw(saved, one.sel(at_mean), "features", "delta", index)
    delta, mean = theory["delta"].values, theory["mean"].values  # .mean is a method
    kept.plot(delta, delta, color="0.3", linewidth=0.7, label="target")
    drifting.axhline(at_delta["delta"], color="0.3", linewidth=0.7)
    _without_drift(kept, delta, delta, at_mean["mean"])
    _without_drift(drifting, mean, at_delta["delta"], mean)
    title = rf"$E\,S={at_mean['mean']:g}$ std"
    kept.set(xscale="log", yscale="log", xlabel=r"target $\delta$", title=f"decision errors, {title}")
    drifting.set(yscale="log", xlabel=r"$E\,S\,/\,$std$\,S$", title=rf"decision errors, $\delta={at_delta['delta']:g}$")
    low = theory.decision_error.sel(at_delta).min()
    drifting.set_ylim(bottom=max(float(low) / 2, 1e-5))
    saved.set(xscale="log", xlabel=r"target $\delta$", title=f"fraction of features, {title}", ylim=(0, 1))
    title = "lines: theory at these looks; dotted: at infinitely many"
    handles, labels = kept.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, title=title, title_fontsize=7.5)
    return figure


class Parts(NamedTuple):
    """Simulation and theory of the same parameter combinations."""

    cloud: xr.Dataset
    line: xr.Dataset

    def sel(self, at: dict[str, float]) -> Parts:
        return Parts(self.cloud.sel(at), self.line.sel(at))


def _draw(ax: Axes, one: Parts, name: str, along: str, index: int, label: str | None = None) -> None:
    cloud, line = one
    colour = look_of(index)["color"]
    ax.plot(line[along], line[name], color=colour, label=label)
    ax.plot(line[along], line[f"{name}_brownian"], color=colour, linestyle=":", linewidth=0.9)
    seen = cloud.isel({along: np.flatnonzero(cloud[name].mean("seed") > 0)})  # zero has no logarithm
    points(ax, seen[along], seen[name], index)


def _without_drift(ax: Axes, x: np.ndarray, delta: np.ndarray | float, mean: np.ndarray | float) -> None:
    level = threshold("constant", delta, 0.0, 1.0)
    ax.plot(x, error(level, mean, 1.0) + 0 * x, color="0.6", linestyle="--", label="drift ignored")


def _nearest(theory: xr.Dataset, name: str, value: float) -> float:
    return float(theory[name].sel({name: value}, method="nearest"))
