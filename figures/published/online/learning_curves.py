"""Learning curves: eps_g against t for one student, the majority vote and the weight mean, a panel per rule."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.panels import along, finish, page, panel

AXES = ("rule",)  # sweep axes that this figure shows
CURVES = {"eps_g": "one student", "eps_g_majority_vote": "majority vote", "eps_g_weight_mean": "weight mean"}
CAPTION = (
    r"Generalization error of one student, of the majority vote of all students and of the mean of their weights, one "
    r"panel per rule."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g against t on logarithmic axes, a panel per rule.

    The axes do not show t = 0, where eps_g = 1/2.
    """
    figure, axes = page(2.8, 1, theory.sizes["rule"], sharex=True, sharey=True)
    results = along(simulation, theory, "t")
    keys = panel(axes, results, "t", CURVES, split="rule", label=r"$\epsilon_g$", log="xy", dashes=True)
    return finish(figure, results, keys, "K")
