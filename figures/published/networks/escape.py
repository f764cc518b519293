r"""Distribution of escape times from the symmetric plateau, compared with the theory of linear growth.

Fluctuations give :math:`u = (R_{11}+R_{22}-R_{12}-R_{21})/2` a normal amplitude of order :math:`1/\sqrt N`, which grows
as :math:`e^{\Lambda t}`. With a standard normal :math:`\xi` the escape time is therefore

.. math:: t_\mathrm{esc} - \frac{\ln N}{2\Lambda} = -\frac{\ln|\xi|}{\Lambda} + c.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import erf

from figures.legends import make_line_handle, make_points_handle
from figures.panels import add_title_and_legend, make_figure
from figures.published.networks.escape_times import find_escape_times
from figures.style import THEORY_COLOUR, draw_mean_points, get_curve_style
from statmech.errors import ConfigError
from statmech.numerics.gaussian import normal_density
from statmech.stores.dataset import scenario_from_dataset
from theory import escape

AXES = ("N",)  # sweep axes that this figure shows
NUM_ESCAPE_TIME_BINS = 14
CAPTION = (
    r"Times at which runs leave the symmetric plateau ($|R_{11}+R_{22}-R_{12}-R_{21}|/2=1/4$), minus $\ln "
    r"N/(2\Lambda)$: (a) their density and (b) the fraction of runs still on the plateau."
)
POINTS_CAPTION = "Points: simulation; bars: standard errors of counts."
LINES_CAPTION = (
    r"Line: $-\ln|\xi|/\Lambda+c$ with a standard normal $\xi$; the growth rate $\Lambda$ and the constant $c$ follow "
    r"from the equations and their fluctuations. Nothing is fitted."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the density of escape times and the fraction still on the plateau, one colour per N."""
    if (simulation.sizes["student"], simulation.sizes["teacher_unit"]) != (2, 2):
        raise ConfigError('the figure "escape" requires K = 2 student units and M = 2 teacher units')
    prediction, (figure, (left, right)) = escape(scenario_from_dataset(theory)), make_figure(3.0, 1, 2)
    shifted = {int(N): _compute_shifted_escape_times(simulation.sel(N=N), prediction.rate) for N in simulation.N.values}
    edges = _compute_bin_edges(np.concatenate(list(shifted.values())))
    for index, times in enumerate(shifted.values()):
        _draw_histogram(left, times, edges, index)
        _draw_fraction_on_plateau(right, times, edges, index)
    _draw_prediction(left, right, prediction, edges)
    for ax in (left, right):
        ax.set_xlabel(r"$t_\mathrm{esc}-\ln(N)/(2\Lambda)$")
    left.set(ylabel="density", ylim=(0, None))
    right.set(ylabel="fraction still on the plateau", ylim=(0, None))
    keys: list[Any] = [make_points_handle(f"$N$ = {N:,}", **get_curve_style(index)) for index, N in enumerate(shifted)]
    keys.append(make_line_handle(r"theory: $-\ln|\xi|/\Lambda+c$, nothing fitted"))
    return add_title_and_legend(figure, simulation, keys, "eta", f"$\\Lambda$ = {prediction.rate:.4f}", columns=4)


def _compute_shifted_escape_times(runs: xr.Dataset, rate: float) -> np.ndarray:
    """Return escape times minus ln N/(2 rate), infinite for runs that do not escape."""
    times = find_escape_times(runs).ravel()
    return np.where(np.isnan(times), np.inf, times - np.log(float(runs.N)) / (2 * rate))


def _compute_bin_edges(times: np.ndarray) -> np.ndarray:
    finite = times[np.isfinite(times)]
    if not finite.size:
        raise ConfigError("no run has left the plateau by the last recorded time")
    low, high = (float(np.quantile(finite, q)) for q in (0.0, 0.995))
    return np.linspace(low, high, NUM_ESCAPE_TIME_BINS + 1)


def _draw_histogram(ax: Axes, times: np.ndarray, edges: np.ndarray, index: int) -> None:
    count, _ = np.histogram(times, edges)
    is_filled, scale = count > 0, times.size * np.diff(edges)
    centres = (edges[:-1] + edges[1:]) / 2
    draw_mean_points(ax, centres[is_filled], (count / scale)[is_filled], (np.sqrt(count) / scale)[is_filled], index)


def _draw_fraction_on_plateau(ax: Axes, times: np.ndarray, edges: np.ndarray, index: int) -> None:
    left = np.array([np.mean(times > edge) for edge in edges])
    draw_mean_points(ax, edges, left, np.sqrt(left * (1 - left) / times.size), index)


def _draw_prediction(density_axes: Axes, survival_axes: Axes, prediction: Any, edges: np.ndarray) -> None:
    t = np.linspace(edges[0], edges[-1], 300)
    xi = np.exp(-prediction.rate * (t - prediction.shift))
    density_axes.plot(t, 2 * normal_density(xi) * xi * prediction.rate, color=THEORY_COLOUR, zorder=1)
    survival_axes.plot(t, erf(xi / np.sqrt(2)), color=THEORY_COLOUR, zorder=1)
