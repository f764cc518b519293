r"""The error that noise leaves: stationary eps_g against the number K of student units, for teachers of M units.

Lines are fixed points of the equations (`theory.noise_floor`), dashes their first order in the learning rate,
:math:`\eta\sigma^2(K - M + M/\sqrt3)/(2\pi)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures.labels import size_of
from figures.legends import line_with_points
from figures.published.helpers import parallel_axes
from figures.style import PAGE, THEORY, look_of, points, styled, theory_line
from statmech.results.dataset import scenario_of
from theory import noise_floor

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

ALONG = ("M", "K")
AXES = ("_".join(ALONG),)  # of the sweep, that this figure shows
CAPTION = (
    r"Generalization error in the stationary state of networks that learn from noisy labels, against the number $K$ of "
    r"student units, for teachers of $M$ units. Dashed: to first order in the learning rate."
)
LINES = r"Dashes: fixed points of the equations, $N\to\infty$."


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """One colour per M."""
    parallel_axes.check("noise_floor", theory, ALONG)
    floors = np.ravel(noise_floor(scenario_of(theory)))
    figure = Figure(figsize=(PAGE, 3.6))
    ax, keys = figure.add_subplot(), []
    for index, M in enumerate(dict.fromkeys(theory.M.values.tolist())):
        own = theory.M.values == M
        K, runs = theory.K.values[own], simulation.eps_g.isel({AXES[0]: own, "t": -1})
        colour = look_of(index)["color"]
        theory_line(ax, K, 1e4 * floors[own], discrete=True, color=colour)
        _first_order(ax, simulation, M, K, colour)
        points(ax, K, 1e4 * runs, index)
        keys.append(line_with_points(index, f"$M$ = {M}"))
    keys.append(Line2D([], [], color=THEORY, linestyle=":", label=r"first order in $\eta$"))
    ax.set(xlabel="number of student units $K$", ylabel=r"stationary $\epsilon_g$ ($10^{-4}$)", ylim=(0, None))
    ax.set_xticks(sorted(set(theory.K.values.tolist())))
    rates = f"$\\eta$ = {theory.eta.item():g}, $\\sigma$ = {theory.sigma.item():g}"
    figure.suptitle(f"{rates}, {size_of(simulation)}, $t$ = {float(simulation.t[-1]):g}", fontsize=8)
    figure.legend(handles=keys, loc="outside lower center", ncols=len(keys))
    return figure


def _first_order(ax: Axes, simulation: xr.Dataset, M: int, K: np.ndarray, colour: str) -> None:
    rate = simulation.eta.item() * simulation.sigma.item() ** 2 / (2 * np.pi)
    ax.plot(K, 1e4 * rate * (K - M + M / np.sqrt(3)), linestyle=":", linewidth=0.9, color=colour)
