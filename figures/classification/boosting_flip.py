"""Boosted sparse perceptrons that learn flipped labels: eps_g against flip fraction and number of stages."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from figures import curves
from figures.labels import describe_size_and_runs
from figures.panels import draw_legend_below, draw_panel, make_figure, set_heading
from figures.style import make_shades
from statmech.results.results import as_results

AXES = ("flip", "cap")  # sweep axes that this figure shows
MAX_CURVES_PER_FLIP_PANEL = 5
FLIP_LINE_STYLE: dict[str, Any] = {"linestyle": "-"}
CAPTION = (
    r"Generalization error of AdaBoost over conjunctions, measured on the teacher's unflipped labels. Learning uses "
    r"labels flipped with probability $p_f$, and ends after $T$ stages or when all examples are classified correctly. "
    r"Dashed: $\epsilon_g=p_f$, the error of the flipped labels."
)
LINES_CAPTION = ""


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g against the flip fraction (left) and against the number of stages (right)."""
    results, (figure, (against_flip, against_stages)) = as_results(simulation), make_figure(3.4, 1, 2, sharey=True)
    stages, flips = (
        np.unique(np.linspace(0, simulation.sizes[name] - 1, MAX_CURVES_PER_FLIP_PANEL).round())
        for name in ("cap", "flip")
    )
    selected = curves.select_position(results, {"cap": stages.astype(int)})
    left = draw_panel(against_flip, selected, "flip", "eps_g", "cap", **FLIP_LINE_STYLE)
    largest = simulation.flip.values.max()
    for key, num_stages in zip(left, selected.either.cap.values, strict=True):
        key.set_label(f"$T$ = {num_stages:,}")
    left += against_flip.plot([0, largest], [0, largest], "--", color="0.5", label=r"$\epsilon_g=p_f$")
    selected = curves.select_position(results, {"flip": flips.astype(int)})
    right = draw_panel(
        against_stages, selected, "cap", "eps_g", "flip", log="x", palette=make_shades(len(flips)), **FLIP_LINE_STYLE
    )
    against_flip.set_xlabel(r"$p_f$, fraction of flipped labels")
    against_flip.set_ylim(bottom=-0.01)
    against_stages.set(xlabel="$T$, stages", ylabel="")
    against_stages.xaxis.set_major_locator(FixedLocator(simulation.cap.values))
    draw_legend_below(figure, [*left, *right], columns=4)
    set_heading(
        figure,
        [f"$s$ = {int(simulation.s)}", f"$P$ = {int(simulation.P):,}", describe_size_and_runs(simulation)],
    )
    return figure
