r"""The binary perceptron: overlap with the teacher against alpha from both starts, and the free entropies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures.inspection import AID
from figures.labels import size_of
from figures.legends import line_with_points
from figures.published.dense_theory import dense
from figures.style import DASHES, PAGE, THEORY, look_of, points, styled

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

AXES = ("start", "alpha")  # of the sweep, that this figure shows
TRANSITIONS = {"alpha_it": r"$\alpha_\mathrm{IT}$", "alpha_alg": r"$\alpha_\mathrm{alg}$"}
CAPTION = (
    r"Message passing that infers a teacher's weights from $P=\alpha N$ labels. Above: overlap $m$ with the teacher "
    r"after the last step, from the prior's mean and from next to the teacher; lines: fixed points of state evolution, "
    r"$N\to\infty$. Below: free entropy of both states; the larger one is Bayes-optimal. Dotted: from "
    r"$\alpha_\mathrm{IT}$ on the examples determine the teacher, from $\alpha_\mathrm{alg}$ on message passing finds "
    r"it. Runs at finite $N$ are smeared out near the transitions; a run that begins next to the teacher stays there "
    r"though state evolution leaves it."
)


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Overlaps above, free entropies below; one colour per start."""
    lines = dense(theory, "alpha").isel(step=-1)
    figure = Figure(figsize=(0.75 * PAGE, 4.6))
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    for index, start in enumerate(theory.start.values):
        line, runs = lines.sel(start=start), simulation.sel(start=start).isel(step=-1)
        look = {"color": look_of(index)["color"], "linestyle": DASHES[index]}
        above.plot(line.alpha, line.m, **look)
        points(above, runs.alpha, runs.m, index, markersize=3.5)
        below.plot(line.alpha, line.free_entropy, **look)
    for name, symbol in TRANSITIONS.items():
        _transition(above, below, float(theory[name].values.flat[0]), symbol)
    above.set(ylabel="overlap $m$")
    below.set(xlabel=r"$\alpha=P/N$", ylabel="free entropy")
    keys = [line_with_points(index, str(start)) for index, start in enumerate(theory.start.values)]
    keys.append(Line2D([], [], color=THEORY, linestyle=":", label="transitions"))
    figure.legend(handles=keys, loc="outside lower center", ncols=len(keys))
    figure.suptitle(size_of(simulation), fontsize=8)
    return figure


def _transition(above: Axes, below: Axes, alpha: float, symbol: str) -> None:
    """A line through both panels, where there is a transition."""
    if np.isfinite(alpha):
        for ax in (above, below):
            ax.axvline(alpha, linestyle=":", color=THEORY, linewidth=1, zorder=0, gid=AID)
        above.annotate(
            f"{symbol} = {alpha:.3f}", (alpha, 1.01), xycoords=("data", "axes fraction"), fontsize=7, ha="center"
        )
