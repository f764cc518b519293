r"""The binary perceptron: overlap with the teacher against alpha from both starts, and the free entropies."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures.inspection import AID
from figures.panels import dense, finish, panel, with_lines
from figures.style import PAGE, THEORY

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


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw overlaps above, free entropies below; one colour per start."""
    results = with_lines(*(part.isel(step=-1) for part in (simulation, theory, dense(theory, "alpha"))))
    figure = Figure(figsize=(0.75 * PAGE, 4.6))
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    keys = panel(above, results, "alpha", "m", "start", dashes=True)
    panel(below, results, "alpha", "free_entropy", "start", dashes=True)
    for name, symbol in TRANSITIONS.items():
        _transition(above, below, float(theory[name].values.flat[0]), symbol)
    above.set(xlabel="", ylabel="overlap $m$")
    below.set_ylabel("free entropy")
    keys.append(Line2D([], [], color=THEORY, linestyle=":", label="transitions"))
    return finish(figure, results, keys)


def _transition(above: Axes, below: Axes, alpha: float, symbol: str) -> None:
    """A line through both panels, where there is a transition."""
    if np.isfinite(alpha):
        for ax in (above, below):
            ax.axvline(alpha, linestyle=":", color=THEORY, linewidth=1, zorder=0, gid=AID)
        above.annotate(
            f"{symbol} = {alpha:.3f}", (alpha, 1.01), xycoords=("data", "axes fraction"), fontsize=7, ha="center"
        )
