r"""Multiple descent: mean squared error of least squares against alpha, for inputs with very different variances."""

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
from figures.style import COLUMN_WIDTH
from statmech.stores.dataset import scenario_from_dataset
from theory.solutions import solve_line

AXES = ("lam", "alpha")  # sweep axes that this figure shows
SUPPORTED_VALUES = {"loss": ("square",)}
REQUIRED_VARIABLES = ("noise", "R_field")
DESCENT_LINE_POINTS, PEAK_FACTORS = (
    161,
    10 ** (0.15 * np.linspace(-1, 1, 41) ** 3),
)  # grid over all alphas, and factors around each peak
CAPTION = (
    r"Least squares on $P=\alpha N$ noisy outputs of a linear teacher, for inputs whose variance differs by powers of "
    r"ten between groups of directions. Dotted: number of examples equal to the number of directions of larger "
    r"variance. There the student fits all that these directions contain, and its error peaks; with the best penalty "
    r"there are no peaks."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the mean squared error against alpha, one colour per penalty."""
    peaks = _find_peak_alphas(theory)
    results, (figure, ax) = (
        combine_with_lines(simulation, theory, _solve_densely_near_peaks(theory, peaks)),
        make_figure(3.4, width=1.4 * COLUMN_WIDTH),
    )
    keys = draw_panel(ax, results, "alpha", "mse", "lam", label="mean squared error", log="xy")
    for peak in peaks:
        draw_guide(ax, x=peak, color="0.3")
    return add_title_and_legend(figure, results, keys, "noise")


def _find_peak_alphas(theory: xr.Dataset) -> list[float]:
    """Return the alphas of the peaks: fractions of directions with at least a given variance."""
    inputs = scenario_from_dataset(theory).inputs
    modes = inputs.modes(1) if inputs.num_variance_groups else None
    if modes is None:
        return []
    largest = np.argsort(-modes.variances)
    return [float(end) for end in np.cumsum(modes.shares[largest])]


def _solve_densely_near_peaks(theory: xr.Dataset, peaks: list[float]) -> xr.Dataset:
    """Solve theory on a grid of alphas that is dense around the peaks."""
    low, high = float(theory.alpha.min()), float(theory.alpha.max())
    near = np.concatenate([peak * PEAK_FACTORS for peak in peaks]) if peaks else np.zeros(0)
    alpha = np.union1d(np.geomspace(low, high, DESCENT_LINE_POINTS), near[(low < near) & (near < high)])
    return solve_line(modify_scenario(theory, alpha=alpha.tolist()))
