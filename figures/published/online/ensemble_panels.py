"""Panels on ensembles: the error of K students over the error of one, and the relation of R and q."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from figures.grid_of_panels import panels_of
from figures.legends import entry, points_with_bars
from figures.panels import GUIDE, dense, finish, guide
from figures.style import COLOURS, COLUMN, MARKERS, PAGE, SMALL, label_of, look_of, medium, nested_size, points, spread
from theory import ensemble_error

OUTPUTS: dict[str, tuple[str, Any]] = {  # label, line style
    "eps_g_majority_vote": ("majority vote", "-"),
    "eps_g_weight_mean": ("weight mean", "--"),
}
RULE_CAPTION = (
    r"Generalization error of the majority vote of $K$ students and of the mean of their weights, over the theoretical "
    r"error of one student, at the last recorded time. A vote of $2n$ students is as good as one of $2n-1$. Dotted: "
    r"infinitely many students."
)
MOST_COLUMNS = 3
HEAD = 0.9  # room for title and legend
STEPS, DISCRETE = "steps-mid", 15  # theory has a step at each K up to this number of students
SMALL_GAIN = 0.1  # smaller gains are enlarged in an inset


class Parts(NamedTuple):
    """Simulation, theory at the same K, and theory at every K."""

    simulation: xr.Dataset
    theory: xr.Dataset
    lines: xr.Dataset

    def of(self, rule: str) -> Parts:
        """Select one rule."""
        return Parts(*(part.sel(rule=rule) for part in self))


def effect_panel(ax: Axes, parts: Parts, colour: str | None = None) -> None:
    """Draw eps_g of vote and weight mean against K, relative to one student in theory, at the last time.

    The dotted line is the limit of infinite K. A given colour applies to both outputs.
    """
    simulation, theory, lines = (part.isel(t=-1).sortby("K") for part in parts)
    single_error = theory.eps_g.isel(K=-1, student=0).item()
    for index, (name, (label, dashes)) in enumerate(OUTPUTS.items()):
        line_colour, size = colour or COLOURS[index], nested_size(index, len(OUTPUTS))
        line_style = {
            "color": line_colour,
            "linestyle": dashes,
            "drawstyle": STEPS if lines.sizes["K"] <= DISCRETE else "default",
        }
        ax.plot(lines.K, lines[name] / single_error, **line_style, label=f"{label}, theory")
        points(
            ax,
            simulation.K,
            simulation[name] / single_error,
            index,
            color=line_colour,
            label=f"{label}, simulation",
            **size,
        )
    if int(theory.K.max()) > 1:  # one student has no q
        guide(ax, y=_limit(theory, single_error), linewidth=1)


def keys() -> list[Any]:
    """Return legend handles of the outputs, without the colours of rules."""
    return [
        handle
        for index, (label, dashes) in enumerate(OUTPUTS.values())
        for handle in (
            entry(f"{label}, theory", linestyle=dashes),
            points_with_bars(f"{label}, simulation", marker=MARKERS[index], **nested_size(index, len(OUTPUTS))),
        )
    ]


def label_limit(ax: Axes, theory: xr.Dataset) -> None:
    """Label the dotted line of infinite K to the right of the axes."""
    if int(theory.K.max()) == 1:
        return
    single_error = theory.isel(t=-1).eps_g.isel(K=-1, student=0).item()
    limit = _limit(theory.isel(t=-1), single_error)
    coordinates: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "textcoords": "offset points"}
    ax.annotate(r"$K=\infty$", (1, limit), (2, 0), ha="left", va="center", color="0.4", fontsize=SMALL, **coordinates)


def _limit(theory: xr.Dataset, one: float) -> float:
    R, q = (theory[name].isel(K=-1, student=0).item() for name in ("R", "q"))
    return float(ensemble_error(R, q, np.inf)) / one


def students_axis(ax: Axes, K: np.ndarray) -> None:
    """Label both axes, with a logarithmic axis for many students."""
    _scaled(ax, K)
    ax.set_xlabel("number of students $K$")
    ax.set_ylabel(r"$\epsilon_g(K)\,/\,\epsilon_g(1)$")


def _scaled(ax: Axes, K: np.ndarray) -> None:
    """Set the scale and non-overlapping ticks of the K axis."""
    if K.max() <= DISCRETE:
        ax.xaxis.set_major_locator(MultipleLocator(2, offset=1))
        return
    ticks = _ticks(K)
    ax.set_xscale("log")
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()


def enlarged(ax: Axes, parts: Parts, colour: str) -> None:
    """Enlarge the panel in an inset if the gain is small on the common scale."""
    if ax.dataLim.y0 < 1 - SMALL_GAIN:
        return
    inset = ax.inset_axes((0.24, 0.1, 0.72, 0.66))
    effect_panel(inset, parts, colour)
    _scaled(inset, parts.theory.K.values)
    inset.tick_params(labelsize=6.5)
    inset.text(0.98, 0.96, "enlarged", transform=inset.transAxes, ha="right", va="top", fontsize=SMALL)


def variety_panel(ax: Axes, simulation: xr.Dataset, lines: xr.Dataset) -> None:
    """Draw R against q, with theory as lines along t and simulation as points with standard errors."""
    R = np.linspace(0, 1, 101)
    ax.plot(R, R**2, **GUIDE | {"linewidth": 1})
    ax.annotate("$q=R^2$", (0.62, 0.62**2), (4, -8), textcoords="offset points", color="0.4", fontsize=SMALL)
    for index, rule in enumerate(lines.rule.values):
        line, cloud = lines.sel(rule=rule).isel(student=0), simulation.sel(rule=rule).mean("student")
        ax.plot(line.R, line.q, color=look_of(index)["color"], zorder=1)
        point_options = {"label": label_of(str(rule)), "xerr": spread(cloud.R)}
        points(ax, cloud.R.mean("seed"), cloud.q, index, **point_options)
    ax.set(xlabel="$R$ (teacher, student)", ylabel="$q$ (student, student)")
    ax.margins(0.05)


def share_y_limits(axes: Sequence[Axes]) -> None:
    """Set common y limits, so that rules can be compared by eye."""
    limits = np.array([ax.get_ylim() for ax in axes])
    for ax in axes:
        ax.set_ylim(limits[:, 0].min(), limits[:, 1].max())


def draw_rules(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw a panel per rule of the sweep. A single panel is one column wide."""
    parts, rules = Parts(simulation, theory, dense(theory, "K")), [str(rule) for rule in theory.rule.values]
    narrow = len(rules) == 1 or medium().column
    figure, axes = panels_of(len(rules), *((1, 2.0, COLUMN) if narrow else (MOST_COLUMNS, 2.0, PAGE)), HEAD)
    for ax, rule in zip(axes, rules, strict=True):
        effect_panel(ax, parts.of(rule))
        students_axis(ax, theory.K.values)
        label_limit(ax, theory.sel(rule=rule))
        ax.set_title(label_of(rule))
    share_y_limits(axes)
    handles, _ = axes[0].get_legend_handles_labels()
    return finish(figure, simulation, handles, f"$t$ = {simulation.t.values[-1]:g}", columns=2 if narrow else 4)


def _ticks(K: np.ndarray) -> list[int]:
    """Select the values of K whose labels do not overlap."""
    spaced_values: list[int] = []
    for value in sorted(map(int, K)):
        if not spaced_values or value >= 1.45 * spaced_values[-1]:
            spaced_values.append(value)
    return spaced_values
