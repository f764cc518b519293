"""Figure of the distribution of the time until a unit of fixed length finds its teacher."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.panels import add_title_and_legend, make_figure, make_line_handle, make_points_handle
from figures.published_figure import PublishedFigure
from figures.style import THEORY_COLOUR, draw_mean_points, get_curve_style
from statmech.errors import ConfigError
from statmech.stores.dataset import scenario_from_dataset
from theory.networks.hitting_times import HittingTime, hitting_time

HISTOGRAM_BINS = 24
LAST_BIN_MEANS = 4.0  # end of the histogram, in units of the mean time
THEORY_POINTS = 121
HITTING_NOTE = (
    r"$t_\mathrm{{until}}$: time (steps / $N$) until $R$, the cosine with the teacher, is {until:g}; "
    "no point: empty bin; {omitted} of {runs} runs are right of (a); neighbours in (b) are correlated"
)


def draw_hitting_distribution(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the density of the time of passage, and the fraction of runs that still search."""
    scenario = scenario_from_dataset(theory)
    if scenario.shape or "t_until" not in simulation:
        raise ConfigError('the figure "hitting_law" requires a threshold `until` and a single value of every key')
    (figure, (left, right)), time, N = make_figure(3.0, 1, 2), hitting_time(scenario), int(simulation.N)
    times = simulation.t_until.values.ravel() / N
    edges = np.linspace(0.0, LAST_BIN_MEANS * time.mean / N, HISTOGRAM_BINS + 1)
    _draw_density(left, times, edges)
    _draw_searching_fraction(right, times, edges)
    _draw_prediction(left, right, time, edges)
    for ax in (left, right):
        ax.set_xlabel(r"$t_\mathrm{until}/N$")
    left.set(ylabel="density", ylim=(0, None))
    right.set(ylabel="runs that still search", yscale="log")
    keys: list[Any] = [
        make_points_handle("simulation", **get_curve_style(0)),
        make_line_handle("theory, nothing fitted"),
    ]
    omitted = np.count_nonzero(times > edges[-1])
    note = HITTING_NOTE.format(until=scenario.until.R, omitted=omitted, runs=times.size)
    return add_title_and_legend(figure, simulation, keys, "teacher", "eta", note=note)


hitting_law = PublishedFigure(  # style: ok
    draw=draw_hitting_distribution,
    axes=(),
    caption=(
        "Time until a unit of fixed length has found its teacher, divided by N: (a) its density and (b) the fraction "
        "of runs that still search."
    ),
    points_caption="Points: simulation; bars: standard errors of counts.",
    lines_caption="Lines: the backward equation of R at this N. Nothing is fitted.",
)


def _draw_density(ax: Axes, times: np.ndarray, edges: np.ndarray) -> None:
    """Draw a histogram of times, with the standard errors of its counts."""
    counts, scale = np.histogram(times, edges)[0], times.size * np.diff(edges)
    is_filled, centres = counts > 0, (edges[1:] + edges[:-1]) / 2
    draw_mean_points(ax, centres[is_filled], (counts / scale)[is_filled], (np.sqrt(counts) / scale)[is_filled], 0)


def _draw_searching_fraction(ax: Axes, times: np.ndarray, edges: np.ndarray) -> None:
    """Draw the fraction of runs that have not passed the threshold, at every second edge of the histogram."""
    edges = edges[::2]
    fractions = np.array([np.mean(times > edge) for edge in edges])
    positive = fractions > 0
    errors = np.sqrt(fractions * (1 - fractions) / times.size)
    draw_mean_points(ax, edges[positive], fractions[positive], errors[positive], 0)


def _draw_prediction(density_axes: Axes, survival_axes: Axes, time: HittingTime, edges: np.ndarray) -> None:
    """Draw the predicted density and the predicted fraction of runs that still search."""
    ends = edges[-1] * np.linspace(0, 1, THEORY_POINTS) ** 2  # dense where the density rises
    survival = time.survival(ends * time.N)
    density_axes.plot((ends[1:] + ends[:-1]) / 2, -np.diff(survival) / np.diff(ends), color=THEORY_COLOUR)
    survival_axes.plot(ends, survival, color=THEORY_COLOUR)
