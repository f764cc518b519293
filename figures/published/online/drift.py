"""Stationary error against the rate of the teacher's drift, for each rule with a suitable weight decay.

The optimal rule decays at the rate of the drift, the perceptron needs no decay, and the best decay for Hebb's rule is
sqrt(drift^2 + 4 drift/pi). Lines are stationary states of the equations, down to drifts that show the power laws.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures import arrangement
from figures.legends import make_curve_handle
from figures.panels import add_title_and_legend, draw_guide, make_figure, modify_scenario, set_log_axes
from figures.style import NO_LEGEND_GID, SMALL_FONT_SIZE, draw_seed_means, get_curve_style, get_kind_label
from statmech.errors import ConfigError
from theory import stationary

RULE_DRIFT_DECAY_KEYS = ("rule", "drift", "decay")
AXES = ("_".join(RULE_DRIFT_DECAY_KEYS),)  # sweep axes that this figure shows
MIN_DRIFT, DRIFT_LINE_POINTS = 1e-4, 25
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
RULES_WITH_CROSSING_ERRORS = ("hebb", "perceptron")  # the better rule depends on the drift
CAPTION = (
    r"Stationary generalization error of one student against the drift rate $\delta$ of the teacher; each rule has a "
    r"suitable weight decay. Thin grey: power laws for small drifts. Dotted: drift at which Hebb's rule and the "
    r"perceptron are equally good. Error bars smaller than the markers are not visible."
)
LINES_CAPTION = r"Lines: stationary states of the order-parameter equations, $N\to\infty$."


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the stationary eps_g against the drift, with a line and points per rule."""
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
    return add_title_and_legend(figure, simulation, keys, f"$t$ = {float(simulation.t[-1]):g}", columns=3)


def _get_suitable_decay(rule: str) -> tuple[str, Callable[[Any], Any]]:
    """Return the label of the decay that suits a rule, and the decay as a function of the drift."""
    return SUITABLE_DECAYS_BY_RULE.get(rule, NO_DECAY_LABEL_AND_FUNCTION)


def _draw_small_drift_asymptote(ax: Axes, rule: str, max_drift: float) -> None:
    """Draw the small-drift asymptote of a rule, labelled with its amplitude."""
    if rule not in SMALL_DRIFT_ASYMPTOTES:
        return
    amplitude, root, side = SMALL_DRIFT_ASYMPTOTES[rule]
    ends = np.array([MIN_DRIFT, max_drift])
    ax.plot(ends, amplitude * ends ** (1 / root), color="0.6", linewidth=0.6, zorder=0, gid=NO_LEGEND_GID)
    text_drift, height_drift = (
        (MIN_DRIFT, 2 * MIN_DRIFT) if side == "bottom" else (2 * MIN_DRIFT, 2 * MIN_DRIFT)
    )  # a label above the rising line needs more height
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
    draw_guide(ax, x=drift, text=rf"equal at $\delta={drift:.2g}$")


def _solve_stationary_errors(theory: xr.Dataset, rule: str, drifts: np.ndarray) -> np.ndarray:
    """Solve for the stationary eps_g of a rule at each drift, with the suitable decay."""
    together = {"drift": drifts.tolist(), "decay": _get_suitable_decay(rule)[1](drifts).tolist()}
    return np.ravel(stationary(modify_scenario(theory, rule=rule, drift=None, decay=None, zip=together)).eps_g)


def _select_and_check_rule_runs(runs: xr.DataArray, rule: str) -> xr.DataArray:
    """Select the runs of a rule, and check their weight decay.

    Raises `ConfigError` unless the runs have the suitable decay, to the digits of a config.
    """
    rule_runs = runs.isel({AXES[0]: runs.rule.values == rule})
    if not np.allclose(rule_runs.decay, _get_suitable_decay(rule)[1](rule_runs.drift), rtol=1e-3, atol=1e-12):
        raise ConfigError(f'the figure "drift" requires the rule {rule} with the weight decay that suits it')
    return rule_runs
