"""The Attentive Perceptron, online: eps_g, features evaluated, and decision errors compared with their target.

Above, one boundary: eps_g and the fraction of features evaluated so far against t, and eps_g over that of a plain
perceptron which has evaluated as many features. Below, all boundaries against delta at the last time. Decision errors
of labelled margins may exceed delta: the label makes their features dependent, and the variance that sets the level too
small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

import theory as solver
from figures.published.dense_theory import dense
from figures.style import PAGE, log_ticks, look_of, points, styled
from statmech.boundaries import BOUNDARIES
from statmech.scenarios.registry import scenario_from

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

AXES = ("attention", "delta")  # of the sweep, that this figure shows
CAPTION = (
    r"Online learning with the Attentive Perceptron; points: simulation, lines: theory. Top row, one boundary and "
    r"several target rates $\delta$ of decision errors: generalization error $\epsilon_g$; fraction of the features "
    r"evaluated so far; $\epsilon_g$ relative to the plain perceptron that has evaluated as many features. Bottom row, "
    r"at the last time against $\delta$: $\epsilon_g$ relative to the plain perceptron after the same number of "
    r"examples; fraction of the features and decision errors since the last but one recorded time. All $\delta$ and "
    r"boundaries learn the same examples, so that their deviations from theory are correlated."
)
DASHES = ("-", "--", "-.", ":")
GREYS = ("0", "0.45", "0.3", "0.6")


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Points: simulation at N; lines: theory. Black: the plain perceptron."""
    simulation, theory = (part.sel(t=part.t > 0) for part in (simulation, theory))
    figure = Figure(figsize=(PAGE, 5.0))
    above, below = figure.subplots(2, 3)
    plain = Plain(float(theory.t[-1]))
    _against_time(above, simulation, theory, plain)
    _against_delta(below, simulation, theory, plain)
    figure.legend(*above[0].get_legend_handles_labels(), loc="outside upper center", ncols=6)
    handles, names = zip(*(ax.get_legend_handles_labels() for ax in (below[0], below[2])), strict=True)
    figure.legend([*handles[0], *handles[1]], [*names[0], *names[1]], loc="outside lower center", ncols=6)
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


def _against_time(axes: Any, simulation: xr.Dataset, theory: xr.Dataset, plain: Plain) -> None:
    """eps_g and the fraction of features so far against t, and eps_g over the plain perceptron's at equal work."""
    error, seen, gained = axes
    boundary = str(theory.attention.values[0])
    lines = dense(theory, "t")
    lines = lines.sel(t=lines.t > 0)
    t = lines.t.values
    error.plot(t, plain(t), color="k", linewidth=0.8, label="plain")
    for index, delta in enumerate(theory.delta.values):
        cloud, line = (part.sel(attention=boundary, delta=delta) for part in (simulation, lines))
        look = look_of(index)
        error.plot([], [], **look, markerfacecolor="white", label=rf"$\delta={delta:g}$")
        for ax, x, y, at, value in (
            (error, t, line.eps_g, cloud.t, cloud.eps_g),
            (seen, t, line.work / t, cloud.t, cloud.work / cloud.t),
            (
                gained,
                line.work,
                line.eps_g / plain(line.work),
                cloud.work.mean("seed"),
                cloud.eps_g / plain(cloud.work),
            ),
        ):
            ax.plot(x, y, color=look["color"])
            points(ax, at, value, index)
    gained.axhline(1, color="k", linewidth=0.8)
    error.set(xscale="log", yscale="log", xlabel="$t$", ylabel=r"$\epsilon_g$")
    error.set_title(f"boundary: {_name(boundary)}", loc="left")
    seen.set(xscale="log", xlabel="$t$", ylabel="fraction of features so far", ylim=(0, 1.05))
    gained.set(xscale="log", xlabel="work (features $/\\,N^2$)")
    gained.set_ylabel(r"$\epsilon_g/\epsilon_g^{\mathrm{plain}}$ at equal work")
    error.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5)))
    error.yaxis.set_major_formatter("{x:g}")
    error.yaxis.set_minor_locator(NullLocator())
    for ax in axes:
        log_ticks(ax.xaxis)


def _against_delta(axes: Any, simulation: xr.Dataset, theory: xr.Dataset, plain: Plain) -> None:
    """eps_g over the plain perceptron's at the same time, features, and decision errors."""
    slow, seen, lost = axes
    lines = dense(theory, "delta").isel(t=-1)
    last, alone = simulation.isel(t=-1), plain(lines.t.item())
    for index, boundary in enumerate(map(str, theory.attention.values)):
        cloud, line = last.sel(attention=boundary), lines.sel(attention=boundary)
        grey, dashes = GREYS[index % len(GREYS)], DASHES[index % len(DASHES)]
        look = {"color": grey, "linestyle": dashes, "marker": look_of(index)["marker"]}
        slow.plot([], [], **look, markerfacecolor="white", label=_name(boundary))
        for ax, y, value in (
            (slow, line.eps_g / alone, cloud.eps_g / alone),
            (seen, line.features, cloud.features),
            (lost, line.decision_error, _positive(cloud.decision_error)),
        ):
            ax.plot(lines.delta, y, color=grey, linestyle=dashes)
            points(ax, value.delta, value, index, color=grey)
        _none_seen(lost, cloud.decision_error, grey)
    slow.axhline(1, color="k", linewidth=0.8)
    lost.plot(lines.delta, lines.delta, color="0.6", linewidth=0.8, label="target")
    since = rf"$t={float(theory.t[-2]) if theory.sizes['t'] > 1 else 0:g}$ to ${lines.t.item():g}$"
    slow.set(xscale="log", ylabel=rf"$\epsilon_g/\epsilon_g^{{\mathrm{{plain}}}}$ at $t={lines.t.item():g}$")
    seen.set(xscale="log", ylabel=f"fraction of features, {since}", ylim=(0, 1.05))
    lost.set(xscale="log", yscale="log", ylabel=f"decision errors, {since}")
    for ax in axes:
        ax.set_xlabel(r"target rate $\delta$")
        log_ticks(ax.xaxis)
    log_ticks(lost.yaxis)


def _positive(values: xr.DataArray) -> xr.DataArray:
    """The values at those delta where their mean has a logarithm."""
    return values.isel(delta=np.flatnonzero(values.mean("seed") > 0))


def _none_seen(ax: Axes, values: xr.DataArray, colour: str) -> None:
    """An arrow at the foot of the axes at each delta where no run had a decision error."""
    none = values.delta.values[np.asarray(values.mean("seed") == 0)]
    for delta in none:
        look: dict[str, Any] = {
            "arrowprops": {"arrowstyle": "->", "color": colour},
            "color": colour,
            "ha": "center",
            "fontsize": 6.5,
        }
        ax.annotate("0", (delta, 0), (0, 14), ax.get_xaxis_transform(), "offset points", **look)


def _name(boundary: str) -> str:
    """The label of a boundary in figures."""
    return BOUNDARIES[boundary].label
