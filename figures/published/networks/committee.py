"""Students of erf and ReLU units that learn from a committee, whose output is a label: eps_g against t.

Theory has equations for a committee of one unit; with more units the simulation, which is exact, stands alone.
"""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.panels import along, finish, page, panel

AXES = ("network", "M")  # of the sweep, that this figure shows
NEEDS = ("label_error",)
CAPTION = (
    r"Students that learn by gradient descent from a committee of $M$ units, whose output is a label. Left: "
    r"$\epsilon_g$, half the mean squared error of the output; right: the fraction of new inputs on which the sign of "
    r"the student's output is not the label."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw a row of two panels per M, one colour per activation."""
    results, rows = along(simulation, theory, "t"), theory.sizes["M"]
    figure, axes = page(0.8 + 2.1 * rows, rows, 2, sharex=True, sharey="col", squeeze=False)
    keys = panel(axes[:, 0], results, "t", "eps_g", "network", split="M")
    panel(axes[:, 1], results, "t", "label_error", "network", split="M", label="wrong labels")
    for ax in axes.flat:
        ax.set_ylim(0, None)
    return finish(figure, results, keys, "K", "eta")
