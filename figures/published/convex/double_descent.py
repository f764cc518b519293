r"""Double descent: mean squared error and training loss of least squares against alpha, for several penalties."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.panels import (
    add_title_and_legend,
    combine_with_lines,
    draw_guide,
    draw_panel,
    make_figure,
    modify_scenario,
)
from theory.solutions import solve_line

AXES = ("lam", "alpha")  # sweep axes that this figure shows
SUPPORTED_VALUES = {"loss": ("square",)}
REQUIRED_VARIABLES = ("noise",)
ALPHA_LINE_POINTS, PEAK_ALPHAS = (
    61,
    10 ** np.linspace(-0.3, 0.3, 81),
)  # grid over all alphas, and alphas around the peak at 1
MIN_DRAWN_TRAINING_LOSS = 1e-12  # smaller values are rounding errors
LOSS_AXIS_LABELS = {"mse": "mean squared error", "train_loss": "training loss"}
CAPTION = (
    r"Least squares on $P=\alpha N$ noisy outputs of a linear teacher. (a) Mean squared error with respect to the "
    r"noiseless field; (b) mean loss of the examples. With a vanishing penalty ($\lambda=0$) the student fits all "
    r"examples up to $\alpha=1$ (dotted), where its error diverges; the training loss of 0 in this range is not drawn."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the error and the training loss against alpha, one colour per penalty."""
    runs = simulation.assign(train_loss=simulation.train_loss.where(simulation.train_loss > MIN_DRAWN_TRAINING_LOSS))
    results, (figure, axes) = combine_with_lines(runs, theory, _solve_at_dense_alphas(theory)), make_figure(3.0, 1, 2)
    for ax, (name, label) in zip(axes, LOSS_AXIS_LABELS.items(), strict=True):
        keys = draw_panel(ax, results, "alpha", name, "lam", label=label, log="xy")
        draw_guide(ax, x=1, color="0.3")
    note = (
        r"at $\lambda=0$ the training loss is 0 for $\alpha\leq1$"
        if bool((simulation.train_loss <= MIN_DRAWN_TRAINING_LOSS).any())
        else ""
    )
    return add_title_and_legend(figure, results, keys, "noise", note=note)


def _solve_at_dense_alphas(theory: xr.Dataset) -> xr.Dataset:
    """Solve theory on a grid of alphas that is dense around the peak at 1."""
    low, high = float(theory.alpha.min()), float(theory.alpha.max())
    alpha = np.union1d(
        np.geomspace(low, high, ALPHA_LINE_POINTS), PEAK_ALPHAS[(low < PEAK_ALPHAS) & (high > PEAK_ALPHAS)]
    )
    return solve_line(modify_scenario(theory, alpha=alpha.tolist()))
