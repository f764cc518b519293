r"""The symmetric plateau of two units that learn from two, and the escape from it, run by run.

From a symmetric start fluctuations end the plateau, at another time in each run, while the equations stay on it. So
runs are drawn against the time since their escape, t - t_esc, where they follow the equations of a start that
distinguishes the units by little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from figures.inspection import AID
from figures.labels import size_of
from figures.legends import line_with_points
from figures.published.networks.escapes import aligned, escape_times, split
from figures.style import COLOURS, PAGE, THEORY, log_ticks, look_of, points, styled
from statmech.errors import ConfigError
from statmech.results.dataset import scenario_of
from theory import solve

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

AXES = ()  # of the sweep, that this figure shows
BEFORE, AFTER, PLACES = 30.0, 50.0, 17  # of the times since the escape
SMALL = 1e-4  # by which the units of the lines differ at t = 0
SHOWN = 32  # runs in the first panel
CAPTION = (
    r"Two erf units learn online from two. Top left: $\epsilon_g$ of single runs (thin), and the equations, which a "
    r"symmetric start keeps on the plateau. Others: against the time since the escape of each run, "
    r"$|R_{11}+R_{22}-R_{12}-R_{21}|/2=1/4$: $\epsilon_g$; overlaps of student units with their own and "
    r"with the other unit of the teacher; overlaps of the student units; specialisation, the mean cosine of student "
    r"and teacher units, each with its partner."
)
LINES = r"Lines: equations, $N\to\infty$, beside the plateau at first by $10^{-4}$."


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Four panels: runs against t, then eps_g, R, and Q with the specialisation against the time since the escape."""
    if (simulation.sizes["student"], simulation.sizes["teacher"]) != (2, 2):
        raise ConfigError("the figure plateau shows K = 2 student units and M = 2 teacher units")
    figure = Figure(figsize=(PAGE, 5.0))
    axes = figure.subplots(2, 2)
    _runs(axes[0, 0], simulation, theory)
    since = np.linspace(-BEFORE, AFTER, PLACES)
    runs, line = aligned(split(simulation), since), _line(theory, np.linspace(-BEFORE, AFTER, 161))
    panels = {0: ("eps_g",), 1: ("R_own", "R_other"), 2: ("Q_own", "Q_other", "specialisation")}
    for ax, names in zip(axes.flat[1:], panels.values(), strict=True):
        for index, name in enumerate(names):
            _curve(ax, since, runs[name], line, index, name)
        ax.set_xlabel(r"$t-t_\mathrm{esc}$ (steps / $N$)")
        ax.axvline(0, color="0.7", linestyle=":", linewidth=0.8, zorder=0, gid=AID)
    axes[0, 1].set(yscale="log", ylabel=r"$\epsilon_g$")
    log_ticks(axes[0, 1].yaxis)
    axes[1, 0].set_ylabel("overlap with the teacher $R$")
    axes[1, 1].set_ylabel(r"$Q$ and specialisation $\rho$")
    figure.suptitle(f"$\\eta$ = {simulation.eta.item():g}, {size_of(simulation)}", fontsize=8)
    return figure


LABELS = {
    "R_own": "own unit",
    "R_other": "other unit",
    "Q_own": "$Q_{kk}$",
    "Q_other": "$Q_{12}$",
    "specialisation": r"$\rho$",
}


def _curve(ax: Axes, since: np.ndarray, values: xr.DataArray, line: xr.Dataset, index: int, name: str) -> None:
    points(ax, since, values, index)
    look: dict[str, Any] = {"color": look_of(index)["color"]}
    ax.plot(line.since, line[name], **look)
    if name in LABELS:
        handle = line_with_points(index, LABELS[name])
        handles = [*(ax.legend_.legend_handles if ax.legend_ else []), handle]
        ax.legend(handles=handles, loc="best")


def _runs(ax: Axes, simulation: xr.Dataset, theory: xr.Dataset) -> None:
    """Single runs, and the equations."""
    for run in simulation.eps_g.isel(seed=slice(SHOWN)).transpose("seed", ...):
        ax.plot(run.t, run, color=COLOURS[0], linewidth=0.4, alpha=0.5)
    ax.plot(theory.t, theory.eps_g, color=THEORY, linestyle="--", label=r"equations, $N\to\infty$")
    ax.plot([], [], color=COLOURS[0], linewidth=0.6, label=f"{min(SHOWN, simulation.sizes['seed'])} single runs")
    ax.set(yscale="log", xlabel="$t$ (steps / $N$)", ylabel=r"$\epsilon_g$")
    log_ticks(ax.yaxis)
    ax.legend()


def _line(theory: xr.Dataset, since: np.ndarray) -> xr.Dataset:
    """The equations from a start that distinguishes the units, at these times since its escape."""
    scenario = scenario_of(theory)
    start = scenario.start_of(2, 2).model_dump() | {"R": {"diagonal": SMALL}}
    beside = type(scenario)(**{**scenario.config(), "start": start, "t": np.linspace(0, 400, 801).tolist()})
    solved = split(solve(beside).expand_dims("seed"))
    escape = float(escape_times(solved)[0])
    at = solve(type(scenario)(**{**beside.config(), "t": (escape + since).tolist()}))
    return split(at.expand_dims("seed")).isel(seed=0).assign_coords(since=("t", since)).swap_dims(t="since")
