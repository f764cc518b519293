r"""Random features: mean squared error and training loss of least squares against the number of features."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.panels import finish, guide, page, panel, scenario_with, with_lines
from statmech.errors import ConfigError
from statmech.inputs import written
from statmech.results.dataset import scenario_of
from theory.solutions import solve_line

ALONG = "N_inputs_alpha"  # name of the zipped axis
AXES = ("lam", ALONG)  # sweep axes that this figure shows
VALUES = {"loss": ("square",)}
PLACES, PEAK = 121, 10 ** np.linspace(-0.1, 0.1, 61)  # points over all widths, and factors around the peak
LEAST = 1e-12  # smaller training losses are rounding errors
SHOWN = {"mse": "mean squared error", "train_loss": "training loss"}
CAPTION = (
    r"Least squares on $N$ random features of $D$ latent variables. The outputs are a linear function of the latter. "
    r"(a) Mean squared error; (b) mean loss of the examples. Without a penalty ($\lambda=0$) the error peaks "
    r"where there are as many features as examples (dotted), and falls again for more features. The "
    r"training loss is then 0 and is not drawn."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the error and the training loss against D/N, a colour per penalty."""
    if ALONG not in theory.dims or "latent" not in theory.coords:
        raise ConfigError("random_features needs N, alpha and inputs: {features: ...} side by side, under `zip`")
    runs = simulation.assign(train_loss=simulation.train_loss.where(simulation.train_loss > LEAST))
    parts = (part.swap_dims({ALONG: "latent"}) for part in (runs, theory, _lines(theory)))
    results, (figure, axes) = with_lines(*parts), page(3.0, 1, 2)
    for ax, (name, label) in zip(axes, SHOWN.items(), strict=True):
        keys = panel(ax, results, "latent", name, "lam", label=label, log="xy")
        guide(ax, x=_latent(theory) / float(theory.P.values.flat[0]), color="0.3", text="$N=P$")
        ax.invert_xaxis()  # more features to the right
        ax.set_xlabel(f"$D/N$, at $D={_latent(theory)}$ and $P={int(theory.P.values.flat[0])}$")
    return finish(figure, results, keys, "loss", "teacher")


def _latent(theory: xr.Dataset) -> int:
    """Return the number of latent variables, which is the same for all widths."""
    return round(float(theory.latent.values[0] * theory.N.values[0]))


def _lines(theory: xr.Dataset) -> xr.Dataset:
    """Solve theory from the smallest width to the largest, in small steps around the peak.

    Theory accepts any width, including fractions.
    """
    N, P, D = theory.N.values, int(theory.P.values.flat[0]), _latent(theory)
    near = np.clip(P * PEAK, N.min(), N.max())
    widths = np.union1d(np.geomspace(N.min(), N.max(), PLACES), near).tolist()
    features_config: dict[str, Any] = written(scenario_of(theory).inputs[0])["features"]
    inputs = [{"features": {**features_config, "latent": D / width}} for width in widths]
    numbers = [10**6 + index for index in range(len(widths))]  # arbitrary distinct numbers, as theory uses only ratios
    return solve_line(
        scenario_with(theory, zip=[{"N": numbers, "alpha": [P / width for width in widths], "inputs": inputs}])
    )
