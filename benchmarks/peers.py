"""This library beside its peers: CPU time of the same work, and whether the numbers agree.

    python benchmarks/peers.py           # pins itself to one core; a minute
    python benchmarks/peers.py --tiny    # the same at toy size: tests that it runs, not how fast

scikit-learn, NumPy and SciPy always run. Peers that are on no package index run where they are found (peer_programs.py
has the lines that run them); where they are not, a row has our time alone. Calls of a row alternate in one process; a
command's time includes its start. Our theory of a convex loss also finds the best penalty of each alpha.
"Differ by": the largest difference over the largest number.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import boosting
import engines
import equations
import fits
import naive
import networks
import networks_theory
import numpy as np
import peer_programs as programs
import timing
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import theory
from simulate.classification.estimators.sparse import SparsePerceptron
from simulate.convex.minimisation import minimise
from simulate.convex.objective_and_certificates import Problem
from simulate.convex.training_data import draw_teacher_data
from simulate.kinds import bayes_inference
from simulate.kinds.empirical_risk import make_risk_problem
from simulate.online import gram_engine
from statmech import Descent, Inference, Risk, Scenario
from statmech.keys.initial_states import StudentUnits
from statmech.kinds.network import NetworkCell
from theory.convex.bayes_optimal import bayes_overlap


class Side(NamedTuple):
    """A call, whose numbers are compared if it returns an array, and how many units of work it does."""

    call: Callable[[], object]
    count: float = 1


class Row(NamedTuple):
    """Work done by us and by peers, some of which need not be installed; `picked`: our numbers that peers compute."""

    work: str
    ours: Side
    theirs: dict[str, Side]
    picked: slice = slice(None)


def outside(name: str, lines: str, count: float = 1) -> dict[str, Side]:
    return {name: Side(partial(programs.PEERS[name].run, lines), count)}


def updates(tiny: bool) -> list[Row]:
    """Simulated updates: the same distribution, not the same numbers."""
    steps, few = (64, 20) if tiny else (19_968, 2_000)
    one = Side(engines.simulation(gram_engine, engines.cell(1_000, 1), steps), steps * gram_engine.batch(1))
    net = Side(networks.simulation(gram_engine, networks.task(784, 2), steps), steps * gram_engine.batch(2))
    loop, erf = (Side(partial(*call, few), few) for call in ((engines.run_numpy, 1_000, 1), (networks.loop, 784, 2)))
    torch, nn2pp = outside("StatPhys-ML", programs.PERCEPTRON, 2_000), outside("nn2pp", programs.NETWORK, 78_400)
    return [
        Row("perceptron rule, K = 1, N = 1,000, an update", one, {"NumPy": loop, **torch}),
        Row("erf network 2-2, N = 784, an update", net, {"NumPy": erf, **nn2pp}),
    ]


def trajectories(tiny: bool) -> list[Row]:
    """Order-parameter equations."""
    count, stride = (10, 5) if tiny else (1_000, 50)
    rates = np.linspace(0.5, 2.0, count)
    one, sweep = (Scenario(rule="perceptron", t=equations.TIMES, eta=eta) for eta in (1.0, rates))
    [net] = networks_theory.scenario(0.5).cells()
    ours = Side(partial(solved_errors, one)), Side(partial(errors_of, sweep), count), Side(partial(solved_network, net))
    lsoda, each = (Side(partial(lsoda_errors, some), len(some)) for some in ([1.0], rates[::stride]))
    dop853 = Side(lambda: networks_theory.dop853(net).T)
    torch, nn2pp = outside("StatPhys-ML", programs.ONLINE), outside("nn2pp", programs.NETWORK_ODE)
    work = f"theory.solve, each of {count:,} learning rates"
    return [
        Row("equations of the perceptron rule, 201 times", ours[0], {"SciPy LSODA": lsoda, **torch}),
        Row(work, ours[1], {"SciPy LSODA": each}, slice(None, None, stride)),
        Row("equations of the erf network 2-2, t = 100", ours[2], {"SciPy DOP853": dop853, **nn2pp}),
    ]


def descents(tiny: bool) -> list[Row]:
    """The path of gradient descent, for which dynamical mean-field theory iterates kernels of two times."""
    start = {"length": 1.04**0.5, "R": 0.2 / 1.04**0.5}
    given = {"loss": "square", "teacher": "linear", "alpha": 3, "lam": 0.5, "eta": 0.1, "start": start}
    scenario = Descent(descent="gradient", **given, epochs=range(50))
    dmft = outside("DMFT", programs.DESCENT.format(iterations=1 if tiny else 25))
    return [Row("least squares, 50 steps of descent: w.w*/N", Side(partial(overlaps_of, scenario)), dmft)]


def overlaps_of(scenario: Descent) -> np.ndarray:
    """The component of the student along the teacher after each step."""
    solved = theory.solve(scenario)
    return np.ravel(solved.R * solved.length)


def errors_of(scenario: Scenario | Risk) -> np.ndarray:
    """eps_g by theory, one row for each learning rate."""
    return np.atleast_2d(theory.solve(scenario).eps_g.squeeze())


def solved_errors(scenario: Scenario) -> np.ndarray:
    """eps_g from the equations alone, without those of ensembles."""
    [students] = equations.solve_cells([*scenario.cells()], equations.TIMES)
    return np.arccos(1 - students.y[:, 0]) / np.pi


def lsoda_errors(rates: Sequence[float]) -> np.ndarray:
    return np.array([np.arccos(equations.lsoda(eta)[1]) / np.pi for eta in rates])


def solved_network(cell: NetworkCell) -> np.ndarray:
    [units] = networks_theory.solve_cells([cell], networks_theory.TIMES)
    return np.array([networks_theory.pack_units(StudentUnits(*at)) for at in zip(*units, strict=True)])


def replica(tiny: bool) -> list[Row]:
    """Learning curves of stored examples, and message passing."""
    four, five, six = [1.0, 2.0, 3.0, 4.0], [0.5, 1.0, 2.0, 5.0, 10.0], [0.5, 1.0, 1.5, 2.0, 3.0, 4.0]
    if tiny:
        four, five, six = four[:1], five[:1], six[:1]
    scenario = Inference(N=100 if tiny else 2_000, steps=200, prior="gauss", alpha=2.0)
    messages = Side(lambda: bayes_inference.Simulator(scenario).simulate(next(scenario.cells()), 0))
    curve = outside("Tree-AMP", programs.CURVE.format(alphas=six))
    propagation = outside("Tree-AMP", programs.MESSAGES.format(N=scenario.N))
    rows = [
        Row(f"Bayes-optimal error of weights, {len(six)} alphas", Side(lambda: 1 - bayes_overlap("gauss", six)), curve),
        Row(f"message passing, N = {scenario.N}, alpha 2", messages, propagation),
    ]
    for loss, lam, alphas, peer, lines in (
        ("logistic", 0.1, four, "GCMProject", programs.COVARIATE),
        ("logistic", 1.0, five, "StatPhys-ML", programs.REPLICA),
        ("hinge", 1.0, five, "StatPhys-ML", programs.REPLICA),
    ):
        ours = Side(partial(errors_of, Risk(loss=loss, alpha=alphas, lam=lam)))
        theirs = outside(
            peer, lines.format(name=loss, Name=loss.title(), alphas=alphas, omega=[1.0, 1.0], tolerance=1e-7)
        )
        rows.append(Row(f"theory of the {loss} loss, lambda {lam:g}, {len(alphas)} alphas", ours, theirs))
    return [*rows, covariate_model(tiny)]


def covariate_model(tiny: bool) -> Row:
    """Logistic regression on inputs of unequal variance; peers do some of the alphas."""
    modes, points, stride = (100, 4, 2) if tiny else (400, 200, 100)
    omega = np.geomspace(0.05, 5, modes)
    omega = omega / omega.mean()
    alphas = np.linspace(0.5, 6, points).round(2)
    scenario = Risk(loss="logistic", lam=0.1, alpha=alphas, N=modes, inputs={"spectrum": omega.tolist()})
    some = alphas[::stride].tolist()
    scipy = Side(lambda: np.array([naive.covariate_model(omega, omega / modes, a, 0.1) for a in some]), len(some))
    lines = programs.COVARIATE.format(omega=omega.tolist(), alphas=some, tolerance=1e-9)
    theirs = {"SciPy, damped iteration": scipy, **outside("GCMProject", lines, len(some))}
    work = f"theory of the logistic loss, {modes} modes, each of {points} alphas"
    return Row(work, Side(lambda: errors_of(scenario)[0], points), theirs, slice(None, None, stride))


def estimators(tiny: bool) -> list[Row]:
    """Fits of weights, which must agree, and of votes of conjunctions, which need not."""
    N, m, stages, rows = *((60, 60, 2) if tiny else (500, 2_000, 30)), []
    for name, given in fits.cases(N):
        if name in ("logistic", "hinge", "lasso") and given["alpha"] == 2.0:
            cell = next(Risk(**given).cells())
            data, lam = draw_teacher_data(cell, 0, 0), float(given["lam"])
            ours = Side(partial(minimised, make_risk_problem(cell, data, lam)))
            model = fits.THEIRS[name](lam, cell.P)
            theirs = Side(partial(weights_of, model, data.X / np.sqrt(N), data.y))
            rows.append(Row(f"{name}, fit of N = {N}, P = {cell.P}", ours, {type(model).__name__: theirs}))
    X, y = boosting.vote(60, m, (2, 3))
    words, indicators = np.char.add("w", X.astype(str)).astype(object), OneHotEncoder().fit_transform(X).toarray()
    trees = AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=stages)
    gradient = GradientBoostingClassifier(max_depth=2, n_estimators=stages)
    theirs = {type(one).__name__: Side(partial(one.fit, indicators, y)) for one in (trees, gradient)}
    ours = Side(partial(SparsePerceptron(k=2, stages=stages).fit, words, y))
    return [*rows, Row(f"SparsePerceptron, {stages} stages, k = 2, {m:,} x 60 words", ours, theirs)]


def minimised(problem: Problem) -> np.ndarray:
    return minimise(problem).w


def weights_of(model: ClassifierMixin | RegressorMixin, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return model.fit(X, y).coef_.ravel()


def compared(row: Row, repeats: int) -> list[list[object]]:
    """A line of the table for each peer of a row."""
    there = {
        name: side for name, side in row.theirs.items() if name not in programs.PEERS or programs.PEERS[name].found
    }
    numbers: dict[str, object] = {}

    def keep(name: str, side: Side) -> None:
        numbers[name] = side.call()

    calls = {name: partial(keep, name, side) for name, side in {"ours": row.ours, **there}.items()}
    took, lines = timing.measure(calls, repeats, timing.cpu_seconds), []
    ours = took["ours"].seconds / row.ours.count
    for name in row.theirs:
        lines.append([row.work, name, "not installed", 1e3 * ours, "", "", took["ours"].compile])
        if side := there.get(name):
            theirs, differ = took[name].seconds / side.count, difference(numbers["ours"], numbers[name], row.picked)
            lines[-1][2:-1] = [1e3 * theirs, 1e3 * ours, theirs / ours, differ]
    return lines


def difference(ours: object, theirs: object, picked: slice) -> str:
    if not (isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray)):
        return "not compared"
    return f"{np.max(np.abs(ours[picked] - theirs)) / np.max(np.abs(ours)):.0e}"


def main() -> None:
    tiny = timing.tiny(__doc__)
    timing.pin()
    print(timing.machine())
    warnings.simplefilter("ignore", ConvergenceWarning)
    peers = [[name, one.what, one.folder or one.module, one.found] for name, one in programs.PEERS.items()]
    timing.table("Peers that are on no package index", ["peer", "what it is", "found by", "found"], peers)
    rows = [row for section in (updates, trajectories, descents, replica, estimators) for row in section(tiny)]
    lines = [line for row in rows for line in compared(row, 1 if tiny else 5)]
    header = ["work", "peer", "theirs, ms", "ours, ms", "theirs/ours", "differ by", "ours, compile, s"]
    timing.table("CPU time of the same work", header, lines)


if __name__ == "__main__":
    main()
