"""Finite-N corrections to online learning: bias and variance of the error, and the distribution of single runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.panels import (
    add_title_and_legend,
    draw_guide,
    make_figure,
    make_line_handle,
    make_points_handle,
    modify_scenario,
    set_log_axes,
)
from figures.published_figure import PublishedFigure
from figures.style import THEORY_COLOUR, draw_mean_points, get_curve_style, get_kind_label, nested_marker_size
from statmech.errors import ConfigError
from statmech.numerics.gaussian import normal_density
from statmech.results.comparison import predict_mean_and_std
from theory.solutions import solve_line

NUM_LINE_TIMES, LINE_TIME_FACTOR, LIMIT_TIME = 120, 20, 1e5  # lines end at LINE_TIME_FACTOR times the last time
Z_BIN_WIDTH, MAX_BINNED_Z = 0.6, 4.2  # bins of z
FLUCTUATIONS_NOTE = (
    r"$\epsilon$: error of a run; $z$: its deviation from the predicted mean, in predicted standard deviations; "
    "small $N$ off the lines: order $1/N^2$; points of one $N$ are the same runs at all $t$; no point: empty bin"
)
MAX_DRAWN_SCALED_BIAS_ERROR = 0.1  # points with a larger standard error of the bias times N are omitted


def draw_fluctuations(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw bias, variance and distribution in three rows, one column per rule.

    To order 1/N theory has one line for all N: N (mean - eps_g)/eps_g and N var/eps_g^2 do not depend on N and tend to
    constants at late times. Deviations from the predicted mean, divided by the predicted standard deviation, are
    normal.
    """
    if "eps_g_std" not in theory:
        raise ConfigError('the figure "fluctuations" requires `corrections: true`')
    rules, lines = [str(rule) for rule in theory.rule.values], _solve_until_late_times(theory)
    shows_bias = np.zeros(len(theory.N), bool)
    figure, axes = make_figure(6.5, 3, len(rules), sharex="row", sharey="row", squeeze=False)
    for column, rule in zip(axes.T, rules, strict=True):
        runs = simulation.sel(rule=rule).eps_g
        _draw_theory_bias_and_variance(column, lines.sel(rule=rule))
        for index, N in enumerate(theory.N.values):
            rule_runs, cell = runs.sel(N=N).isel(student=0), theory.sel(rule=rule, N=N).isel(student=0)
            shows_bias[index] |= _draw_bias_and_variance(column, rule_runs, cell.eps_g, index, len(theory.N))
            _draw_standardised_density_points(column[2], rule_runs.isel(t=-1), cell.isel(t=-1), index, len(theory.N))
        column[0].set_title(get_kind_label(rule))
    _label_axes(axes, float(theory.t.values[-1]))
    lower_panels = f" in ({chr(ord('a') + len(rules))}) to ({chr(ord('a') + 3 * len(rules) - 1)})"
    panel_texts = zip(theory.N.values, np.where(shows_bias, "", lower_panels), strict=True)
    sizes = [f"simulation, $N$ = {N:,}{text}" for N, text in panel_texts]
    keys: list[Any] = [
        make_points_handle(label, **get_curve_style(index) | nested_marker_size(index, len(sizes)))
        for index, label in enumerate(sizes)
    ]
    keys += [make_line_handle("theory to order $1/N$; normal density")]
    keys += [make_line_handle(r"limit $t\to\infty$", color="0.5", linestyle=":", linewidth=1)]
    return add_title_and_legend(figure, simulation, keys, columns=3, note=FLUCTUATIONS_NOTE)


fluctuations = PublishedFigure(
    draw=draw_fluctuations,
    axes=("rule", "N"),
    caption=(
        r"Runs at finite $N$ and theory to order $1/N$. Top: bias of $\epsilon_g$ relative to its value at $N=\infty$, "
        r"times $N$, where its standard error is below 0.1. Middle: variance of $\epsilon_g$ divided by "
        r"$\epsilon_g^2$, times $N$. Theory has one line for all $N$; dotted: its limit $t\to\infty$, taken at "
        r"$t=10^5$. Bottom: distribution, at the last recorded time, of the deviation of a run from the predicted mean "
        r"in units of the predicted standard deviation; line: normal density. Markers of smaller $N$ are larger to "
        r"remain visible."
    ),
    points_caption="Points: simulation; bars: standard errors.",
    lines_caption="Lines: theory to order $1/N$.",
)


