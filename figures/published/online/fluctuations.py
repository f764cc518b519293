r"""Fluctuations of order 1/N: bias and variance of eps_g times N against t, and the distribution of single runs.

To order 1/N theory has one line for all N: N (mean - eps_g)/eps_g and N var/eps_g^2 do not depend on N and tend to
constants at late times. Deviations from the predicted mean, divided by the predicted standard deviation, are normal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.legends import entry, points_with_bars
from figures.panels import finish, guide, logarithmic, page, scenario_with
from figures.style import THEORY, label_of, look_of, mean_points, nested_size
from statmech.errors import ConfigError
from statmech.numerics.gaussian import density
from statmech.results.corrections import predicted
from theory.solutions import solve_line

AXES = ("rule", "N")  # sweep axes that this figure shows
PLACES, BEYOND, LATE = 120, 20, 1e5  # lines end at this multiple of the last time
WIDTH, FARTHEST = 0.6, 4.2  # bins of z
NOISE = 0.1  # points with a larger standard error of the bias times N are omitted
CAPTION = (
    r"Runs at finite $N$ and theory to order $1/N$. Above: bias of $\epsilon_g$ over its value at $N=\infty$, times "
    r"$N$, where its standard error is below 0.1. Middle: its variance over $\epsilon_g^2$, times $N$. Theory has one "
    r"line for all $N$; dotted: its limit $t\to\infty$, taken at $t=10^5$. Below: the distribution, at the last "
    r"recorded time, of the deviation of a run from the predicted mean over the predicted standard deviation; line: "
    r"the normal density. Markers of smaller $N$ are larger to remain visible."
)
POINTS = "Points: simulation; bars: standard errors."
LINES = "Lines: theory to order $1/N$."


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw bias, variance and distribution below each other, a column per rule."""
    if "eps_g_std" not in theory:
        raise ConfigError("the figure fluctuations needs `corrections: true`")
    rules, lines = [str(rule) for rule in theory.rule.values], _lines(theory)
    figure, axes = page(6.2, 3, len(rules), sharex="row", sharey="row", squeeze=False)
    for column, rule in zip(axes.T, rules, strict=True):
        runs, rule_theory = (part.sel(rule=rule).eps_g for part in (simulation, theory))
        _theory(column, lines.sel(rule=rule))
        for index, N in enumerate(theory.N.values):
            rule_runs, cell = runs.sel(N=N).isel(student=0), theory.sel(rule=rule, N=N).isel(student=0)
            _points(column, rule_runs, rule_theory.sel(N=N).isel(student=0), index, len(theory.N))
            _distribution(column[2], rule_runs.isel(t=-1), cell.isel(t=-1), index)
        column[0].set_title(label_of(rule))
    _label(axes, float(theory.t.values[-1]))
    sizes = [f"simulation, $N$ = {N:,}" for N in theory.N.values.tolist()]
    keys: list[Any] = [points_with_bars(label, **look_of(index)) for index, label in enumerate(sizes)]
    keys += [entry("theory to order $1/N$; normal density")]
    keys += [entry(r"limit $t\to\infty$", color="0.5", linestyle=":", linewidth=1)]
    return finish(figure, simulation, keys, columns=3)


def _lines(theory: xr.Dataset) -> xr.Dataset:
    """Solve theory at one N, from the first recorded time to late times.

    The last time represents the limit.
    """
    first = max(float(theory.t.values[theory.t.values > 0][0]), 1e-2)
    times = [*np.geomspace(first, BEYOND * float(theory.t.values[-1]), PLACES).tolist(), LATE]
    rules, N = [str(rule) for rule in theory.rule.values], int(theory.N.values[0])
    return solve_line(scenario_with(theory, rule=rules, N=N, t=times)).isel(student=0)


def _theory(column: Any, line: xr.Dataset) -> None:
    """Draw bias and variance in theory, times N and relative to eps_g, with their limits."""
    scaled = line.N * line.eps_g_bias / line.eps_g, line.N * (line.eps_g_std / line.eps_g) ** 2
    for ax, values in zip(column[:2], scaled, strict=True):
        ax.plot(line.t[:-1], values[:-1], color=THEORY, zorder=1)
        guide(ax, y=float(values[-1]), linewidth=1)


def _points(column: Any, runs: xr.DataArray, limit: xr.DataArray, index: int, count: int) -> None:
    """Draw bias and variance of the runs at one N, times N, with standard errors."""
    runs, limit = runs.sel(t=runs.t > 0), limit.sel(t=limit.t > 0)
    N, seeds, spread = int(runs.N), runs.sizes["seed"], runs - runs.mean("seed")
    variance = (spread**2).sum("seed") / max(seeds - 1, 1)
    variance_error = np.sqrt(((spread**4).mean("seed") - variance**2).clip(0) / seeds)
    t, style = runs.t, look_of(index) | nested_size(index, count)
    bias, error = N * (runs.mean("seed") - limit) / limit, N * np.sqrt(variance / seeds) / limit
    mean_points(column[0], t, bias.where(error < NOISE), error, style)
    mean_points(column[1], t, N * variance / limit**2, N * variance_error / limit**2, style)


def _distribution(ax: Axes, runs: xr.DataArray, theory: xr.Dataset, index: int) -> None:
    """Draw the density of z of the runs at one N, with standard errors of the counts.

    Empty bins are omitted.
    """
    mean, std = predicted(theory, "eps_g")
    assert std is not None
    z = (runs.values - mean.item()) / std.item()
    count, edges = np.histogram(z, np.arange(-FARTHEST, FARTHEST + WIDTH / 2, WIDTH))
    is_filled, scale = count > 0, z.size * WIDTH
    centres = (edges[:-1] + edges[1:])[is_filled] / 2
    low = np.minimum(np.sqrt(count[is_filled]), 0.7 * count[is_filled]) / scale
    mean_points(ax, centres, count[is_filled] / scale, [low, np.sqrt(count[is_filled]) / scale], index)


def _label(axes: Any, last: float) -> None:
    bias, variance, distribution = axes
    bias[0].set_ylabel(r"$N\,(\langle\epsilon\rangle-\epsilon_g)\,/\,\epsilon_g$")
    variance[0].set_ylabel(r"$N\,\mathrm{var}(\epsilon)\,/\,\epsilon_g^2$")
    distribution[0].set_ylabel("density of $z$")
    z = np.linspace(-FARTHEST, FARTHEST, 200)
    for ax in distribution:
        ax.plot(z, density(z), color=THEORY, zorder=1)
        ax.set(yscale="log", xlabel=f"$z$ of a run at $t={last:g}$")
    for ax in (*bias, *variance):
        ax.set_xlabel("$t$ (steps / $N$)")
        logarithmic(ax, "x")
