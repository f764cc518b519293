"""Any scenario of on-line learning: its six variables against t, a colour for each cell of the sweep."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from figures.style import PAGE, look_of, points, styled
from statmech.dataset import scenario_of

if TYPE_CHECKING:
    import xarray as xr

AXES: tuple[str, ...] | None = None  # any

MOST = 8  # cells drawn; more would not be told apart


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Points: simulation (students' mean, standard error over seeds); lines: theory. The first cells of a sweep."""
    sweep = [dim for dim in theory.R.dims if dim not in ("t", "student")]
    cells = list(itertools.product(*(range(theory.sizes[dim]) for dim in sweep)))
    variables = {name: it for name, it in scenario_of(theory).variables.items() if set(it.dims) <= {"t", "student"}}
    figure = Figure(figsize=(PAGE, 4.4))
    axes = figure.subplots(2, 3, sharex=True)
    for ax, name in zip(axes.flat, variables, strict=True):
        for index, cell in enumerate(cells[:MOST]):
            at = dict(zip(sweep, cell, strict=True))
            line, cloud = theory[name].isel(at), simulation[name].isel(at)
            if "student" in line.dims:
                line, cloud = line.mean("student"), cloud.mean("student")
            ax.plot(line.t, line, color=look_of(index)["color"], label=cell_label(theory.isel(at), sweep))
            points(ax, cloud.t, cloud, index)
        ax.set_title(variables[name].symbol)
    for ax in axes[1]:
        ax.set_xlabel("$t$")
    if sweep:
        figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    if len(cells) > MOST:
        figure.suptitle(f"the first {MOST} of {len(cells)} cells", fontsize=8)
    return figure


def cell_label(cell: xr.Dataset, sweep: list[str]) -> str:
    """What tells a cell of a sweep from the others."""
    varying = {name for dim in sweep for name in (dim, *dim.split("_"))}
    values = {name: c.item() for name, c in cell.coords.items() if c.ndim == 0 and name in varying}
    return ", ".join(v if isinstance(v, str) else f"{name} = {v:g}" for name, v in values.items())
