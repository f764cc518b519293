"""The work of every day beside what one would otherwise run: one table of pairs of calls, measured in one run.

    python benchmarks/peers.py                  # every group; half an hour, pins itself to one core
    python benchmarks/peers.py fits commands    # some of them
    python benchmarks/peers.py browser          # from a key to the painted charts, with Chromium; only if asked for
    python benchmarks/peers.py --tiny           # at toy size: tests that it runs, not how fast

A row has our call, the calls of peers, and a unit. Numbers are CPU time (those of commands include all their processes,
which use all cores), or what a call returns. Calls of a row alternate; the first call of ours minus the median of the
others is "compile". Peers that are on no package index run where they are found (`peer_programs.py` has the lines that
run them). "Differ by": the largest difference over the largest number. A row without a peer has our number alone.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock
from urllib.parse import parse_qsl

import boosting
import engines
import equations
import fits
import jax
import naive
import networks
import networks_theory
import numpy as np
import peer_programs as programs
import timing
from scipy.optimize import nnls
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.datasets import load_digits
from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import simulate
import theory
from simulate.classification.estimators.sparse_perceptron import SparsePerceptron
from simulate.convex.minimisation_and_separability import minimise
from simulate.convex.objective_and_certificates import Problem
from simulate.convex.training_data import draw_teacher_data
from simulate.execution.store_simulation import run_into
from simulate.kinds import bayes_inference, online_perceptron
from simulate.kinds.empirical_risk import make_risk_problem
from simulate.learners import AdaTron, MinOver
from simulate.online import gram_engine as gram
from simulate.online import networks as network_kernels
from simulate.online.fixed_length_engine import simulate_runs
from statmech import Descent, FixedLengthNetwork, Inference, Network, NetworkTasks, Risk, Scenario
from statmech.keys.initial_states import StudentUnits
from statmech.kinds.network import NetworkCell
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.numerics.random_numbers import make_key_data
from statmech.parameters.schedules_and_controls import TimeSegments
from statmech.runtime.operating_system import read_peak_memory
from theory.control.control_gradients import ControlBounds, compute_cost_and_gradient, minimise_control_cost
from theory.control.controlled_equations import make_control_problem
from theory.convex.bayes_optimal import bayes_overlap
from theory.networks import several_tasks
from theory.networks.hitting_times import HittingTime

ROOT = Path(__file__).parent.parent
SCALES = {"ns": 1e9, "us": 1e6, "ms": 1e3}  # of seconds


class Side(NamedTuple):
    """A call, how many units of work it does, and whether its number is the one that it returns, not its time."""

    call: Callable[[], object]
    count: float = 1
    reports: bool = False


class Row(NamedTuple):
    """Work done by us and by peers, some of which need not be installed; `picked`: our numbers that peers compute."""

    work: str
    unit: str
    ours: Side
    theirs: Mapping[str, Side] = {}
    picked: slice = slice(None)
    repeats: int = 5


def published(name: str, lines: str, count: float = 1) -> dict[str, Side]:
    """The side of a peer that is on no package index."""
    return {name: Side(partial(programs.PEERS[name].run, lines), count)}


# ---- simulated steps and equations


def simulate_steps(tiny: bool, _: Path) -> Iterator[Row]:
    """Yield steps of simulations, which have the same distribution and not the same numbers."""
    steps, few = (64, 20) if tiny else (19_968, 2_000)
    one = Side(engines.simulation(gram, engines.cell(1_000, 1), steps), steps * gram.batch(1))
    net = Side(networks.simulation(gram, networks.task(784, 2), steps), steps * gram.batch(2))
    loop, erf = (Side(partial(*call, few), few) for call in ((engines.run_numpy, 1_000, 1), (networks.loop, 784, 2)))
    torch, nn2pp = (
        published("StatPhys-ML", programs.PERCEPTRON, 2_000),
        published("nn2pp", programs.NETWORK, 78_400),
    )
    yield Row("perceptron rule, K = 1, N = 1,000", "us per step", one, {"NumPy": loop, **torch})
    yield Row("erf network 2-2, N = 784", "us per step", net, {"NumPy": erf, **nn2pp})
    yield from compare_fixed_length(tiny, one)
    N, steps, few = (200, 48, 10) if tiny else (10_000, 4_992, 400)
    given = {"tasks": 2, "overlap": 0.5, "M": 1, "K": 2, "N": N, "eta_v": 1, "switch": 0.5, "t": [1]}
    [cell] = NetworkTasks(network="erf", **given).cells()
    chain = Side(partial(run_chain, network_kernels.make_multitask_network_task(cell, "float64"), steps), steps * 64)
    theirs = {"NumPy": Side(partial(naive.two_tasks_loop, N, few), few)}
    if programs.TASKS in os.environ:
        theirs["teacher_student_dynamics"] = Side(partial(programs.step_two_tasks, N, few), reports=True)
    yield Row(f"two erf units, two tasks, N = {N:,}", "us per step", chain, theirs)


def compare_fixed_length(tiny: bool, perceptron: Side) -> Iterator[Row]:
    """Yield a step of the chain of a unit of fixed length over one of a perceptron, and a hitting time.

    The reference of the hitting time is 0.1 s: the ratio is the number of hitting times in this time.
    """
    wedge = {"network": "hermite", "length": "fixed", "teacher": "wedge", "eta": 0.061, "N": 1_000}
    steps = 64 if tiny else 19_968
    scenario = FixedLengthNetwork(**wedge, until={"R": 0.5}, t=[steps / 1_000], seeds=64)
    [cell] = scenario.cells()
    numbers = {"num_runs": 64, "recorded_steps": np.array([steps]), "max_steps": steps}
    numbers |= {"eta": 0.061, "N": 1_000, "target": None, "is_even": False, "key": make_key_data(0)}

    def simulate_chain() -> None:
        with jax.enable_x64(True):
            simulate_runs(cell.task, **numbers)

    chain = Side(simulate_chain, steps * 64)
    yield Row("He3 unit of fixed length, N = 1,000", "us per step", chain, {"perceptron of statmech": perceptron})
    hitting_time = Side(lambda: str(HittingTime(cell.task, 0.061, 1_000, 0.5).std))
    yield Row("hitting time by collocation", "ms", hitting_time, {"0.1 s": Side(partial(sleep_busily, 0.1))})


def sleep_busily(seconds: float) -> None:
    """Use the processor for this number of seconds."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def run_chain(task: Any, steps: int) -> None:
    with jax.enable_x64(True):
        jax.block_until_ready(gram.run(task, make_key_data(0), np.array([steps]))[:2])


