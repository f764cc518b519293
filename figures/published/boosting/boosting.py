r"""Boosting sparse perceptrons against the bounds of Jackson & Craven: stages, eps_g and advantage.

Points are means over teachers; dashed lines of the same colour are the bounds of the paper's Lemmas 1 and 2: after
:math:`2s^2\ln P` stages all P examples are right, no stage has an advantage below 1/(2s), and eps_g stays below a
bound that is 1, and says nothing, until P is some :math:`s^4\ln^2 P` (or the square of the number of conjunctions, if
that is less). A mean of zero has no place on a logarithmic axis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from figures.published.dense_theory import dense
from figures.style import COLOURS, MARKERS, PAGE, points, styled
from statmech.results.statistics import standard_error

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

AXES = ("s", "P")  # of the sweep, that this figure shows
MOST = 4  # curves of one P each
CUT = 0.1  # of a mean: the lower end of its bar, below which the bar reaches the end of a logarithmic axis
STAGES = "stages until all\nexamples are right"
BOUND: dict[str, Any] = {"linestyle": "--", "linewidth": 0.9}
CAPTION = (
    r"AdaBoost over all conjunctions of a teacher that is a vote of $s$ of them, learning from $P$ examples: number of "
    r"stages until all examples are right, the least advantage $\gamma=\min_i(\frac{1}{2}-\epsilon_i)$ of a stage, and "
    r"the generalization error. Thin lines join points. Dashed: the bounds of Jackson & Craven at every $s$ and $P$; "
    r"that on $\epsilon_g$ is drawn where it is less than 1. Where a point is missing no error was seen."
)
LINES = ""


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Stages and least advantage against s for several P, in grey; stages and eps_g against P, a colour per s."""
    figure = Figure(figsize=(PAGE, 5.2))
    (stages_s, stages_P), (advantage, error) = figure.subplots(2, 2)
    at = np.unique(np.linspace(0, simulation.sizes["P"] - 1, MOST).round().astype(int))
    along_s, along_P = dense(theory, "s", P=simulation.P.values[at].tolist()), dense(theory, "P")
    for index, P in enumerate(simulation.P.values[at]):
        cell, bounds, look = simulation.sel(P=P), along_s.sel(P=P), _grey(index, len(at))
        _over_bound(stages_s, cell.s, cell.stages, look, bounds.s, bounds.stages, f"$P={P:,}$".replace(",", r"\,"))
        points(advantage, 1 / (2 * cell.s), cell.advantage, index, **look)
    for index, s in enumerate(simulation.s.values):
        cell, bounds = simulation.sel(s=s), along_P.sel(s=s)
        look = {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)]}
        _over_bound(stages_P, cell.P, cell.stages, look, bounds.P, bounds.stages, f"$s={s}$")
        _over_bound(error, cell.P, cell.eps_g, look, bounds.P, bounds.eps_g.where(bounds.eps_g < 1))
    advantage.plot(1 / (2 * along_s.s), along_s.advantage.isel(P=0), color="0.3", **BOUND)
    _name_trivial(error, along_P.eps_g)
    for ax in (stages_s, stages_P):
        ax.set(yscale="log", ylabel=STAGES)
    stages_s.set(xscale="log", xlabel="$s$, conjunctions of the teacher")
    _ticks(stages_s.xaxis, simulation.s.values.tolist())
    stages_P.set(xscale="log", xlabel="$P$, examples")
    advantage.set(xscale="log", yscale="log", xlabel="$1/(2s)$", ylabel=r"least advantage $\gamma$")
    for ax, axis in ((stages_s, simulation.s), (stages_P, simulation.P)):
        if not np.isfinite(ax.dataLim.x0):  # no run was right on all examples
            ax.set_xlim(axis.values.min() / 1.5, axis.values.max() * 1.5)
    for axis in (advantage.xaxis, advantage.yaxis):
        _ticks(axis, [0.02, 0.05, 0.1, 0.2, 0.5])
    error.set(xscale="log", yscale="log", xlabel="$P$, examples", ylabel=r"$\epsilon_g$")
    error.set_ylim(0.8 * _least(simulation.eps_g), 1.5)
    look = {"ncols": 3, "title": "dashed: bounds of theory"}
    figure.legend(*stages_s.get_legend_handles_labels(), loc="outside lower left", **look)
    figure.legend(*stages_P.get_legend_handles_labels(), loc="outside lower right", **look)
    return figure


def _grey(index: int, count: int) -> dict[str, Any]:
    """Marker and grey of one P, so that colours mean s."""
    return {"color": str(round(0.6 * index / max(count - 1, 1), 2)), "marker": MARKERS[index]}


def _over_bound(
    ax: Axes, x: Any, runs: Any, look: dict[str, Any], places: Any, bound: Any, label: str | None = None
) -> None:
    """Means over seeds, except zeros, and the bound as a dashed line."""
    shown = runs.where(runs.mean("seed") > 0)
    points(ax, x, shown, 0, linestyle="-", linewidth=0.6, label=label, **look)
    ax.plot(places, bound, color=look["color"], **BOUND)


def _name_trivial(ax: Axes, bounds: xr.DataArray) -> None:
    """Say for which s the bound is 1 at every P."""
    trivial = [int(s) for s in bounds.s.values if float(bounds.sel(s=s).min()) >= 1]
    if trivial:
        which = f"$s={trivial[0]}$" if len(trivial) == 1 else rf"$s={trivial[0]}$ to ${trivial[-1]}$"
        ax.set_title(f"the bound for {which} is 1 at every $P$", fontsize=7.5)


def _least(values: Any) -> float:
    """The least lower end of a bar, or mean where its bar reaches down to 0, that a logarithmic axis shows."""
    means = values.mean("seed").values
    ends = means - standard_error(values).fillna(0).values
    ends = np.where(ends > CUT * means, ends, means)
    return float(ends[ends > 0].min(initial=0.5))


def _ticks(axis: Axis, values: list[float]) -> None:
    axis.set_major_locator(FixedLocator(values))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())
