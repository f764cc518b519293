"""Any scenario of walks that may stop: decision errors and features against the last axis, a colour for each cell."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from figures.overlay import MOST, cell_label
from figures.style import PAGE, look_of, points, styled
from statmech.scenarios.stopping import STOPPED

if TYPE_CHECKING:
    import xarray as xr

AXES: tuple[str, ...] | None = None  # any


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Points: simulation (mean and standard error over seeds); lines: theory. The first cells of a sweep."""
    if not theory.features.dims:
        simulation, theory = simulation.expand_dims("delta"), theory.expand_dims("delta")
    *others, along = map(str, theory.features.dims)
    cells = list(itertools.product(*(range(theory.sizes[dim]) for dim in others)))
    figure = Figure(figsize=(PAGE, 2.8))
    x = np.arange(theory.sizes[along])
    axes = figure.subplots(1, 2)
    for ax, (name, variable) in zip(axes, STOPPED.items(), strict=True):
        for index, cell in enumerate(cells[:MOST]):
            at = dict(zip(others, cell, strict=True))
            line = theory.isel(at)
            ax.plot(x, line[name], color=look_of(index)["color"])
            points(ax, x, simulation[name].isel(at), index, label=cell_label(line, others) or None)
        ax.set_xticks(x, [cell_label(theory.isel({along: i}), [along]) for i in x], rotation=30, ha="right")
        ax.set_title(variable.long_name.split(":")[0])
    handles, labels = axes[0].get_legend_handles_labels()
    if labels:
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    if len(cells) > MOST:
        figure.suptitle(f"the first {MOST} of {len(cells)} cells", fontsize=8)
    return figure
