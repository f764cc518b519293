"""Networks of erf, ReLU and linear units side by side: eps_g and specialisation against t, simulation over theory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from figures.labels import size_of
from figures.legends import line_with_points
from figures.published.dense_theory import dense
from figures.style import PAGE, label_of, log_ticks, look_of, points, styled

if TYPE_CHECKING:
    import xarray as xr

AXES = ("network",)  # of the sweep, that this figure shows
CAPTION = (
    r"Generalization error (left) and specialisation (right; the mean cosine of student and teacher units, each with "
    r"its partner) of networks with three activations."
)


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """One colour per activation."""
    lines = dense(theory, "t")
    figure = Figure(figsize=(PAGE, 2.9))
    axes = figure.subplots(1, 2)
    keys = []
    for index, name in enumerate(theory.network.values):
        line, runs = lines.sel(network=name), simulation.sel(network=name)
        for ax, variable in zip(axes, ("eps_g", "specialisation"), strict=True):
            ax.plot(line.t, line[variable], color=look_of(index)["color"])
            points(ax, runs.t, runs[variable], index)
        keys.append(line_with_points(index, label_of(str(name))))
    for ax in axes:
        ax.set_xlabel("$t$ (steps / $N$)")
    axes[0].set(yscale="log", ylabel=r"$\epsilon_g$")
    log_ticks(axes[0].yaxis)
    axes[1].set_ylabel(r"specialisation $\rho$")
    units = f"$M$ = {theory.M.item()}, $K$ = {theory.K.item()}, $\\eta$ = {theory.eta.item():g}"
    figure.suptitle(f"{units}, {size_of(simulation)}", fontsize=8)
    figure.legend(handles=keys, loc="outside lower center", ncols=3)
    return figure
