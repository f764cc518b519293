"""Boosting sparse perceptrons from flipped labels: eps_g against the fraction of flips and the number of stages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from figures.style import PAGE, log_ticks, points, styled

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

AXES = ("flip", "cap")  # of the sweep, that this figure shows
MOST = 5  # curves per panel
CAPTION = (
    r"Generalization error, with respect to the teacher's own labels, of AdaBoost over conjunctions that learns from "
    r"labels flipped with probability $\lambda$, and ends after T stages or when it is right on all examples. Dashed: "
    r"$\epsilon_g=\lambda$, the error of the labels that it learns from."
)
LINES = ""


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """On the left a colour per number of stages, on the right a grey per fraction of flips."""
    figure = Figure(figsize=(PAGE, 3.4))
    against_flip, against_stages = figure.subplots(1, 2, sharey=True)
    for index, cap in enumerate(_some(simulation.cap.values)):
        _curve(against_flip, simulation.flip, simulation.eps_g.sel(cap=cap), index, f"$T={cap:g}$")
    largest = simulation.flip.values.max()
    against_flip.plot([0, largest], [0, largest], "--", color="0.5", label=r"$\epsilon_g=\lambda$")
    flips = _some(simulation.flip.values)
    for index, (flip, grey) in enumerate(zip(flips, np.linspace(0.7, 0, len(flips)), strict=True)):
        runs = simulation.eps_g.sel(flip=flip)
        _curve(against_stages, simulation.cap, runs, index, rf"$\lambda={flip:g}$", color=str(grey))
    against_flip.set(xlabel=r"$\lambda$, fraction of flipped labels", ylabel=r"$\epsilon_g$")
    against_flip.set_ylim(bottom=-0.01)
    against_stages.set(xlabel="$T$, stages", xscale="log")
    log_ticks(against_stages.xaxis)
    figure.legend(*against_flip.get_legend_handles_labels(), loc="outside lower left", ncols=3)
    figure.legend(*against_stages.get_legend_handles_labels(), loc="outside lower right", ncols=3)
    return figure


def _some(values: Any) -> Any:
    """At most `MOST` of the values of an axis, the first and the last among them."""
    return values[np.unique(np.linspace(0, len(values) - 1, MOST).round().astype(int))]


def _curve(ax: Axes, x: Any, runs: Any, index: int, label: str, **look: Any) -> None:
    points(ax, x, runs, index, linestyle="-", linewidth=0.8, label=label, **look)