def solve_equations(tiny: bool, _: Path) -> Iterator[Row]:
    """Yield order-parameter equations of online learning and of descent."""
    count, stride = (10, 5) if tiny else (1_000, 50)
    rates = np.linspace(0.5, 2.0, count)
    one, sweep = (Scenario(rule="perceptron", t=equations.TIMES, eta=eta) for eta in (1.0, rates))
    [net] = networks_theory.scenario(0.5).cells()
    lsoda, each = (Side(partial(lsoda_errors, some), len(some)) for some in ([1.0], rates[::stride]))
    dop853 = Side(lambda: networks_theory.dop853(net).T)
    torch, nn2pp = published("StatPhys-ML", programs.ONLINE), published("nn2pp", programs.NETWORK_ODE)
    ours = Side(partial(solve_students, one)), Side(partial(solve_errors, sweep), count), Side(partial(solve_net, net))
    yield Row("equations of the perceptron rule, 201 times", "ms", ours[0], {"SciPy LSODA": lsoda, **torch})
    picked = slice(None, None, stride)
    yield Row(f"theory.solve, {count:,} learning rates", "ms per rate", ours[1], {"SciPy LSODA": each}, picked)
    yield Row("equations of the erf network 2-2, t = 100", "ms", ours[2], {"SciPy DOP853": dop853, **nn2pp})
    start = {"length": 1.04**0.5, "R": 0.2 / 1.04**0.5}
    given = {"loss": "square", "teacher": "linear", "alpha": 3, "lam": 0.5, "eta": 0.1, "start": start}
    scenario = Descent(descent="gradient", **given, epochs=range(50))
    dmft = published("DMFT", programs.DESCENT.format(iterations=1 if tiny else 25))
    yield Row("least squares, 50 steps of descent: w.w*/N", "ms", Side(partial(solve_overlaps, scenario)), dmft)


def solve_overlaps(scenario: Descent) -> np.ndarray:
    """The component of the student along the teacher after each step."""
    solved = theory.solve(scenario)
    return np.ravel(solved.R * solved.length)


def solve_errors(scenario: Scenario | Risk) -> np.ndarray:
    """eps_g by theory, one row for each learning rate."""
    return np.atleast_2d(theory.solve(scenario).eps_g.squeeze())


def solve_students(scenario: Scenario) -> np.ndarray:
    """eps_g from the equations alone, without those of ensembles."""
    [students] = equations.solve_cells([*scenario.cells()], equations.TIMES)
    return np.arccos(1 - students.y[:, 0]) / np.pi


def lsoda_errors(rates: Sequence[float]) -> np.ndarray:
    return np.array([np.arccos(equations.lsoda(eta)[1]) / np.pi for eta in rates])


def solve_net(cell: NetworkCell) -> np.ndarray:
    [units] = networks_theory.solve_cells([cell], networks_theory.TIMES)
    return np.array([networks_theory.pack_units(StudentUnits(*at)) for at in zip(*units, strict=True)])


# ---- protocols


def optimise_protocols(tiny: bool, scratch: Path) -> Iterator[Row]:
    """Yield equations of two tasks, gradients with respect to a protocol, and the best learning rate."""
    segments = 3 if tiny else 100
    edges, eta = np.linspace(0.0, naive.LAST_TIME, segments + 1), np.linspace(4.0, 0.7, segments)
    start = {"R": naive.START_OVERLAP, "length": 1.0}
    [cell] = Scenario(rule="perceptron", t=[naive.LAST_TIME], start=start).cells()
    problem = make_control_problem(cell, TimeSegments(tuple(edges)))
    ours = Side(lambda: np.asarray(compute_cost_and_gradient(problem, eta)[1]))
    lsoda = {"differences of SciPy LSODA": Side(partial(naive.gradient_by_differences, eta, edges))}
    yield Row(f"gradient of the final error, {segments} segments", "ms", ours, lsoda, repeats=3)
    if programs.TASKS in os.environ:
        yield from compare_tasks(tiny, scratch)
    last = 0.5 if tiny else 5.0
    [cell] = Network(network="erf", M=1, K=2, noise=0.2, t=[last], start={"Q": 0.25, "R": [[0.1], [0.05]]}).cells()
    for segments, is_complete in ((2, True),) if tiny else ((10, True), (100, False)):
        problem = make_control_problem(cell, TimeSegments(tuple(np.linspace(0, last, segments + 1))))
        one = np.ones(segments)
        search = partial(minimise_control_cost, problem, ControlBounds(0 * one, 5 * one), one[:1])
        theirs = {}
        if programs.RATES in os.environ:
            name = "optimal_learning" if is_complete else "optimal_learning, derivatives of one iteration"
            call = partial(programs.find_best_rate, last=last, segments=segments, whole=is_complete)
            theirs[name] = Side(call, reports=True)
        yield Row(f"best learning rate, {segments} segments, five searches", "s", Side(search), theirs, repeats=1)


