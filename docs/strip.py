"""The picture at the head of the README and of the docs: `python docs/strip.py` writes docs/images/strip.png.

Three reduced runs of shipped configs, in one row: learning curves, runs that leave a plateau, a first-order transition.
docs/images/strip_column.png shows the same panels below each other, for phones.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import thumbnails
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import statmech
from figures.panels import draw_guide, make_curve_handle, make_line_handle, make_points_handle, set_log_axes
from figures.style import CURVE_COLOURS, THEORY_COLOUR, apply_style, draw_seed_means
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.results.results import Results

ROW_INCHES, COLUMN_INCHES = (9.6, 2.9), (3.6, 8.2)
ALPHAS = [0.1, 0.15, 0.25, 0.4, 0.6, 0.8, 0.9, 1, 1.1, 1.25, 1.6, 2.5, 4, 6.5, 10]  # N alpha is whole
LAMBDAS = {1e-3: "$\\lambda = 0.001$", "best": "best $\\lambda$"}
BELOW, ABOVE, STEPS = 1e-5, 3e-3, 2000  # of a jump, in alpha; of message passing, which is slow just above it
STARTS = {"informed": ("start near the teacher", 1, 0.955), "uninformed": ("start without\ninformation", 0, 0.72)}


@apply_style
def strip(in_column: bool = False) -> Figure:
    """The three panels, with their points and lines named once."""
    figure = Figure(figsize=COLUMN_INCHES if in_column else ROW_INCHES)
    descent, plateau, transition = figure.subplots(*((3, 1) if in_column else (1, 3)))
    curves(descent)
    escapes(plateau)
    jump(transition)
    for letter, ax, title in zip(
        "abc", figure.axes, ("double descent", "a plateau", "a first-order transition"), strict=True
    ):
        ax.set_title(f"({letter}) {title}", loc="left")
    keys: list[Any] = [
        make_points_handle("simulation at finite $N$ (mean, standard error)"),
        make_line_handle("theory, $N\\to\\infty$, in (a), (c) in the colours of points"),
        make_line_handle("single runs", color=CURVE_COLOURS[0], linewidth=0.5),
        make_line_handle(
            "$\\alpha_\\mathrm{alg}$: from here on both starts find the teacher", linestyle=":", linewidth=0.8
        ),
    ]
    figure.legend(handles=keys, loc="outside lower center", ncols=1 if in_column else 2)
    return figure


def curves(ax: Axes) -> None:
    """Mean squared error of least squares against alpha, for two penalties."""
    simulated = run_once("double_descent", lam=(*LAMBDAS,), alpha=(*ALPHAS,)).simulation
    alphas = np.union1d(np.geomspace(0.1, 10, 61), np.geomspace(0.8, 1.25, 61))
    solved = solution("double_descent", lam=list(LAMBDAS), alpha=alphas.tolist())
    for number, look in enumerate((1, 0)):
        draw_seed_means(ax, simulated.alpha, simulated.mse.isel(lam=number), look)
        ax.plot(solved.alpha, solved.mse.isel(lam=number), color=CURVE_COLOURS[look])
    ax.set(xlabel=r"$\alpha$ = examples / $N$", ylabel="mean squared error")
    set_log_axes(ax, "xy")
    ax.annotate("20 data sets,\n$N = 400$", (0.1, 0.03))
    ax.legend(handles=[make_curve_handle(look, name) for name, look in zip(LAMBDAS.values(), (1, 0), strict=True)])


def escapes(ax: Axes) -> None:
    """Errors of single runs of a network, and the equations, which stay on the plateau."""
    results = run_once("plateau", seeds=32)
    for line in results.simulation.eps_g.transpose("seed", ...):
        ax.plot(line.t, line, color=CURVE_COLOURS[0], linewidth=0.5, alpha=0.6)
    solved = solution("plateau", t=np.union1d(np.linspace(0, 10, 41), results.theory.t).tolist())
    ax.plot(solved.t, solved.eps_g, color=THEORY_COLOUR, linewidth=1.6)
    ax.annotate("32 runs, $N = 10^4$", (28, 1e-6), color=CURVE_COLOURS[0])
    ax.set(xlabel="$t$ = examples / $N$", ylabel=r"$\epsilon_g$")
    set_log_axes(ax, "y")


def jump(ax: Axes) -> None:
    """Overlap of message passing with the teacher, from both starts; the line breaks where state evolution jumps."""
    alphas = statmech.load("binary_perceptron").alpha[::3]
    results = run_once("binary_perceptron", alpha=alphas)
    at = float(results.theory.alpha_alg.values.flat[0])
    dense = [*np.linspace(0.8, at - BELOW, 60), *np.linspace(at + ABOVE, 1.8, 30)]
    solved = solution("binary_perceptron", alpha=dense, steps=STEPS).isel(step=-1)
    for start, (name, index, height) in STARTS.items():
        line = solved.m.sel(start=start)
        ax.plot(line.alpha, line.where(line.alpha < at), color=CURVE_COLOURS[index])
        dashes = (0, (4, 4)) if start == "uninformed" else "-"  # both lines are at 1
        ax.plot(line.alpha, line.where(line.alpha > at), color=CURVE_COLOURS[index], linestyle=dashes)
        ax.annotate(name, (0.8, height), color=CURVE_COLOURS[index], va="top")
        draw_seed_means(ax, alphas, results.simulation.m.isel(step=-1).sel(start=start), index)
    ax.annotate("10 data sets,\n$N = 2000$", (1.52, 0.5))
    draw_guide(ax, x=at, text=r"$\alpha_\mathrm{alg}$", color="0.3")
    ax.set(xlabel=r"$\alpha$ = examples / $N$", ylabel="overlap with the teacher")


@cache
def run_once(config: str, **keys: object) -> Results:
    """The results of a reduced run, for both pictures."""
    return statmech.run(config, **keys)


def solution(config: str, **keys: object) -> xr.Dataset:
    """Theory of a shipped config with other values of some keys."""
    return statmech.solve(scenario_from({**statmech.load(config).config(), **keys}))


if __name__ == "__main__":
    thumbnails.write("strip.png", thumbnails.png(strip(), 300))
    thumbnails.write("strip_column.png", thumbnails.png(strip(in_column=True), 300))
