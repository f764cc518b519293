r"""The error that noise leaves: eps_g at late times against the number K of student units, and its course in time.

With K = M or M + 1 units it becomes stationary (`theory.noise_floor`); to first order in the learning rate at
:math:`\eta\sigma^2(K - M + M/\sqrt3)/(2\pi)`. With more units noise makes those without a partner slowly different, and
the error falls below the unstable state in which they are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures.inspection import AID
from figures.labels import size_of
from figures.legends import line_with_points
from figures.published.helpers import parallel_axes
from figures.style import PAGE, THEORY, log_ticks, look_of, points, styled
from statmech.results.dataset import scenario_of
from theory import noise_floor, solve

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

ALONG = ("M", "K")
AXES = ("_".join(ALONG),)  # of the sweep, that this figure shows
PLACES = 60  # of the lines
CAPTION = (
    r"Networks that learn from noisy labels. Left: $\epsilon_g$ at the last recorded time against the number $K$ of "
    r"student units, for teachers of $M$ units; dashes: the state in which units without a partner are equal, which is "
    r"stationary, but stable for $K\leq M+1$ only; dotted: its first order in the learning rate. Right: $\epsilon_g$ "
    r"against $t$ for the smallest $M$; dotted: that state."
)
LINES = r"Lines: equations, $N\to\infty$."


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """The last time against K, one colour per M; the times of one M, one colour per K."""
    parallel_axes.check("noise_floor", theory, ALONG)
    floors = np.ravel(noise_floor(scenario_of(theory), stable=False))
    figure = Figure(figsize=(PAGE, 3.3))
    left, right = figure.subplots(1, 2)
    handles = _against_units(left, simulation, floors)
    left.legend(handles=handles, loc="upper left")
    _against_time(right, simulation, floors)
    rates = f"$\\eta$ = {theory.eta.item():g}, $\\sigma$ = {theory.sigma.item():g}"
    figure.suptitle(f"{rates}, {size_of(simulation)}", fontsize=8)
    return figure


def _against_units(ax: Axes, simulation: xr.Dataset, floors: np.ndarray) -> list[Line2D]:
    handles = []
    for index, M in enumerate(dict.fromkeys(simulation.M.values.tolist())):
        own = simulation.M.values == M
        K, colour = simulation.K.values[own], look_of(index)["color"]
        ax.plot(K, 1e4 * floors[own], "_", color=colour, markersize=11, markeredgewidth=1.1)
        every = np.array([K.min(), K.max()])
        ax.plot(every, 1e4 * _first_order(simulation, M, every), linestyle=":", linewidth=0.9, color=colour)
        points(ax, K, 1e4 * simulation.eps_g.isel({AXES[0]: own, "t": -1}), index)
        handles.append(line_with_points(index, f"$M$ = {M}", linestyle="none"))
    last = float(simulation.t[-1])
    ax.set(
        xlabel="number of student units $K$", ylabel=rf"$\epsilon_g$ at $t$ = {last:g} ($10^{{-4}}$)", ylim=(0, None)
    )
    ax.set_xticks(sorted(set(simulation.K.values.tolist())))
    return [
        *handles,
        Line2D([], [], color=THEORY, marker="_", markersize=9, linestyle="none", label="equal extra units"),
        Line2D([], [], color=THEORY, linestyle=":", label=r"the same to first order in $\eta$"),
    ]


def _first_order(simulation: xr.Dataset, M: int, K: np.ndarray) -> np.ndarray:
    rate = simulation.eta.item() * simulation.sigma.item() ** 2 / (2 * np.pi)
    return np.asarray(rate * (K - M + M / np.sqrt(3)))


def _against_time(ax: Axes, simulation: xr.Dataset, floors: np.ndarray) -> None:
    scenario, M = scenario_of(simulation), int(simulation.M.min())
    t = simulation.t.values[simulation.t.values > 0]
    for index, at in enumerate(np.flatnonzero(simulation.M.values == M)):
        K = int(simulation.K[at])
        own = {**scenario.config(), "M": M, "K": K, "t": np.geomspace(t[0], t[-1], PLACES).tolist()}
        line = solve(type(scenario)(**{name: value for name, value in own.items() if name != "zip"}))
        colour = look_of(index)["color"]
        ax.plot(line.t, 1e4 * line.eps_g, color=colour)
        ax.axhline(1e4 * floors[at], linestyle=":", linewidth=0.8, color=colour, zorder=0, gid=AID)
        runs = simulation.eps_g.isel({AXES[0]: at}).sel(t=t)
        points(ax, t, 1e4 * runs, index, label=f"$K$ = {K}")
    ax.set(xscale="log", yscale="log", xlabel="$t$ (steps / $N$)", ylabel=r"$\epsilon_g$ ($10^{-4}$)")
    for axis in (ax.xaxis, ax.yaxis):
        log_ticks(axis)
    ax.set_title(f"$M$ = {M}")
    ax.legend(loc="upper right")
