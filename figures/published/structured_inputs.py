"""Figures of inputs with structure: two variances, power-law variances, and random features."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.panels import (
    GUIDE_STYLE,
    add_title_and_legend,
    combine_with_lines,
    draw_guide,
    draw_panel,
    make_figure,
    make_line_handle,
    modify_scenario,
    solve_dense_theory,
)
from figures.published_figure import PublishedFigure
from figures.style import MINIMUM_STAR_STYLE, THEORY_COLOUR
from statmech.errors import ConfigError
from statmech.inputs.input_distributions import Spectrum, inputs_to_config
from statmech.keys.sweep_grid import ensure_tuple
from statmech.stores.dataset import scenario_from_dataset
from theory.convex.best_lambda import find_best_group_lambdas
from theory.solutions import solve_line

TEACHER_PART_POINTS = 121
BEST_PENALTY_TICKS, STAR_ROOM = (0, 0.02, 0.1, 0.3, 1), -0.004
TEACHER_FRACTION_NOTE = (
    r"lines: theory, $N\to\infty$; $T$: fraction of the teacher in the directions of larger variance; "
    r"$\sigma$: noise of the outputs; (b): square-root scale"
)


def draw_aligned(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the error of each teacher, and the best penalty against the teacher's alignment."""
    spectra = ensure_tuple(scenario_from_dataset(theory).inputs)
    if len(spectra) < 2 or any(spectrum.num_variance_groups != 2 for spectrum in spectra):
        raise ConfigError('the figure "aligned" requires several inputs `{spectrum: ...}`, each with two variances')
    lines, (figure, (error, best)) = solve_dense_theory(theory, "lam"), make_figure(3.0, 1, 2)
    results = combine_with_lines(simulation, theory, lines)
    keys = draw_panel(error, results, "lam", "mse", "inputs", log="x")
    for index, (key, spectrum) in enumerate(zip(keys, spectra, strict=True)):
        line, lam = lines.isel(inputs=index), float(theory.lam_best.isel(inputs=index).values.flat[0])
        key.set_label(f"$T$ = {_get_aligned_teacher_fraction(spectrum):.2g}" + r", best $\lambda$ = 0" * (lam == 0))
        if float(line.lam[0]) <= lam <= float(line.lam[-1]):
            height = np.interp(np.log(lam), np.log(line.lam), line.mse.values.ravel())
            error.plot(lam, height, color=key.get_color(), **MINIMUM_STAR_STYLE)
        best.plot(
            _get_aligned_teacher_fraction(spectrum), lam, color=key.get_color(), clip_on=False, **MINIMUM_STAR_STYLE
        )
    _draw_best_penalty_curve(best, theory, spectra[0])
    isotropic_teacher = make_line_handle("no preferred direction", **GUIDE_STYLE)
    marks = [*keys, make_line_handle("best penalty", **MINIMUM_STAR_STYLE), isotropic_teacher]
    return add_title_and_legend(figure, results, marks, "alpha", "noise", note=TEACHER_FRACTION_NOTE)


aligned = PublishedFigure(
    draw=draw_aligned,
    axes=("inputs", "lam"),
    supported_values={"loss": ("square",)},
    required_variables=("noise", "R_field"),
    caption=(
        r"Least squares on inputs with two variances. (a) Mean squared error against the penalty, for several "
        r"fractions $T$ of the teacher's squared length in the directions of larger variance; stars: minima. (b) The "
        r"best penalty against $T$, on a square-root scale. Dotted: a teacher without a preferred direction, whose "
        r"best penalty is the variance of the noise. Where the best penalty is 0, the error still decreases as the "
        r"penalty vanishes, and a negative penalty would be better."
    ),
)


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
    draw_guide(ax, x=_get_aligned_teacher_fraction(replace(spectrum, teacher="random")))
    ax.set_yscale("function", functions=(lambda y: np.sign(y) * np.abs(y) ** 0.5, lambda root: root * np.abs(root)))
    ax.set(ylim=(STAR_ROOM, None), yticks=BEST_PENALTY_TICKS, xlabel="alignment of the teacher $T$")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set_ylabel(r"best penalty $\lambda$")


