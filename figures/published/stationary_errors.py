"""Figures of errors that become stationary: a drifting teacher, and label noise in two-layer networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures import arrangement
from figures.panels import (
    add_title_and_legend,
    draw_guide,
    make_curve_handle,
    make_figure,
    make_line_handle,
    modify_scenario,
    set_log_axes,
)
from figures.published_figure import PublishedFigure
from figures.style import NO_LEGEND_GID, SMALL_FONT_SIZE, draw_seed_means, get_curve_style, get_kind_label
from statmech.errors import ConfigError
from statmech.stores.dataset import scenario_from_dataset
from theory import solve, stationary
from theory.networks import stationary_states

RULE_DRIFT_DECAY_KEYS = ("rule", "drift", "decay")
RULE_DRIFT_DECAY_AXIS = "_".join(RULE_DRIFT_DECAY_KEYS)
MIN_DRIFT, DRIFT_LINE_POINTS = 1e-3, 25
SUITABLE_DECAYS_BY_RULE: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "bayes": (r"decay $\delta$", lambda drift: drift),
    "hebb": (r"decay $\sqrt{\delta^2+4\delta/\pi}$", lambda drift: np.sqrt(drift**2 + 4 * drift / np.pi)),
}
NO_DECAY_LABEL_AND_FUNCTION: tuple[str, Callable[[Any], Any]] = ("no decay", lambda drift: 0 * drift)
SMALL_DRIFT_ASYMPTOTES = {  # amplitude, inverse exponent, vertical alignment of the label
    "bayes": (0.4473209420, 3, "top"),
    "perceptron": (0.5052854482, 3, "bottom"),
    "hebb": (0.4237772081, 4, "bottom"),
}
ASYMPTOTE_STYLE: dict[str, Any] = {"color": "0.5", "linewidth": 0.6}
EQUAL_ERRORS_NOTE = (
    r"dotted: equal errors of Hebbian rule and perceptron; $t$: steps / $N$; $\epsilon_g$: generalization error"
)
RULES_WITH_CROSSING_ERRORS = ("hebb", "perceptron")  # the better rule depends on the drift


def draw_drift(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the stationary eps_g against the drift, with a line and points per rule.

    The optimal rule decays at the rate of the drift, the perceptron needs no decay, and the best decay for Hebb's rule
    is sqrt(drift^2 + 4 drift/pi). Lines are stationary states of the equations, down to drifts that show the power
    laws.
    """
    arrangement.check_parallel_axes("drift", theory, RULE_DRIFT_DECAY_KEYS)
    figure, ax = make_figure(4.0)
    drifts = np.geomspace(MIN_DRIFT, max(1.0, float(np.max(theory.drift))), DRIFT_LINE_POINTS)
    states = {
        rule: _solve_stationary_errors(theory, rule, drifts) for rule in dict.fromkeys(theory.rule.values.tolist())
    }
    keys = []
    for index, (rule, line) in enumerate(states.items()):
        ax.plot(drifts, line, color=get_curve_style(index)["color"])
        keys.append(make_curve_handle(index, f"{get_kind_label(rule)}, {_get_suitable_decay(rule)[0]}"))
        rule_errors = _select_and_check_rule_runs(simulation.eps_g.isel(t=-1, student=0), rule)
        draw_seed_means(ax, rule_errors.drift, rule_errors, index)
        _draw_small_drift_asymptote(ax, rule, drifts[-1])
    ax.set(xlabel=r"drift $\delta$", ylabel=r"stationary $\epsilon_g$", xlim=(0.8 * MIN_DRIFT, 1.3 * drifts[-1]))
    _mark_equal_error_drift(ax, drifts, states)
    set_log_axes(ax, "xy")
    keys.append(make_line_handle(r"power law for $\delta\to0$", **ASYMPTOTE_STYLE))
    title = f"$t$ = {float(simulation.t[-1]):g}"
    return add_title_and_legend(figure, simulation, keys, title, columns=2, note=EQUAL_ERRORS_NOTE)


drift = PublishedFigure(
    draw=draw_drift,
    axes=(RULE_DRIFT_DECAY_AXIS,),
    caption=(
        r"Stationary generalization error of one student against the drift rate $\delta$ of the teacher; each rule has "
        r"a suitable weight decay. Thin grey: power laws for small drifts. Dotted: drift at which Hebb's rule and the "
        r"perceptron are equally good. Error bars smaller than the markers are not visible."
    ),
    lines_caption=r"Lines: stationary states of the order-parameter equations, $N\to\infty$.",
)


