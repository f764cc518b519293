"""Learning curves: eps_g against t of one student, of the vote of K and of their weight mean, one panel per rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from figures.labels import size_of
from figures.published.dense_theory import dense
from figures.style import DASHES, PAGE, label_of, log_ticks, look_of, points, styled

if TYPE_CHECKING:
    import xarray as xr

AXES = ("rule",)  # of the sweep, that this figure shows
CURVES = {"eps_g": "one student", "eps_g_majority_vote": "majority vote", "eps_g_weight_mean": "weight mean"}
CAPTION = (
    r"Generalization error of one student, of the majority vote of all students and of the mean of their weights, one "
    r"panel per rule."
)


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Both axes logarithmic; t = 0, where eps_g = 1/2, is left out."""
    lines = dense(theory, "t")
    simulation, lines = (part.sel(t=part.t > 0) for part in (simulation, lines))
    rules = theory.rule.values
    figure = Figure(figsize=(PAGE, 2.8))
    axes = figure.subplots(1, len(rules), sharex=True, sharey=True, squeeze=False)[0]
    for ax, rule in zip(axes, rules, strict=True):
        for index, (name, label) in enumerate(CURVES.items()):
            line, cloud = lines[name].sel(rule=rule), simulation[name].sel(rule=rule)
            if "student" in line.dims:
                line, cloud = line.isel(student=0), cloud.mean("student")
            look = {"color": look_of(index)["color"], "linestyle": DASHES[index]}
            ax.plot(line.t, line, **look, label=f"{label}, theory")
            points(ax, cloud.t, cloud, index, label=f"{label}, simulation")
        ax.set(xscale="log", yscale="log", xlabel="$t$ (steps / $N$)", title=label_of(str(rule)))
        log_ticks(ax.xaxis)
        log_ticks(ax.yaxis)
    axes[0].set_ylabel(r"$\epsilon_g$")
    figure.suptitle(f"$K$ = {theory.K.item()}, {size_of(simulation)}", fontsize=8)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
