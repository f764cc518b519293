"""The Attentive Perceptron, online: eps_g, features evaluated, and decision errors compared with their target.

Above, one boundary: eps_g and the fraction of features evaluated against t, and eps_g over that of a plain perceptron
which has evaluated as many features. Below, all boundaries against delta at the last time. Decision errors of labelled
margins may exceed delta: the label makes their features dependent, and the variance that sets the level too small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

import theory as solver
from figures.published.helpers.log_axes import logarithmic_error
from figures.style import PAGE, look_of, points, styled
from statmech.scenarios.registry import scenario_from

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

AXES = ("attention", "delta")  # of the sweep, that this figure shows


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Points: simulation at N; lines: theory. Black: the plain perceptron."""
    simulation, theory = (part.sel(t=part.t > 0) for part in (simulation, theory))
    figure = Figure(figsize=(PAGE, 5.0))
    above, below = figure.subplots(2, 3)
    plain = Plain(float(theory.t[-1]))
    boundary = str(theory.attention.values[0])
    t = theory.t.values
    above[0].plot(t, plain(t), color="k", linewidth=0.8, label="plain")
    for index, delta in enumerate(theory.delta.values):
        cloud, line = (part.sel(attention=boundary, delta=delta) for part in (simulation, theory))
        _line(above[0], t, line.eps_g, cloud.eps_g, index, rf"$\delta={delta:g}$")
        _line(above[1], t, line.features, cloud.features, index)
        _line(above[2], line.work, line.eps_g / plain(line.work), cloud.eps_g / plain(cloud.work), index)
    above[2].axhline(1, color="k", linewidth=0.8)
    above[0].set(xscale="log", yscale="log", xlabel="$t$", title=rf"$\epsilon_g$, {boundary}")
    above[1].set(xscale="log", xlabel="$t$", title="fraction of features", ylim=(0, 1))
    above[2].set(xscale="log", xlabel="features evaluated $/\\,N^2$", title=r"$\epsilon_g$ over plain, equal work")
    logarithmic_error(above[0])
    for ax in above:
        ax.xaxis.set_minor_formatter(NullFormatter())
    above[0].legend(fontsize=6.5)
    _against_delta(below, simulation.isel(t=-1), theory.isel(t=-1), plain)
    return figure


class Plain:
    """eps_g of the plain perceptron against t, which is also its work."""

    def __init__(self, last: float):
        self.t = np.append(0.0, np.geomspace(1e-3, max(last, 1.0), 200))
        scenario = scenario_from({"rule": "perceptron", "t": self.t})
        self.log_eps = np.log(solver.solve(scenario).eps_g.isel(student=0).values)

    def __call__(self, t: Any) -> Any:
        """At times t, of any shape: linear interpolation of the logarithms, accurate to 1e-4."""
        return np.exp(np.interp(t, self.t, self.log_eps)) + 0 * t


def _against_delta(axes: Any, cloud: xr.Dataset, line: xr.Dataset, plain: Plain) -> None:
    """eps_g over the plain perceptron's at the same time, features, and decision errors."""
    slow, seen, lost = axes
    delta, time = line.delta.values, rf"$t={line.t.item():g}$"
    for index, boundary in enumerate(map(str, line.attention.values)):
        here, there = cloud.sel(attention=boundary), line.sel(attention=boundary)
        alone = plain(line.t.item())
        _line(slow, delta, there.eps_g / alone, here.eps_g / alone, index, boundary)
        _line(seen, delta, there.features, here.features, index)
        made = here.isel(delta=np.flatnonzero(here.decision_error.mean("seed") > 0))
        lost.plot(delta, there.decision_error, color=look_of(index)["color"])
        points(lost, made.delta, made.decision_error, index)
    slow.axhline(1, color="k", linewidth=0.8)
    lost.plot(delta, delta, color="0.3", linewidth=0.7, linestyle="--", label="target")
    slow.set(xscale="log", xlabel=r"$\delta$", title=rf"$\epsilon_g$ over plain, {time}")
    seen.set(xscale="log", xlabel=r"$\delta$", title=f"fraction of features, {time}", ylim=(0, 1))
    lost.set(xscale="log", yscale="log", xlabel=r"$\delta$", title=f"decision errors, {time}")
    slow.legend(fontsize=6.5)
    lost.legend(fontsize=6.5)


def _line(ax: Axes, x: Any, line: Any, cloud: Any, index: int, label: str | None = None) -> None:
    ax.plot(x, line, color=look_of(index)["color"], label=label)
    points(ax, x, cloud, index)
