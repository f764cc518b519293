"""The Attentive Perceptron on real digits: error against features evaluated, compared with a hard budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from figures.series import mean_and_error
from figures.style import PAGE, look_of, styled
from statmech.data_sets import source
from statmech.scenarios.cross_validation import CHOSEN

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

AXES = ("data", "chosen", "delta_budget")  # of the sweep, that this figure shows


@styled
def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """One column per data set: error against features evaluated, in prediction (solid) and in learning (dashed)."""
    sets = [str(name) for name in simulation.data.values]
    figure = Figure(figsize=(PAGE, 3.2))
    for ax, data in zip(figure.subplots(1, len(sets), sharey=True, squeeze=False)[0], sets, strict=True):
        cells = simulation.sel(data=data)
        for index, chosen in enumerate(map(str, simulation.chosen.values)):
            attentive = cells.sel(chosen=chosen).isel(delta_budget=simulation.budget.values == 0)
            _line(ax, attentive, "features", index, f"attentive, features {CHOSEN[chosen]}")
            _line(ax, attentive, "features_learning", index, None, linestyle="--", markerfacecolor="white")
            _deltas(ax, attentive)
        hard = cells.sel(chosen=str(simulation.chosen.values[0])).isel(delta_budget=simulation.budget.values > 0)
        if hard.sizes["delta_budget"]:
            _line(ax, hard, "features", 6, "hard budget", linestyle=":")
        ax.set(title=source(data).title, xlabel="features evaluated per example", xscale="log")
        ax.xaxis.set_major_locator(FixedLocator([50, 100, 200, 400, 784]))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_locator(NullLocator())
    figure.axes[0].set_ylabel("error on held-out examples (%)")
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        title=r"solid: in prediction; dashed: per example and pass in learning; numbers: $\delta$",
        title_fontsize=7.5,
    )
    return figure


def _line(ax: Axes, cells: Any, features: str, index: int, label: str | None, **look: Any) -> None:
    error, spread = mean_and_error(100 * (1 - cells.accuracy))
    evaluated, deviation = mean_and_error(cells[features])
    look = {**look_of(index), "linewidth": 1.0, "markersize": 3, **look}
    ax.errorbar(evaluated, error, xerr=deviation, yerr=spread, label=label, **look)


def _deltas(ax: Axes, cells: Any) -> None:
    error, _ = mean_and_error(100 * (1 - cells.accuracy))
    evaluated, _ = mean_and_error(cells.features)
    for i, place, side in ((0, (0, -10), "center"), (-1, (4, 4), "left")):
        at = (float(evaluated[i]), float(error[i]))
        ax.annotate(f"{cells.delta.values[i]:g}", at, place, textcoords="offset points", ha=side, fontsize=6.5)
