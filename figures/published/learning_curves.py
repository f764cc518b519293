"""Learning curves: eps_g against t of one student, of the vote of K and of their weight mean, one panel per rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from figures.style import PAGE, label_of, look_of, points, styled

if TYPE_CHECKING:
    import xarray as xr

AXES = ("rule",)  # of the sweep, that this figure shows

CURVES = {"eps_g": "one student", "eps_g_majority_vote": "majority vote", "eps_g_weight_mean": "weight mean"}


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Both axes logarithmic; t = 0, where eps_g = 1/2, is left out."""
    simulation, theory = (part.sel(t=part.t > 0) for part in (simulation, theory))
    rules = theory.rule.values
    figure = Figure(figsize=(PAGE, 2.5))
    axes = figure.subplots(1, len(rules), sharex=True, sharey=True, squeeze=False)[0]
    for ax, rule in zip(axes, rules, strict=True):
        for index, (name, label) in enumerate(CURVES.items()):
            line, cloud = theory[name].sel(rule=rule), simulation[name].sel(rule=rule)
            if "student" in line.dims:
                line, cloud = line.isel(student=0), cloud.mean("student")
            ax.plot(line.t, line, color=look_of(index)["color"], label=label)
            points(ax, cloud.t, cloud, index)
        ax.set(xscale="log", yscale="log", xlabel="$t$", title=label_of(str(rule)))
    axes[0].set_ylabel(r"$\epsilon_g$")
    axes[0].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes[0].yaxis.set_major_formatter("{x:g}")
    axes[0].yaxis.set_minor_formatter(NullFormatter())
    axes[0].legend(title=f"$K={theory.K.item()}$", title_fontsize=7.5)
    return figure