def compare_tasks(tiny: bool, folder: Path) -> Iterator[Row]:
    """Yield equations of two tasks, and the agreement of our equations with simulations of their network."""
    last, timesteps = (4, [0.1]) if tiny else (100, [1e-2, 1e-3])
    times = [float(t) for t in range(last + 1)]
    programs.compile_equations(folder)
    theirs = {
        f"teacher_student_dynamics, step {step}": Side(partial(programs.integrate_two_tasks, folder, step, last))
        for step in timesteps
    }
    yield Row(f"equations of two tasks to t = {last}", "ms", Side(partial(solve_tasks, times)), theirs)
    times = [0.0, 1.0, 2.0] if tiny else [0.0, 2.0, 5.0, 10.0, 11.0, 12.0, 15.0, 20.0]

    def largest_deviation() -> float:
        errors = programs.simulate_two_tasks(100 if tiny else 1_000, times)
        z = (np.mean(errors, 0) - solve_tasks(times)) / (np.std(errors, 0, ddof=1) / np.sqrt(len(errors)))
        return float(np.max(np.abs(z)))

    yield Row("errors of six runs of their network", "standard errors", Side(largest_deviation, 1, True), repeats=0)


def solve_tasks(times: list[float]) -> np.ndarray:
    """The errors (T, tasks) of our equations."""
    given = {"network": "erf", "tasks": 2, "overlap": 0.5, "M": 1, "K": 2, "eta_v": 1, "switch": times[-1] / 2}
    [cell] = NetworkTasks(**given, start=programs.START, t=times).cells()
    return several_tasks.compute_task_errors(cell, several_tasks.solve_cells([cell], times)[0])


# ---- stored examples: theory, message passing, fits, votes


def solve_replica(tiny: bool, _: Path) -> Iterator[Row]:
    """Yield learning curves of stored examples, and message passing."""
    four, five, six = [1.0, 2.0, 3.0, 4.0], [0.5, 1.0, 2.0, 5.0, 10.0], [0.5, 1.0, 1.5, 2.0, 3.0, 4.0]
    if tiny:
        four, five, six = four[:1], five[:1], six[:1]
    scenario = Inference(N=100 if tiny else 2_000, steps=200, prior="gauss", alpha=2.0)
    messages = Side(lambda: bayes_inference.Simulator(scenario).simulate(next(scenario.cells()), 0))
    curve = published("Tree-AMP", programs.CURVE.format(alphas=six))
    propagation = published("Tree-AMP", programs.MESSAGES.format(N=scenario.N))
    bayes = Side(lambda: 1 - bayes_overlap("gauss", six))
    yield Row(f"Bayes-optimal error of weights, {len(six)} alphas", "ms", bayes, curve)
    yield Row(f"message passing, N = {scenario.N}, alpha 2", "ms", messages, propagation)
    for loss, lam, alphas, peer, lines in (
        ("logistic", 0.1, four, "GCMProject", programs.COVARIATE),
        ("logistic", 1.0, five, "StatPhys-ML", programs.REPLICA),
        ("hinge", 1.0, five, "StatPhys-ML", programs.REPLICA),
    ):
        ours = Side(partial(solve_errors, Risk(loss=loss, alpha=alphas, lam=lam)))
        given = {"name": loss, "Name": loss.title(), "alphas": alphas, "omega": [1.0, 1.0], "tolerance": 1e-7}
        theirs = published(peer, lines.format(**given))
        yield Row(f"theory of the {loss} loss, lambda {lam:g}, {len(alphas)} alphas", "ms", ours, theirs)
    modes, points, stride = (100, 4, 2) if tiny else (400, 200, 100)
    omega = np.geomspace(0.05, 5, modes)
    omega = omega / omega.mean()
    alphas = np.linspace(0.5, 6, points).round(2)
    risk = Risk(loss="logistic", lam=0.1, alpha=alphas, N=modes, inputs={"spectrum": omega.tolist()})
    some = alphas[::stride].tolist()
    scipy = Side(lambda: np.array([naive.covariate_model(omega, omega / modes, a, 0.1) for a in some]), len(some))
    lines = programs.COVARIATE.format(omega=omega.tolist(), alphas=some, tolerance=1e-9)
    theirs = {"SciPy, damped iteration": scipy, **published("GCMProject", lines, len(some))}
    work = f"theory of the logistic loss, {modes} modes, {points} alphas"
    ours = Side(lambda: solve_errors(risk)[0], points)
    yield Row(work, "ms per alpha", ours, theirs, slice(None, None, stride))


