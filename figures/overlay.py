"""Any scenario of on-line learning: its six variables against t, a colour for each cell of the sweep.

Where one moment is recorded they are drawn against the longest axis of numbers instead: `t=50 eta=0.5,1,2` against eta.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from figures.style import COLOURS, PAGE, look_of, points, styled
from statmech.results.dataset import scenario_of

if TYPE_CHECKING:
    import xarray as xr

AXES: tuple[str, ...] | None = None  # any

MOST = len(COLOURS)  # cells drawn; more would not be told apart
WIDE = 20  # a ratio of the largest value to the smallest from which an axis is logarithmic


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Points: simulation (students' mean, standard error over seeds); lines: theory. The first cells of a sweep."""
    along = abscissa(theory)
    simulation, theory = (part if along == "t" else part.isel(t=0) for part in (simulation, theory))
    sweep = [str(dim) for dim in theory.R.dims if dim not in (along, "t", "student")]
    cells = list(itertools.product(*(range(theory.sizes[dim]) for dim in sweep)))
    variables = {name: it for name, it in scenario_of(theory).variables.items() if set(it.dims) <= {"t", "student"}}
    x = theory[_first(theory, along)]
    figure = Figure(figsize=(PAGE, 4.4))
    axes = figure.subplots(2, 3, sharex=True)
    for ax, name in zip(axes.flat, variables, strict=True):
        for index, cell in enumerate(cells[:MOST]):
            at = dict(zip(sweep, cell, strict=True))
            line, cloud = theory[name].isel(at), simulation[name].isel(at)
            if "student" in line.dims:
                line, cloud = line.mean("student"), cloud.mean("student")
            ax.plot(x, line, color=look_of(index)["color"], label=cell_label(theory.isel(at), sweep))
            points(ax, x, cloud, index)
        ax.set_title(variables[name].symbol)
    _label(axes, x)
    if sweep:
        figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    moment = [] if along == "t" else [f"t = {theory.t.item():g}"]
    figure.suptitle(", ".join([*moment, *_left_out(len(cells))]), fontsize=8)
    return figure


def abscissa(theory: xr.Dataset) -> str:
    """The dimension to draw against: t, or of a single moment the longest (the last such) axis of numbers of a sweep.

    >>> import theory
    >>> from statmech import Scenario
    >>> abscissa(theory.solve(Scenario(rule=["hebb", "adatron"], eta=[0.5, 1, 2], t=5)))
    'eta'
    """
    if theory.sizes["t"] > 1:
        return "t"
    swept = [dim for dim in reversed(scenario_of(theory).shape) if dim in theory.dims]
    numbers = [dim for dim in swept if theory[_first(theory, dim)].dtype.kind in "fiu"]
    return max(numbers, key=lambda dim: theory.sizes[dim], default="t")


def _first(theory: xr.Dataset, dim: str) -> str:
    """The coordinate of a dimension; of axes zipped together the first."""
    return next(iter(scenario_of(theory).dimensions.get(dim, {dim: ()})))


def _label(axes: Any, x: xr.DataArray) -> None:
    """Name the axis below, and make it logarithmic where its values lie far apart."""
    for ax in axes[1]:
        ax.set_xlabel({"t": "$t$", "K": "$K$", "N": "$N$", "eta": r"$\eta$"}.get(str(x.name), str(x.name)))
    if x.name != "t" and x.min() > 0 and x.max() >= WIDE * x.min():
        axes[0, 0].set_xscale("log")


def _left_out(cells: int) -> list[str]:
    return [f"the first {MOST} of {cells} cells"] if cells > MOST else []


def cell_label(cell: xr.Dataset, sweep: list[str]) -> str:
    """What tells a cell of a sweep from the others."""
    varying = {name for dim in sweep for name in (dim, *dim.split("_"))}
    values = {name: c.item() for name, c in cell.coords.items() if c.ndim == 0 and name in varying}
    return ", ".join(v if isinstance(v, str) else f"{name} = {v:g}" for name, v in values.items())
