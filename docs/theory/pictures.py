"""The figures of the theory pages, drawn from the functions that the pages derive when the site is built."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

import statmech
from figures.style import (
    CURVE_COLOURS,
    CURVE_MARKERS,
    PAGE_WIDTH,
    THEORY_COLOUR,
    apply_style,
    make_shades,
    set_log_ticks,
)
from simulate.classification.conjunctions import Conjunction, boost_conjunctions, compute_weighted_vote
from statmech import theory
from statmech.classification.stopping_boundaries import (
    brownian_decision_error,
    compute_stopping_level,
    compute_total_level_rise,
)
from statmech.students.rules import RULES
from theory.classification.boosting import bound_stages, bound_training_error, guaranteed_advantage
from theory.control.optimal_controls import compute_best_rates
from theory.networks.hitting_times import compute_explosion_time, find_best_universal_strength

DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def _panels() -> tuple[Figure, Any, Any]:
    figure = Figure(figsize=(PAGE_WIDTH, 2.5))
    return figure, *figure.subplots(1, 2)


@apply_style
def online() -> Figure:
    """The rules, and the decay of their generalization errors."""
    figure, left, right = _panels()
    names, kappa, t = ["hebb", "perceptron", "adatron"], np.linspace(-2, 2, 401), np.geomspace(0.1, 1e4, 60)
    solved = theory.solve(statmech.Scenario(rule=names, t=t.tolist())).eps_g.isel(student=0)
    limits = {
        "hebb": t**-0.5 / np.sqrt(2 * np.pi),
        "perceptron": (2 / (3 * t)) ** (1 / 3) / np.pi,
        "adatron": 1.3409 / t,
    }
    for name, colour, dash in zip(names, CURVE_COLOURS, DASHES, strict=False):
        label = RULES[name].label
        left.plot(kappa, np.broadcast_to(RULES[name]().g(kappa, 1.0), kappa.shape), dash, color=colour, label=label)
        right.plot(t, solved.sel(rule=name), dash, color=colour, label=label)
        late = limits[name] < 0.3
        right.plot(t[late], limits[name][late], ":", color="#888888", linewidth=0.8, zorder=1)
    left.set(xlabel=r"stability $\kappa$", ylabel=r"modulation $g(\kappa)$", ylim=(-0.1, 2.1))
    right.set(xscale="log", yscale="log", xlabel="$t$ (examples / $N$)", ylabel=r"$\epsilon_g$", ylim=(1e-4, 0.6))
    left.legend()
    right.legend(title=r"dotted: $t\to\infty$")
    return figure


@apply_style
def control() -> Figure:
    """Best learning rates of one student against time, and its error times the time."""
    figure, left, right = _panels()
    t = np.geomspace(0.1, 1e3, 120)
    for name, colour, dash in zip(["hebb", "perceptron", "adatron"], CURVE_COLOURS, DASHES, strict=False):
        [cell] = statmech.Scenario(rule=name, t=[1], start={"R": 0.1, "length": 1.0}).cells()
        best, look = compute_best_rates(cell, t), {"color": colour, "linestyle": dash}
        left.plot(t, best.eta / 0.1, **look)
        right.plot(t, best.theta / np.pi * t, label=RULES[name].label, **look)
    for constant in (4 / np.pi, 4 / 3):
        right.axhline(constant, color="#888888", linestyle=":", linewidth=0.8, zorder=1)
    left.set(xscale="log", yscale="log", xlabel="$t$ (examples / $N$)", ylabel=r"$\eta^*$")
    right.set(xscale="log", xlabel="$t$ (examples / $N$)", ylabel=r"$\epsilon_g\,t$", ylim=(0, 2.2))
    right.legend(title=r"dotted: $4/\pi$ and $4/3$", loc="upper left")
    return figure


@apply_style
def ensemble() -> Figure:
    """Vote and weight mean against K, and the gain at given R against q."""
    figure, left, right = _panels()
    R, q, K = 0.8, 0.64 + 0.36 * 0.4, np.arange(1, 31)
    for index, (method, label) in enumerate((("majority_vote", "majority vote"), ("weight_mean", "weight mean"))):
        errors = [theory.ensemble_error(R, q, int(k), method) for k in K]
        left.plot(K, errors, CURVE_MARKERS[index], color=CURVE_COLOURS[index], markerfacecolor="white", label=label)
    left.axhline(np.arccos(R / np.sqrt(q)) / np.pi, color="#888888", linestyle=":", label=r"$K\to\infty$")
    every = np.linspace(R**2, 1, 101)
    for index, k in enumerate((3, 11, 101)):
        gain = theory.ensemble_error(R, every, k, "majority_vote") / (np.arccos(R) / np.pi)
        right.plot(every, gain, linestyle=DASHES[index], color=CURVE_COLOURS[index + 2], label=f"$K={k}$")
    left.set(xlabel="number of students $K$", ylabel=r"$\epsilon_g$", ylim=(0.135, None))
    right.set(xlabel="$q$ (student, student)", ylabel=r"$\epsilon_g$ of the vote / of one student")
    left.legend()
    right.legend()
    return figure


@apply_style
def fluctuations() -> Figure:
    """N times the relative variance and bias of eps_g, against t."""
    figure, left, right = _panels()
    names = ["hebb", "perceptron", "adatron", "adatron_textbook"]
    solved = theory.smooth(statmech.Scenario(rule=names, N=1000, t=[0.1, 1e4], corrections=True), "t").isel(student=0)
    for name, colour, dash in zip(names, CURVE_COLOURS, DASHES, strict=False):
        one = solved.sel(rule=name)
        left.plot(one.t, 1000 * (one.eps_g_std / one.eps_g) ** 2, linestyle=dash, color=colour, label=RULES[name].label)
        right.plot(one.t, 1000 * one.eps_g_bias / one.eps_g, linestyle=dash, color=colour)
    left.set_ylabel(r"$N\,\mathrm{var}(\epsilon)\,/\,\epsilon_g^2$")
    right.set_ylabel(r"$N\,\mathrm{bias}\,/\,\epsilon_g$")
    for ax in (left, right):
        ax.set(xscale="log", xlabel="$t$ (examples / $N$)")
        set_log_ticks(ax.xaxis)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


@apply_style
def descent() -> Figure:
    """The error along the descent of three losses, and of one loss in batches."""
    figure, left, right = _panels()
    given = {"descent": "gradient", "flip": 0.1, "epochs": np.arange(1.0, 41.0).tolist()}
    stopped = theory.solve(statmech.Descent(**given, loss=["square", "logistic", "hinge"], alpha=3, eta=0.05))
    for index, name in enumerate(stopped.loss.values):
        one, colour = stopped.sel(loss=name), CURVE_COLOURS[index]
        left.plot(one.epochs, one.eps_g, DASHES[index], color=colour, label=str(name))
        left.plot(one.best_epoch, one.eps_best, "*", color=colour, markersize=8)
    left.axhline(float(stopped.eps_bayes[0]), color=THEORY_COLOUR, linestyle=":", linewidth=0.8, label="Bayes-optimal")
    few = {**given, "epochs": np.arange(1.0, 11.0).tolist(), "loss": "logistic", "alpha": 2, "eta": 0.8}
    for index, (batch, sampling) in enumerate(((1, "shuffle"), (0.25, "shuffle"), (0.25, "replacement"))):
        solved = theory.solve(statmech.Descent(**few, batch=batch, sampling=sampling))
        name = "all examples" if batch == 1 else f"$b=1/4$, {sampling}"
        right.plot(solved.epochs, solved.eps_g, DASHES[index], color=CURVE_COLOURS[index], label=name)
    left.set(xscale="log", xlabel="epochs", ylabel=r"$\epsilon_g$", ylim=(0.19, None))
    right.set(xlabel="epochs", ylabel=r"$\epsilon_g$")
    left.legend(ncols=2, loc="lower left")
    right.legend()
    return figure


@apply_style
def stored() -> Figure:
    """Learning curves, and the capacity against the stability and the noise."""
    figure, left, right = _panels()
    alphas = np.concatenate([np.geomspace(0.1, 0.9, 60), np.linspace(0.9, 1.1, 41), np.geomspace(1.1, 30, 80)])
    curves = theory.learning_curves(np.unique(alphas)).eps_g
    names = ["hebb", "pseudo_inverse", "gibbs", "max_stability", "bayes"]
    for name, colour, dash in zip(names, CURVE_COLOURS, DASHES, strict=False):
        left.plot(
            curves.alpha, curves.sel(learner=name), linestyle=dash, color=colour, label=statmech.LEARNERS[name].label
        )
    kappa, flips = np.linspace(0, 2.5, 101), np.linspace(0.005, 0.5, 60)
    right.plot(kappa, theory.capacity(kappa), color=CURVE_COLOURS[0], label=r"$\alpha_c(\kappa)$, random labels")
    noisy = [theory.noisy_capacity(flip=float(flip)) for flip in flips]
    right.plot(flips, noisy, "--", color=CURVE_COLOURS[1], label=r"$\alpha_c(p_f)$, labels flipped")
    left.set(xscale="log", yscale="log", xlabel=r"$\alpha=P/N$", ylabel=r"$\epsilon_g$")
    set_log_ticks(left.xaxis)
    set_log_ticks(left.yaxis)
    right.set(xlabel=r"stability $\kappa$, or noise $p_f$", ylabel=r"capacity $\alpha_c$", ylim=(0, 8))
    left.legend()
    right.legend()
    return figure


@apply_style
def stopping() -> Figure:
    """Partial sums under their boundaries, and the errors of the boundaries against the drift."""
    figure, left, right = _panels()
    n, mean, error_rate = 400, 1.0, 0.05
    rng, s = np.random.default_rng(5), np.arange(n + 1) / n
    walks = np.cumsum(rng.normal(mean / n, n**-0.5, (5, n)), axis=1)
    for walk in np.concatenate([np.zeros((5, 1)), walks], axis=1):
        left.plot(s, walk, color="#999999", linewidth=0.6)
    for index, name in enumerate(("constant", "brownian-bridge", "centred", "as-printed")):
        look = {"color": CURVE_COLOURS[index], "linestyle": DASHES[index]}
        level, up = (
            float(compute_stopping_level(name, error_rate, mean, 1.0)),
            float(compute_total_level_rise(name, mean)),
        )
        left.plot([0, 1], [level, level + up], **look)
        means = np.linspace(0, 3, 61)
        levels = np.array(
            [(compute_stopping_level(name, error_rate, m, 1.0), compute_total_level_rise(name, m)) for m in means]
        )
        made = [brownian_decision_error(tau, m - up, 1.0, -up) for (tau, up), m in zip(levels, means, strict=True)]
        right.plot(means, made, label=name, **look)
    right.axhline(error_rate, color="#888888", linestyle=":", linewidth=0.8)
    left.axhline(0, color="black", linewidth=0.5)
    left.set(xlabel="$i/n$", ylabel=r"partial sum $S_i/\sigma$")
    right.set(yscale="log", xlabel=r"mean of the whole sum $m/\sigma$", ylabel="decision errors", ylim=(1e-5, 0.3))
    figure.legend(loc="outside lower center", ncols=4)
    return figure


@apply_style
def boosting() -> Figure:
    """Training error and advantage of a run of AdaBoost, with their bounds."""
    figure, left, right = _panels()
    rng, N, s, m = np.random.default_rng(1), 20, 9, 1000
    chosen = [tuple(rng.choice(N, rng.integers(1, 3), replace=False)) for _ in range(s)]
    teacher = [Conjunction(pair, rng.choice([-1, 1])) for pair in chosen]
    X = rng.integers(0, 2, (m, N)).astype(float)
    y = np.sign(sum(conjunction(X) for conjunction in teacher))
    made, errors = [], []
    for stage in boost_conjunctions(X, y, np.arange(N), 2, bound_stages(s, m), discount=1.0):
        made.append(stage)
        errors.append(np.mean(np.sign(compute_weighted_vote(made, X)) != y))
        if errors[-1] == 0:
            break
    count = np.arange(1, len(made) + 1)
    left.plot(
        count, errors, "o-", color=CURVE_COLOURS[0], markersize=3, markerfacecolor="white", label="training error"
    )
    left.plot(count, bound_training_error([stage.error for stage in made]), "--", color=CURVE_COLOURS[1], label="bound")
    gained = [0.5 - stage.error for stage in made]
    right.plot(
        count, gained, "s", color=CURVE_COLOURS[2], markersize=3, markerfacecolor="white", label=r"advantage $\gamma_i$"
    )
    right.axhline(guaranteed_advantage(s), linestyle="--", color=CURVE_COLOURS[1], label="lower bound, $1/(2s)$")
    left.set(xlabel="stage", ylabel="fraction of the examples")
    right.set(xlabel="stage", ylabel="advantage over chance", ylim=(0, None))
    left.legend()
    right.legend()
    return figure


@apply_style
def convex() -> Figure:
    """Errors of three losses with their best penalties, and of the Bayes-optimal student; message passing."""
    figure, left, right = _panels()
    for index, loss in enumerate(("square", "logistic", "hinge")):
        solved = theory.smooth(statmech.Risk(loss=loss, flip=0.1, lam="best", alpha=[0.2, 8]), "alpha")
        left.plot(solved.alpha, solved.eps_g, DASHES[index], color=CURVE_COLOURS[index], label=loss)
    left.plot(
        solved.alpha, np.arccos(solved.R_bayes) / np.pi, color=THEORY_COLOUR, linewidth=0.9, label="Bayes-optimal"
    )
    left.set(xlabel=r"$\alpha=P/N$", ylabel=r"$\epsilon_g$, 10 % of labels flipped")
    left.legend()
    steps = theory.solve(statmech.Inference(prior="binary", alpha=[1, 1.3, 1.4, 1.48, 1.5, 1.7], steps=60))
    for index, value in enumerate(steps.alpha.values):
        right.plot(steps.step, steps.m.sel(alpha=value), color=make_shades(6)[index], label=f"{value:g}")
    right.set(xlabel="step of message passing", ylabel="overlap $m$ with a binary teacher")
    right.legend(title=r"$\alpha$", ncols=2, loc="lower right")
    return figure


@apply_style
def networks() -> Figure:
    """Overlaps of two erf units with the teacher's two, and the generalization error, through the plateau."""
    figure, left, right = _panels()
    start = {"Q": 0.25, "R": {"diagonal": 1e-3}}
    network = statmech.Network(network="erf", M=2, K=2, eta=1.5, start=start, t=np.linspace(0, 150, 151).tolist())
    solved, plateau = theory.solve(network), theory.plateau(2, 2, 1.5)
    for index, (teacher, label) in enumerate(((1, "its teacher unit"), (2, "the other"))):
        line = solved.R.sel(student=1, teacher_unit=teacher)
        left.plot(solved.t, line, DASHES[index], color=CURVE_COLOURS[index], label=label)
    left.axhline(plateau.R, color="#888888", linestyle=":", linewidth=0.8)
    left.set(xlabel="$t$ (examples / $N$)", ylabel="overlap $R$ of a student unit")
    left.legend(title="with")
    right.plot(solved.t, solved.eps_g, color=CURVE_COLOURS[0])
    right.axhline(plateau.eps_g, color="#888888", linestyle=":", linewidth=0.8, label="plateau")
    right.set(xlabel="$t$ (examples / $N$)", ylabel=r"$\epsilon_g$", yscale="log")
    set_log_ticks(right.yaxis)
    right.legend()
    return figure


