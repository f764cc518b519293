r"""Two clusters: eps_g of a convex loss against lambda and the Bayes-optimal errors, for equal and unequal clusters."""

from __future__ import annotations

from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from figures.legends import entry
from figures.panels import dense, finish, guide, page, panel, with_lines
from figures.style import PAGE, THEORY

AXES = ("positives", "lam", "alpha")  # sweep axes that this figure shows
CAPTION = (
    r"Generalization error of students of two Gaussian clusters, whose label is the cluster, against the strength "
    r"$\lambda$ of the l2 penalty, at several $\alpha$ and fractions $\pi_+$ of the label +1. Dotted: the "
    r"Bayes-optimal error for the same number of examples; dashed: the optimal error for known clusters."
)
BAYES: dict[str, Any] = {"linestyle": ":", "linewidth": 1}
KNOWN: dict[str, Any] = {"color": THEORY, "linestyle": "--", "linewidth": 0.8}


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g against lambda, a panel per fraction of the label +1 and a colour per alpha."""
    results = with_lines(simulation, theory, dense(theory, "lam"))
    fractions = theory.positives.values
    figure, axes = page(3.0, 1, len(fractions), width=PAGE)
    keys = panel(axes, results, "lam", "eps_g", "alpha", split="positives", log="x")
    for ax, fraction in zip(figure.axes, fractions, strict=True):
        at_fraction = theory.sel(positives=fraction).isel(lam=0)
        for key, error in zip(keys, at_fraction.eps_bayes.values.flat, strict=True):
            guide(ax, y=float(error), color=key.get_color(), **BAYES)
        guide(ax, y=float(at_fraction.eps_known.values.flat[0]), **KNOWN)
    marks = [entry("Bayes-optimal", color=THEORY, **BAYES), entry("clusters known", **KNOWN)]
    return finish(figure, results, [*keys, *marks], "loss", "distance", columns=3)