def fit_estimators(tiny: bool, _: Path) -> Iterator[Row]:
    """Yield fits of weights, which must agree, of the largest stability, and of votes of conjunctions."""
    N, m, stages = (60, 60, 2) if tiny else (500, 2_000, 30)
    for name, given in fits.cases(N):
        if name in ("logistic", "hinge", "lasso") and given["alpha"] == 2.0:
            cell = next(Risk(**given).cells())
            data, lam = draw_teacher_data(cell, 0, 0), float(given["lam"])
            ours = Side(partial(minimise_problem, make_risk_problem(cell, data, lam)))
            model = fits.THEIRS[name](lam, cell.P)
            theirs = Side(partial(fit_weights, model, data.X / np.sqrt(N), data.y))
            yield Row(f"{name}, fit of N = {N}, P = {cell.P}", "ms", ours, {type(model).__name__: theirs})
    X, y = boosting.vote(60, m, (2, 3))
    words, indicators = np.char.add("w", X.astype(str)).astype(object), OneHotEncoder().fit_transform(X).toarray()
    trees = AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=stages)
    gradient = GradientBoostingClassifier(max_depth=2, n_estimators=stages)
    theirs = {type(one).__name__: Side(partial(fit, one, indicators, y)) for one in (trees, gradient)}
    ours = Side(partial(fit, SparsePerceptron(k=2, stages=stages), words, y))
    yield Row(f"SparsePerceptron, {stages} stages, k = 2, {m:,} x 60 words", "ms", ours, theirs)
    for data_name, (X, y) in (("digits 3/8", read_digits()), ("a gap", draw_gap(*(200, 5) if tiny else (10_000, 50)))):
        svm = LinearSVC(loss="hinge", C=1e4, tol=1e-6, max_iter=10**6)  # by default it stops after 1,000 iterations
        for model in (MinOver(), AdaTron(), AdaTron(max_epochs=10**6)):
            if tiny:
                model.set_params(max_epochs=10)
            work = f"{model!r}, {data_name}, {X.shape[0]:,} x {X.shape[1]}"
            ours = Side(partial(fit_fewer, model, X, y, count(1)))
            yield Row(work, "ms", ours, {"LinearSVC": Side(partial(fit, svm, X, y))}, repeats=7)
            missed = {"LinearSVC": Side(partial(measure_miss, svm, X, y), reports=True)}
            ours = Side(partial(measure_miss, model, X, y), reports=True)
            yield Row(work, "distance from the largest stability", ours, missed, repeats=0)


def minimise_problem(problem: Problem) -> np.ndarray:
    return minimise(problem).w


def fit(model: Any, X: np.ndarray, y: np.ndarray) -> None:
    model.fit(X, y)


def fit_fewer(model: Any, X: np.ndarray, y: np.ndarray, starts: Iterator[int]) -> None:
    """Fit without the first rows, one more each time: programs of another shape would be compiled again."""
    first = next(starts)
    model.fit(X[first:], y[first:])