@apply_style
def hard_directions() -> Figure:
    """The distribution of the search time at three N, and its mean against the learning rate for two exponents."""
    figure, left, right = _panels()
    wedge = {"network": {"hermite": 3}, "length": "fixed", "teacher": "wedge", "until": {"R": 0.5}}
    fractions = np.linspace(0, 4, 41)
    for index, N in enumerate((30, 100, 10_000)):
        time = theory.hitting_time(statmech.FixedLengthNetwork(**wedge, eta="best", N=N))
        label, colour = f"$N = {N}$", CURVE_COLOURS[index]
        left.plot(fractions, time.survival(fractions * time.limit * N), DASHES[index], color=colour, label=label)
    left.set(xlabel=r"$t$ / limit of $\langle t\rangle$", ylabel="runs that still search", yscale="log")
    left.legend()
    for index, k in enumerate((3, 4)):
        best = find_best_universal_strength(k)
        strengths = best * np.geomspace(0.6, 8, 40)
        costs = np.array([a * a * compute_explosion_time(k, a)[0] for a in strengths])
        right.plot(best / strengths, costs / costs.min(), DASHES[index], color=CURVE_COLOURS[index], label=f"$k = {k}$")
    right.set(xlabel=r"$\eta/\eta_\mathrm{best}$", ylabel="examples / minimum", yscale="log")
    set_log_ticks(right.yaxis)
    right.legend()
    return figure
