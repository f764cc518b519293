"""eps_g t against t: the optimal rule, which nothing that learns online can beat, and the other rules.

Rules whose error falls as 1/t tend to their constants; those of the perceptron and of Hebb fall as t^(-1/3) and
t^(-1/2), so that their lines rise without end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.panels import finish, guide, page, panel, scenario_with, with_lines
from figures.style import AID, SMALL, log_ticks
from theory import solve

AXES = ("rule",)  # of the sweep, that this figure shows
LATEST, PLACES = 1e4, 250  # of the lines: they show the limit of late times, by the program of the config's times
CONSTANTS = {
    r"0.8834: optimal": 0.8834000872,
    r"$4/\pi$: perceptron, best $\eta(R)$": 4 / np.pi,
    r"$4/3$: AdaTron (textbook), $\eta=3/2$": 4 / 3,
    r"$3/2$: AdaTron (textbook), $\eta=1$": 3 / 2,
}
LENGTH_BOUND = "adatron"  # whose limit depends on the length of the start
HIGHEST = 2.3
CAPTION = (
    r"Generalization error times $t$ of one student, from a start at $R=l=0.2$ if not stated otherwise. A rule whose "
    r"error falls as $1/t$ tends to a constant; no rule that learns online lies below the optimal one. Dotted, grey: "
    r"limits $t\to\infty$ of the optimal rule, of a perceptron with the best rate $\eta(R)$ at every time, and of "
    r"the textbook AdaTron at its best rate $3/2$ and at rate 1. Bars that are not seen are smaller than their points."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw a line per rule, to times at which the limits can be seen."""
    start = float(theory.t[theory.t > 0][0])
    lines = solve(scenario_with(theory, t=np.geomspace(start, LATEST, PLACES).tolist(), K=1))
    scaled = _times_t(lines)
    results = with_lines(_times_t(simulation), theory, scaled)
    (figure, ax), first = page(4.0), 0.85 * start  # the first points whole
    keys = panel(ax, results, "t", "scaled", "rule", label=r"$\epsilon_g\,t$", log="x")
    for label, value in CONSTANTS.items():
        guide(ax, y=value, zorder=2)
        _name(ax, label, (first * 1.1, value), above="pi" not in label, ha="left")
    if LENGTH_BOUND in lines.rule.values:
        last = scaled.scaled.sel(rule=LENGTH_BOUND).isel(t=-1).item()
        _name(ax, f"{last:.2f}: AdaTron, this start", (LATEST, last), above=True, ha="right")
    ax.set(xlim=(first, LATEST), ylim=(0, HIGHEST))
    log_ticks(ax.xaxis)
    return finish(figure, results, keys, columns=3)


def _name(ax: Axes, label: str, place: tuple[float, float], *, above: bool, ha: str) -> None:
    """Write the name of a line above or below it."""
    text_options: dict[str, Any] = {"fontsize": SMALL, "ha": ha, "va": "bottom" if above else "top", "gid": AID}
    ax.annotate(label, place, (0, 2 if above else -2), textcoords="offset points", **text_options)


def _times_t(part: xr.Dataset) -> xr.Dataset:
    """Add eps_g t, where its mean is not beyond the axis."""
    scaled = part.eps_g * part.t
    mean = scaled.mean([dim for dim in ("seed", "student") if dim in scaled.dims])
    return part.assign(scaled=scaled.where(mean < HIGHEST))
