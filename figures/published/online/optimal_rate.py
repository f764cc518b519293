r"""The best learning rate at every time: eps_g of one student compared with constant rates, and the best rate."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.legends import make_line_handle
from figures.published import control_panels
from figures.style import NO_LEGEND_GID
from statmech.stores.dataset import scenario_from_dataset

AXES = ("eta",)  # sweep axes that this figure shows
LATE_ERROR_STYLE: dict[str, Any] = {"color": "0.6", "linewidth": 0.8}
CAPTION = (
    r"(a) Generalization error of one student at constant learning rates, and at the best rate at every time. Thin "
    r"grey: $4/(\pi(t+\pi))$, the late-time error of the perceptron rule at its best rate. (b) The best rate. Error "
    r"bars smaller than the markers are not visible."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g in one panel, and the best learning rate in another."""
    is_perceptron = scenario_from_dataset(theory).rule == "perceptron"
    extra_keys = [make_line_handle(r"$4/(\pi(t+\pi))$", **LATE_ERROR_STYLE)] if is_perceptron else []
    figure = control_panels.draw("optimal_rate", simulation, theory, "eta", log="xy", extra_handles=extra_keys)
    if is_perceptron:
        t = np.geomspace(float(theory.t[theory.t > 0].min()), float(theory.t.max()), 100)
        figure.axes[0].plot(t, 4 / np.pi / (t + np.pi), zorder=0, gid=NO_LEGEND_GID, **LATE_ERROR_STYLE)
    return figure
