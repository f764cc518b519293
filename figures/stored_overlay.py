"""Any scenario of stored examples: eps_g, R and kappa against alpha, a colour for each other cell of the sweep."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from figures.overlay import MOST, cell_label
from figures.stored import HOLLOW, moment_of, runs
from figures.style import PAGE, look_of, styled
from statmech.scenarios.stored_examples import STORED

if TYPE_CHECKING:
    import xarray as xr

AXES: tuple[str, ...] | None = None  # any


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Points: simulation (mean and standard error over data sets); lines: theory. The first cells of a sweep."""
    moment = moment_of(simulation)
    if "alpha" not in simulation.dims:
        along = next((dim for dim in theory.R.dims if "alpha" in dim), None)
        simulation, theory = (part if along else part.expand_dims("alpha") for part in (simulation, theory))
    along = next(dim for dim in theory.R.dims if "alpha" in dim)
    others = [dim for dim in theory.R.dims if dim != along]
    cells = list(itertools.product(*(range(theory.sizes[dim]) for dim in others)))
    figure = Figure(figsize=(PAGE, 2.8))
    axes = figure.subplots(1, 3)
    for ax, name in zip(axes, ("eps_g", "R", "kappa"), strict=True):
        for index, cell in enumerate(cells[:MOST]):
            at = dict(zip(others, cell, strict=True))
            line = theory.isel(at)
            ax.plot(line.alpha, line[name], color=look_of(index)["color"])
            runs(ax, line.alpha, simulation.isel(at), name, index, label=cell_label(line, [*others, moment]) or None)
        ax.set(title=STORED[name].symbol, xlabel=r"$\alpha=P/N$")
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, title=HOLLOW, title_fontsize=7.5
    )
    if len(cells) > MOST:
        figure.suptitle(f"the first {MOST} of {len(cells)} cells", fontsize=8)
    return figure
