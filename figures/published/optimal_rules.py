"""Figures of late errors of online rules: the optimal rule, rules with label noise, and the gain of ensembles."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures import arrangement
from figures.panels import (
    add_title_and_legend,
    combine_with_lines,
    draw_guide,
    draw_panel,
    make_curve_handle,
    make_figure,
    make_line_handle,
    make_points_handle,
    modify_scenario,
    solve_dense_theory,
)
from figures.published_figure import PublishedFigure
from figures.style import (
    CURVE_COLOURS,
    MINIMUM_STAR_STYLE,
    NO_LEGEND_GID,
    SMALL_FONT_SIZE,
    draw_seed_means,
    get_kind_label,
    set_log_ticks,
)
from statmech.errors import ConfigError
from statmech.kinds.online_perceptron import Scenario
from statmech.numerics.gaussian import normal_cdf, normal_density
from statmech.stores.dataset import scenario_from_dataset
from theory import solve
from theory.online import ensemble_errors

MAX_DRAWN_TIME, OPTIMAL_LINE_POINTS = 1e4, 250  # the lines extend to late times to show their limits
LATE_SCALED_ERRORS = {
    r"0.8834: optimal": 0.8834000872,
    r"$4/\pi$: perceptron, best $\eta(R)$": 4 / np.pi,
    r"$4/3$: AdaTron (textbook), $\eta=3/2$": 4 / 3,
    r"$3/2$: AdaTron (textbook), $\eta=1$": 3 / 2,
}
START_DEPENDENT_RULE = "adatron"  # the limit of this rule depends on the initial length
MAX_DRAWN_SCALED_ERROR = 2.3  # upper end of the eps_g t axis


def draw_optimal(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g t against t, one line per rule, up to times that show the limits.

    Rules with errors that decay as 1/t tend to constants. The errors of the perceptron and of Hebb's rule decay as
    t^(-1/3) and t^(-1/2), so that their lines rise without limit.
    """
    start = float(theory.t[theory.t > 0][0])
    lines = solve(modify_scenario(theory, t=np.geomspace(start, MAX_DRAWN_TIME, OPTIMAL_LINE_POINTS).tolist(), K=1))
    scaled = _add_scaled_error(lines)
    results = combine_with_lines(_add_scaled_error(simulation), theory, scaled)
    (figure, ax), first = make_figure(4.0), 0.85 * start  # room for the first markers
    keys = draw_panel(ax, results, "t", "scaled", "rule", label=r"$\epsilon_g\,t$", log="x")
    for label, value in LATE_SCALED_ERRORS.items():
        draw_guide(ax, y=value, zorder=2)
        _label_line(ax, label, (first * 1.1, value), above="pi" not in label, ha="left")
    if START_DEPENDENT_RULE in lines.rule.values:
        last = scaled.scaled.sel(rule=START_DEPENDENT_RULE).isel(t=-1).item()
        _label_line(ax, f"{last:.2f}: AdaTron, this start", (MAX_DRAWN_TIME, last), above=True, ha="right")
    ax.set(xlim=(first, MAX_DRAWN_TIME), ylim=(0, MAX_DRAWN_SCALED_ERROR))
    set_log_ticks(ax.xaxis)
    return add_title_and_legend(figure, results, keys, columns=3)


optimal = PublishedFigure(
    draw=draw_optimal,
    axes=("rule",),
    caption=(
        r"Generalization error times $t$ of one student, which starts at $R=l=0.2$ unless stated otherwise. A rule "
        r"whose error decays as $1/t$ tends to a constant; no online rule lies below the optimal rule. Dotted, grey: "
        r"limits $t\to\infty$ of the optimal rule, of a perceptron with the best rate $\eta(R)$ at every time, and of "
        r"the textbook AdaTron at its best rate $3/2$ and at rate 1. Error bars smaller than the markers are not "
        r"visible."
    ),
)


def _label_line(ax: Axes, label: str, position: tuple[float, float], *, above: bool, ha: str) -> None:
    """Write the name of a line above or below the line."""
    text_options: dict[str, Any] = {
        "fontsize": SMALL_FONT_SIZE,
        "ha": ha,
        "va": "bottom" if above else "top",
        "gid": NO_LEGEND_GID,
    }
    ax.annotate(label, position, (0, 2 if above else -2), textcoords="offset points", **text_options)


