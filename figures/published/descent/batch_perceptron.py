r"""Rosenblatt's rule on all examples at once: training error during descent, and epochs until separation."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.legends import make_line_handle
from figures.panels import (
    GUIDE_STYLE,
    add_panel_letters,
    add_title_and_legend,
    draw_guide,
    draw_panel,
    make_figure,
    set_log_axes,
)
from figures.style import draw_seed_means, get_curve_style
from statmech.results.results import as_results
from theory import separability

AXES = ("flip", "alpha")  # sweep axes that this figure shows
SUPPORTED_VALUES = {"loss": ("perceptron",)}
SEPARATION_ERROR_THRESHOLD = 1e-2  # a lower training error counts as separation
CAPTION = (
    r"Rosenblatt's rule applied to all examples at once, which is gradient descent on the loss $\max(0,-yh)$. (a) "
    r"Training error against the number of epochs, at the largest $\alpha$. (b) Number of epochs until one example in "
    r"a hundred is misclassified, if this takes longer than the first recorded epochs; lines join theory at the "
    r"$\alpha$ of the simulation. Dotted, in the colour of the flip fraction: $\alpha_c$, above which no student "
    r"classifies all examples correctly."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the training error at one alpha and the epochs until separation, one colour per flip fraction."""
    last = float(theory.alpha[-1])
    parts, (figure, (error, time)) = [part.sel(alpha=last) for part in (simulation, theory)], make_figure(2.9, 1, 2)
    results = as_results(*parts)  # dense theory lines are too inaccurate for such small errors
    keys = draw_panel(error, results, "epochs", "eps_t", "flip", log="xy", label=rf"$\epsilon_t$ at $\alpha={last:g}$")
    draw_guide(error, y=SEPARATION_ERROR_THRESHOLD)
    for index, flip in enumerate(theory.flip.values):
        line, runs = (find_separation_epochs(part.eps_t.sel(flip=flip)) for part in (theory, simulation))
        time.plot(theory.alpha, line, color=get_curve_style(index)["color"])
        draw_seed_means(time, simulation.alpha, runs, index)
        draw_guide(time, x=float(separability("sign", flip=flip)), color=get_curve_style(index)["color"])
    set_log_axes(time, "y")
    time.set(xlabel=r"$\alpha$ ($P$ / $N$)", ylabel=rf"epochs until $\epsilon_t={SEPARATION_ERROR_THRESHOLD:g}$")
    add_panel_letters(error, time)
    return add_title_and_legend(figure, results, [*keys, make_line_handle(r"$\alpha_c$", **GUIDE_STYLE)], "loss")


def find_separation_epochs(error: xr.DataArray) -> xr.DataArray:
    """Find the number of epochs until a training error falls below `SEPARATION_ERROR_THRESHOLD`.

    The result is interpolated logarithmically between recorded epochs, and NaN if there is no such epoch.
    """
    epochs = error.epochs.values

    def find_crossing(values: np.ndarray) -> float:
        below = np.flatnonzero(values < SEPARATION_ERROR_THRESHOLD)
        if not below.size or below[0] == 0:
            return np.nan
        ends = slice(below[0] - 1, below[0] + 1)
        logs = np.log(np.maximum(values[ends], SEPARATION_ERROR_THRESHOLD / 10))
        return float(np.exp(np.interp(-np.log(SEPARATION_ERROR_THRESHOLD), -logs, np.log(epochs[ends]))))

    return xr.apply_ufunc(find_crossing, error, input_core_dims=[["epochs"]], vectorize=True)
