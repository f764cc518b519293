r"""Two clusters learnt online: eps_g of each rule against t, with the Bayes-optimal errors."""

from __future__ import annotations

from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from figures.legends import make_line_handle
from figures.panels import add_title_and_legend, draw_guide, draw_panel, make_figure, select_with_dense_theory
from figures.style import PAGE_WIDTH, THEORY_COLOUR

AXES = ("rule", "positives")  # sweep axes that this figure shows
REQUIRED_VARIABLES = ("m_field",)  # absent in scenarios with a teacher
CAPTION = (
    r"Generalization error against time of students that learn online to classify two Gaussian clusters, for several "
    r"fractions $\pi_+$ of the label +1. Dotted: the Bayes-optimal error for the same number of examples; dashed: the "
    r"error of the best plane between known clusters. Error bars smaller than the markers are not visible."
)
ONLINE_BAYES_STYLE: dict[str, Any] = {"color": THEORY_COLOUR, "linestyle": ":", "linewidth": 1}
BEST_PLANE_STYLE: dict[str, Any] = {"color": THEORY_COLOUR, "linestyle": "--", "linewidth": 0.8}


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g against t, one panel per fraction of labels +1 and one colour per rule."""
    fractions = theory.positives.values
    figure, axes = make_figure(3.0, 1, len(fractions), width=PAGE_WIDTH, sharey=True)
    results = select_with_dense_theory(simulation, theory, "t")
    keys = draw_panel(axes, results, "t", "eps_g", "rule", split="positives")
    lines = (results.lines if results.lines is not None else theory).isel(rule=0)
    for ax, fraction in zip(figure.axes, fractions, strict=True):
        at_fraction = lines.sel(positives=fraction)
        ax.plot(at_fraction.t, at_fraction.eps_bayes, **ONLINE_BAYES_STYLE)
        draw_guide(ax, y=float(at_fraction.eps_known), **BEST_PLANE_STYLE)
    marks = [
        make_line_handle("Bayes-optimal", **ONLINE_BAYES_STYLE),
        make_line_handle("clusters known", **BEST_PLANE_STYLE),
    ]
    return add_title_and_legend(figure, results, [*keys, *marks], "distance", columns=5)