def _add_scaled_error(dataset: xr.Dataset) -> xr.Dataset:
    """Add eps_g t to a dataset, with NaN where its mean lies outside the axis."""
    scaled = dataset.eps_g * dataset.t
    mean = scaled.mean([dim for dim in ("seed", "student") if dim in scaled.dims])
    return dataset.assign(scaled=scaled.where(mean < MAX_DRAWN_SCALED_ERROR))


RULE_FLIP_SCHEDULE_KEYS = ("rule", "assumed_flip", "flip", "schedule")
RULE_FLIP_SCHEDULE_AXIS = "_".join(RULE_FLIP_SCHEDULE_KEYS)
FLIP_LINE_POINTS, INTEGRAL_CUTOFF, INTEGRAL_STEP = 61, 12.0, 1e-3  # the last two apply to the integral I(p_f)
EQUAL_ERROR_FLIP = 0.25  # Hebb's rule and the perceptron are then equally good
RULE_SCHEDULE_LABELS = {"bayes": "", "hebb": "", "perceptron": r", $\eta/(1+t/t_0)$"}  # labels of schedules


def draw_noise_optimal(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    r"""Draw late errors against the flip probability, with one panel per power of t.

    The optimal rule that assumes the flip rate p_f (`assumed_flip`) tends to :math:`C(p_f)/t`, with

    .. math:: C(p_f) = \frac{\sqrt{2/\pi}}{I(p_f)}, \qquad
              I(p_f) = \int \frac{(1-2p_f)^2\varphi(x)^2}{p_f+(1-2p_f)\,\Phi(x)}\,dx .

    A perceptron at a small angle with the rate :math:`\rho=\eta/l` obeys

    .. math:: \dot\theta = -\frac{(1-2p_f)\,\rho\,\theta}{\sqrt{2\pi}} + \frac{p_f\,\rho^2}{2\theta}, \qquad
              \frac{\dot l}l = -\frac{2p_f\,\rho}{\sqrt{2\pi}} + \frac{p_f\,\rho^2}2 .

    The best rate, :math:`\rho=\sqrt{2\pi}/((1-2p_f)\,t)`, gives :math:`\sqrt{2p_f/\pi}/((1-2p_f)\sqrt t)`; Hebb's rule
    has :math:`1/(\sqrt{2\pi}(1-2p_f)\sqrt t)`, which is equal at p_f = 1/4. As flips shorten the perceptron, a learning
    rate that decays as 1/t does not keep :math:`\rho t` constant. A decay as :math:`t^{-1/(1-2p_f)}` would.
    """
    arrangement.check_parallel_axes("noise_optimal", theory, RULE_FLIP_SCHEDULE_KEYS)
    if not _has_several_flips(scenario_from_dataset(theory)):
        raise ConfigError(
            f'the figure "noise_optimal" requires each of {", ".join(RULE_SCHEDULE_LABELS)} at several increasing flips'
        )
    (figure, axes), t = make_figure(3.5, 1, 2), float(theory.t[-1])
    flips = (
        max(0.3, float(np.max(theory.flip))) * np.linspace(0, 1, FLIP_LINE_POINTS) ** 2
    )  # denser at small flips, where the lines rise as sqrt(flip)
    for index, (rule, scale) in enumerate({"bayes": t, "hebb": t**0.5, "perceptron": t**0.5}.items()):
        ax = axes[int(index > 0)]
        ax.plot(flips, compute_scaled_error_limit(rule, flips), color=CURVE_COLOURS[index], zorder=1)
        ax.plot(
            flips,
            scale * _solve_final_errors(theory, rule, flips),
            color=CURVE_COLOURS[index],
            linestyle="--",
            linewidth=0.9,
        )
        rule_runs = simulation.eps_g.isel(t=-1, student=0)[simulation.rule.values == rule]
        draw_seed_means(ax, rule_runs.flip, scale * rule_runs, index)
    _label_axes(*axes)
    keys: list[Any] = [
        make_curve_handle(index, get_kind_label(rule) + schedule_text)
        for index, (rule, schedule_text) in enumerate(RULE_SCHEDULE_LABELS.items())
    ]
    keys += [
        make_line_handle(r"theory, $t\to\infty$"),
        make_line_handle(f"theory, $t$ = {t:g}", linestyle="--", linewidth=0.9),
        make_points_handle(label=f"simulation, $t$ = {t:g}"),
    ]
    return add_title_and_legend(figure, simulation, keys, f"$t$ = {t:g}", columns=3)


noise_optimal = PublishedFigure(
    draw=draw_noise_optimal,
    axes=(RULE_FLIP_SCHEDULE_AXIS,),
    supported_values={"rule": tuple(RULE_SCHEDULE_LABELS)},
    caption=(
        r"Generalization error of one student against the fraction $p_f$ of flipped labels. (a) Error of the optimal "
        r"rule times $t$; the rule assumes the true fraction ($\hat p_f=p_f$). (b) Error of Hebb's rule and of the "
        r"perceptron times $\sqrt{t}$. The learning rate of the perceptron decays as $\eta/(1+t/t_0)$, with a $t_0$ "
        r"for every $p_f$; the other rates are constant ($t_0=10^9$). Solid: limits $t\to\infty$, for the perceptron "
        r"at its best rate at every time. In (b) these limits are equal at $p_f=1/4$ (dotted). Dashed: theory at the "
        r"time of the simulation, for the perceptron with interpolated $t_0$. Error bars smaller than the markers are "
        r"not visible."
    ),
    lines_caption="",
)


def _has_several_flips(scenario: Scenario) -> bool:
    """Return True if every rule has several increasing flips, so that t0 can be interpolated."""
    flips = [
        [flip for name, flip in scenario.list_value_pairs("rule", "flip") if name == rule]
        for rule in RULE_SCHEDULE_LABELS
    ]
    return all(len(rule_flips) > 1 and rule_flips == sorted(set(rule_flips)) for rule_flips in flips)


def compute_scaled_error_limit(rule: str, flip: Any) -> Any:
    """Return the late-time limit of eps_g t for the optimal rule, or of eps_g sqrt t for other rules.

    The perceptron uses its best learning rate at every time.

    >>> [float(compute_scaled_error_limit("bayes", flip).round(9)) for flip in (0, 0.1, 0.3)]
    [0.883400087, 1.833635599, 8.520379027]
    >>> bool(np.isclose(compute_scaled_error_limit("hebb", 0.25), compute_scaled_error_limit("perceptron", 0.25)))
    True
    """
    flip = np.asarray(flip, float)
    if rule == "bayes":
        x = np.arange(-INTEGRAL_CUTOFF, INTEGRAL_CUTOFF, INTEGRAL_STEP)
        signal_factor = 1 - 2 * flip[..., None]
        information = (signal_factor * normal_density(x)) ** 2 / (flip[..., None] + signal_factor * normal_cdf(x))
        return np.sqrt(2 / np.pi) / (INTEGRAL_STEP * information.sum(-1))
    return np.sqrt((2 * flip if rule == "perceptron" else 0.5) / np.pi) / (1 - 2 * flip)


def _solve_final_errors(theory: xr.Dataset, rule: str, flips: np.ndarray) -> np.ndarray:
    """Solve theory for eps_g of a rule at the last time.

    The time constant t0 is interpolated between the flips of the sweep.
    """
    rule_theory = theory.isel({RULE_FLIP_SCHEDULE_AXIS: theory.rule.values == rule})
    t0 = np.exp(np.interp(flips, rule_theory.flip.values, np.log(rule_theory.schedule.values)))
    assumed_flips = {"assumed_flip": flips.tolist()} if rule == "bayes" else {}
    zipped_keys = {
        **assumed_flips,
        "flip": flips.tolist(),
        "schedule": [{"t0": time_constant} for time_constant in t0.tolist()],
    }
    return np.ravel(solve(modify_scenario(theory, rule=rule, t=float(theory.t[-1]), zip=zipped_keys)).eps_g)


def _label_axes(left: Axes, right: Axes) -> None:
    """Label the axes, and mark where the errors of Hebb's rule and the perceptron are equal."""
    left.set(ylabel=r"$\epsilon_g\,t$", title=r"error $\propto 1/t$", ylim=(0, None))
    right.set(ylabel=r"$\epsilon_g\sqrt{t}$", title=r"error $\propto 1/\sqrt{t}$", ylim=(0, None))
    for ax in (left, right):
        ax.set_xlabel(r"flipped labels $p_f$")
    draw_guide(right, x=EQUAL_ERROR_FLIP, text=r"$p_f=1/4$")


MIN_LINE_TIME, MAX_LINE_TIME, GAIN_LINE_POINTS = 0.05, 1e5, 200  # the lines extend to late times to show their limit
LATE_ENSEMBLE_ERROR_RATIO = 1 / np.sqrt(2)
FINITE_ENSEMBLE_STYLE: dict[str, Any] = {"linestyle": "--", "linewidth": 0.7}


def draw_advantage(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the ratio of errors against t, one line per rule, up to times that show the limit.

    The gain is largest early, after 2 to 6 N examples. All rules that use the stability end with the same ratio, 1/sqrt
    2. The gain of AdaTron is only temporarily larger.
    """
    (figure, ax), K, lines, finite = (
        make_figure(3.8),
        theory.K.item(),
        _solve_infinite_ensemble(theory),
        solve_dense_theory(theory, "t"),
    )
    runs = simulation.sel(t=simulation.t > 0)  # at t = 0 all errors are equal
    runs = runs.assign(gain=runs.eps_g_weight_mean / runs.eps_g.mean("student"))
    results = combine_with_lines(runs, theory, lines.to_dataset(name="gain"))
    keys: list[Any] = draw_panel(ax, results, "t", "gain", "rule", label=r"$\epsilon_g(K)\,/\,\epsilon_g(1)$", log="x")
    for key, rule in zip(keys, theory.rule.values, strict=True):
        at_finite_K, gain = finite.sel(rule=rule), lines.sel(rule=rule)
        t, min_gain = float(gain.idxmin()), float(gain.min())  # time and value of the largest gain
        ax.plot(
            at_finite_K.t,
            at_finite_K.eps_g_weight_mean / at_finite_K.eps_g.isel(student=0),
            color=key.get_color(),
            **FINITE_ENSEMBLE_STYLE,
        )
        ax.plot(t, min_gain, color=key.get_color(), **MINIMUM_STAR_STYLE)
        key.set_label(f"{key.get_label()} ({min_gain:.3f})")
    draw_guide(ax, y=LATE_ENSEMBLE_ERROR_RATIO, text=r"$1/\sqrt{2}$", color="0.4", linewidth=1)
    ax.set(xlim=(MIN_LINE_TIME, MAX_LINE_TIME), ylim=(0.5, 1.02))
    set_log_ticks(ax.xaxis)
    keys += [
        make_line_handle(r"theory, $K=\infty$"),
        make_line_handle(r"minimum (its value), $K=\infty$", **MINIMUM_STAR_STYLE),
        make_line_handle(f"theory, weight mean of $K={K}$", **FINITE_ENSEMBLE_STYLE),
        make_points_handle(label=f"simulation, weight mean of $K={K}$"),
    ]
    return add_title_and_legend(figure, results, keys, "K", columns=3)


advantage = PublishedFigure(
    draw=draw_advantage,
    axes=("rule",),
    caption=(
        r"Generalization error of an ensemble, divided by the error of one student, during learning. Solid: infinite "
        r"ensemble, whose majority vote and averaged weights perform equally well; stars: maximum gain. Dashed lines "
        r"and points: averaged weights of $K$ students. Dotted: $1/\sqrt{2}$, the limit $t\to\infty$ of all rules but "
        r"Hebb's."
    ),
    points_caption=(
        "Points: error of the averaged weights divided by the mean error of the run's students, averaged over runs; "
        "bars: standard errors."
    ),
)


def _solve_infinite_ensemble(theory: xr.Dataset) -> xr.DataArray:
    """Solve theory for an infinite ensemble up to late times."""
    times = np.geomspace(MIN_LINE_TIME, MAX_LINE_TIME, GAIN_LINE_POINTS).tolist()
    return ensemble_errors.advantage(modify_scenario(theory, rule=[str(rule) for rule in theory.rule.values], t=times))
