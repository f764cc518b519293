"""Figures of stopping boundaries: Gaussian walks that stop early, and the Attentive Perceptron."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import theory as solver
from figures.panels import (
    add_title_and_legend,
    combine_with_lines,
    draw_panel,
    make_figure,
    set_log_axes,
    solve_dense_theory,
)
from figures.published_figure import PublishedFigure
from figures.style import draw_seed_means, make_shades
from statmech.classification.attentive_perceptron import MAX_AVERAGING_WINDOW_PROBES
from statmech.classification.stopping_boundaries import BOUNDARIES
from statmech.kinds.selection_and_vocabulary import scenario_from

FEATURE_FRACTION_LABEL = "fraction of features"
ERROR_RATIO_LABEL = r"$\epsilon_g/\epsilon_g^{\mathrm{plain}}$"
TARGET_NOTE = r"curves share examples, so deviations are correlated; $\epsilon_d$: target rate of decision errors"
PLAIN_NOTE = r"$\epsilon_g^{\mathrm{plain}}$: $\epsilon_g$ of the plain perceptron, which evaluates all features"
PLAIN_STYLE: dict[str, Any] = {"color": "0.3", "linestyle": ":", "linewidth": 1, "zorder": 1}
BOUNDARY_GREYS = ("0", "0.45", "0.3", "0.6")


def draw_attention(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw errors and features against t and against the target, with the plain perceptron dotted.

    Above, for one boundary: eps_g over the error of a plain perceptron after as many examples, the fraction of features
    evaluated so far, and eps_g over the error of a plain perceptron that has evaluated as many features. Below, for all
    boundaries: errors and features at the last time against the target error rate. Decision errors of labelled margins
    may exceed the target: the label makes their features dependent, and the variance that sets the level is then too
    small.
    """
    simulation, theory = (part.sel(t=part.t > 0) for part in (simulation, theory))
    figure, (above, below) = make_figure(5.2, 2, 3)
    plain = PlainPerceptronErrorCurve(float(theory.t[-1]))
    deltas = _draw_against_time(above, simulation, theory, plain)
    boundaries = _draw_against_target_rate(below, simulation, theory, plain)
    figure.set_layout_engine("constrained", w_pad=0.08)
    boundary_label = BOUNDARIES[str(theory.attention.values[0])].label
    note = f"(a) to (c): {boundary_label} boundary; {TARGET_NOTE}; {PLAIN_NOTE}"
    return add_title_and_legend(figure, simulation, [*deltas, *boundaries], columns=5, note=note)


attention = PublishedFigure(
    draw=draw_attention,
    axes=("attention", "error_rate"),
    caption=(
        r"Online learning with the Attentive Perceptron; points: simulation, lines: theory. (a) to (c) One boundary "
        r"and several target rates $\epsilon_d$ of decision errors: generalization error $\epsilon_g$ relative to a "
        r"plain perceptron after the same number of examples; fraction of the features evaluated so far; $\epsilon_g$ "
        r"relative to a plain perceptron that has evaluated the same number of features. (d) to (f) Quantities at the "
        r"last time against $\epsilon_d$: $\epsilon_g$ relative to the plain perceptron after the same number of "
        r"examples; fraction of the features and decision errors since the second-to-last recorded time. All "
        r"$\epsilon_d$ and boundaries learn the same examples, so that their deviations from theory are correlated. "
        r"Arrows at the bottom: no run had a decision error."
    ),
)


class PlainPerceptronErrorCurve:
    """Learning curve eps_g(t) of the plain perceptron, by interpolation.

    The work of this perceptron equals t, as it evaluates all features of every example.
    """

    def __init__(self, max_time: float):
        self.t = np.append(0.0, np.geomspace(1e-3, max(max_time, 1.0), 1000))
        plain = {
            "attention": "brownian-bridge",
            "error_rate": 0.1,
            "probes": 1.0,
            "memory": MAX_AVERAGING_WINDOW_PROBES,
            "t": self.t,
        }
        self.log_eps = np.log(solver.solve(scenario_from(plain)).eps_g.values.ravel())

    def __call__(self, t: Any) -> Any:
        """Interpolate eps_g logarithmically at times t of any shape, accurate to 1e-4."""
        return np.exp(np.interp(t, self.t, self.log_eps)) + 0 * t


