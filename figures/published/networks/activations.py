"""Networks of erf, ReLU and linear units: eps_g and specialisation against t, in simulation and theory."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.panels import add_title_and_legend, draw_panel, make_figure, select_with_dense_theory

AXES = ("network",)  # sweep axes that this figure shows
CAPTION = (
    "(a) Generalization error and (b) specialisation (the mean cosine of student and teacher units, each with its "
    "partner) of networks with several activations. Linear units do not specialise: only the sum of their weights is "
    "learnt. Label noise leaves a residual error."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g and the specialisation against t, one colour per activation."""
    results, (figure, (error, cosine)) = select_with_dense_theory(simulation, theory, "t"), make_figure(2.9, 1, 2)
    draw_panel(error, results, "t", "eps_g", "network", log="y")
    keys = draw_panel(cosine, results, "t", "specialisation", "network", label=r"specialisation $\rho$")
    return add_title_and_legend(figure, results, keys, "M", "K", "eta")