WIDTH_AXIS = "N_inputs_alpha"  # keys that are swept in parallel (`zip`)
# grid over all widths, and factors around the peak
WIDTH_LINE_POINTS = 121
WIDTH_PEAK_FACTORS = 10 ** np.linspace(-0.1, 0.1, 61)
MIN_DRAWN_LOSS = 1e-12  # smaller training losses are rounding errors
PENALTY_NOTE = (
    r"$\lambda$: penalty; $D$: latent variables; $N$: random features; $P$: examples; off the lines: finite $D$; "
    r"$\lambda=0$ stores all examples for $N>P$"
)
ERROR_PANEL_LABELS = {"mse": "mean squared error", "train_loss": "training loss"}


def draw_random_features(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the error and the training loss against N/P, one colour per penalty."""
    if WIDTH_AXIS not in theory.dims or "latent" not in theory.coords:
        raise ConfigError(
            'the figure "random_features" requires N, alpha and inputs `{features: ...}` in parallel, under `zip`'
        )
    runs = simulation.assign(train_loss=simulation.train_loss.where(simulation.train_loss > MIN_DRAWN_LOSS))
    D, P = _count_latent_variables(theory), int(theory.P.values.flat[0])
    parts = [
        part.assign_coords(width=D / part.latent / P).swap_dims({WIDTH_AXIS: "width"})
        for part in (runs, theory, _solve_at_dense_widths(theory))
    ]
    lowest = float(runs.train_loss.mean("seed").min()) / 2  # the line that falls to 0 at N = P ends at the axis
    loss = parts[2].train_loss.where(parts[2].train_loss > MIN_DRAWN_LOSS)
    parts[2]["train_loss"] = loss.fillna(lowest).where(loss.notnull() | (loss.width.round(9) == 1))
    results, (figure, axes) = combine_with_lines(*parts), make_figure(3.0, 1, 2)
    for ax, (name, label) in zip(axes, ERROR_PANEL_LABELS.items(), strict=True):
        keys = draw_panel(ax, results, "width", name, "lam", label=label, log="xy")
        draw_guide(ax, x=1, color="0.3", text="$N=P$")
        ax.set_xlabel("$N/P$ (features / examples)")
    axes[1].set_ylim(lowest, None)
    return add_title_and_legend(figure, results, keys, "loss", "teacher", f"$D$ = {D}", f"$P$ = {P}", note=PENALTY_NOTE)


random_features = PublishedFigure(
    draw=draw_random_features,
    axes=("lam", WIDTH_AXIS),
    supported_values={"loss": ("square",)},
    caption=(
        r"Least squares on $N$ random features of $D$ latent variables; the outputs are a linear function of the "
        r"latent variables. (a) Mean squared error; (b) mean loss of the examples. Without a penalty ($\lambda=0$) the "
        r"error peaks where the number of features equals the number of examples (dotted), and decreases again for "
        r"more features; the training loss is then 0 and is not drawn. Theory is the limit of many latent variables at "
        r"the same $N/P$ and $D/N$."
    ),
)


def _count_latent_variables(theory: xr.Dataset) -> int:
    """Return the number of latent variables, the same for all widths."""
    return round(float(theory.latent.values[0] * theory.N.values[0]))


def _solve_at_dense_widths(theory: xr.Dataset) -> xr.Dataset:
    """Solve theory on a grid of widths that is dense around the peak.

    Theory accepts any width, including fractions.
    """
    N, P, D = theory.N.values, int(theory.P.values.flat[0]), _count_latent_variables(theory)
    near = np.clip(P * WIDTH_PEAK_FACTORS, N.min(), N.max())
    widths = np.union1d(np.geomspace(N.min(), N.max(), WIDTH_LINE_POINTS), near).tolist()
    features_config: dict[str, Any] = inputs_to_config(scenario_from_dataset(theory).inputs[0])["features"]
    inputs = [{"features": {**features_config, "latent": D / width}} for width in widths]
    numbers = [10**6 + index for index in range(len(widths))]  # arbitrary distinct numbers, as theory uses only ratios
    return solve_line(
        modify_scenario(theory, zip=[{"N": numbers, "alpha": [P / width for width in widths], "inputs": inputs}])
    )
