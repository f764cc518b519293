r"""Batches: eps_g against epochs, of shuffled epochs and of batches that are drawn independently at every step."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.panels import along, finish, page, panel

AXES = ("batch", "sampling")  # of the sweep, that this figure shows
CAPTION = (
    r"Generalization error along descent in batches of a share $b$ of the examples, at one learning rate of the loss "
    r"summed over a batch, against the number of epochs (of $1/b$ steps): with each example once an epoch (shuffle), "
    r"and with batches that are drawn independently (replacement). Lines join theory after whole epochs."
)
TITLES = {"shuffle": "shuffled epochs", "replacement": "independent batches"}


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw a panel per sampling, one colour per batch."""
    results = along(simulation, theory, "epochs")
    panels = theory.sizes.get("sampling", 1)
    figure, axes = page(3.0, 1, panels, sharey=True)
    split = "sampling" if "sampling" in theory.dims else ""
    keys = panel(axes, results, "epochs", "eps_g", "batch", split=split)
    for ax in figure.axes:
        ax.set_title(TITLES.get(ax.get_title(), ax.get_title()))
    return finish(figure, results, keys, "loss", "alpha", "flip", "eta")
