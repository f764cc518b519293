"""eps_g t against t: the optimal rule, which nothing that learns online can beat, and the other rules.

Rules whose error falls as 1/t tend to their constants; those of the perceptron and of Hebb fall as t^(-1/3) and
t^(-1/2), so that their lines rise without end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from figures.inspection import AID
from figures.labels import size_of
from figures.legends import line_with_points
from figures.style import DASHES, PAGE, label_of, log_ticks, look_of, points, styled
from statmech.results.dataset import scenario_of
from theory import solve

if TYPE_CHECKING:
    import xarray as xr

AXES = ("rule",)  # of the sweep, that this figure shows
LATEST, PLACES = 1e4, 160  # of the lines: they show the limit of late times
CONSTANTS = {
    r"0.8834: optimal": 0.8834000872,
    r"$4/\pi$: perceptron, best $\eta(R)$": 4 / np.pi,
    r"$4/3$: AdaTron (textbook), $\eta=3/2$": 4 / 3,
    r"$3/2$: AdaTron (textbook), $\eta=1$": 3 / 2,
}
HIGHEST = 2.3
CAPTION = (
    r"Generalization error times $t$ of one student, from a start at $R=l=0.2$ if not stated otherwise. A rule whose "
    r"error falls as $1/t$ tends to a constant; no rule that learns online lies below the optimal one. Dotted, grey: "
    r"limits of late times of the optimal rule, of a perceptron with the best rate $\eta(R)$ at every time, and of "
    r"the textbook AdaTron at its best rate $3/2$ and at rate 1. Bars that are not seen are smaller than their points."
)


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """One panel with a line per rule, to times at which the limits can be seen."""
    figure = Figure(figsize=(PAGE, 4.0))
    ax = figure.add_subplot()
    lines = _lines(theory)
    simulation = simulation.sel(t=simulation.t > 0)
    keys = []
    for index, rule in enumerate(theory.rule.values):
        line, cloud = lines.sel(rule=rule), simulation.eps_g.sel(rule=rule).mean("student")
        look = {"color": look_of(index)["color"], "linestyle": DASHES[index % len(DASHES)]}
        ax.plot(lines.t, line.where(line < HIGHEST), **look)
        keys.append(line_with_points(index, label_of(str(rule)), **look))
        points(ax, cloud.t, (cloud * cloud.t).where(cloud.mean("seed") * cloud.t < HIGHEST), index)
    _constants(ax, 0.85 * float(lines.t[0]))
    ax.set(xscale="log", xlabel="$t$ (steps / $N$)", ylabel=r"$\epsilon_g\,t$", ylim=(0, HIGHEST))
    ax.set_xlim(0.85 * float(lines.t[0]), LATEST)  # the first points whole
    log_ticks(ax.xaxis)
    ax.set_title(size_of(simulation), fontsize=8)
    figure.legend(handles=keys, loc="outside lower center", ncols=3)
    return figure


def _lines(theory: xr.Dataset) -> xr.DataArray:
    """eps_g t on a dense grid, to late times."""
    config = scenario_of(theory).config()
    first = float(theory.t[theory.t > 0][0])
    dense = solve(type(scenario_of(theory))(**{**config, "t": np.geomspace(first, LATEST, PLACES).tolist(), "K": 1}))
    line = dense.eps_g.isel(student=0)
    missing = [dim for dim in ("rule",) if dim not in line.dims]
    return (line * line.t).expand_dims(missing)


def _constants(ax: Any, left: float) -> None:
    for label, value in CONSTANTS.items():
        ax.axhline(value, color="0.5", linestyle=":", linewidth=0.8, gid=AID)
        ax.text(left * 1.1, value, label, fontsize=7, va="top" if "pi" in label else "bottom", gid=AID)
