r"""Message passing step by step: overlap with the teacher in runs and in state evolution."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.panels import add_title_and_legend, draw_panel, make_figure
from statmech.results.results import as_results

AXES = ("prior", "alpha")  # sweep axes that this figure shows
CAPTION = (
    r"Overlap $m$ with the teacher of message passing after each step, for several $\alpha$ (colours) and priors of "
    r"the weights (panels). Lines: state evolution, $N\to\infty$, drawn from step to step. At finite $N$ "
    r"a run that has found the teacher may leave it for some steps, which lowers the mean."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the overlap against steps, one panel per prior and one colour per alpha."""
    results, (figure, axes) = as_results(simulation, theory), make_figure(3.0, 1, theory.sizes["prior"], sharey=True)
    keys = draw_panel(axes, results, "step", "m", "alpha", split="prior", label="overlap $m$")
    for ax in figure.axes:
        ax.set_xlabel("step $t$")
    return add_title_and_legend(figure, results, keys)
