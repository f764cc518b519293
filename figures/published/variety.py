"""Figure 4 of Miyoshi, Hara & Okada: the relation of R and q.

The lower q is at a given R, the more the students differ when they know equally much, and the more an ensemble gains.
AdaTron lies lowest. No ensemble of equal students in the limit lies below q = R^2, where they would share nothing but
the teacher; on q = R and above, an infinite ensemble gains little or nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from figures.style import COLUMN, label_of, look_of, points, spread, styled

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

AXES = ("rule",)  # of the sweep, that this figure shows


def panel(ax: Axes, simulation: xr.Dataset, theory: xr.Dataset) -> None:
    """R against q, theory as lines along t, simulation as points with the standard errors of both."""
    R = np.linspace(0, 1, 101)
    ax.plot(R, R**2, linestyle=":", color="0.5", linewidth=1, label="$q=R^2$", zorder=0)
    for index, rule in enumerate(theory.rule.values):
        line, cloud = theory.sel(rule=rule).isel(student=0), simulation.sel(rule=rule).mean("student")
        ax.plot(line.R, line.q, color=look_of(index)["color"], label=label_of(str(rule)))
        points(ax, cloud.R.mean("seed"), cloud.q, index, xerr=spread(cloud.R))
    ax.set(
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
        xlabel="$R$ (teacher, student)",
        ylabel="$q$ (student, student)",
    )


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """R against q for every rule of the sweep."""
    figure = Figure(figsize=(COLUMN, 2.9))
    ax = figure.add_subplot()
    panel(ax, simulation, theory)
    ax.set_title("points: simulation, lines: theory")
    ax.legend(loc="upper left")
    return figure
