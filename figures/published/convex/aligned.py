r"""Aligned teachers: the error against the penalty, and the best penalty against the teacher's alignment."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.legends import make_line_handle
from figures.panels import (
    add_title_and_legend,
    combine_with_lines,
    draw_guide,
    draw_panel,
    make_figure,
    solve_dense_theory,
)
from figures.style import MINIMUM_STAR_STYLE, THEORY_COLOUR
from statmech.errors import ConfigError
from statmech.inputs.input_distributions import Spectrum
from statmech.keys.sweep_grid import ensure_tuple
from statmech.stores.dataset import scenario_from_dataset
from theory.convex.best_lambda import find_best_group_lambdas

AXES = ("inputs", "lam")  # sweep axes that this figure shows
SUPPORTED_VALUES = {"loss": ("square",)}
REQUIRED_VARIABLES = ("noise", "R_field")
TEACHER_PART_POINTS = 121
CAPTION = (
    r"Least squares on inputs with two variances. (a) Mean squared error against the penalty, for several fractions "
    r"$T$ of the teacher's squared length in the directions of larger variance; stars: minima. (b) The best penalty "
    r"against $T$, on a square-root scale. Dotted: a teacher without a preferred direction, whose best penalty is the "
    r"variance of the noise. Where the best penalty is 0, the error still decreases as the penalty vanishes, and a "
    r"negative penalty would be better."
)
BEST_PENALTY_TICKS = (0, 0.01, 0.05, 0.2, 0.5, 1)
TEACHER_FRACTION_NOTE = "$T$: teacher's part in directions of larger variance"


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the error of each teacher, and the best penalty against the teacher's alignment."""
    spectra = ensure_tuple(scenario_from_dataset(theory).inputs)
    if len(spectra) < 2 or any(spectrum.num_variance_groups != 2 for spectrum in spectra):
        raise ConfigError('the figure "aligned" requires several inputs `{spectrum: ...}`, each with two variances')
    lines, (figure, (error, best)) = solve_dense_theory(theory, "lam"), make_figure(3.0, 1, 2)
    results = combine_with_lines(simulation, theory, lines)
    keys = draw_panel(error, results, "lam", "mse", "inputs", label="mean squared error", log="x")
    for index, (key, spectrum) in enumerate(zip(keys, spectra, strict=True)):
        key.set_label(f"$T$ = {_get_aligned_teacher_fraction(spectrum):.2g}")
        line, lam = lines.isel(inputs=index), float(theory.lam_best.isel(inputs=index).values.flat[0])
        if float(line.lam[0]) <= lam <= float(line.lam[-1]):
            height = np.interp(np.log(lam), np.log(line.lam), line.mse.values.ravel())
            error.plot(lam, height, color=key.get_color(), **MINIMUM_STAR_STYLE)
        best.plot(
            _get_aligned_teacher_fraction(spectrum), lam, color=key.get_color(), clip_on=False, **MINIMUM_STAR_STYLE
        )
    _draw_best_penalty_curve(best, theory, spectra[0])
    marks = [*keys, make_line_handle("best penalty", **MINIMUM_STAR_STYLE)]
    return add_title_and_legend(figure, results, marks, "alpha", "noise", note=TEACHER_FRACTION_NOTE)


def _get_aligned_teacher_fraction(spectrum: Spectrum) -> float:
    """Return the fraction of the teacher's squared length in the directions of larger variance."""
    T = spectrum.modes(1).teacher
    assert T is not None
    return float(T[np.argmax(spectrum.eigenvalues)])


def _draw_best_penalty_curve(ax: Axes, theory: xr.Dataset, spectrum: Spectrum) -> None:
    """Draw the best penalty against the teacher's fraction in the directions of larger variance."""
    first, larger = next(iter(scenario_from_dataset(theory).cells())), np.argmax(spectrum.eigenvalues) == 1

    def find_best_lambda(T: float) -> float:
        cell = replace(first, inputs=replace(spectrum, teacher=(1 - T, T) if larger else (T, 1 - T)))
        return find_best_group_lambdas([cell])[0]

    part = np.linspace(0.02, 0.98, TEACHER_PART_POINTS)
    lam = np.vectorize(find_best_lambda)(part)
    last = np.flatnonzero(lam > 0)[-2:]
    if len(last) == 2 and lam[-1] == 0:  # extrapolates the line to a best penalty of 0
        end = part[last[1]] + lam[last[1]] * (part[last[1]] - part[last[0]]) / (lam[last[0]] - lam[last[1]])
        part = np.array([*part[lam > 0], end, np.nan, end, part[-1]])
        lam = np.array([*lam[lam > 0], 0, np.nan, 0, 0])
    ax.plot(part, lam, color=THEORY_COLOUR, zorder=1, clip_on=False)
    draw_guide(ax, x=_get_aligned_teacher_fraction(replace(spectrum, teacher="random")), y=first.teacher.noise**2)
    ax.set_yscale("function", functions=(np.sqrt, np.square))
    ax.set(ylim=(0, None), yticks=BEST_PENALTY_TICKS, xlabel="teacher's part $T$")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set_ylabel(r"best penalty $\lambda^*$")
