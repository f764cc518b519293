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

from figures.style import PAGE, look_of, points, styled

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

AXES = ("s", "P")  # of the sweep, that this figure shows
MOST = 4  # curves of one P each


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Stages and least advantage against s for several P; stages and eps_g against P, one colour per s."""
    figure = Figure(figsize=(PAGE, 5.2))
    (stages_s, stages_P), (advantage, error) = figure.subplots(2, 2)
    at = np.unique(np.linspace(0, simulation.sizes["P"] - 1, MOST).round().astype(int))
    for index, P in enumerate(simulation.P.values[at]):
        cell, bounds = simulation.sel(P=P), theory.sel(P=P)
        _over_bound(stages_s, cell.s, cell.stages, bounds.stages, index, f"$P={P:,}$".replace(",", r"\,"))
        points(advantage, 1 / (2 * cell.s), cell.advantage, index)
    for index, s in enumerate(simulation.s.values):
        cell, bounds = simulation.sel(s=s), theory.sel(s=s)
        _over_bound(stages_P, cell.P, cell.stages, bounds.stages, index, f"$s={s}$")
        _over_bound(error, cell.P, cell.eps_g, bounds.eps_g, index)
    bound = theory.advantage.isel(P=0)
    advantage.plot(1 / (2 * theory.s), bound, "--", color="0.3")
    for ax, title in ((stages_s, "stages until all are right"), (stages_P, "stages until all are right")):
        ax.set(yscale="log", title=title)
    stages_s.set(xscale="log", xlabel="$s$, conjunctions of the teacher")
    _ticks(stages_s.xaxis, simulation.s.values.tolist())
    stages_P.set(xscale="log", xlabel="$P$, examples")
    advantage.set(
        xscale="log", yscale="log", xlabel="$1/(2s)$", title=r"least advantage $\min_i\frac{1}{2}-\epsilon_i$"
    )
    for axis in (advantage.xaxis, advantage.yaxis):
        _ticks(axis, [0.02, 0.05, 0.1, 0.2, 0.5])
    error.set(xscale="log", yscale="log", xlabel="$P$, examples", title=r"$\epsilon_g$")
    error.set_ylim(0.5 * _least(simulation.eps_g), 1.5)
    look: dict[str, Any] = {"ncols": 3, "title": "dashed: bounds of theory"}
    figure.legend(*stages_s.get_legend_handles_labels(), loc="outside lower left", **look)
    figure.legend(*stages_P.get_legend_handles_labels(), loc="outside lower right", **look)
    return figure


def _over_bound(ax: Axes, x: Any, runs: Any, bound: Any, index: int, label: str | None = None) -> None:
    """Means over seeds, except zeros, and the bound as a dashed line."""
    shown = runs.where(runs.mean("seed") > 0)
    points(ax, x, shown, index, linestyle="-", linewidth=0.6, label=label)
    ax.plot(x, bound, "--", color=look_of(index)["color"])


def _least(values: Any) -> float:
    means = values.mean("seed").values
    return float(means[means > 0].min(initial=0.5))


def _ticks(axis: Axis, values: list[float]) -> None:
    axis.set_major_locator(FixedLocator(values))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())
