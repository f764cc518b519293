r"""Random features: mean squared error and training loss of least squares against the number of features."""

from __future__ import annotations

from typing import Any

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
from statmech.errors import ConfigError
from statmech.inputs.input_distributions import inputs_to_config
from statmech.stores.dataset import scenario_from_dataset
from theory.solutions import solve_line

WIDTH_AXIS = "N_inputs_alpha"  # keys that are swept in parallel (`zip`)
AXES = ("lam", WIDTH_AXIS)  # sweep axes that this figure shows
SUPPORTED_VALUES = {"loss": ("square",)}
WIDTH_LINE_POINTS, WIDTH_PEAK_FACTORS = (
    121,
    10 ** np.linspace(-0.1, 0.1, 61),
)  # grid over all widths, and factors around the peak
MIN_DRAWN_LOSS = 1e-12  # smaller training losses are rounding errors
ERROR_PANEL_LABELS = {"mse": "mean squared error", "train_loss": "training loss"}
CAPTION = (
    r"Least squares on $N$ random features of $D$ latent variables; the outputs are a linear function of the latent "
    r"variables. (a) Mean squared error; (b) mean loss of the examples. Without a penalty ($\lambda=0$) the error "
    r"peaks where the number of features equals the number of examples (dotted), and decreases again for more "
    r"features; the training loss is then 0 and is not drawn."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the error and the training loss against D/N, one colour per penalty."""
    if WIDTH_AXIS not in theory.dims or "latent" not in theory.coords:
        raise ConfigError(
            'the figure "random_features" requires N, alpha and inputs `{features: ...}` in parallel, under `zip`'
        )
    runs = simulation.assign(train_loss=simulation.train_loss.where(simulation.train_loss > MIN_DRAWN_LOSS))
    parts = (part.swap_dims({WIDTH_AXIS: "latent"}) for part in (runs, theory, _solve_at_dense_widths(theory)))
    results, (figure, axes) = combine_with_lines(*parts), make_figure(3.0, 1, 2)
    for ax, (name, label) in zip(axes, ERROR_PANEL_LABELS.items(), strict=True):
        keys = draw_panel(ax, results, "latent", name, "lam", label=label, log="xy")
        draw_guide(ax, x=_count_latent_variables(theory) / float(theory.P.values.flat[0]), color="0.3", text="$N=P$")
        ax.invert_xaxis()  # more features to the right
        ax.set_xlabel(f"$D/N$, at $D={_count_latent_variables(theory)}$ and $P={int(theory.P.values.flat[0])}$")
    return add_title_and_legend(figure, results, keys, "loss", "teacher")


def _count_latent_variables(theory: xr.Dataset) -> int:
    """Return the number of latent variables, the same for all widths."""
    return round(float(theory.latent.values[0] * theory.N.values[0]))


def _solve_at_dense_widths(theory: xr.Dataset) -> xr.Dataset:
    """Solve theory on a grid of widths that is dense around the peak.

    Theory accepts any width, including fractions.
    """
    N, P, D = theory.N.values, int(theory.P.values.flat[0]), _count_latent_variables(theory)
    near = np.clip(P * WIDTH_PEAK_FACTORS, N.min(), N.max())
    widths = np.union1d(np.geomspace(N.min(), N.max(), WIDTH_LINE_POINTS), near).tolist()
    features_config: dict[str, Any] = inputs_to_config(scenario_from_dataset(theory).inputs[0])["features"]
    inputs = [{"features": {**features_config, "latent": D / width}} for width in widths]
    numbers = [10**6 + index for index in range(len(widths))]  # arbitrary distinct numbers, as theory uses only ratios
    return solve_line(
        modify_scenario(theory, zip=[{"N": numbers, "alpha": [P / width for width in widths], "inputs": inputs}])
    )
