r"""Batch sizes: eps_g against epochs, for shuffled epochs and for independently drawn batches."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.panels import add_title_and_legend, draw_panel, make_figure, select_with_dense_theory

AXES = ("batch", "sampling")  # sweep axes that this figure shows
CAPTION = (
    r"Generalization error against the number of epochs, for descent in batches that contain a fraction $b$ of the "
    r"examples ($1/b$ steps per epoch). The learning rate, defined for the loss summed over a batch, is the same "
    r"for all curves. Each example is used once per epoch (shuffle), or batches are drawn independently "
    r"(replacement). Lines connect the theoretical values at the ends of epochs."
)
SAMPLING_TITLES = {"shuffle": "shuffled epochs", "replacement": "independent batches"}


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g against epochs, one panel per sampling scheme and one colour per batch size."""
    results = select_with_dense_theory(simulation, theory, "epochs")
    panels = theory.sizes.get("sampling", 1)
    figure, axes = make_figure(3.0, 1, panels, sharey=True)
    split = "sampling" if "sampling" in theory.dims else ""
    keys = draw_panel(axes, results, "epochs", "eps_g", "batch", split=split)
    for ax in figure.axes:
        ax.set_title(SAMPLING_TITLES.get(ax.get_title(), ax.get_title()))
    return add_title_and_legend(figure, results, keys, "loss", "alpha", "flip", "eta")
