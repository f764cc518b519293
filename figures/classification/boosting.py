r"""Boosted sparse perceptrons compared with the bounds of Jackson & Craven: stages, eps_g and advantage.

Points are means over teachers. Dashed lines of the same colour are the bounds of the paper's Lemmas 1 and 2: after
:math:`2s^2\ln P` stages all P examples are classified correctly, no stage has an advantage below 1/(2s), and eps_g
stays below a bound. The bound is 1, and therefore trivial, until P is about :math:`s^4\ln^2 P`, or the square of the
number of conjunctions if that is smaller. A mean of zero cannot be drawn on a logarithmic axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from figures.legends import make_line_handle
from figures.panels import (
    ZERO_MARKER_STYLE,
    combine_with_lines,
    draw_legend_below,
    draw_panel,
    make_figure,
    mark_zeros_at_foot,
    select_with_dense_theory,
    solve_dense_theory,
)
from figures.style import draw_seed_means, get_curve_style, nested_marker_size, set_log_ticks
from statmech.numerics.statistics import compute_run_standard_error

AXES = ("s", "P")  # sweep axes that this figure shows
MAX_BOOSTING_CURVES = 4  # one curve per value of P
MIN_BAR_END_TO_MEAN_RATIO = 0.1  # lower bar ends below this fraction of the mean do not extend the axis
STAGE_COUNT_AXIS_LABEL = "stages to zero\ntraining error"
BOOSTING_LINE_STYLE: dict[str, Any] = {"linestyle": "-"}
ADVANTAGE_TICKS = [0.02, 0.05, 0.1, 0.2, 0.5]
CAPTION = (
    r"AdaBoost over all conjunctions, learning from $P$ examples of a teacher that is a vote of $s$ conjunctions: "
    r"number of stages to zero training error, smallest advantage $\gamma=\min_i(\frac{1}{2}-\epsilon_i)$ of a stage, "
    r"and generalization error. Thin lines join points. Dashed: bounds of Jackson & Craven at every $s$ and $P$; the "
    r"bound on $\epsilon_g$ is drawn where it is less than 1. Triangles at the bottom: no run had an error."
)
LINES_CAPTION = ""


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw stages and the smallest advantage against s, and stages and eps_g against P.

    Shades of grey stand for values of P, and colours for values of s.
    """
    figure, ((stages_s, stages_P), (advantage, error)) = make_figure(5.2, 2, 2)
    P_indices = np.unique(np.linspace(0, simulation.sizes["P"] - 1, MAX_BOOSTING_CURVES).round().astype(int))
    results_s = select_with_dense_theory(simulation, theory, "s", P=simulation.P.values[P_indices].tolist())
    greys = [str(grey) for grey in np.linspace(0, 0.6, len(P_indices)).round(2)]
    sizes = draw_panel(stages_s, results_s, "s", "stages", "P", log="xy", palette=greys, **BOOSTING_LINE_STYLE)
    for index, runs in enumerate(simulation.advantage.isel(P=P_indices).transpose("P", ...)):
        draw_seed_means(advantage, 1 / (2 * runs.s), runs, index, color=greys[index])
    terms = 1 / (2 * simulation.s.values)
    advantage.plot(terms, terms, color="0.3", linestyle="--", linewidth=0.9)
    lines = solve_dense_theory(theory, "P")
    results_P = combine_with_lines(simulation, theory, lines.assign(eps_g=lines.eps_g.where(lines.eps_g < 1)))
    conjunctions = draw_panel(stages_P, results_P, "P", "stages", "s", log="xy", **BOOSTING_LINE_STYLE)
    draw_panel(error, results_P, "P", "eps_g", "s", log="xy", **BOOSTING_LINE_STYLE)
    for index, errors in enumerate(simulation.eps_g.transpose("s", ...)):
        errorless_P = errors.P.values[np.asarray(errors.mean("seed") == 0)]
        mark_zeros_at_foot(
            error, errorless_P, get_curve_style(index)["color"], **nested_marker_size(index, simulation.sizes["s"])
        )
    stages_s.set(xlabel="$s$, conjunctions of the teacher", ylabel=STAGE_COUNT_AXIS_LABEL)
    stages_P.set(xlabel="$P$, examples", ylabel=STAGE_COUNT_AXIS_LABEL)
    advantage.set(xscale="log", yscale="log", xlabel="$1/(2s)$", ylabel=r"smallest advantage $\gamma$")
    error.set(xlabel="$P$, examples", ylim=(0.8 * _find_min_error_on_axis(simulation.eps_g), 1.5))
    for ax, axis in ((stages_s, simulation.s), (stages_P, simulation.P)):
        if not np.isfinite(ax.dataLim.x0):  # no run classified all examples correctly
            ax.set_xlim(axis.values.min() / 1.5, axis.values.max() * 1.5)
    _set_fixed_ticks(stages_s.xaxis, simulation.s.values.tolist())
    _set_fixed_ticks(advantage.xaxis, ADVANTAGE_TICKS)
    _set_fixed_ticks(advantage.yaxis, ADVANTAGE_TICKS)
    set_log_ticks(error.yaxis)
    zero = make_line_handle("no error seen", **ZERO_MARKER_STYLE | {"gid": None, "clip_on": True})
    bound = make_line_handle("bound", linestyle="--")
    draw_legend_below(
        figure, [*sizes, bound, *conjunctions, zero], columns=6, note=_describe_trivial_bounds(lines.eps_g)
    )
    return figure


def _describe_trivial_bounds(bounds: xr.DataArray) -> str:
    """Return a note that lists the values of s whose bound on eps_g is 1 at every P."""
    trivial = [int(s) for s in bounds.s.values if float(bounds.sel(s=s).min()) >= 1]
    if not trivial:
        return ""
    s_range = f"$s={trivial[0]}$" if len(trivial) == 1 else rf"$s={trivial[0]}$ to ${trivial[-1]}$"
    return rf"the bound on $\epsilon_g$ for {s_range} is 1 at every $P$"


def _find_min_error_on_axis(errors: Any) -> float:
    """Return the smallest value that the logarithmic error axis must include.

    This value is the lower end of an error bar, or the mean if the bar almost reaches 0.
    """
    means = errors.mean("seed").values
    ends = means - compute_run_standard_error(errors).fillna(0).values
    ends = np.where(ends > MIN_BAR_END_TO_MEAN_RATIO * means, ends, means)
    return float(ends[ends > 0].min(initial=0.5))


def _set_fixed_ticks(axis: Axis, tick_values: list[float]) -> None:
    axis.set_major_locator(FixedLocator(tick_values))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())
