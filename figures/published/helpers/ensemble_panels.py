"""Panels on ensembles: the error of K students over that of one, and the relation of R and q."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from figures.style import COLUMN, label_of, look_of, points, spread, styled
from theory import ensemble_error

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

OUTPUTS = {"eps_g_majority_vote": "majority vote", "eps_g_weight_mean": "weight mean"}


def effect_panel(ax: Axes, simulation: xr.Dataset, theory: xr.Dataset) -> None:
    """One rule: eps_g of vote and mean against K, over the theoretical eps_g of one student (dotted: K infinite)."""
    last = {"t": -1}
    simulation, theory = simulation.isel(last), theory.isel(last)
    simulation, theory = simulation.sortby("K"), theory.sortby("K")
    one = theory.eps_g.isel(K=-1, student=0).item()
    for index, (name, label) in enumerate(OUTPUTS.items()):
        ax.plot(theory.K, theory[name] / one, color=look_of(index)["color"], label=f"{label}, theory")
        points(ax, simulation.K, simulation[name] / one, index, label=f"{label}, simulation")
    if int(theory.K.max()) > 1:  # one student has no q
        R, q = (theory[name].isel(K=-1, student=0).item() for name in ("R", "q"))
        limit = ensemble_error(R, q, np.inf) / one
        ax.axhline(limit, linestyle=":", color="0.5", linewidth=1, zorder=0)
        ax.set_ylim(bottom=limit - 0.12 * (1 - limit))  # room for its label
        ax.annotate(
            r"$K=\infty$",
            (1, limit),
            (0, -2),
            xycoords=ax.get_yaxis_transform(),
            textcoords="offset points",
            ha="right",
            va="top",
            color="0.4",
            fontsize=7,
        )
    ax.set_xscale("log")
    ax.set_xticks(ticks := _ticks(theory.K.values), [str(K) for K in ticks])
    ax.minorticks_off()
    ax.set_xlabel("number of students $K$")
    ax.set_ylabel(r"$\epsilon_g(K)\,/\,\epsilon_g(1)$")


def variety_panel(ax: Axes, simulation: xr.Dataset, theory: xr.Dataset) -> None:
    """R against q, theory as lines along t, simulation as points with the standard errors of both."""
    R = np.linspace(0, 1, 101)
    ax.plot(R, R**2, linestyle=":", color="0.5", linewidth=1, label="$q=R^2$", zorder=0)
    for index, rule in enumerate(theory.rule.values):
        line, cloud = theory.sel(rule=rule).isel(student=0), simulation.sel(rule=rule).mean("student")
        ax.plot(line.R, line.q, color=look_of(index)["color"], label=label_of(str(rule)))
        points(ax, cloud.R.mean("seed"), cloud.q, index, xerr=spread(cloud.R))
    ax.set(
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
        xlabel="$R$ (teacher, student)",
        ylabel="$q$ (student, student)",
    )


@styled
def draw_rule(simulation: xr.Dataset, theory: xr.Dataset, rule: str) -> Figure:
    """One panel for one rule (the sweep's first, if it does not have this one), one column wide."""
    rule = rule if rule in theory.rule.values else str(theory.rule.values[0])
    simulation, theory = simulation.sel(rule=rule), theory.sel(rule=rule)
    figure = Figure(figsize=(COLUMN, 2.6))
    ax = figure.add_subplot()
    effect_panel(ax, simulation, theory)
    t, N = simulation.t.values[-1], int(simulation.N)
    ax.set_title(f"{label_of(rule)} learning, $t={t:g}$, $N={N}$")
    ax.legend()
    return figure


def _ticks(K: np.ndarray) -> list[int]:
    """The values of K whose labels do not overlap."""
    kept: list[int] = []
    for value in sorted(map(int, K)):
        if not kept or value >= 1.45 * kept[-1]:
            kept.append(value)
    return kept
