"""The gain of an ensemble against t: the error of infinitely many students over that of one, for every rule.

It is greatest early, after 2 to 6 N examples, and all rules that learn from their stability end with the same gain,
1/sqrt 2: that of AdaTron is larger for a while only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures.inspection import AID
from figures.labels import size_of
from figures.legends import points_with_bars
from figures.published.dense_theory import dense
from figures.style import COLOURS, PAGE, THEORY, label_of, log_ticks, look_of, points, styled
from statmech.results.dataset import scenario_of
from theory import advantage

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

AXES = ("rule",)  # of the sweep, that this figure shows
EARLIEST, LATEST, PLACES = 0.05, 1e6, 200  # of the lines: they show the limit of late times
LATE = 1 / np.sqrt(2)
STAR: dict[str, Any] = {"marker": "*", "markersize": 9, "markeredgecolor": "white", "linestyle": "none", "zorder": 5}
CAPTION = (
    r"Generalization error of an ensemble over that of one student in the course of learning. Solid: infinitely many "
    r"students, whose majority vote and weight mean are equally good; stars: where they gain most. Dashed, and "
    r"points: the weight mean of $K$ students. Dotted: $1/\sqrt{2}$, the limit of late times of all rules but Hebb's."
)
POINTS = r"Points: means over runs of the error of the weight mean over the mean error of the run's students."


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """One panel with a line per rule, to times at which the limit can be seen."""
    figure = Figure(figsize=(PAGE, 3.8))
    ax = figure.add_subplot()
    lines, finite, measured = _many(theory), dense(theory, "t"), _measured(simulation)
    for index, rule in enumerate(theory.rule.values):
        colour, every = COLOURS[index], lines.sel(rule=rule)
        ax.plot(every.t, every, color=colour, label=label_of(str(rule)))
        one = finite.sel(rule=rule)
        gain = one.eps_g_weight_mean / one.eps_g.isel(student=0)
        ax.plot(gain.t, gain, color=colour, linestyle="--", linewidth=0.7)
        points(ax, measured.t, measured.sel(rule=rule), index)
        ax.plot(*_deepest(every), color=colour, **STAR)
    _axes(ax)
    ax.set_title(f"$K$ = {theory.K.item()}, {size_of(simulation)}", fontsize=8)
    figure.legend(*_keys(theory, lines), loc="outside lower center", ncols=2)
    return figure


def _many(theory: xr.Dataset) -> xr.DataArray:
    """Infinitely many students, to late times."""
    scenario = scenario_of(theory)
    rules = [str(rule) for rule in theory.rule.values]
    times = np.geomspace(EARLIEST, LATEST, PLACES).tolist()
    return advantage(type(scenario)(**{**scenario.config(), "rule": rules, "t": times}))


def _measured(simulation: xr.Dataset) -> xr.DataArray:
    """The error of each run's weight mean over the mean of its students; at t = 0, where all err alike, none."""
    later = simulation.sel(t=simulation.t > 0)
    return later.eps_g_weight_mean / later.eps_g.mean("student")


def _deepest(gain: xr.DataArray) -> tuple[float, float]:
    """When an ensemble gains most, and its error then."""
    at = int(np.argmin(gain.values))
    return float(gain.t[at]), float(gain[at])


def _axes(ax: Axes) -> None:
    ax.axhline(LATE, linestyle=":", color="0.4", linewidth=1, zorder=0, gid=AID)
    place: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "textcoords": "offset points"}
    ax.annotate(r"$1/\sqrt{2}$", (1, LATE), (2, 0), va="center", color="0.4", fontsize=7, **place)
    ax.set(xscale="log", xlabel="$t$ (steps / $N$)", ylabel=r"$\epsilon_g(K)\,/\,\epsilon_g(1)$", ylim=(0.5, 1.02))
    ax.set_xlim(EARLIEST, LATEST)
    log_ticks(ax.xaxis)


def _keys(theory: xr.Dataset, lines: xr.DataArray) -> tuple[list[Any], list[str]]:
    """Handles and texts of the legend: a rule per colour with its greatest gain, then what lines and points are."""
    texts, handles = [], []
    for index, rule in enumerate(theory.rule.values):
        t, least = _deepest(lines.sel(rule=rule))
        texts.append(f"{label_of(str(rule))}: least {least:.3f} at $t={t:.2g}$")
        handles.append(Line2D([], [], **look_of(index), markerfacecolor="white"))
    K = theory.K.item()
    parts: dict[str, Any] = {
        r"theory, $K=\infty$": Line2D([], [], color=THEORY),
        r"least of the line, $K=\infty$": Line2D([], [], color=THEORY, **STAR),
        f"theory, weight mean of $K={K}$": Line2D([], [], color=THEORY, linestyle="--", linewidth=0.7),
        f"simulation, weight mean of $K={K}$": points_with_bars(),
    }
    return [*handles, *parts.values()], [*texts, *parts]
