r"""The symmetric plateau of two student units that learn from two teacher units, and the escape of single runs.

From a symmetric start fluctuations end the plateau at a different time in each run, while the equations stay on the
plateau. Runs are therefore drawn against the time since their escape, t - t_esc. On this scale the runs follow the
equations from a slightly asymmetric start.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.labels import describe_size_and_runs
from figures.panels import (
    combine_with_lines,
    draw_guide,
    draw_panel,
    make_figure,
    modify_scenario,
    set_heading,
    set_log_axes,
)
from figures.published.networks.escape_times import (
    align_runs_at_escape,
    find_escape_times,
    split_own_and_other_overlaps,
)
from figures.style import CURVE_COLOURS, NO_LEGEND_GID, THEORY_COLOUR
from statmech.errors import ConfigError
from statmech.stores.dataset import scenario_from_dataset
from theory import solve

AXES = ()  # sweep axes that this figure shows
TIME_BEFORE_ESCAPE, TIME_AFTER_ESCAPE, ESCAPE_TIME_POINTS = 30.0, 50.0, 9
INITIAL_ASYMMETRY = 1e-4  # initial R_11 = R_22 of the lines
MAX_ESCAPE_TIME, ESCAPE_SEARCH_STEPS = 400.0, 200  # grid of the search for the escape of the lines
MAX_DRAWN_RUNS = 32
PANEL_VARIABLES: dict[str, dict[str, str]] = {  # variables and legend labels, by axis label
    r"$\epsilon_g$": {"eps_g": ""},
    "overlap with the teacher $R$": {"R_own": "own unit", "R_other": "other unit"},
    r"overlap $Q$, specialisation $\rho$": {
        "Q_own": "$Q_{kk}$",
        "Q_other": "$Q_{12}$",
        "specialisation": r"specialisation $\rho$",
    },
}
CAPTION = (
    r"Two units learn online from a two-unit teacher. (a) $\epsilon_g$ for single runs (thin) and from the "
    r"equations, whose solution stays on the plateau if it starts symmetrically. (b) to (d) Quantities against the "
    r"time since the escape of each run, when $|R_{11}+R_{22}-R_{12}-R_{21}|/2$ passes 1/4: (b) $\epsilon_g$; (c) "
    r"overlaps of student units with their own and with the other teacher unit; (d) overlaps of the student units, "
    r"and specialisation, the mean cosine of student and teacher units, each with its partner."
)
POINTS_CAPTION = "Points: means over runs; bars: standard errors of these means."
LINES_CAPTION = r"Lines: equations, $N\to\infty$, started $10^{-4}$ off the plateau."


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw runs against t, and eps_g, R, Q and the specialisation against the time since the escape."""
    if (simulation.sizes["student"], simulation.sizes["teacher_unit"]) != (2, 2):
        raise ConfigError('the figure "plateau" requires K = 2 student units and M = 2 teacher units')
    figure, axes = make_figure(5.0, 2, 2)
    _draw_single_runs(axes[0, 0], simulation, theory)
    times_since_escape = np.linspace(-TIME_BEFORE_ESCAPE, TIME_AFTER_ESCAPE, ESCAPE_TIME_POINTS)
    runs, line = (
        align_runs_at_escape(split_own_and_other_overlaps(simulation), times_since_escape),
        _solve_asymmetric_start(theory, np.linspace(-TIME_BEFORE_ESCAPE, TIME_AFTER_ESCAPE, 161)),
    )
    results = combine_with_lines(simulation, theory, line)
    results = replace(results, simulation=runs.rename(since="t"), theory=None)
    for ax, (label, names) in zip(axes.flat[1:], PANEL_VARIABLES.items(), strict=True):
        keys = draw_panel(ax, results, "t", names, label=label, log="y" if "eps_g" in names else "")
        ax.set_xlabel(r"$t-t_\mathrm{esc}$ (steps / $N$)")
        draw_guide(ax, x=0, color="0.7")
        if len(keys) > 1:
            ax.legend(handles=keys, loc="best")
    set_heading(figure, [f"$\\eta$ = {simulation.eta.item():g}", describe_size_and_runs(simulation)])
    return figure


def _draw_single_runs(ax: Axes, simulation: xr.Dataset, theory: xr.Dataset) -> None:
    """Draw eps_g of single runs and of the equations."""
    for run in simulation.eps_g.isel(seed=slice(MAX_DRAWN_RUNS)).transpose("seed", ...):
        ax.plot(run.t, run, color=CURVE_COLOURS[0], linewidth=0.4, alpha=0.5, gid=NO_LEGEND_GID)
    ax.plot(theory.t, theory.eps_g, color=THEORY_COLOUR, linestyle="--", label=r"symmetric start, $N\to\infty$")
    ax.plot(
        [],
        [],
        color=CURVE_COLOURS[0],
        linewidth=0.6,
        label=f"{min(MAX_DRAWN_RUNS, simulation.sizes['seed'])} single runs",
    )
    ax.set(xlabel="$t$ (steps / $N$)", ylabel=r"$\epsilon_g$")
    set_log_axes(ax, "y")
    ax.legend()


def _solve_asymmetric_start(theory: xr.Dataset, times_since_escape: np.ndarray) -> xr.Dataset:
    """Solve the equations from an asymmetric start, at times relative to the escape."""
    scenario = scenario_from_dataset(theory)
    start = scenario.make_start(2, 2).model_dump() | {"R": {"diagonal": INITIAL_ASYMMETRY}}

    def solve_at(t: np.ndarray) -> xr.Dataset:
        return split_own_and_other_overlaps(
            solve(modify_scenario(theory, start=start, t=t.tolist())).expand_dims("seed")
        )

    times = np.linspace(0, MAX_ESCAPE_TIME, ESCAPE_SEARCH_STEPS + 1)
    [coarse] = find_escape_times(solve_at(times))
    [escape] = find_escape_times(
        solve_at(coarse + np.linspace(-1, 1, ESCAPE_SEARCH_STEPS + 1) * MAX_ESCAPE_TIME / ESCAPE_SEARCH_STEPS)
    )  # fine search around the coarse escape time
    return solve_at(escape + times_since_escape).isel(seed=0).assign_coords(t=times_since_escape)
