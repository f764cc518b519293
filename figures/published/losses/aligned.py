r"""Aligned teachers: the error against the penalty, and the best penalty against the teacher's alignment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.legends import entry
from figures.panels import dense, finish, guide, page, panel, with_lines
from figures.style import THEORY
from statmech.errors import ConfigError
from statmech.inputs import Spectrum
from statmech.results.dataset import scenario_of
from statmech.scenarios.axes import points
from theory.convex.best_penalty import best_of

AXES = ("inputs", "lam")  # of the sweep, that this figure shows
NEEDS = ("noise", "R_field")
PLACES = 121  # of the line
CAPTION = (
    r"Least squares on inputs with two variances. (a) Mean squared error against the penalty, for three parts of "
    r"the teacher's squared length in the directions of the larger variance; stars: minima. (b) The best penalty "
    r"against that part. Dotted: a teacher without a preferred direction, for which it is the variance of the noise; "
    r"where it is 0 the error still falls as the penalty vanishes, and a negative one would be better."
)
MINIMUM: dict[str, Any] = {"marker": "*", "markersize": 9, "markeredgewidth": 0, "linestyle": "none"}


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw one colour per teacher, and the best penalty of all between them."""
    laws = points(scenario_of(theory).inputs)
    if len(laws) < 2 or not all(isinstance(law, Spectrum) and len(law.eigenvalues) == 2 for law in laws):
        raise ConfigError("aligned needs several inputs: {spectrum: ...}, each of two variances")
    lines, (figure, (error, best)) = dense(theory, "lam"), page(3.0, 1, 2)
    results = with_lines(simulation, theory, lines)
    keys = panel(error, results, "lam", "mse", "inputs", label="mean squared error", log="x")
    for at, (key, law) in enumerate(zip(keys, laws, strict=True)):
        key.set_label(f"{100 * _part(law):.0f} % of the teacher where inputs vary more")
        line, lam = lines.isel(inputs=at), float(theory.lam_best.isel(inputs=at).values.flat[0])
        if float(line.lam[0]) <= lam <= float(line.lam[-1]):
            height = np.interp(np.log(lam), np.log(line.lam), line.mse.values.ravel())
            error.plot(lam, height, color=key.get_color(), **MINIMUM)
        best.plot(_part(law), lam, color=key.get_color(), clip_on=False, **MINIMUM)
    _bests(best, theory, laws[0])
    return finish(figure, results, [*keys, entry("best penalty", color=THEORY, **MINIMUM)], "alpha", "noise", columns=2)


def _part(law: Spectrum) -> float:
    """The part of the teacher's squared length in the directions of the larger variance."""
    T = law.modes(1).teacher
    assert T is not None
    return float(T[np.argmax(law.eigenvalues)])


def _bests(ax: Axes, theory: xr.Dataset, law: Spectrum) -> None:
    """Draw the best penalty against the teacher's part in the directions of the larger variance."""
    first, part = next(iter(scenario_of(theory).cells())), np.linspace(0.02, 0.98, PLACES)
    larger = np.argmax(law.eigenvalues) == 1
    teachers = [(1 - T, T) if larger else (T, 1 - T) for T in part.tolist()]
    cells = [replace(first, inputs=replace(law, teacher=teacher)) for teacher in teachers]
    lam = [best_of([cell])[cell.alpha] for cell in cells]
    ax.plot(part, lam, color=THEORY, zorder=1, clip_on=False)
    guide(ax, x=_part(replace(law, teacher="random")), y=first.teacher.noise**2)
    ax.set_yscale("symlog", linthresh=0.01)
    ax.set_ylim(0, None)
    ax.set_xlabel("teacher's part where inputs vary more")
    ax.set_ylabel(r"best penalty $\lambda^*$")
