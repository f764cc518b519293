r"""Excess of eps_g over the Bayes-optimal error against alpha, for each loss with its best penalty."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.legends import make_curve_handle
from figures.panels import (
    add_title_and_legend,
    combine_with_lines,
    draw_guide,
    draw_panel,
    make_figure,
    solve_dense_theory,
)
from figures.style import draw_seed_means

AXES = ("loss", "flip", "alpha")  # sweep axes that this figure shows
CAPTION = (
    r"Excess of the generalization error of convex losses, each with its best l2 penalty, over the Bayes-optimal error "
    r"for $N\to\infty$, against $\alpha$ at several fractions of flipped labels. Crosses: the Bayes-optimal student at "
    r"finite $N$, by message passing. All students learn the same data sets."
)

# the Bayes-optimal student has the lowest possible error
BAYES_REFERENCE_STYLE: dict[str, Any] = {"color": "black", "linestyle": ":", "linewidth": 1.0, "zorder": 4}
BAYES_POINT_STYLE: dict[str, Any] = {"marker": "x", "color": "black", "markersize": 4, "zorder": 5}


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the excess error against alpha, one panel per flip fraction and one colour per loss."""
    lines, flips = solve_dense_theory(theory, "alpha"), theory.flip.values
    lines, runs = (
        part.assign(above=_compute_bayes_excess_percent(part.eps_g, reference))
        for part, reference in ((lines, lines), (simulation, theory))
    )
    results, last = combine_with_lines(runs, theory, lines), theory.sizes["loss"]
    figure, axes = make_figure(3.2, 1, len(flips), sharey=True)
    keys = draw_panel(
        axes, results, "alpha", "above", "loss", split="flip", label=r"excess of $\epsilon_g$ over Bayes (%)"
    )
    for ax, flip in zip(figure.axes, flips, strict=True):
        draw_guide(ax, y=0, **BAYES_REFERENCE_STYLE)
        if "R_bayes" in simulation:
            measured, at_flip = (part.sel(flip=flip).isel(loss=0) for part in (simulation, theory))
            draw_seed_means(
                ax,
                measured.alpha,
                _compute_bayes_excess_percent(np.arccos(measured.R_bayes) / np.pi, at_flip),
                last,
                **BAYES_POINT_STYLE,
            )
    return add_title_and_legend(
        figure,
        results,
        [*keys, make_curve_handle(last, "Bayes-optimal", **{**BAYES_REFERENCE_STYLE, **BAYES_POINT_STYLE})],
        "lam",
    )


def _compute_bayes_excess_percent(error: xr.DataArray, theory: xr.Dataset) -> xr.DataArray:
    """Compute the relative excess of an error over the Bayes-optimal error, in per cent."""
    return 100 * (error / (np.arccos(theory.R_bayes) / np.pi) - 1)
