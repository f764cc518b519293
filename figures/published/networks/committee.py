"""Students of erf and ReLU units that learn from a committee, whose output is a label: eps_g against t.

Theory has equations for a committee of one unit; with more units the simulation, which is exact, stands alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from figures.labels import size_of
from figures.legends import line_with_points
from figures.published.dense_theory import dense
from figures.style import PAGE, label_of, look_of, points, styled

if TYPE_CHECKING:
    import xarray as xr

AXES = ("network", "M")  # of the sweep, that this figure shows
NEEDS = ("label_error",)
SHOWN = {"eps_g": r"$\epsilon_g$", "label_error": "wrong labels"}
CAPTION = (
    r"Students that learn by gradient descent from a committee of $M$ units, whose output is a label. Left: "
    r"$\epsilon_g$, half the mean squared error of the output; right: the fraction of new inputs on which the sign of "
    r"the student's output is not the label."
)


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Colours for activations, a row of two panels per M."""
    lines = dense(theory, "t")
    numbers = theory.M.values.tolist()
    figure = Figure(figsize=(PAGE, 0.8 + 2.1 * len(numbers)))
    axes = figure.subplots(len(numbers), 2, sharex=True, sharey="col", squeeze=False)
    for row, M in zip(axes, numbers, strict=True):
        for index, name in enumerate(theory.network.values):
            line, runs = lines.sel(network=name, M=M), simulation.sel(network=name, M=M)
            row[0].plot(line.t, line.eps_g, color=look_of(index)["color"])
            for ax, variable in zip(row, SHOWN, strict=True):
                points(ax, runs.t, runs[variable], index)
        for ax, label in zip(row, SHOWN.values(), strict=True):
            ax.set(ylabel=label, title=f"$M$ = {M}")
    for ax in axes[-1]:
        ax.set_xlabel("$t$ (steps / $N$)")
    for ax in axes.flat:
        ax.set_ylim(0, None)
    keys = [line_with_points(index, label_of(str(name))) for index, name in enumerate(theory.network.values)]
    figure.suptitle(f"$K$ = {theory.K.item()}, $\\eta$ = {theory.eta.item():g}, {size_of(simulation)}", fontsize=8)
    figure.legend(handles=keys, loc="outside lower center", ncols=len(keys))
    return figure
