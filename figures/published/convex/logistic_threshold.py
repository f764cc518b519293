r"""Separability: fraction of separable data sets, the separability threshold, and the length of the student."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.legends import make_line_handle
from figures.panels import (
    add_title_and_legend,
    combine_with_lines,
    draw_guide,
    draw_panel,
    make_figure,
    modify_scenario,
)
from theory import separability
from theory.solutions import solve_line

AXES = ("gain", "alpha")  # sweep axes that this figure shows
SUPPORTED_VALUES = {"loss": ("logistic",), "teacher": ("logit",)}
LENGTH_LINE_POINTS = 400
SOLVED_POINTS, THRESHOLD_FACTORS = (
    40,
    10 ** np.linspace(-0.12, 0.12, 25),
)  # grid over all alphas, and factors around each threshold
CAPTION = (
    r"Logistic regression on the labels of a logit teacher with gain $\beta$. (a) Fraction of separable data sets, for "
    r"which logistic regression without a penalty has no solution; thin lines join the points, which are drawn inside "
    r"one another where they coincide; dotted: the threshold $\alpha_c$, theory for $N\to\infty$. (b) Length of the "
    r"student with a small penalty; as $\lambda\to0$ the length diverges only below the threshold."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the fraction of separable data sets with the thresholds, and the length of the student."""
    runs = simulation.assign(separable=simulation.separable.astype(float))
    thresholds = {float(gain): float(separability("logit", gain=float(gain))) for gain in theory.gain.values}
    results = combine_with_lines(runs, theory, _solve_densely_near_thresholds(theory, [*thresholds.values()]))
    figure, (fraction, length) = make_figure(3.2, 1, 2, sharex=True)
    draw_panel(fraction, results, "alpha", "separable", "gain", label="fraction separable", nested=True, linestyle="-")
    keys = draw_panel(length, results, "alpha", "length", "gain", label=r"length $l=|\mathbf{w}|/\sqrt{N}$", log="y")
    for key, threshold in zip(keys, thresholds.values(), strict=True):
        draw_guide(fraction, x=threshold, color=key.get_color(), linewidth=1.2)
    return add_title_and_legend(
        figure, results, [*keys, make_line_handle(r"$\alpha_c(\beta)$", linestyle=":")], "loss", "lam", columns=6
    )


def _solve_densely_near_thresholds(theory: xr.Dataset, thresholds: list[float]) -> xr.Dataset:
    """Solve theory on a grid of alphas that is dense around the thresholds."""
    low, high = float(theory.alpha.min()), float(theory.alpha.max())
    near = np.outer(thresholds, THRESHOLD_FACTORS).ravel()
    alpha = np.union1d(np.linspace(low, high, SOLVED_POINTS), near[(low < near) & (near < high)])
    lines = solve_line(modify_scenario(theory, alpha=alpha.tolist()))
    if not np.isfinite(lines.length).all():  # without a penalty no student exists below the threshold
        return lines
    fine = lines[["length"]].map(np.log).interp(alpha=np.linspace(low, high, LENGTH_LINE_POINTS), method="cubic")
    return fine.map(np.exp)
