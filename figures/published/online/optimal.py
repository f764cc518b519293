"""eps_g t against t: the optimal rule, a lower bound for all online rules, and the other rules.

Rules with errors that decay as 1/t tend to constants. The errors of the perceptron and of Hebb's rule decay as t^(-1/3)
and t^(-1/2), so that their lines rise without limit.
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

AXES = ("rule",)  # sweep axes that this figure shows
LATEST, PLACES = 1e4, 250  # the lines extend to late times to show their limits
CONSTANTS = {
    r"0.8834: optimal": 0.8834000872,
    r"$4/\pi$: perceptron, best $\eta(R)$": 4 / np.pi,
    r"$4/3$: AdaTron (textbook), $\eta=3/2$": 4 / 3,
    r"$3/2$: AdaTron (textbook), $\eta=1$": 3 / 2,
}
LENGTH_BOUND = "adatron"  # the limit of this rule depends on the initial length
HIGHEST = 2.3
CAPTION = (
    r"Generalization error times $t$ of one student, from a start at $R=l=0.2$ unless given otherwise. A rule whose "
    r"error decays as $1/t$ tends to a constant; no rule that learns online lies below the optimal one. Dotted, grey: "
    r"limits $t\to\infty$ of the optimal rule, of a perceptron with the best rate $\eta(R)$ at every time, and of "
    r"the textbook AdaTron at its best rate $3/2$ and at rate 1. Error bars smaller than the markers are not visible."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g t against t, a line per rule, up to times that show the limits."""
    start = float(theory.t[theory.t > 0][0])
    lines = solve(scenario_with(theory, t=np.geomspace(start, LATEST, PLACES).tolist(), K=1))
    scaled = _times_t(lines)
    results = with_lines(_times_t(simulation), theory, scaled)
    (figure, ax), first = page(4.0), 0.85 * start  # room for the first markers
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
    """Write the name of a line above or below the line."""
    text_options: dict[str, Any] = {"fontsize": SMALL, "ha": ha, "va": "bottom" if above else "top", "gid": AID}
    ax.annotate(label, place, (0, 2 if above else -2), textcoords="offset points", **text_options)


def _times_t(part: xr.Dataset) -> xr.Dataset:
    """Add eps_g t to a dataset, except where the mean is outside the axis."""
    scaled = part.eps_g * part.t
    mean = scaled.mean([dim for dim in ("seed", "student") if dim in scaled.dims])
    return part.assign(scaled=scaled.where(mean < HIGHEST))
