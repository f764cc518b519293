r"""Momentum: eps_g and training loss of the heavy-ball and Nesterov methods against epochs."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.panels import add_title_and_legend, draw_panel, make_figure, select_with_dense_theory

AXES = ("descent", "momentum")  # sweep axes that this figure shows
CAPTION = (
    "Generalization error and mean training loss during descent with momentum, against the number of epochs, at one "
    "learning rate. Momentum 0 is plain gradient descent."
)
ERROR_AND_LOSS_AXIS_LABELS = {"eps_g": r"$\epsilon_g$", "train_loss": r"training loss $\langle\ell\rangle$"}
DESCENT_TITLES = {"momentum": "heavy ball"}  # avoids confusion with the parameter momentum


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g above the training loss, one column per method and one colour per momentum."""
    results, columns = select_with_dense_theory(simulation, theory, "epochs"), theory.sizes.get("descent", 1)
    figure, axes = make_figure(4.4, 2, columns, sharex=True, sharey="row", squeeze=False)
    split = "descent" if "descent" in theory.dims else ""
    for row, (name, label) in zip(axes, ERROR_AND_LOSS_AXIS_LABELS.items(), strict=True):
        keys = draw_panel(row, results, "epochs", name, "momentum", log="x", split=split, label=label)
    for above, below in zip(*axes, strict=True):
        above.set_xlabel("")
        above.set_title(DESCENT_TITLES.get(above.get_title(), above.get_title()))
        below.set_title("")
    return add_title_and_legend(figure, results, keys, "loss", "alpha", "flip", "eta", columns=4)