def _get_suitable_decay(rule: str) -> tuple[str, Callable[[Any], Any]]:
    """Return the label of the decay that suits a rule, and the decay as a function of the drift."""
    return SUITABLE_DECAYS_BY_RULE.get(rule, NO_DECAY_LABEL_AND_FUNCTION)


def _draw_small_drift_asymptote(ax: Axes, rule: str, max_drift: float) -> None:
    """Draw the small-drift asymptote of a rule, labelled with its amplitude."""
    if rule not in SMALL_DRIFT_ASYMPTOTES:
        return
    amplitude, root, side = SMALL_DRIFT_ASYMPTOTES[rule]
    ends = np.array([MIN_DRIFT, max_drift])
    ax.plot(ends, amplitude * ends ** (1 / root), **ASYMPTOTE_STYLE, zorder=0, gid=NO_LEGEND_GID)
    # a label above the rising line needs more height
    text_drift, height_drift = (MIN_DRIFT, 2 * MIN_DRIFT) if side == "bottom" else (2 * MIN_DRIFT, 2 * MIN_DRIFT)
    text = rf"${amplitude:.4f}\,\delta^{{1/{root}}}$"
    ax.text(
        1.05 * text_drift,
        amplitude * height_drift ** (1 / root),
        text,
        color="0.4",
        fontsize=SMALL_FONT_SIZE,
        va=side,
        gid=NO_LEGEND_GID,
    )


def _mark_equal_error_drift(ax: Axes, drifts: np.ndarray, errors_by_rule: dict[str, np.ndarray]) -> None:
    """Mark the drift where the errors of Hebb's rule and the perceptron cross."""
    if not set(RULES_WITH_CROSSING_ERRORS) <= errors_by_rule.keys():
        return
    excess = np.log(errors_by_rule["hebb"] / errors_by_rule["perceptron"])[::-1]
    drift = float(np.exp(np.interp(0.0, excess, np.log(drifts)[::-1])))
    draw_guide(ax, x=drift, text=rf"equal errors at $\delta={drift:.2g}$")


def _solve_stationary_errors(theory: xr.Dataset, rule: str, drifts: np.ndarray) -> np.ndarray:
    """Solve for the stationary eps_g of a rule at each drift, with the suitable decay."""
    together = {"drift": drifts.tolist(), "decay": _get_suitable_decay(rule)[1](drifts).tolist()}
    return np.ravel(stationary(modify_scenario(theory, rule=rule, drift=None, decay=None, zip=together)).eps_g)


def _select_and_check_rule_runs(runs: xr.DataArray, rule: str) -> xr.DataArray:
    """Select the runs of a rule, and check their weight decay.

    Raises `ConfigError` unless the runs have the suitable decay, to the digits of a config.
    """
    rule_runs = runs.isel({RULE_DRIFT_DECAY_AXIS: runs.rule.values == rule})
    if not np.allclose(rule_runs.decay, _get_suitable_decay(rule)[1](rule_runs.drift), rtol=1e-3, atol=1e-12):
        raise ConfigError(f'the figure "drift" requires the rule {rule} with the weight decay that suits it')
    return rule_runs


UNIT_COUNT_KEYS = ("M", "K")
UNIT_COUNT_AXIS = "_".join(UNIT_COUNT_KEYS)
TIME_LINE_POINTS = 60
EQUAL_SURPLUS_UNITS_STYLE: dict[str, Any] = {"linestyle": (0, (4, 2)), "linewidth": 0.9}
FIRST_ORDER_STYLE: dict[str, Any] = {"linestyle": ":", "linewidth": 0.9}
NOISE_FLOOR_NOTE = r"lines of (a) join integer $K$; $M$: teacher units; $\sigma$: noise of their output"
K_LABEL_ROOM = 2.0  # divides the left limit of time, for the labels of K
DRAWN_ERROR_SCALE = 1e4  # errors are drawn in units of 1e-4


