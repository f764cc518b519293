"""eps_g and the distance from the largest stability along MinOver's updates: the meaning of the assignment's tmax = 20.

Read in updates, tmax = 20 (dotted) leaves eps_g at 0.19 for every alpha from 5 on: the student is a sum of 20 examples,
however many there are to choose from. This is the assignment's Figure 3 ("never below 20 %"). Read in epochs, as its
text says, tmax = 20 (the bars) lies where the curves have long gone flat.

eps_g is lowest long before the stability is: early stopping does not hurt it, and at alpha = 5 and 10 helps a little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from figures.published.helpers.log_axes import logarithmic_error
from figures.published.helpers.stored_runs import recorded_dimension
from figures.style import COLUMN, band, look_of, spread, styled

if TYPE_CHECKING:
    import xarray as xr

AXES = ("alpha",)  # of the sweep, that this figure shows


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Lines of means over data sets with bands of one standard error; dashed: theory, updates and N infinite."""
    moment = recorded_dimension(simulation)
    figure = Figure(figsize=(COLUMN, 4.6))
    error, distance = figure.subplots(2, 1, sharex=True)
    for index, alpha in enumerate(simulation.alpha.values):
        cell, colour = simulation.sel(alpha=alpha), look_of(index)["color"]
        mean, gap = cell.eps_g.mean("seed"), cell.gap.mean("seed")
        error.plot(cell[moment], mean, color=colour, label=rf"$\alpha={alpha:g}$")
        band(error, cell[moment], mean, spread(cell.eps_g), index)
        error.axhline(
            theory.eps_g.sel(alpha=alpha).isel({moment: 0}).item(), color=colour, linestyle="--", linewidth=0.8
        )
        distance.plot(cell[moment].where(gap < 1), gap, color=colour)  # there all data sets have a positive stability
        if moment == "updates":
            error.plot(20 * int(cell.P), mean.interp(updates=20 * int(cell.P)), "|", color=colour, markersize=9)
    if moment == "updates":
        for ax in (error, distance):
            ax.axvline(20, color="0.5", linestyle=":", linewidth=1)
        error.annotate(
            "20 updates",
            (20, 1),
            (3, -2),
            xycoords=error.get_xaxis_transform(),
            textcoords="offset points",
            va="top",
            color="0.4",
            fontsize=7,
        )
    error.set(xscale="log", ylabel=r"$\epsilon_g$", title=f"$N={simulation.N.item()}$; bars: 20 epochs")
    logarithmic_error(error)
    distance.set(yscale="log", xlabel=moment, ylabel="certified distance\nfrom the largest $\\kappa$")
    figure.legend(loc="outside lower center", ncols=4)
    return figure
