r"""Multiple descent: mean squared error of least squares against alpha, for inputs with very different variances."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.panels import finish, guide, page, panel, scenario_with, with_lines
from figures.style import COLUMN
from statmech.inputs import Spectrum
from statmech.results.dataset import scenario_of
from theory.solutions import solve_line

AXES = ("lam", "alpha")  # sweep axes that this figure shows
VALUES = {"loss": ("square",)}
NEEDS = ("noise", "R_field")
PLACES, PEAK = 161, 10 ** (0.15 * np.linspace(-1, 1, 41) ** 3)  # points over all alphas, and factors around each peak
CAPTION = (
    r"Least squares from $P=\alpha N$ outputs of a linear teacher with noise, on inputs whose variance differs by "
    r"powers of ten between groups of directions. Dotted: as many examples as directions of the larger variances. "
    r"There the student fits all that these directions contain, and its error peaks; the best penalty has no peaks."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the mean squared error against alpha, a colour per penalty."""
    peaks = _ends(theory)
    results, (figure, ax) = with_lines(simulation, theory, _lines(theory, peaks)), page(3.4, width=1.4 * COLUMN)
    keys = panel(ax, results, "alpha", "mse", "lam", label="mean squared error", log="xy")
    for peak in peaks:
        guide(ax, x=peak, color="0.3")
    return finish(figure, results, keys, "noise")


def _ends(theory: xr.Dataset) -> list[float]:
    """Return, for each variance, the fraction of directions with at least this variance."""
    inputs = scenario_of(theory).inputs
    modes = inputs.modes(1) if isinstance(inputs, Spectrum) else None
    if modes is None:
        return []
    largest = np.argsort(-modes.variances)
    return [float(end) for end in np.cumsum(modes.shares[largest])]


def _lines(theory: xr.Dataset, ends: list[float]) -> xr.Dataset:
    """Solve theory from the first alpha to the last, in small steps around the peaks."""
    low, high = float(theory.alpha.min()), float(theory.alpha.max())
    near = np.concatenate([peak * PEAK for peak in ends]) if ends else np.zeros(0)
    alpha = np.union1d(np.geomspace(low, high, PLACES), near[(low < near) & (near < high)])
    return solve_line(scenario_with(theory, alpha=alpha.tolist()))
