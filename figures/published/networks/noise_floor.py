r"""The noise floor: eps_g at late times against the number K of student units, and its course in time.

With K = M or M + 1 units it becomes stationary (`theory.noise_floor`); to first order in the learning rate at
:math:`\eta\sigma^2(K - M + M/\sqrt3)/(2\pi)`. With more units noise makes those without a partner slowly different, and
the error falls below the unstable state in which they are equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures.legends import entry
from figures.panels import finish, guide, logarithmic, page, scenario_with
from figures.published import parallel_axes
from figures.style import COLOURS, MARKERS, THEORY, points
from statmech.results.dataset import scenario_of
from theory import noise_floor, solve

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


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the last time against K, and all times of the smallest M; colours for K, markers for M."""
    parallel_axes.check("noise_floor", theory, ALONG)
    floors = np.ravel(noise_floor(scenario_of(theory), stable=False))
    colours = {K: COLOURS[at % len(COLOURS)] for at, K in enumerate(sorted(set(theory.K.values.tolist())))}
    markers = {M: MARKERS[at % len(MARKERS)] for at, M in enumerate(sorted(set(theory.M.values.tolist())))}
    figure, (left, right) = page(3.6, 1, 2)
    for at, (M, K) in enumerate(zip(theory.M.values.tolist(), theory.K.values.tolist(), strict=True)):
        look = {"color": colours[K], "marker": markers[M]}
        _at_the_end(left, simulation.isel({AXES[0]: at}), floors[at], look)
        if min(markers) == M:
            _in_time(right, simulation.isel({AXES[0]: at}), floors[at], look)
    _first_orders(left, simulation)
    _label(left, right, simulation, min(markers))
    return finish(figure, simulation, _keys(colours, markers), "eta", "noise", columns=4)


def _at_the_end(ax: Axes, runs: xr.Dataset, floor: float, look: dict[str, Any]) -> None:
    K = [int(runs.K)]
    ax.plot(K, [1e4 * floor], "_", color=look["color"], markersize=11, markeredgewidth=1.1)
    points(ax, K, 1e4 * runs.eps_g.isel(t=[-1]), 0, **look)


def _in_time(ax: Axes, runs: xr.Dataset, floor: float, look: dict[str, Any]) -> None:
    t = runs.t.values[runs.t.values > 0]
    times = np.geomspace(t[0], t[-1], PLACES).tolist()
    line = solve(scenario_with(runs, M=int(runs.M), K=int(runs.K), t=times, zip=None))
    ax.plot(line.t, 1e4 * line.eps_g, color=look["color"])
    guide(ax, y=1e4 * floor, color=look["color"])
    points(ax, t, 1e4 * runs.eps_g.sel(t=t), 0, **look)


def _first_orders(ax: Axes, simulation: xr.Dataset) -> None:
    """Draw the first order in the learning rate, a line per M."""
    rate = simulation.eta.item() * simulation.noise.item() ** 2 / (2 * np.pi)
    for M in sorted(set(simulation.M.values.tolist())):
        K = simulation.K.values[simulation.M.values == M]
        K = np.array([K.min(), K.max()])
        ax.plot(K, 1e4 * rate * (K - M + M / np.sqrt(3)), linestyle=":", linewidth=0.9, color=THEORY, zorder=0)


def _label(left: Axes, right: Axes, simulation: xr.Dataset, M: int) -> None:
    left.set(xlabel="student units $K$", ylabel=r"$\epsilon_g$ ($10^{-4}$)", ylim=(0, None))
    left.set_title(f"$t$ = {float(simulation.t[-1]):g}")
    left.set_xticks(sorted(set(simulation.K.values.tolist())))
    right.set(xlabel="$t$ (steps / $N$)", ylabel=r"$\epsilon_g$ ($10^{-4}$)", title=f"$M$ = {M}")
    logarithmic(right, "xy")


def _keys(colours: dict[int, str], markers: dict[int, str]) -> list[Line2D]:
    """Return handles of markers for M, of colours for K, and of the two kinds of grey lines."""
    plain: dict[str, Any] = {"linestyle": "none", "markerfacecolor": "white"}
    return [
        *(entry(f"$M$ = {M}", marker=marker, **plain) for M, marker in markers.items()),
        entry("equal extra units", marker="_", markersize=9, linestyle="none"),
        entry(r"first order in $\eta$", linestyle=":", linewidth=0.9),
        *(entry(f"$K$ = {K}", color=colour) for K, colour in colours.items()),
    ]