def draw_noise_floor(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    r"""Draw the last error against K for each M, and the error against time for the smallest M.

    With K = M or M + 1 units the error becomes stationary (`theory.noise_floor`). To first order in the learning rate
    it is :math:`\eta\sigma^2(K - M + M/\sqrt3)/(2\pi)`. With more units noise slowly makes the surplus units different,
    and the error falls below the unstable state with equal surplus units.
    """
    arrangement.check_parallel_axes("noise_floor", theory, UNIT_COUNT_KEYS)
    floors = np.ravel(stationary_states.noise_floor(scenario_from_dataset(theory), stable=False))
    units = sorted(set(theory.M.values.tolist()))
    figure, (late, time_axes) = make_figure(3.6, 1, 2)
    for index, M in enumerate(units):
        columns = np.flatnonzero(theory.M.values == M)
        runs, equations = (part.isel({UNIT_COUNT_AXIS: columns}) for part in (simulation, theory))
        _draw_final_errors(late, runs, equations, floors[columns], index)
    columns = np.flatnonzero(theory.M.values == units[0])
    for order, column in enumerate(columns, len(units)):  # other colours than in the first panel
        style = get_curve_style(order)
        _draw_error_against_time(time_axes, simulation.isel({UNIT_COUNT_AXIS: column}), floors[column], style)
    _label_axes(late, time_axes, simulation, units[0])
    return add_title_and_legend(
        figure, simulation, [*FLOOR_LEGEND_HANDLES], "eta", "noise", columns=4, note=NOISE_FLOOR_NOTE
    )


noise_floor = PublishedFigure(
    draw=draw_noise_floor,
    axes=(UNIT_COUNT_AXIS,),
    caption=(
        r"Networks that learn from noisy labels. (a) $\epsilon_g$ at the last recorded time against the number $K$ of "
        r"student units, for teachers of $M$ units. (b) $\epsilon_g$ against $t$ for the smallest $M$. Dashed: the "
        r"stationary state with equal surplus units, stable only for $K\leq M+1$; with more units the error falls "
        r"below it. Dotted: the error of this state to first order in the learning rate. In (a), lines join integer "
        r"$K$."
    ),
    lines_caption=r"Lines: equations, $N\to\infty$.",
)


def _draw_final_errors(ax: Axes, runs: xr.Dataset, theory: xr.Dataset, floors: np.ndarray, index: int) -> None:
    """Draw eps_g of one M at the last time, from runs, equations and the stationary state."""
    K, M, colour = runs.K.values, int(runs.M[0]), get_curve_style(index)["color"]
    ax.plot(K, DRAWN_ERROR_SCALE * theory.eps_g.isel(t=-1).values, color=colour)
    ax.plot(K, DRAWN_ERROR_SCALE * floors, color=colour, **EQUAL_SURPLUS_UNITS_STYLE)
    rate = runs.eta.item() * runs.noise.item() ** 2 / (2 * np.pi)
    first_order = rate * (K - M + M / np.sqrt(3))
    ax.plot(K, DRAWN_ERROR_SCALE * first_order, color=colour, **FIRST_ORDER_STYLE)
    draw_seed_means(ax, K, DRAWN_ERROR_SCALE * runs.eps_g.isel(t=-1).transpose(..., "seed"), index)
    start = K[0], DRAWN_ERROR_SCALE * first_order[0]
    ax.annotate(f"$M$ = {M}", start, (4, -5), textcoords="offset points", ha="left", va="top", color=colour)


def _draw_error_against_time(ax: Axes, runs: xr.Dataset, floor: float, style: dict[str, Any]) -> None:
    """Draw eps_g of one K against time, and write K at the first time."""
    t = runs.t.values[runs.t.values > 0]
    times = np.geomspace(t[0], t[-1], TIME_LINE_POINTS).tolist()
    line = solve(modify_scenario(runs, M=int(runs.M), K=int(runs.K), t=times, zip=None))
    ax.plot(line.t, DRAWN_ERROR_SCALE * line.eps_g, color=style["color"])
    ax.plot(t[[0, -1]], [DRAWN_ERROR_SCALE * floor] * 2, color=style["color"], zorder=0, **EQUAL_SURPLUS_UNITS_STYLE)
    draw_seed_means(ax, t, DRAWN_ERROR_SCALE * runs.eps_g.sel(t=t), 0, **style)
    start = t[0], DRAWN_ERROR_SCALE * float(line.eps_g[0])
    text_style: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "va": "center", "color": style["color"]}
    ax.annotate(f"$K$ = {int(runs.K)}", start, (-5, 0), **text_style)


def _label_axes(late: Axes, time_axes: Axes, simulation: xr.Dataset, M: int) -> None:
    late.set(xlabel="student units $K$", ylabel=r"$\epsilon_g$ ($10^{-4}$)", ylim=(0, None))
    late.set_title(f"$t$ = {float(simulation.t[-1]):g}")
    late.set_xticks(sorted(set(simulation.K.values.tolist())))
    time_axes.set(xlabel="$t$ (steps / $N$)", ylabel=r"$\epsilon_g$ ($10^{-4}$)", title=f"$M$ = {M}")
    time_axes.set_xscale("log")
    time_axes.set_xlim(left=time_axes.get_xlim()[0] / K_LABEL_ROOM)
    set_log_axes(time_axes, "xy")


FLOOR_LEGEND_HANDLES = (
    make_line_handle("stationary, equal surplus units", **EQUAL_SURPLUS_UNITS_STYLE),
    make_line_handle(r"first order in $\eta$", **FIRST_ORDER_STYLE),
)