def fit_weights(model: ClassifierMixin | RegressorMixin, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return model.fit(X, y).coef_.ravel()


def read_digits() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    chosen = (y == 3) | (y == 8)
    return X[chosen], y[chosen]


def draw_gap(m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Examples of a teacher, of which all have a stability of at least 0.1, and its labels."""
    rng = np.random.default_rng(0)
    teacher = rng.standard_normal(n)
    X = rng.standard_normal((2 * m, n))
    fields = X @ teacher / np.linalg.norm(teacher)
    chosen = np.flatnonzero(np.abs(fields) > 0.1)[:m]
    return X[chosen], (fields[chosen] > 0).astype(int)


def measure_miss(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """The relative distance of a fit from the largest stability, by nonnegative least squares."""
    model.fit(X, y)
    z = np.where(y == y.max(), 1, -1)[:, None] * np.column_stack([X, np.ones(len(X))])
    x, _ = nnls(np.vstack([z.T, np.ones(len(z))]), np.append(np.zeros(z.shape[1]), 1.0), maxiter=100 * len(z))
    w = np.append(model.coef_[0], model.intercept_[0])
    return 1 - float(np.min(z @ w)) / float(np.linalg.norm(w)) * float(x.sum() / np.linalg.norm(x @ z))


def take_votes(tiny: bool, _: Path) -> Iterator[Row]:
    """Yield the majority vote: its time per seed and recorded time, and the variance that measuring adds to it."""
    for K in (3,) if tiny else (3, 5, 11, 51):
        for N in (100,) if tiny else (100, 10_000):
            runs = record_students(K, N, 8 if tiny else 128 if K > 11 else 256)
            size = compute_votes(runs).size
            yield Row(f"vote of K = {K}, N = {N:,}", "ms per seed and time", Side(partial(compute_votes, runs), size))
            share = Side(partial(measure_vote_variance, runs), reports=True)
            yield Row(f"vote of K = {K}, N = {N:,}", "measuring variance over physical", share, repeats=0)


def record_students(K: int, N: int, seeds: int) -> list[tuple]:
    """The arguments that the runs of a scenario give to the vote: the scenario, a unit of work, and its students."""
    calls: list[tuple] = []

    def keep(*arguments: Any) -> np.ndarray:
        calls.append(arguments)
        return np.zeros(arguments[2].shape[:3])

    with mock.patch.object(online_perceptron, "_compute_vote_errors", keep):
        simulate.run(Scenario(rule="perceptron", K=K, N=N, t=[0.5, 2.0], seeds=seeds))
    return calls


def compute_votes(runs: list[tuple]) -> np.ndarray:
    """The votes (seeds, T) of the one parameter combination."""
    return np.concatenate(
        [online_perceptron._compute_vote_errors(*run)[0] for run in sorted(runs, key=lambda run: run[1].seeds.start)]
    )


def measure_vote_variance(runs: list[tuple]) -> float:
    """The variance between two keys over that between seeds, at the recorded time where it is larger."""
    other = [(scenario.model_copy(update={"key": scenario.key + 1}), *rest) for scenario, *rest in runs]
    both = np.stack([compute_votes(runs), compute_votes(other)])
    noise = np.var(both[0] - both[1], axis=0, ddof=1) / 2
    return float(np.max(noise / (np.var(both.mean(axis=0), axis=0, ddof=1) - noise / 2)))


# ---- commands, in new processes

SMALL = ("ensemble", "rule=perceptron", "K=3", "t=5", "seeds=8")
TINY = ("minover", "learner=hebb", "N=20", "alpha=1", "seeds=2")  # compiles nothing
KINDS = {  # a small run of each kind of scenario that needs no table of data
    "rule": SMALL,
    "learner": ("minover", "alpha=1,2", "epochs=20", "seeds=4"),
    "boundary": ("stopping", "seeds=2"),
    "attention": ("attention", "seeds=2"),
    "booster": ("boosting", "s=1,3", "P=30,100", "seeds=2"),
    "classifier": ("boundaries", "folds=2"),
    "network": ("plateau", "N=1000", "t=1,5", "seeds=2"),
    "loss": ("bayes_gap", "N=100", "alpha=1,2", "seeds=2"),
    "descent": ("early_stopping", "N=400", "epochs=1,10,40", "seeds=2"),
    "clusters": ("clusters", "N=100", "alpha=1,2", "seeds=2"),
    "rule and clusters": ("clusters_online", "N=200", "t=1,2", "seeds=2"),
    "network and tasks": ("forgetting", "N=1000", "t=1,55", "seeds=2"),
    "prior": ("binary_perceptron", "N=200", "alpha=1,2", "seeds=2"),
}
LARGE = {  # sweeps whose arrays take more memory than the libraries
    "rule, many recorded times": ("ensemble", "rule=perceptron", "K=3", "N=100", "t={linspace: [0.01, 20, 10000]}"),
    "rule, weight vectors": ("ensemble", "rule=perceptron", "K=2", "N=100000", "engine=vectors", "t=0.001", "seeds=8"),
    "rule, many combinations": ("ensemble", "rule=hebb", "eta={linspace: [0.1, 1, 20000]}", "N=20", "t=1", "seeds=4"),
    "learner, maximum stability": ("minover", "learner=max_stability", "N=1000", "alpha=1", "seeds=2"),
    "learner, MinOver": ("minover", "N=1500", "alpha=1", "epochs=5", "seeds=2"),
    "boundary": ("stopping", "N=1000000", "walks=4", "seeds=2"),
    "attention": ("attention", "N=50000", "t=0.001", "seeds=2"),
    "booster": ("boosting", "s=3", "N=300", "P=20000", "cap=2", "seeds=2"),
    "network": ("plateau", "M=2", "K=4", "N=2000", "t=1", "seeds=8"),
    "loss": ("bayes_gap", "N=2000", "alpha=2", "bayes=false", "seeds=2"),
    "descent": ("early_stopping", "N=2000", "epochs=1,10,40", "seeds=2"),
    "clusters": ("clusters", "N=2000", "alpha=2", "seeds=2"),
    "prior": ("binary_perceptron", "N=5000", "alpha=1.7", "steps=2", "seeds=2"),
    "rule and clusters": ("clusters_online", "N=200", "t={linspace: [0.1, 5, 20000]}", "seeds=32"),
    "network and tasks": ("forgetting", "N=200", "t={linspace: [0.1, 55, 10000]}", "seeds=32"),
}
FIRST_CALL = """
import time
import numpy as np, jax
from statmech import Scenario, load
from statmech.runtime.compiled_programs import set_up_compilation_cache
import simulate.learners.minover, simulate.kinds.online_perceptron, simulate.kinds.stored_examples
import theory.online.order_parameter_equations
from simulate.online import gram_engine as gram, perceptrons
from simulate.learners import minover
from statmech.numerics.random_numbers import make_key_data
[cell] = Scenario(rule="perceptron", K=3, t=[5], N=1000).cells()
grams, sizes, until = np.ones((8, 24, 24)), np.full(8, 24), np.full((8, 1), 10)
task = perceptrons.make_perceptron_task(cell, "float64")
calls = {{
    "equations": lambda: theory.online.order_parameter_equations.solve_cells([cell], [5.0]),
    "Gram": lambda: jax.block_until_ready(tuple(gram.run(task, make_key_data(0), np.array([50]))[:2])),
    "MinOver": lambda: jax.block_until_ready(minover.learn_minover_batch("epochs", grams, sizes, until)),
}}
jax.numpy.zeros(3) + 1
set_up_compilation_cache()
with jax.enable_x64(True):
    spent = []
    for _ in range(2):
        begun = time.process_time()
        calls["{name}"]()
        spent.append(time.process_time() - begun)
print(spent[0] - spent[1])
"""


def begin_python(*arguments: str, cache: Path, **options: Any) -> subprocess.Popen[str]:
    """Start Python on all cores, as a user does, with a folder of compiled programs."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    environment |= {"STATMECH_CACHE": str(cache), "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""}
    process = subprocess.Popen([sys.executable, *arguments], env=environment, text=True, **options)
    os.sched_setaffinity(process.pid, timing.cores())
    return process


def run_python(*arguments: str, cache: Path) -> str:
    """Run Python in an empty folder, and return what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = begin_python(*arguments, cache=cache, cwd=folder, **pipes)
        output, errors = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{arguments}: {errors}")
    return output


def run_commands(tiny: bool, scratch: Path) -> Iterator[Row]:
    """Yield small runs beside the imports that they need; the first call of each is cold, and compiles."""
    call = partial(run_python, cache=scratch / "cache")
    imports = {"the imports": Side(partial(call, "-c", "import jax, xarray, zarr, matplotlib.pyplot"))}
    commands = {"--version": ("--version",)}
    if not tiny:
        commands |= {f"run, {kind}: {' '.join(given)}": ("run", *given) for kind, given in KINDS.items()}
        commands |= {f"{command}, rule": (command, *SMALL) for command in ("simulate", "theory")}
    for name, given in commands.items():
        yield Row(
            f"statmech {name}", "s", Side(partial(call, "-m", "statmech", *given)), imports, repeats=1 if tiny else 5
        )


def run_demo(tiny: bool, scratch: Path) -> Iterator[Row]:
    """Yield the main job, and its stages as commands of their own."""
    name, folder = TINY if tiny else ("ensemble",), str(scratch / "demo")
    call = partial(run_python, "-m", "statmech", cache=scratch / "cache")
    for command in ("run", "simulate", "theory"):
        arguments = (*name, "--fresh", "--out", folder)
        yield Row(f"statmech {command} {name[0]}", "s", Side(partial(call, command, *arguments)), repeats=1)
    for command in ("compare", "figure"):
        yield Row(f"statmech {command} {name[0]}", "s", Side(partial(call, command, folder)), repeats=1)


def call_programs(tiny: bool, scratch: Path) -> Iterator[Row]:
    """Yield the first call of a program in a new process over a second call: kept, traced again, and compiled."""

    def first_call(name: str, forgotten: str | None) -> float:
        folder = scratch / "programs"
        if forgotten is not None:
            shutil.rmtree(folder / forgotten, ignore_errors=True)
        return float(run_python("-c", FIRST_CALL.format(name=name), cache=folder))

    for name in ("MinOver",) if tiny else ("equations", "Gram", "MinOver"):
        kept, traced, compiled = (Side(partial(first_call, name, gone), 1, True) for gone in (None, "programs", ""))
        peers = {"traced again": traced, "compiled": compiled}
        yield Row(f"first call of a program: {name}", "ms", kept, peers, repeats=1 if tiny else 3)


def measure_memory(tiny: bool, scratch: Path) -> Iterator[Row]:
    """Yield the memory that a dry run predicts, beside the largest that the same command holds, cold and warm."""

    def held_memory(*given: str, cache: Path = scratch / "memory") -> float:
        command, largest = ("-m", "statmech", "simulate", *given, "--fresh", "--out", str(scratch / "held")), 0.0
        process = begin_python(*command, cache=cache, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None:  # ru_maxrss of a child counts the memory of this process
            with suppress(OSError, LookupError):  # it has just ended
                largest = max(largest, read_peak_memory(f"/proc/{process.pid}/status"))
            time.sleep(0.01)
        assert not process.returncode, command
        return largest / 2**30

    def predicted_memory(*given: str) -> float:
        printed = run_python("-m", "statmech", "simulate", *given, "--dry-run", cache=scratch / "memory")
        return float(next(line for line in printed.splitlines() if line.startswith("memory")).split()[2])

    def cold_memory(*given: str) -> float:
        shutil.rmtree(scratch / "memory", ignore_errors=True)
        return held_memory(*given)

    for name, given in ({"learner, nothing is compiled": TINY} if tiny else LARGE).items():
        ours, cold, warm = (
            Side(partial(call, *given), 1, True) for call in (predicted_memory, cold_memory, held_memory)
        )
        yield Row(f"memory predicted, {name}", "GiB", ours, {"held, cold": cold, "held, warm": warm}, repeats=0)


FLIPS = [0, 0.1, 0.2, 0.3]
SWEEPS: dict[str, dict[str, Any]] = {
    "stored, hebb": {"learner": "hebb", "N": 20, "flip": FLIPS, "alpha": [0.5, 2.5], "seeds": 1},
    "stored, minover": {"learner": "minover", "N": 20, "flip": FLIPS, "alpha": [0.5, 2.5], "epochs": 20, "seeds": 1},
    "walks": {"boundary": "constant", "N": 32, "walks": 10, "mean": [0, 1], "error_rate": [0.001, 0.4], "seeds": 2},
    "online, perceptron": {"rule": "perceptron", "N": 100, "flip": FLIPS, "eta": [0.5, 1.5], "t": 1, "seeds": 2},
}


def write_stores(tiny: bool, scratch: Path) -> Iterator[Row]:
    """Yield many small parameter combinations written to a store, beside the same in memory."""
    combinations, numbers = 40 if tiny else 10_000, count()
    for name, given in list(SWEEPS.items())[: 1 if tiny else None]:
        axis = next(iter({"alpha", "error_rate", "eta"} & given.keys()))
        lines = combinations // len(given.get("flip") or given["mean"])
        sweep = scenario_from({**given, axis: {"linspace": [*given[axis], lines]}})
        store = Side(lambda sweep=sweep: run_into(scratch / f"{next(numbers)}.zarr", sweep), combinations)
        memory = {"in memory": Side(partial(simulate.run, sweep), combinations)}
        yield Row(f"into a store, {combinations:,} combinations: {name}", "ms per combination", store, memory)


# ---- the explorer

STEPS = 24
ETA_SLIDER = 1  # position among the sliders of the page
SHOWN = "R,q,eps_g,eps_g_majority_vote"
ONE, THREE = ("rule=perceptron", "rule=hebb,perceptron,adatron")
TIMES = "t=50&K=3&N=1000&eta=0.5&view.x=t"
DRAGS = {
    "one rule": f"{ONE}&{TIMES}",
    "three rules": f"{THREE}&{TIMES}",
    "three rules, four charts": f"{THREE}&{TIMES}&view.show={SHOWN}",
    "one rule, inputs of two variances": f"{ONE}&{TIMES}&inputs={{spectrum: [0.2, 1.8]}}",
    "three rules, inputs of two variances": f"{THREE}&{TIMES}&inputs={{spectrum: [0.2, 1.8]}}",
    "one rule, inputs of a power law": f"{ONE}&{TIMES}&inputs={{power_law: {{decay: 1.5, teacher_decay: 1.75}}}}",
    "three rules against K": f"{THREE}&t=50&K=11&N=1000&eta=0.5&view.x=K",
}
SERVER_WITHOUT_SIMULATION = """
import figures.explorer.live_scenario as live
live.DRAG_END_DELAY_MILLISECONDS = 10**8
from statmech.cli import main
main()
"""
TRACE_PAINTING = """
window.painted = 0
for (const name of ['stroke', 'fill', 'fillText', 'drawImage']) {
  const whole = CanvasRenderingContext2D.prototype[name]
  CanvasRenderingContext2D.prototype[name] = function(...given) {
    window.painted = performance.now()
    return whole.apply(this, given)
  }
}
window.addEventListener('keydown', event => { window.pressed = event.timeStamp }, true)
"""
HAS_CURVES = """() => [...Bokeh.documents[0]._all_models.values()].some(it =>
  it.glyph && it.glyph.type === 'TYPE' && it.data_source.data.x.length && (it.name || 'TYPE' === 'MultiLine'))"""


def drag_sliders(tiny: bool, _: Path) -> Iterator[Row]:
    """Yield steps of a slider of the explorer: the server's time without the websocket, and the bytes that it sends."""
    steps = 4 if tiny else STEPS
    yield Row("explorer, theory of MinOver", "ms per step", Side(partial(solve_minover, steps), 1, True), repeats=1)
    curves = Side(lambda: theory.learning_curves(np.geomspace(0.1, 50, 200)))
    yield Row("five learning curves at 200 alphas", "ms", curves)
    for name, query in list(DRAGS.items())[: 1 if tiny else None]:
        measured = cache(partial(drag, query, steps))
        for index, unit in enumerate(("ms per step", "bytes per step")):
            number = Side(lambda measured=measured, index=index: measured()[index], 1, True)  # type: ignore[misc]
            yield Row(f"explorer, {name}", unit, number, repeats=0)


def median_step(steps: Sequence[Callable[[], object]]) -> float:
    """The median CPU time of these calls, without the first two."""
    seconds = []
    for step in steps:
        start = time.process_time()
        step()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds[2:])


