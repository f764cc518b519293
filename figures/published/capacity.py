r"""Storage of random labels: Gardner's capacity :math:`\alpha_c(\kappa)`, and how it shows in finite sets.

Left: the largest stability that a set of P = alpha N random labels has; its median over data sets lies, at any
kappa >= 0, where half of the sets can be stored with that stability. Right: the fraction of sets that can be stored at
all, over Cover's exact counting function for the same N; it is one half at alpha = 2 for every N.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from figures.published.helpers.stored_runs import at_end
from figures.style import PAGE, look_of, points, styled
from theory import capacity, separable_fraction

if TYPE_CHECKING:
    import xarray as xr

AXES = ("N", "alpha")  # of the sweep, that this figure shows


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Points: the learner of maximum stability on random labels, a colour for each N."""
    last = at_end(simulation)
    figure = Figure(figsize=(PAGE, 2.8))
    stability, fraction = figure.subplots(1, 2)
    kappa = np.linspace(0, 3, 301)
    stability.plot(kappa, capacity(kappa), color="0.3", label=r"Gardner, $N=\infty$")
    alphas = np.linspace(float(last.alpha.min()), float(last.alpha.max()), 300)
    for index, N in enumerate(last.N.values):
        cell, colour = last.sel(N=N), look_of(index)["color"]
        median, error = _median(cell.kappa.values)
        stability.errorbar(
            median,
            cell.alpha,
            xerr=error,
            linestyle="none",
            markerfacecolor="white",
            **look_of(index),
            label=f"$N={N}$",
        )
        fraction.plot(alphas, separable_fraction(np.rint(alphas * N), N), color=colour, label=f"Cover, $N={N}$")
        points(fraction, cell.alpha, cell.converged.astype(float), index, label=f"simulation, $N={N}$")
    stability.set(
        xlabel=r"stability $\kappa$", ylabel=r"$\alpha=P/N$", title=r"half of the sets can be stored with $\kappa$"
    )
    stability.legend()
    fraction.set(xlabel=r"$\alpha=P/N$", title="fraction of sets that can be stored")
    fraction.legend()
    return figure


def _median(kappa: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Median over data sets (.., seed) and its standard error; NaN where fewer than half have a positive stability.

    Sets that cannot be stored count as lowest. The error is half the distance of the order statistics half a standard
    deviation of the binomial to either side, twice.
    """
    known = np.sort(np.where(np.isnan(kappa), -np.inf, kappa), axis=-1)
    n = kappa.shape[-1]
    aside = max(1, round(np.sqrt(n) / 2))
    middle, low, high = known[..., n // 2], known[..., max(n // 2 - aside, 0)], known[..., min(n // 2 + aside, n - 1)]
    with np.errstate(invalid="ignore"):
        stored = np.isfinite(low)
        return np.where(stored, middle, np.nan), np.where(stored, (high - low) / 2, np.nan)