def _solve_until_late_times(theory: xr.Dataset) -> xr.Dataset:
    """Solve theory at one N, from the first recorded time to late times.

    The last time represents the limit of late times.
    """
    first = max(float(theory.t.values[theory.t.values > 0][0]), 1e-2)
    times = [*np.geomspace(first, LINE_TIME_FACTOR * float(theory.t.values[-1]), NUM_LINE_TIMES).tolist(), LIMIT_TIME]
    rules, N = [str(rule) for rule in theory.rule.values], int(theory.N.values[0])
    return solve_line(modify_scenario(theory, rule=rules, N=N, t=times)).isel(student=0)


def _draw_theory_bias_and_variance(axes_column: Any, line: xr.Dataset) -> None:
    """Draw the scaled bias and variance of theory, with their limits for late times."""
    scaled = line.N * line.eps_g_bias / line.eps_g, line.N * (line.eps_g_std / line.eps_g) ** 2
    for ax, values in zip(axes_column[:2], scaled, strict=True):
        ax.plot(line.t[:-1], values[:-1], color=THEORY_COLOUR, zorder=1)
        draw_guide(ax, y=float(values[-1]), linewidth=1)


def _draw_bias_and_variance(
    axes_column: Any, runs: xr.DataArray, limit_error: xr.DataArray, index: int, num_sizes: int
) -> bool:
    """Draw the scaled bias and variance of the runs at one N, and return True if a bias is precise enough."""
    runs, limit_error = runs.sel(t=runs.t > 0), limit_error.sel(t=limit_error.t > 0)
    N, seeds, spread = int(runs.N), runs.sizes["seed"], runs - runs.mean("seed")
    variance = (spread**2).sum("seed") / max(seeds - 1, 1)
    variance_error = np.sqrt(((spread**4).mean("seed") - variance**2).clip(0) / seeds)
    t, style = runs.t, get_curve_style(index) | nested_marker_size(index, num_sizes)
    bias, error = N * (runs.mean("seed") - limit_error) / limit_error, N * np.sqrt(variance / seeds) / limit_error
    draw_mean_points(axes_column[0], t, bias.where(error < MAX_DRAWN_SCALED_BIAS_ERROR), error, style)
    draw_mean_points(axes_column[1], t, N * variance / limit_error**2, N * variance_error / limit_error**2, style)
    return bool((error < MAX_DRAWN_SCALED_BIAS_ERROR).any())


def _draw_standardised_density_points(
    ax: Axes, runs: xr.DataArray, theory: xr.Dataset, index: int, num_sizes: int
) -> None:
    """Draw the density of z of the runs at one N, with standard errors of the counts.

    Empty bins are omitted.
    """
    mean, std = predict_mean_and_std(theory, "eps_g")
    assert std is not None
    z = (runs.values - mean.item()) / std.item()
    count, edges = np.histogram(z, np.arange(-MAX_BINNED_Z, MAX_BINNED_Z + Z_BIN_WIDTH / 2, Z_BIN_WIDTH))
    is_filled, scale = count > 0, z.size * Z_BIN_WIDTH
    centres = (edges[:-1] + edges[1:])[is_filled] / 2
    low = np.minimum(np.sqrt(count[is_filled]), 0.7 * count[is_filled]) / scale
    style = get_curve_style(index) | nested_marker_size(index, num_sizes)
    draw_mean_points(ax, centres, count[is_filled] / scale, [low, np.sqrt(count[is_filled]) / scale], style)


def _label_axes(axes: Any, last_time: float) -> None:
    bias, variance, distribution = axes
    bias[0].set_ylabel(r"$N\,(\langle\epsilon\rangle-\epsilon_g)\,/\,\epsilon_g$")
    variance[0].set_ylabel(r"$N\,\mathrm{var}(\epsilon)\,/\,\epsilon_g^2$")
    distribution[0].set_ylabel("density of $z$")
    z = np.linspace(-MAX_BINNED_Z, MAX_BINNED_Z, 200)
    for ax in distribution:
        ax.plot(z, normal_density(z), color=THEORY_COLOUR, zorder=1)
        ax.set(yscale="log", xlabel=f"$z$ of a run at $t={last_time:g}$")
    for ax in (*bias, *variance):
        ax.set_xlabel("$t$ (steps / $N$)")
        set_log_axes(ax, "x")
