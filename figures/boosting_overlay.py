"""Any scenario of boosting: stages, eps_g, advantage and weights against P, a colour for each other cell."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from figures.overlay import MOST, cell_label
from figures.style import PAGE, look_of, points, styled
from statmech.scenarios.boosting import BOOSTED

if TYPE_CHECKING:
    import xarray as xr

AXES: tuple[str, ...] | None = None  # any
SHOWN = ("stages", "eps_g", "advantage", "weights")


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Points: means and standard errors over teachers; dashed lines: bounds. The first cells of a sweep."""
    along = next((str(dim) for dim in theory.stages.dims if "P" in str(dim).split("_")), "P")
    if along not in theory.dims:
        simulation, theory = (part.expand_dims("P") for part in (simulation, theory))
    others = [str(dim) for dim in theory.stages.dims if dim != along]
    cells = list(itertools.product(*(range(theory.sizes[dim]) for dim in others)))
    figure = Figure(figsize=(PAGE, 4.4))
    axes = figure.subplots(2, 2)
    for ax, name in zip(axes.flat, SHOWN, strict=True):
        for index, cell in enumerate(cells[:MOST]):
            at = dict(zip(others, cell, strict=True))
            line = theory.isel(at)
            if name in line:
                ax.plot(line.P, line[name], "--", marker="_", color=look_of(index)["color"])
            runs = simulation[name].isel(at)
            shown = runs.where(runs.mean("seed") > 0) if name == "eps_g" else runs  # none on a logarithmic axis
            points(ax, line.P, shown, index, label=cell_label(line, others) or None)
        ax.set(title=BOOSTED[name].symbol, xlabel="$P$, examples", xscale="log")
    for ax in axes[0]:
        ax.set_yscale("log")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, title="dashed: bounds of theory")
    if len(cells) > MOST:
        figure.suptitle(f"the first {MOST} of {len(cells)} cells", fontsize=8)
    return figure
