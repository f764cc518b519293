"""Simulates learners that minimise a convex loss: draws teachers and examples, and minimises.

A seed has one teacher for each N and distribution of weights, and one endless list of inputs for each N: every loss,
penalty, lam and alpha of a sweep sees the same ones (the first P), so runs can be compared example by example. A larger
probability of flips flips the same labels and more.

**Separable**, whether some student is right on all examples, is computed where lam = 0. Elsewhere it is known where the
student is right on all of them itself or where P <= N, and NaN where that says nothing, for to find it takes as long as
to learn.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from simulate.execution import units
from simulate.minimisers.choice import minimise
from simulate.minimisers.newton import susceptibility
from simulate.minimisers.problem import Minimum, Problem, of_labels, of_outputs
from simulate.minimisers.separability import separation
from simulate.minimisers.vanishing import vanishing
from statmech.convex.best_lambda import LARGEST, best_lambda
from statmech.convex.label_error import label_error
from statmech.convex.teachers import LabelTeacher
from statmech.results.dataset import describe_student
from statmech.scenarios.grid import words_of
from statmech.scenarios.risk import Risk, RiskCell

GUESSES = {"R": 0.0, "length": 0.0, "eps_g": 0.5}


class Examples(NamedTuple):
    """A teacher's weights (N,), inputs X (P, N) and outputs y (P,)."""

    teacher: np.ndarray
    X: np.ndarray
    y: np.ndarray


class Simulator(units.RunByRun):
    """Learners that minimise a convex loss, one run after the other."""

    source = "minimisation of a convex loss"
    scenario: Risk

    def simulate(self, cell: RiskCell, seed: int) -> dict[str, float]:
        """The variables of one run."""
        data = draw(cell, self.scenario.key, seed)
        lam = strength(cell)
        found = learnt(cell, data, lam, self.scenario.solver)
        return measured(cell, data, lam, found)

    def check(self) -> None:
        """Refuse examples that this machine cannot hold."""
        for cell in self.scenario.cells():
            run = f"a run with {cell.P:,} examples in {cell.N:,} dimensions"
            units.check_memory("alpha", run, memory(cell))

    def memory(self) -> float:
        """Bytes that the largest run holds."""
        return max(map(memory, self.scenario.cells()))


def memory(cell: RiskCell) -> float:
    """Bytes of a run: three copies of the inputs, and three matrices of the smaller dimension."""
    return 8.0 * 3 * (cell.P * cell.N + min(cell.P, cell.N) ** 2)


def draw(cell: RiskCell, key: int, seed: int) -> Examples:
    """The first P examples of a seed."""
    own = {"N": cell.N, "key": key, "seed": seed}
    weights = {"weights": type(cell.weights).__name__, **dataclasses.asdict(cell.weights)}
    teacher = cell.weights.draw(np.random.default_rng(words_of({**own, **weights})), cell.N)
    of_inputs, of_outputs = (np.random.default_rng([*words_of(own), part]) for part in range(2))
    X = of_inputs.standard_normal((cell.P, cell.N))
    u = np.einsum("pi,i->p", X, teacher) / np.sqrt(cell.N)  # row by row: the bits of one depend on no other
    return Examples(teacher, X, cell.teacher.draw(of_outputs, u))


def strength(cell: RiskCell) -> float:
    """The strength of the penalty; the best one is that of theory's smallest error."""
    if cell.lam != "best":
        return float(cell.lam)
    best = best_lambda(cell.loss, cell.teacher, cell.penalty, cell.weights, np.array([cell.alpha]))
    return min(float(best[0]), LARGEST)


def problem_of(cell: RiskCell, data: Examples, lam: float) -> Problem:
    """What a run minimises; where lam = 0, with the penalty of lam = 1."""
    l1, l2 = map(float, cell.penalty.parts(lam if lam > 0 else 1.0))
    return (of_labels if cell.teacher.labels else of_outputs)(data.X, data.y, cell.on, l1, l2)


def learnt(cell: RiskCell, data: Examples, lam: float, solver: str) -> Minimum:
    """The student of a run."""
    if solver == "amp":
        from simulate.kernels.message_passing import minimise_by_messages

        return Minimum(*minimise_by_messages(data.X, data.y, cell.loss, cell.penalty, lam))
    problem = problem_of(cell, data, lam)
    return minimise(problem) if lam > 0 else vanishing(problem)


def measured(cell: RiskCell, data: Examples, lam: float, found: Minimum) -> dict[str, float]:
    """The variables of one run; of a student only where there is one."""
    problem = problem_of(cell, data, lam)
    exists = not np.isnan(found.gap)
    x = problem.x(found.w)
    values = {"gap": found.gap, "converged": found.converged}
    if isinstance(cell.teacher, LabelTeacher):
        values["separable"] = _separable(problem, lam, x)
        values |= {"eps_t": float(np.mean(x < 0))} if exists else {}
    if exists:
        values |= _student(cell, data.teacher, found.w) | {"train_loss": float(problem.loss.value(x).mean())}
    if exists and cell.penalty.share == 0 and not problem.loss.kinks:
        values["V"] = susceptibility(problem if lam > 0 else problem._replace(l2=0.0), found.w)
    return values


def _student(cell: RiskCell, teacher: np.ndarray, w: np.ndarray) -> dict[str, float]:
    """R, Q and the errors of a student w; w = 0 answers by a fair coin."""
    unit = teacher / np.linalg.norm(teacher)
    along = w @ unit
    student = describe_student(along, np.asarray(np.linalg.norm(w - along * unit))) if w.any() else GUESSES
    values = {"R": student["R"], "Q": student["length"] / np.sqrt(cell.N), "eps_g": student["eps_g"]}
    if isinstance(cell.teacher, LabelTeacher):
        return values | {"eps_y": float(label_error(cell.teacher, values["R"]))}
    return values | {"mse": float(np.mean((w - teacher) ** 2))}


def _separable(problem: Problem, lam: float, x: np.ndarray) -> float:
    """1 or 0, or NaN where it is not known."""
    P, N = problem.B.shape
    if lam == 0:
        return float(separation(problem.B).exists)
    return 1.0 if np.all(x > 0) or P <= N else np.nan
