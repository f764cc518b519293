"""Learning curves: eps_g against t of one student, of the vote of K and of their weight mean, one panel per rule."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.panels import along, finish, panel
from figures.style import PAGE

AXES = ("rule",)  # of the sweep, that this figure shows
CURVES = {"eps_g": "one student", "eps_g_majority_vote": "majority vote", "eps_g_weight_mean": "weight mean"}
CAPTION = (
    r"Generalization error of one student, of the majority vote of all students and of the mean of their weights, one "
    r"panel per rule."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw a panel per rule; both axes are logarithmic, so that t = 0, where eps_g = 1/2, is left out."""
    results, figure = along(simulation, theory, "t"), Figure(figsize=(PAGE, 2.8))
    axes = figure.subplots(1, theory.sizes["rule"], sharex=True, sharey=True, squeeze=False)
    keys = panel(axes, results, "t", CURVES, split="rule", log="xy", dashes=True)
    axes[0, 0].set_ylabel(r"$\epsilon_g$")
    return finish(figure, results, keys, "K")
