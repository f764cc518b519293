"""Boosting sparse perceptrons from flipped labels: eps_g against the fraction of flips and the number of stages."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from figures import series
from figures.labels import size_of
from figures.panels import heading, legend_below, page, panel
from figures.style import shades
from statmech.results.results import results_of

AXES = ("flip", "cap")  # sweep axes that this figure shows
MOST = 5
JOINED: dict[str, Any] = {"linestyle": "-"}
CAPTION = (
    r"Generalization error, with respect to the teacher's own labels, of AdaBoost over conjunctions that learns from "
    r"labels flipped with probability $p_f$, and ends after $T$ stages or when all examples are classified correctly. "
    r"Dashed: $\epsilon_g=p_f$, the error of the labels in the examples."
)
LINES = ""


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g with a colour per number of stages (left) and a shade per fraction of flips (right)."""
    results, (figure, (against_flip, against_stages)) = results_of(simulation), page(3.4, 1, 2, sharey=True)
    stages, flips = (np.unique(np.linspace(0, simulation.sizes[name] - 1, MOST).round()) for name in ("cap", "flip"))
    selected = series.sliced(results, {"cap": stages.astype(int)})
    left = panel(against_flip, selected, "flip", "eps_g", "cap", **JOINED)
    largest = simulation.flip.values.max()
    for key, num_stages in zip(left, selected.either.cap.values, strict=True):
        key.set_label(f"$T$ = {num_stages:,}")
    left += against_flip.plot([0, largest], [0, largest], "--", color="0.5", label=r"$\epsilon_g=p_f$")
    selected = series.sliced(results, {"flip": flips.astype(int)})
    right = panel(against_stages, selected, "cap", "eps_g", "flip", log="x", palette=shades(len(flips)), **JOINED)
    against_flip.set_xlabel(r"$p_f$, fraction of flipped labels")
    against_flip.set_ylim(bottom=-0.01)
    against_stages.set(xlabel="$T$, stages", ylabel="")
    against_stages.xaxis.set_major_locator(FixedLocator(simulation.cap.values))
    legend_below(figure, [*left, *right], columns=4)
    heading(
        figure,
        [f"$s$ = {int(simulation.s)}", f"$P$ = {int(simulation.P):,}", size_of(simulation)],
    )
    return figure
