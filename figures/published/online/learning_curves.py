"""Learning curves: eps_g against t for one student, the majority vote and the weight mean, a panel per rule."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.panels import add_title_and_legend, draw_panel, make_figure, select_with_dense_theory

AXES = ("rule",)  # sweep axes that this figure shows
CURVE_LABELS = {"eps_g": "one student", "eps_g_majority_vote": "majority vote", "eps_g_weight_mean": "weight mean"}
CAPTION = (
    r"Generalization error of one student, of the majority vote of all students and of the mean of their weights, one "
    r"panel per rule."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g against t on logarithmic axes, one panel per rule.

    The axes do not show t = 0, where eps_g = 1/2.
    """
    figure, axes = make_figure(2.8, 1, theory.sizes["rule"], sharex=True, sharey=True)
    results = select_with_dense_theory(simulation, theory, "t")
    keys = draw_panel(axes, results, "t", CURVE_LABELS, split="rule", label=r"$\epsilon_g$", log="xy", dashes=True)
    return add_title_and_legend(figure, results, keys, "K")
