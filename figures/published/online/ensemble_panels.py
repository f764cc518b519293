"""Panels of ensembles: error of K students divided by the error of one student, and q against R."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from figures.legends import make_line_handle, make_points_handle
from figures.panels import GUIDE_STYLE, add_title_and_legend, draw_guide, make_panel_grid, solve_dense_theory
from figures.style import (
    COLUMN_WIDTH,
    CURVE_COLOURS,
    CURVE_MARKERS,
    PAGE_WIDTH,
    SMALL_FONT_SIZE,
    draw_seed_means,
    get_curve_style,
    get_kind_label,
    get_medium,
    nested_marker_size,
    standard_error_over_seeds,
)
from theory import ensemble_error

ENSEMBLE_OUTPUT_STYLES: dict[str, tuple[str, Any]] = {  # label, line style
    "eps_g_majority_vote": ("majority vote", "-"),
    "eps_g_weight_mean": ("weight mean", "--"),
}
ENSEMBLE_GAIN_CAPTION = (
    r"Generalization error of the majority vote of $K$ students and of the mean of their weights at the last recorded "
    r"time, divided by the theoretical error of one student. The votes of $2n$ and of $2n-1$ students are equally "
    r"good. Dotted: infinite ensemble."
)
MAX_RULE_COLUMNS = 3
HEADER_HEIGHT_INCHES = 0.9  # room for title and legend
STEP_DRAW_STYLE, MAX_STEPPED_STUDENTS = "steps-mid", 15  # theory is drawn as steps up to this K
MIN_GAIN_WITHOUT_INSET = 0.1  # smaller gains are enlarged in an inset


class EnsembleResults(NamedTuple):
    """Results of ensembles: simulation, theory at the same K, and theory lines at every K."""

    simulation: xr.Dataset
    theory: xr.Dataset
    lines: xr.Dataset

    def select_rule(self, rule: str) -> EnsembleResults:
        """Return the results of one rule."""
        return EnsembleResults(*(part.sel(rule=rule) for part in self))


def draw_gain_panel(ax: Axes, results: EnsembleResults, colour: str | None = None) -> None:
    """Draw the last errors of vote and weight mean against K, relative to one student in theory.

    The dotted line is the limit of infinite K. If `colour` is given, it applies to both outputs.
    """
    simulation, theory, lines = (part.isel(t=-1).sortby("K") for part in results)
    single_error = theory.eps_g.isel(K=-1, student=0).item()
    for index, (name, (label, dashes)) in enumerate(ENSEMBLE_OUTPUT_STYLES.items()):
        line_colour, size = colour or CURVE_COLOURS[index], nested_marker_size(index, len(ENSEMBLE_OUTPUT_STYLES))
        line_style = {
            "color": line_colour,
            "linestyle": dashes,
            "drawstyle": STEP_DRAW_STYLE if lines.sizes["K"] <= MAX_STEPPED_STUDENTS else "default",
        }
        ax.plot(lines.K, lines[name] / single_error, **line_style, label=f"{label}, theory")
        draw_seed_means(
            ax,
            simulation.K,
            simulation[name] / single_error,
            index,
            color=line_colour,
            label=f"{label}, simulation",
            **size,
        )
    if int(theory.K.max()) > 1:  # q requires two students
        draw_guide(ax, y=_compute_infinite_error_ratio(theory, single_error), linewidth=1)


def make_output_handles() -> list[Any]:
    """Return the legend handles for the ensemble outputs, in neutral colours."""
    return [
        handle
        for index, (label, dashes) in enumerate(ENSEMBLE_OUTPUT_STYLES.values())
        for handle in (
            make_line_handle(f"{label}, theory", linestyle=dashes),
            make_points_handle(
                f"{label}, simulation",
                marker=CURVE_MARKERS[index],
                **nested_marker_size(index, len(ENSEMBLE_OUTPUT_STYLES)),
            ),
        )
    ]


def label_infinite_ensemble(ax: Axes, theory: xr.Dataset) -> None:
    """Label the dotted line for infinite K to the right of the axes."""
    if int(theory.K.max()) == 1:
        return
    single_error = theory.isel(t=-1).eps_g.isel(K=-1, student=0).item()
    limit = _compute_infinite_error_ratio(theory.isel(t=-1), single_error)
    coordinates: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "textcoords": "offset points"}
    ax.annotate(
        r"$K=\infty$", (1, limit), (2, 0), ha="left", va="center", color="0.4", fontsize=SMALL_FONT_SIZE, **coordinates
    )


def _compute_infinite_error_ratio(theory: xr.Dataset, single_error: float) -> float:
    R, q = (theory[name].isel(K=-1, student=0).item() for name in ("R", "q"))
    return float(ensemble_error(R, q, np.inf)) / single_error


def label_gain_axes(ax: Axes, K: np.ndarray) -> None:
    """Label both axes, and use a logarithmic K axis for many students."""
    _scale_students_axis(ax, K)
    ax.set_xlabel("number of students $K$")
    ax.set_ylabel(r"$\epsilon_g(K)\,/\,\epsilon_g(1)$")


def _scale_students_axis(ax: Axes, K: np.ndarray) -> None:
    """Set the scale and non-overlapping ticks of the K axis."""
    if K.max() <= MAX_STEPPED_STUDENTS:
        ax.xaxis.set_major_locator(MultipleLocator(2, offset=1))
        return
    ticks = _select_spaced_ticks(K)
    ax.set_xscale("log")
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()


def add_inset_for_small_gain(ax: Axes, results: EnsembleResults, colour: str) -> None:
    """Enlarge the panel in an inset if the gain is small on the common scale."""
    if ax.dataLim.y0 < 1 - MIN_GAIN_WITHOUT_INSET:
        return
    inset = ax.inset_axes((0.24, 0.1, 0.72, 0.66))
    draw_gain_panel(inset, results, colour)
    _scale_students_axis(inset, results.theory.K.values)
    inset.tick_params(labelsize=6.5)
    inset.text(0.98, 0.96, "enlarged", transform=inset.transAxes, ha="right", va="top", fontsize=SMALL_FONT_SIZE)


def draw_q_against_R(ax: Axes, simulation: xr.Dataset, lines: xr.Dataset) -> None:
    """Draw q against R during learning, with theory as lines and simulation as points."""
    R = np.linspace(0, 1, 101)
    ax.plot(R, R**2, **GUIDE_STYLE | {"linewidth": 1})
    ax.annotate("$q=R^2$", (0.62, 0.62**2), (4, -8), textcoords="offset points", color="0.4", fontsize=SMALL_FONT_SIZE)
    for index, rule in enumerate(lines.rule.values):
        line, cloud = lines.sel(rule=rule).isel(student=0), simulation.sel(rule=rule).mean("student")
        ax.plot(line.R, line.q, color=get_curve_style(index)["color"], zorder=1)
        point_options = {"label": get_kind_label(str(rule)), "xerr": standard_error_over_seeds(cloud.R)}
        draw_seed_means(ax, cloud.R.mean("seed"), cloud.q, index, **point_options)
    ax.set(xlabel="$R$ (teacher, student)", ylabel="$q$ (student, student)")
    ax.margins(0.05)


def set_common_y_limits(axes: Sequence[Axes]) -> None:
    """Set common y limits, so that rules can be compared by eye."""
    limits = np.array([ax.get_ylim() for ax in axes])
    for ax in axes:
        ax.set_ylim(limits[:, 0].min(), limits[:, 1].max())


def draw_gain_panel_per_rule(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw one panel per rule of the sweep. A single panel is one column wide."""
    parts, rules = (
        EnsembleResults(simulation, theory, solve_dense_theory(theory, "K")),
        [str(rule) for rule in theory.rule.values],
    )
    narrow = len(rules) == 1 or get_medium().is_one_column
    figure, axes = make_panel_grid(
        len(rules), *((1, 2.0, COLUMN_WIDTH) if narrow else (MAX_RULE_COLUMNS, 2.0, PAGE_WIDTH)), HEADER_HEIGHT_INCHES
    )
    for ax, rule in zip(axes, rules, strict=True):
        draw_gain_panel(ax, parts.select_rule(rule))
        label_gain_axes(ax, theory.K.values)
        label_infinite_ensemble(ax, theory.sel(rule=rule))
        ax.set_title(get_kind_label(rule))
    set_common_y_limits(axes)
    handles, _ = axes[0].get_legend_handles_labels()
    return add_title_and_legend(
        figure, simulation, handles, f"$t$ = {simulation.t.values[-1]:g}", columns=2 if narrow else 4
    )


def _select_spaced_ticks(K: np.ndarray) -> list[int]:
    """Select values of K whose tick labels do not overlap."""
    spaced_values: list[int] = []
    for value in sorted(map(int, K)):
        if not spaced_values or value >= 1.45 * spaced_values[-1]:
            spaced_values.append(value)
    return spaced_values
