r"""Early stopping: eps_g of several losses during descent, with their best penalties and the Bayes-optimal error."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.legends import entry
from figures.panels import along, finish, guide, page, panel
from figures.style import STAR, THEORY

AXES = ("loss", "alpha")  # sweep axes that this figure shows
CAPTION = (
    r"Generalization error of convex losses along gradient descent without a penalty, against the number of epochs, "
    r"with a fraction of flipped labels. Stars: the smallest error of each loss; dashed, in the colour of the "
    r"loss: its error at the minimum with the best l2 penalty; dotted: the Bayes-optimal error."
)
PENALTY: dict[str, Any] = {"linestyle": "--", "linewidth": 0.9}
BAYES: dict[str, Any] = {"color": THEORY, "linestyle": ":", "linewidth": 1}


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g against epochs, with the minimum and the best-penalty error of each loss."""
    results, alphas = along(simulation, theory, "epochs"), np.atleast_1d(theory.alpha.values)
    figure, axes = page(3.3, 1, len(alphas), squeeze=False)
    split = "alpha" if "alpha" in theory.dims else ""
    keys = panel(axes[0], results, "epochs", "eps_g", "loss", log="x", split=split)
    for ax, alpha in zip(axes[0], alphas, strict=True):
        at_alpha = theory.sel(alpha=alpha) if split else theory
        for key, name in zip(keys, np.atleast_1d(at_alpha.loss.values), strict=True):
            at_loss = at_alpha.sel(loss=name) if "loss" in at_alpha.dims else at_alpha
            ax.plot(at_loss.best_epoch, at_loss.eps_best, color=key.get_color(), **STAR)
            guide(ax, y=float(at_loss.eps_best_lam), color=key.get_color(), **PENALTY)
        guide(ax, y=float(np.ravel(at_alpha.eps_bayes)[0]), **BAYES)
    marks = [
        entry("minimum", **STAR),
        entry(r"at the best $\lambda$", **PENALTY),
        entry("Bayes-optimal", **BAYES),
    ]
    return finish(figure, results, [*keys, *marks], "flip", "eta", columns=4)
