r"""Early stopping: eps_g of several losses during descent, compared with best penalties and Bayes-optimal error."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.legends import make_line_handle
from figures.panels import add_title_and_legend, draw_guide, draw_panel, make_figure, select_with_dense_theory
from figures.style import MINIMUM_STAR_STYLE, THEORY_COLOUR

AXES = ("loss", "alpha")  # sweep axes that this figure shows
CAPTION = (
    "Generalization error of convex losses during gradient descent without a penalty, against the number of epochs, "
    "for examples with flipped labels. Stars: smallest error of each loss; dashed, in the colour of the loss: error at "
    "its minimum with the best l2 penalty; dotted: the Bayes-optimal error."
)
BEST_PENALTY_STYLE: dict[str, Any] = {"linestyle": "--", "linewidth": 0.9}
BAYES_ERROR_STYLE: dict[str, Any] = {"color": THEORY_COLOUR, "linestyle": ":", "linewidth": 1}


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g against epochs, with the minimum and the best-penalty error of each loss."""
    results, alphas = select_with_dense_theory(simulation, theory, "epochs"), np.atleast_1d(theory.alpha.values)
    figure, axes = make_figure(3.3, 1, len(alphas), squeeze=False)
    split = "alpha" if "alpha" in theory.dims else ""
    keys = draw_panel(axes[0], results, "epochs", "eps_g", "loss", log="x", split=split)
    for ax, alpha in zip(axes[0], alphas, strict=True):
        at_alpha = theory.sel(alpha=alpha) if split else theory
        for key, name in zip(keys, np.atleast_1d(at_alpha.loss.values), strict=True):
            at_loss = at_alpha.sel(loss=name) if "loss" in at_alpha.dims else at_alpha
            ax.plot(at_loss.best_epoch, at_loss.eps_best, color=key.get_color(), **MINIMUM_STAR_STYLE)
            draw_guide(ax, y=float(at_loss.eps_best_lam), color=key.get_color(), **BEST_PENALTY_STYLE)
        draw_guide(ax, y=float(np.ravel(at_alpha.eps_bayes)[0]), **BAYES_ERROR_STYLE)
    marks = [
        make_line_handle("minimum", **MINIMUM_STAR_STYLE),
        make_line_handle(r"at the best $\lambda$", **BEST_PENALTY_STYLE),
        make_line_handle("Bayes-optimal", **BAYES_ERROR_STYLE),
    ]
    return add_title_and_legend(figure, results, [*keys, *marks], "flip", "eta", columns=4)
