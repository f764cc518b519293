r"""The symmetric plateau of two units that learn from two, and the escape of single runs.

From a symmetric start fluctuations end the plateau at a different time in each run, while the equations stay on the
plateau. Runs are therefore drawn against the time since their escape, t - t_esc. There they follow the equations of a
slightly asymmetric start.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.labels import size_of
from figures.panels import guide, heading, logarithmic, page, panel, scenario_with, with_lines
from figures.published.networks.escapes import aligned, escape_times, split
from figures.style import AID, COLOURS, THEORY
from statmech.errors import ConfigError
from statmech.results.dataset import scenario_of
from theory import solve

AXES = ()  # sweep axes that this figure shows
BEFORE, AFTER, PLACES = 30.0, 50.0, 9
SMALL = 1e-4  # difference of the units of the lines at t = 0
LATEST, STEPS = 400.0, 200  # search for the escape of the lines
SHOWN = 32
PANELS: dict[str, dict[str, str]] = {  # names of variables, by axis label
    r"$\epsilon_g$": {"eps_g": ""},
    "overlap with the teacher $R$": {"R_own": "own unit", "R_other": "other unit"},
    r"overlap $Q$, specialisation $\rho$": {
        "Q_own": "$Q_{kk}$",
        "Q_other": "$Q_{12}$",
        "specialisation": r"specialisation $\rho$",
    },
}
CAPTION = (
    r"Two units learn online from a two-unit teacher. (a) $\epsilon_g$ of single runs (thin), and the equations, "
    r"which stay on the plateau from a symmetric start. (b) to (d) Against the time since the escape of each run, "
    r"$|R_{11}+R_{22}-R_{12}-R_{21}|/2=1/4$: $\epsilon_g$; overlaps of student units with their own and with the other "
    r"unit of the teacher; overlaps of the student units; specialisation, the mean cosine of student and teacher "
    r"units, each with its partner."
)
POINTS = "Points: means over runs; bars: standard errors of these means."
LINES = r"Lines: equations, $N\to\infty$, started $10^{-4}$ off the plateau."


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw runs against t, and eps_g, R, Q and the specialisation against the time since the escape."""
    if (simulation.sizes["student"], simulation.sizes["teacher_unit"]) != (2, 2):
        raise ConfigError("the figure plateau shows K = 2 student units and M = 2 teacher units")
    figure, axes = page(5.0, 2, 2)
    _runs(axes[0, 0], simulation, theory)
    times_since_escape = np.linspace(-BEFORE, AFTER, PLACES)
    runs, line = aligned(split(simulation), times_since_escape), _line(theory, np.linspace(-BEFORE, AFTER, 161))
    results = with_lines(simulation, theory, line)
    results = replace(results, simulation=runs.rename(since="t"), theory=None)
    for ax, (label, names) in zip(axes.flat[1:], PANELS.items(), strict=True):
        keys = panel(ax, results, "t", names, label=label, log="y" if "eps_g" in names else "")
        ax.set_xlabel(r"$t-t_\mathrm{esc}$ (steps / $N$)")
        guide(ax, x=0, color="0.7")
        if len(keys) > 1:
            ax.legend(handles=keys, loc="best")
    heading(figure, [f"$\\eta$ = {simulation.eta.item():g}", size_of(simulation)])
    return figure


def _runs(ax: Axes, simulation: xr.Dataset, theory: xr.Dataset) -> None:
    """Draw eps_g of single runs and of the equations."""
    for run in simulation.eps_g.isel(seed=slice(SHOWN)).transpose("seed", ...):
        ax.plot(run.t, run, color=COLOURS[0], linewidth=0.4, alpha=0.5, gid=AID)
    ax.plot(theory.t, theory.eps_g, color=THEORY, linestyle="--", label=r"symmetric start, $N\to\infty$")
    ax.plot([], [], color=COLOURS[0], linewidth=0.6, label=f"{min(SHOWN, simulation.sizes['seed'])} single runs")
    ax.set(xlabel="$t$ (steps / $N$)", ylabel=r"$\epsilon_g$")
    logarithmic(ax, "y")
    ax.legend()


def _line(theory: xr.Dataset, since: np.ndarray) -> xr.Dataset:
    """Solve the equations from an asymmetric start, at times relative to the escape."""
    scenario = scenario_of(theory)
    start = scenario.start_of(2, 2).model_dump() | {"R": {"diagonal": SMALL}}

    def solve_at(t: np.ndarray) -> xr.Dataset:
        return split(solve(scenario_with(theory, start=start, t=t.tolist())).expand_dims("seed"))

    times = np.linspace(0, LATEST, STEPS + 1)
    [coarse] = escape_times(solve_at(times))
    [escape] = escape_times(
        solve_at(coarse + np.linspace(-1, 1, STEPS + 1) * LATEST / STEPS)
    )  # refines between two coarse times
    return solve_at(escape + since).isel(seed=0).assign_coords(t=since)