def solve_minover(steps: int) -> float:
    """CPU seconds of a step of the flip, of MinOver against alpha, as the explorer asks its theory."""
    from figures.explorer import computation, settings

    def solve(flip: float) -> object:
        given = {"learner": ["minover"], "alpha": 20, "N": 100, "epochs": 100, "flip": flip}
        config = settings.expand_page_config("learner", given, "alpha")
        return computation.solve_with_dense_grid(scenario_from(config), "alpha")

    computation._solve_config.cache_clear()
    return median_step([partial(solve, flip) for flip in np.linspace(0, 0.2, steps).round(4).tolist()])


class SentBytes:
    """Serialises what a step changes, as the server does for its browser."""

    def __init__(self) -> None:
        self.bytes = 0

    def _document_patched(self, event: Any) -> None:
        from bokeh.protocol.messages.patch_doc import patch_doc

        self.bytes += len(patch_doc.create([event]).content_json)


def drag(query: str, steps: int) -> tuple[float, float]:
    """CPU seconds of a step of eta on the server, and the bytes that it sends."""
    import panel as pn
    from bokeh.document import Document
    from panel.io.state import set_curdoc

    from figures.explorer import computation
    from figures.explorer.page import ExplorerPage

    computation._solve_config.cache_clear()  # another preset has the same values
    pn.extension("mathjax")
    document, sent = Document(), SentBytes()
    with set_curdoc(document):
        page = ExplorerPage(query=parse_qsl(query))
        page.view().server_doc(document)
        page.source.scheduler.call_later = lambda *_: None  # nothing is simulated
        page.source.update()
        document.callbacks.on_change_dispatch_to(sent)
        slider = page.source.sliders["eta"]
        etas = (0.55 + 0.05 * np.arange(steps)).round(2).tolist()
        seconds = median_step([partial(setattr, slider, "value", eta) for eta in etas])
        page.source.close()
    return seconds, sent.bytes / steps


