r"""The best learning rate at every time: eps_g of one student against t, beside constant rates, and the rate itself."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.published import best_control
from figures.style import AID
from statmech.results.dataset import scenario_of

AXES = ("eta",)  # of the sweep, that this figure shows
CAPTION = (
    r"(a) Generalization error of one student at constant learning rates, and at the rate that is best at every time. "
    r"Thin grey: $4/(\pi(t+\pi))$, the error at late times of the perceptron rule at its best rate. (b) That rate. "
    r"Bars that are not seen are smaller than their points."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the error, and the best rate below it."""
    figure = best_control.draw("optimal_rate", simulation, theory, "eta", {"eta": r"$\eta$"}, log="xy")
    ax = figure.axes[0]
    if scenario_of(theory).rule == "perceptron":
        t = np.geomspace(*ax.get_xlim(), 100)
        ax.plot(t, 4 / np.pi / (t + np.pi), color="0.6", linewidth=0.6, zorder=0, gid=AID)
    return figure
