r"""Double descent: mean squared error and training loss of least squares against alpha, for several penalties."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.panels import finish, guide, page, panel, scenario_with, with_lines
from theory.solutions import solve_line

AXES = ("lam", "alpha")  # sweep axes that this figure shows
VALUES = {"loss": ("square",)}
NEEDS = ("noise",)
PLACES, PEAK = 61, 10 ** np.linspace(-0.3, 0.3, 81)  # points over all alphas, and alphas around the peak at 1
LEAST = 1e-12  # smaller values are rounding errors
SHOWN = {"mse": "mean squared error", "train_loss": "training loss"}
CAPTION = (
    r"Least squares from $P=\alpha N$ outputs of a linear teacher with noise. (a) Mean squared error of the field "
    r"without noise; (b) mean loss of the examples. With a vanishing penalty ($\lambda=0$) the student fits all "
    r"examples up to $\alpha=1$ (dotted), where its error diverges; its training loss there is 0 and is not drawn."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the error and the training loss against alpha, a colour per penalty."""
    runs = simulation.assign(train_loss=simulation.train_loss.where(simulation.train_loss > LEAST))
    results, (figure, axes) = with_lines(runs, theory, _lines(theory)), page(3.0, 1, 2)
    for ax, (name, label) in zip(axes, SHOWN.items(), strict=True):
        keys = panel(ax, results, "alpha", name, "lam", label=label, log="xy")
        guide(ax, x=1, color="0.3")
    note = (
        r"at $\lambda=0$ the training loss is 0 for $\alpha\leq1$"
        if bool((simulation.train_loss <= LEAST).any())
        else ""
    )
    return finish(figure, results, keys, "noise", note=note)


def _lines(theory: xr.Dataset) -> xr.Dataset:
    """Solve theory from the first alpha to the last, including 1."""
    low, high = float(theory.alpha.min()), float(theory.alpha.max())
    alpha = np.union1d(np.geomspace(low, high, PLACES), PEAK[(low < PEAK) & (high > PEAK)])
    return solve_line(scenario_with(theory, alpha=alpha.tolist()))
