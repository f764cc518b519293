r"""Separability: the fraction of data sets that can be separated, beside the threshold, and the student's length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from figures.inspection import AID
from figures.labels import size_of
from figures.legends import line_with_points
from figures.published.dense_theory import dense
from figures.style import PAGE, log_ticks, look_of, points, styled
from theory import separability

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

AXES = ("gain", "alpha")  # of the sweep, that this figure shows
PLACES = 60  # of the line of the threshold
CAPTION = (
    r"Logistic regression of labels of a logit teacher. Left: where examples can be separated by some student, so that "
    r"logistic regression without a penalty has no solution (left of the line, theory for $N\to\infty$); the "
    r"filled part of a point is the fraction of data sets that are separable. Right: length of the student with a "
    r"small penalty; it diverges with $1/\lambda$ below the threshold (dotted) only."
)


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """The threshold and the fractions of separable data sets on the left, the student's length on the right."""
    figure = Figure(figsize=(PAGE, 3.4))
    left, right = figure.subplots(1, 2)
    _thresholds(left, simulation)
    lines, keys = dense(theory, "alpha"), []
    for index, gain in enumerate(theory.gain.values):
        line, runs = lines.sel(gain=gain), simulation.sel(gain=gain)
        right.plot(line.alpha, line.Q, color=look_of(index)["color"])
        points(right, runs.alpha, runs.Q, index)
        right.axvline(
            separability("logit", gain=float(gain)),
            linestyle=":",
            linewidth=0.8,
            color=look_of(index)["color"],
            gid=AID,
        )
        keys.append(line_with_points(index, f"gain = {gain:g}"))
    right.set(yscale="log", xlabel=r"$\alpha=P/N$", ylabel=r"length $Q=|\mathbf{w}|/\sqrt{N}$")
    right.set_xlim(left.get_xlim())
    log_ticks(right.yaxis)
    figure.legend(handles=keys, loc="outside lower center", ncols=len(keys))
    figure.suptitle(f"$\\lambda$ = {theory.lam.item()}, {size_of(simulation)}", fontsize=8)
    return figure


def _thresholds(ax: Axes, simulation: xr.Dataset) -> None:
    """The line alpha_c(gain), and at each parameter combination a pie of the fraction of separable data sets."""
    gains = np.linspace(0, 1.15 * float(simulation.gain.max()), PLACES)
    ax.plot(separability("logit", gain=gains), gains, color="0.25")
    share = simulation.separable.mean("seed")
    for gain in simulation.gain.values:
        for alpha in simulation.alpha.values:
            _pie(ax, alpha, gain, float(share.sel(gain=gain, alpha=alpha)))
    low, high = float(simulation.alpha.min()), float(simulation.alpha.max())
    margin = 0.05 * (high - low)
    ax.set(xlabel=r"$\alpha=P/N$", ylabel="gain of the teacher", xlim=(low - margin, high + margin))


def _pie(ax: Axes, x: float, y: float, share: float) -> None:
    """A circle of which this fraction is filled."""
    look: dict[str, Any] = {"markersize": 6, "markeredgewidth": 0, "linestyle": "none", "zorder": 3}
    ax.plot([x], [y], marker="o", color="0.8", **look)
    if share > 0:
        angle = np.pi / 2 - 2 * np.pi * share * np.linspace(0, 1, 33)
        wedge = np.column_stack([np.append(0, np.cos(angle)), np.append(0, np.sin(angle))])
        ax.plot([x], [y], marker="o" if share == 1 else wedge, color="#0072B2", **look)
