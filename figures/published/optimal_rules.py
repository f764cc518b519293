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
    draw_guide,
    make_curve_handle,
    make_figure,
    make_line_handle,
    make_points_handle,
    modify_scenario,
)
from figures.published_figure import PublishedFigure
from figures.style import CURVE_COLOURS, draw_seed_means, get_kind_label
from statmech.errors import ConfigError
from statmech.kinds.online_perceptron import Scenario
from statmech.numerics.gaussian import normal_cdf, normal_density
from statmech.stores.dataset import scenario_from_dataset
from theory import solve

RULE_FLIP_SCHEDULE_KEYS = ("rule", "assumed_flip", "flip", "schedule")
RULE_FLIP_SCHEDULE_AXIS = "_".join(RULE_FLIP_SCHEDULE_KEYS)
FLIP_LINE_POINTS, LIMIT_LINE_POINTS = 61, 241
INTEGRAL_CUTOFF, INTEGRAL_STEP = 12.0, 1e-3  # settings for the integral I(p_f)
EQUAL_ERROR_FLIP = 0.25  # Hebb's rule and the perceptron are then equally good
RULE_SCHEDULE_LABELS = {"bayes": "", "hebb": "", "perceptron": r", rate $\eta/(1+t/t_0)$"}  # labels of schedules
SCHEDULE_NOTE = r"$t_0$: nearly the best for this $t$; $t\to\infty$: the best rate at every time"


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
    max_flip = max(0.3, float(np.max(theory.flip)))
    flips, dense_flips = (
        max_flip * np.linspace(0, 1, num_points) ** 2 for num_points in (FLIP_LINE_POINTS, LIMIT_LINE_POINTS)
    )  # denser at small flips, where the lines rise as sqrt(flip)
    for index, (rule, scale) in enumerate({"bayes": t, "hebb": t**0.5, "perceptron": t**0.5}.items()):
        ax = axes[int(index > 0)]
        ax.plot(dense_flips, compute_scaled_error_limit(rule, dense_flips), color=CURVE_COLOURS[index], zorder=1)
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
        make_curve_handle(index, get_kind_label(rule) + schedule_text, linestyle="--", linewidth=0.9)
        for index, (rule, schedule_text) in enumerate(RULE_SCHEDULE_LABELS.items())
    ]
    keys += [
        make_line_handle(r"theory, $t\to\infty$"),
        make_line_handle(f"theory, $t$ = {t:g}", linestyle="--", linewidth=0.9),
        make_points_handle(label=f"simulation, $t$ = {t:g}"),
    ]
    return add_title_and_legend(figure, simulation, keys, f"$t$ = {t:g}", columns=3, note=SCHEDULE_NOTE)


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
