r"""Two equal or unequal clusters: eps_g of a convex loss against lambda, and the Bayes-optimal errors."""

from __future__ import annotations

from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from figures.legends import make_line_handle
from figures.panels import (
    add_title_and_legend,
    combine_with_lines,
    draw_guide,
    draw_panel,
    make_figure,
    solve_dense_theory,
)
from figures.style import PAGE_WIDTH, THEORY_COLOUR

AXES = ("positives", "lam", "alpha")  # sweep axes that this figure shows
CAPTION = (
    r"Generalization error of students that classify two Gaussian clusters, against the strength $\lambda$ of the l2 "
    r"penalty, at several $\alpha$ and fractions $\pi_+$ of the label +1. Dotted: the Bayes-optimal error for the same "
    r"number of examples; dashed: the optimal error for known clusters."
)
CLUSTER_BAYES_STYLE: dict[str, Any] = {"linestyle": ":", "linewidth": 1}
KNOWN_CLUSTERS_STYLE: dict[str, Any] = {"color": THEORY_COLOUR, "linestyle": "--", "linewidth": 0.8}


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g against lambda, one panel per fraction of labels +1 and one colour per alpha."""
    results = combine_with_lines(simulation, theory, solve_dense_theory(theory, "lam"))
    fractions = theory.positives.values
    figure, axes = make_figure(3.0, 1, len(fractions), width=PAGE_WIDTH)
    keys = draw_panel(axes, results, "lam", "eps_g", "alpha", split="positives", log="x")
    for ax, fraction in zip(figure.axes, fractions, strict=True):
        at_fraction = theory.sel(positives=fraction).isel(lam=0)
        for key, error in zip(keys, at_fraction.eps_bayes.values.flat, strict=True):
            draw_guide(ax, y=float(error), color=key.get_color(), **CLUSTER_BAYES_STYLE)
        draw_guide(ax, y=float(at_fraction.eps_known.values.flat[0]), **KNOWN_CLUSTERS_STYLE)
    marks = [
        make_line_handle("Bayes-optimal", color=THEORY_COLOUR, **CLUSTER_BAYES_STYLE),
        make_line_handle("clusters known", **KNOWN_CLUSTERS_STYLE),
    ]
    return add_title_and_legend(figure, results, [*keys, *marks], "loss", "distance", columns=3)
