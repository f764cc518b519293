r"""Separability: the fraction of data sets that can be separated, beside the threshold, and the student's length."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.panels import along, finish, guide, page, panel
from figures.style import COLOURS, THEORY
from theory import separability

AXES = ("gain", "alpha")  # of the sweep, that this figure shows
PLACES = 60  # of the line of the threshold
CAPTION = (
    r"Logistic regression of labels of a logit teacher. Left: where examples can be separated by some student, so that "
    r"logistic regression without a penalty has no solution (left of the line, theory for $N\to\infty$); the "
    r"filled part of a point is the fraction of data sets that are separable. Right: length of the student with a "
    r"small penalty; it diverges with $1/\lambda$ below the threshold (dotted) only."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the threshold and the fractions of separable data sets, and the length of the student."""
    results, (figure, (left, right)) = along(simulation, theory, "alpha"), page(3.4, 1, 2)
    _thresholds(left, simulation)
    keys = panel(right, results, "alpha", "length", "gain", label=r"length $l=|\mathbf{w}|/\sqrt{N}$", log="y")
    for key, gain in zip(keys, theory.gain.values, strict=True):
        guide(right, x=float(separability("logit", gain=float(gain))), color=key.get_color())
    right.set_xlim(left.get_xlim())
    return finish(figure, results, keys, "lam")


def _thresholds(ax: Axes, simulation: xr.Dataset) -> None:
    """Draw the line alpha_c(gain), and at each parameter combination a pie of the fraction of separable data sets."""
    gains = np.linspace(0, 1.15 * float(simulation.gain.max()), PLACES)
    ax.plot(separability("logit", gain=gains), gains, color=THEORY)
    for share in simulation.separable.mean("seed").stack(cell=("gain", "alpha")).transpose("cell", ...):
        _pie(ax, float(share.alpha), float(share.gain), float(share.squeeze()))
    low, high = float(simulation.alpha.min()), float(simulation.alpha.max())
    margin = 0.05 * (high - low)
    ax.set(xlabel=r"$\alpha=P/N$", ylabel="gain of the teacher", xlim=(low - margin, high + margin))


def _pie(ax: Axes, x: float, y: float, share: float) -> None:
    """Draw a circle of which this fraction is filled."""
    look: dict[str, Any] = {"markersize": 6, "markeredgewidth": 0, "linestyle": "none", "zorder": 3}
    ax.plot([x], [y], marker="o", color="0.8", **look)
    if share > 0:
        angle = np.pi / 2 - 2 * np.pi * share * np.linspace(0, 1, 33)
        wedge = np.column_stack([np.append(0, np.cos(angle)), np.append(0, np.sin(angle))])
        ax.plot([x], [y], marker="o" if share == 1 else wedge, color=COLOURS[0], **look)