def _draw_against_time(
    axes: Any, simulation: xr.Dataset, theory: xr.Dataset, plain_error: PlainPerceptronErrorCurve
) -> list[Line2D]:
    """Draw relative eps_g and the features evaluated so far against t, and relative eps_g at equal work."""
    error, fraction_axes, gain_axes = axes
    lines = solve_dense_theory(theory, "t", attention=str(theory.attention.values[0]))
    parts = (simulation.isel(attention=0), theory.isel(attention=0), lines)
    runs, solved_theory, lines = (
        part.assign(
            seen=part.work / part.t, slow=part.eps_g / plain_error(part.t), gained=part.eps_g / plain_error(part.work)
        ).sel(t=part.t > 0)
        for part in parts
    )
    results = combine_with_lines(runs, solved_theory, lines)
    palette = make_shades(lines.sizes["error_rate"])
    keys = draw_panel(error, results, "t", "slow", "error_rate", log="x", palette=palette)
    draw_panel(fraction_axes, results, "t", "seen", "error_rate", log="x", palette=palette)
    for index, key in enumerate(keys):
        line, rate_runs = lines.isel(error_rate=index), runs.isel(error_rate=index)
        gain_axes.plot(line.work, line.gained, color=key.get_color())
        draw_seed_means(gain_axes, rate_runs.work.mean("seed"), rate_runs.gained, index, color=key.get_color())
    keys.append(error.axhline(1, label="plain perceptron", **PLAIN_STYLE))
    gain_axes.axhline(1, **PLAIN_STYLE)
    set_log_axes(gain_axes, "x")
    error.set(title="at equal $t$", ylabel=ERROR_RATIO_LABEL)
    fraction_axes.set(title="up to $t$", ylabel=FEATURE_FRACTION_LABEL, ylim=(0, 1.05))
    gain_axes.set(title="at equal work", xlabel="work (features $/\\,N^2$)", ylabel=ERROR_RATIO_LABEL)
    return keys


def _draw_against_target_rate(
    axes: Any, simulation: xr.Dataset, theory: xr.Dataset, plain: PlainPerceptronErrorCurve
) -> list[Line2D]:
    """Draw relative eps_g, features and decision errors against the target error rate."""
    slow, fraction_axes, decision_axes = axes
    parts = [part.isel(t=-1) for part in (simulation, theory, solve_dense_theory(theory, "error_rate"))]
    plain_error = float(plain(parts[1].t.item()))
    results = combine_with_lines(*(part.assign(slow=part.eps_g / plain_error) for part in parts))
    line_options: dict[str, Any] = {"palette": BOUNDARY_GREYS, "dashes": True}
    keys = draw_panel(slow, results, "error_rate", "slow", "attention", log="x", **line_options)
    draw_panel(fraction_axes, results, "error_rate", "features", "attention", log="x", **line_options)
    draw_panel(decision_axes, results, "error_rate", "decision_error", "attention", log="xy", **line_options)
    for key in keys:
        key.set_label(f"{key.get_label()} boundary")
    slow.axhline(1, **PLAIN_STYLE)
    deltas = parts[2].error_rate
    keys += decision_axes.plot(deltas, deltas, color="0.6", linewidth=0.8, label="target")
    last, previous_t = theory.t.values[-1], theory.t.values[-2] if theory.sizes["t"] > 1 else 0
    time_range = rf"$t={previous_t:g}$ to ${last:g}$"
    slow.set(title=rf"at $t={last:g}$", ylabel=ERROR_RATIO_LABEL)
    fraction_axes.set(title=time_range, ylabel=FEATURE_FRACTION_LABEL, ylim=(0, 1.05))
    decision_axes.set(title=time_range, ylabel="decision errors")
    for ax in axes:
        ax.set_xlabel(r"target rate $\epsilon_d$")
    return keys
