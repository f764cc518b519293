"""Figures of boosted sparse perceptrons: the bounds of Jackson & Craven, and learning from flipped labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from figures import curves
from figures.labels import describe_size_and_runs
from figures.panels import (
    ZERO_MARKER_STYLE,
    combine_with_lines,
    draw_legend_below,
    draw_panel,
    make_figure,
    make_line_handle,
    mark_zeros_at_foot,
    select_with_dense_theory,
    set_heading,
    solve_dense_theory,
)
from figures.published_figure import PublishedFigure
from figures.style import draw_seed_means, get_curve_style, make_shades, nested_marker_size, set_log_ticks
from statmech.numerics.statistics import compute_run_standard_error
from statmech.results.results import as_results

MAX_BOOSTING_CURVES = 4  # one curve per value of P
MIN_BAR_END_TO_MEAN_RATIO = 0.1  # lower bar ends below this fraction of the mean do not extend the axis
STAGE_COUNT_AXIS_LABEL = "stages to zero\ntraining error"
BOOSTING_LINE_STYLE: dict[str, Any] = {"linestyle": "-"}
ADVANTAGE_TICKS = [0.02, 0.05, 0.1, 0.2, 0.5]


def draw_boosting(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    r"""Draw stages and the smallest advantage against s, and stages and eps_g against P.

    Shades of grey stand for values of P, and colours for values of s.

    Points are means over teachers. Dashed lines of the same colour are the bounds of the paper's Lemmas 1 and 2: after
    :math:`2s^2\ln P` stages all P examples are classified correctly, no stage has an advantage below 1/(2s), and eps_g
    stays below a bound. The bound is 1, and therefore trivial, until P is about :math:`s^4\ln^2 P`, or the square of
    the number of conjunctions if that is smaller. A mean of zero cannot be drawn on a logarithmic axis.
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


boosting = PublishedFigure(
    draw=draw_boosting,
    axes=("s", "P"),
    caption=(
        r"AdaBoost over all conjunctions, learning from $P$ examples of a teacher that is a vote of $s$ conjunctions: "
        r"number of stages to zero training error, smallest advantage $\gamma=\min_i(\frac{1}{2}-\epsilon_i)$ of a "
        r"stage, and generalization error. Thin lines join points. Dashed: bounds of Jackson & Craven at every $s$ and "
        r"$P$; the bound on $\epsilon_g$ is drawn where it is less than 1. Triangles at the bottom: no run had an "
        r"error."
    ),
    lines_caption="",
)


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


MAX_CURVES_PER_FLIP_PANEL = 5
FLIP_LINE_STYLE: dict[str, Any] = {"linestyle": "-"}


def draw_boosting_flip(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g against the flip fraction (left) and against the number of stages (right)."""
    results, (figure, (against_flip, against_stages)) = as_results(simulation), make_figure(3.4, 1, 2, sharey=True)
    stages, flips = (
        np.unique(np.linspace(0, simulation.sizes[name] - 1, MAX_CURVES_PER_FLIP_PANEL).round())
        for name in ("cap", "flip")
    )
    selected = curves.select_position(results, {"cap": stages.astype(int)})
    left = draw_panel(against_flip, selected, "flip", "eps_g", "cap", **FLIP_LINE_STYLE)
    largest = simulation.flip.values.max()
    for key, num_stages in zip(left, selected.either.cap.values, strict=True):
        key.set_label(f"$T$ = {num_stages:,}")
    left += against_flip.plot([0, largest], [0, largest], "--", color="0.5", label=r"$\epsilon_g=p_f$")
    selected = curves.select_position(results, {"flip": flips.astype(int)})
    right = draw_panel(
        against_stages, selected, "cap", "eps_g", "flip", log="x", palette=make_shades(len(flips)), **FLIP_LINE_STYLE
    )
    against_flip.set_xlabel(r"$p_f$, fraction of flipped labels")
    against_flip.set_ylim(bottom=-0.01)
    against_stages.set(xlabel="$T$, stages", ylabel="")
    against_stages.xaxis.set_major_locator(FixedLocator(simulation.cap.values))
    draw_legend_below(figure, [*left, *right], columns=4)
    set_heading(
        figure,
        [f"$s$ = {int(simulation.s)}", f"$P$ = {int(simulation.P):,}", describe_size_and_runs(simulation)],
    )
    return figure


boosting_flip = PublishedFigure(
    draw=draw_boosting_flip,
    axes=("flip", "cap"),
    caption=(
        r"Generalization error of AdaBoost over conjunctions, measured on the teacher's unflipped labels. Learning "
        r"uses labels flipped with probability $p_f$, and ends after $T$ stages or when all examples are classified "
        r"correctly. Dashed: $\epsilon_g=p_f$, the error of the flipped labels."
    ),
    lines_caption="",
)