def paint_charts(tiny: bool, scratch: Path) -> Iterator[Row]:
    """Yield wall time in Chromium: from a key to the last stroke on the charts, and from a start to the first chart."""
    for name, query in list(DRAGS.items())[: 1 if tiny else None]:
        yield Row(f"key to paint, {name}", "ms", Side(partial(press_keys, query, scratch), 1, True), repeats=0)
    for glyph in ("MultiLine", "Scatter"):
        yield Row(f"start to the first {glyph}", "s", Side(partial(open_page, glyph, scratch), 1, True), repeats=1)


@contextmanager
def serve_explorer(*command: str, cache: Path) -> Iterator[str]:
    """The address of an explorer in another process."""
    with socket.socket() as free, tempfile.TemporaryFile("w+") as output:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
        free.close()
        arguments = [*command, "explore", "--no-browser", "--port", port]
        process = begin_python(*arguments, cache=cache, stdout=output)
        try:
            address = None
            while address is None:
                time.sleep(0.05)
                output.seek(0)
                address = re.search(r"http://\S+", output.read())
            yield address[0]
        finally:
            process.kill()
            process.wait()


@contextmanager
def open_browser() -> Iterator[Any]:
    """A page of a browser without a screen."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        path = shutil.which("chromium") or shutil.which("google-chrome")
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1300, "height": 900})
        page.set_default_timeout(120_000)
        page.add_init_script(TRACE_PAINTING)
        yield page
        browser.close()


def wait_for_curves(page: Any, address: str, glyph: str) -> None:
    """Open a page, and wait until its charts have curves (MultiLine) or points (Scatter)."""
    page.goto(address)
    page.wait_for_selector("canvas")
    page.wait_for_function(HAS_CURVES.replace("TYPE", glyph))


def press_keys(query: str, cache: Path) -> float:
    """The median seconds from a key press to the last stroke on the charts."""
    seconds = []
    with serve_explorer("-c", SERVER_WITHOUT_SIMULATION, cache=cache) as address, open_browser() as page:
        wait_for_curves(page, f"{address}&{query}", "MultiLine")
        page.wait_for_timeout(2000)
        page.locator("input[type=range]:visible").nth(ETA_SLIDER).focus()
        for _ in range(STEPS):
            page.keyboard.press("ArrowRight")
            page.wait_for_function("window.painted > window.pressed")
            page.wait_for_timeout(300)  # axes may follow
            seconds.append(page.evaluate("window.painted - window.pressed") / 1e3)
    return statistics.median(seconds[4:])


def open_page(glyph: str, cache: Path) -> float:
    """Seconds from opening the page of an explorer that has just started to its first curves or points."""
    with open_browser() as page, serve_explorer("-m", "statmech.cli", cache=cache) as address:
        start = time.perf_counter()
        wait_for_curves(page, address, glyph)
        return time.perf_counter() - start


# ---- the table

GROUPS: dict[str, Callable[[bool, Path], Iterator[Row]]] = {
    "steps": simulate_steps,
    "equations": solve_equations,
    "protocols": optimise_protocols,
    "replica": solve_replica,
    "fits": fit_estimators,
    "votes": take_votes,
    "commands": run_commands,
    "demo": run_demo,
    "programs": call_programs,
    "memory": measure_memory,
    "stores": write_stores,
    "explorer": drag_sliders,
    "browser": paint_charts,
}


def measure_row(row: Row, repeats: int) -> list[list[object]]:
    """Return a line of the table for each peer of a row, or one without a peer."""
    theirs = {name: side for name, side in row.theirs.items() if getattr(programs.PEERS.get(name), "found", True)}
    numbers: dict[str, list[float]] = {"statmech": [], **{name: [] for name in theirs}}
    returned: dict[str, object] = {}
    for _ in range(1 + repeats):
        for name, side in {"statmech": row.ours, **theirs}.items():
            start = timing.cpu_seconds()
            returned[name] = side.call()
            number = float(returned[name]) if side.reports else timing.cpu_seconds() - start  # type: ignore[arg-type]
            numbers[name].append(SCALES.get(row.unit.split()[0], 1.0) * number / side.count)
    medians = {name: statistics.median(values[1:] or values) for name, values in numbers.items()}
    ours, first = medians["statmech"], numbers["statmech"][0]
    compile_seconds = (first - ours) * row.ours.count / SCALES.get(row.unit.split()[0], 1.0)
    last = "" if row.ours.reports else max(compile_seconds, 0.0)
    lines: list[list[object]] = []
    for name in row.theirs:
        if name in theirs:
            differ = describe_difference(returned["statmech"], returned[name], row.picked)
            lines.append([row.work, row.unit, name, medians[name], ours, medians[name] / ours, differ, last])
        else:
            lines.append([row.work, row.unit, name, "not installed", ours, "", "", last])
    return lines or [[row.work, row.unit, "", "", ours, "", "", last]]


def describe_difference(ours: object, theirs: object, picked: slice) -> str:
    if not (isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray)):
        return ""
    return f"{np.max(np.abs(ours[picked] - theirs)) / np.max(np.abs(ours)):.0e}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", metavar="group", choices=[*GROUPS, []], help=", ".join(GROUPS))
    parser.add_argument("--tiny", action="store_true", help="toy size")
    given = parser.parse_args(arguments)
    timing.pin()
    print(timing.machine())
    warnings.simplefilter("ignore", ConvergenceWarning)
    peers = [[name, one.what, one.folder or one.module, one.found] for name, one in programs.PEERS.items()]
    timing.table("Peers that are on no package index", ["peer", "description", "found by", "found"], peers)
    header = ["work", "unit", "peer", "peer's", "statmech's", "ratio", "differ by", "compile, s"]
    for group in given.groups or [name for name in GROUPS if name != "browser"]:
        with tempfile.TemporaryDirectory() as scratch:
            rows = GROUPS[group](given.tiny, Path(scratch))
            lines = [
                line for row in rows for line in measure_row(row, min(row.repeats, 1) if given.tiny else row.repeats)
            ]
        timing.table(group, header, lines)


if __name__ == "__main__":
    main()
