r"""Storage of random labels: Gardner's capacity :math:`\alpha_c(\kappa)` and finite data sets.

Left: the largest stability of a perceptron that stores the random labels of P = alpha N examples, as the median over
data sets. For infinite N this is the kappa with :math:`\alpha_c(\kappa)=\alpha`. Right: fraction of sets that can be
stored at all, with Cover's exact counting function for the same N at integer numbers of examples. This fraction is one
half at alpha = 2 for every N.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.derived_data import select_last_recorded
from figures.legends import make_points_handle
from figures.panels import add_panel_letters, add_title_and_legend, make_figure
from figures.style import CURVE_DASHES, draw_mean_points, draw_seed_means, get_curve_style
from theory import capacity, separable_fraction

AXES = ("N", "alpha")  # sweep axes that this figure shows
SUPPORTED_VALUES = {"learner": ("max_stability",)}
CAPTION = (
    r"Random labels of $P=\alpha N$ examples. (a) Largest stability of a perceptron that stores the labels: median "
    r"over data sets if at least half of them can be stored, and Gardner's capacity $\alpha_c(\kappa)$, above which "
    r"almost no set can be stored with stability $\kappa$ for $N\to\infty$. (b) Fraction of the data sets that can be "
    r"stored at all, and Cover's exact function for the same $N$ at every integer number $P$ of examples, which is one "
    r"half at $P=2N$."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the largest stability and the fraction of separable sets against alpha, one colour per N."""
    last, (figure, (stability, fraction)) = select_last_recorded(simulation), make_figure(2.8, 1, 2, sharex=True)
    kappa, marks = np.linspace(0, 10, 2001), []
    is_shown = capacity(kappa) >= float(last.alpha.min())
    stability.plot(capacity(kappa)[is_shown], kappa[is_shown], color="0.3", label=r"Gardner, $N\to\infty$")
    for index, N in enumerate(last.N.values):
        cell = last.sel(N=N)
        draw_mean_points(stability, cell.alpha, *_compute_median_and_error(cell.kappa.values), index)
        marks.append(make_points_handle(f"simulation, $N={N}$", **get_curve_style(index)))
        draw_seed_means(fraction, cell.alpha, cell.converged.astype(float), index)
        _draw_cover_function(fraction, int(N), cell.alpha, index)
    stability.set(xlabel=r"$\alpha$ ($P$ / $N$)", ylabel=r"largest stability $\kappa$ (median)")
    fraction.set(xlabel=r"$\alpha$ ($P$ / $N$)", ylabel="fraction of separable sets")
    add_panel_letters(stability, fraction)
    keys = [key for ax in (stability, fraction) for key in ax.get_legend_handles_labels()[0]]
    return add_title_and_legend(figure, simulation, [*keys, *marks], columns=3)


def _draw_cover_function(ax: Axes, N: int, alphas: Any, index: int) -> None:
    """Draw Cover's function at every integer number of examples."""
    P = np.arange(round(float(alphas.min()) * N), round(float(alphas.max()) * N) + 1)
    line_style = {"color": get_curve_style(index)["color"], "linestyle": CURVE_DASHES[index % len(CURVE_DASHES)]}
    ax.plot(P / N, separable_fraction(P, N), label=f"Cover, $N={N}$", **line_style)


def _compute_median_and_error(kappa: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the median over data sets (..., seed) and its standard error.

    Sets that cannot be stored count as lowest values. The median is NaN if fewer than half can be stored. The standard
    error is half the distance between the order statistics one binomial standard deviation below and above the median.
    """
    ordered = np.sort(np.where(np.isnan(kappa), -np.inf, kappa), axis=-1)
    n = kappa.shape[-1]
    rank_offset = max(1, round(np.sqrt(n) / 2))
    middle, low, high = (
        ordered[..., n // 2],
        ordered[..., max(n // 2 - rank_offset, 0)],
        ordered[..., min(n // 2 + rank_offset, n - 1)],
    )
    with np.errstate(invalid="ignore"):
        stored = np.isfinite(low)
        return np.where(stored, middle, np.nan), np.where(stored, (high - low) / 2, np.nan)
