"""Simulates learners that minimise a convex loss: draws teachers and examples, and minimises.

Teachers and examples are those of `simulate.kernels.teacher_data`: every loss, penalty, lam and alpha of a sweep sees
the same ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache, cached_property

import numpy as np

from simulate.execution import units
from simulate.kernels.least_risk import minimise_by_messages
from simulate.kernels.posterior_means import posterior_mean
from simulate.kernels.structured_data import Measure
from simulate.kernels.teacher_data import TeacherData, drawn
from simulate.minimisers.method import minimise
from simulate.minimisers.newton import inverse_hessian, susceptibility
from simulate.minimisers.optimality import gap_of
from simulate.minimisers.problem import Minimum, Problem, linear_map, nowhere
from simulate.minimisers.separability import Separation, separation
from simulate.minimisers.vanishing_penalty import vanishing
from statmech.convex.label_error import label_error
from statmech.convex.teachers import LabelTeacher
from statmech.errors import ScenarioError
from statmech.results.dataset import describe_student
from statmech.scenarios.convex_setting import Setting
from statmech.scenarios.risk import Risk, RiskCell
from theory.convex.best_lambda import best_lambdas, taken

FOUND = 1.0  # relative distance from the minimum below which a student counts as one: F is never negative
ROUNDING = 1e-14  # of a loss, relative to that of w = 0
STEPS = 500  # of message passing to the Bayes-optimal student, at most
GUESSES = {"R": 0.0, "length": 0.0, "eps_g": 0.5}


class Simulator(units.RunByRun[RiskCell]):
    """Learners that minimise a convex loss, one run after the other."""

    source = "minimisation of a convex loss"
    scenario: Risk

    def simulate(self, cell: RiskCell, seed: int) -> dict[str, float]:
        """The variables of one run."""
        data = drawn(cell, self.scenario.key, seed)
        lam = self.strength(cell)
        problem = problem_of(cell, data, lam)
        separated = separation(problem.B) if cell.teacher.labels and lam == 0 else None
        found = learnt(cell, problem, separated, lam, self.scenario.solver)
        values = measured(cell, data, problem, found, lam)
        if cell.teacher.labels:
            values["separable"] = _separable(problem, separated, found, cell.inputs.isotropic)
        if self.scenario.bayes:
            values["R_bayes"] = cosine(posterior_mean(data, cell, STEPS), data.teacher)
        return {name: value for name, value in values.items() if name in self.scenario.variables}

    def strength(self, cell: RiskCell) -> float:
        """The strength of the penalty; the best one is that of the smallest error for N -> infinity."""
        if isinstance(cell.lam, str):
            return taken(self._best(cell.setting)[cell.alpha])
        return float(cell.lam)

    @cached_property
    def _best(self) -> Callable[[Setting], Mapping[float, float]]:
        """The best penalties of a setting at each of its alphas, side by side, solved when the first run needs one."""
        alphas: defaultdict[Setting, list[float]] = defaultdict(list)
        for cell in self.scenario.cells():
            alphas[cell.setting].append(cell.alpha)

        @cache
        def solved(setting: Setting) -> Mapping[float, float]:
            return best_lambdas(*setting.learner, alphas[setting], setting.inputs)

        return solved

    def check(self) -> None:
        """Refuse examples that this machine cannot hold, and message passing without a penalty."""
        for cell in self.scenario.cells():
            if self.scenario.solver == "amp" and cell.lam == 0:
                raise ScenarioError([(("lam",), "message passing needs a penalty: solver amp, but lam = 0")])
            run = f"a run with {cell.P:,} examples in {cell.N:,} dimensions"
            units.check_memory("alpha", run, memory(cell))

    def memory(self) -> float:
        """Bytes that the largest run holds."""
        return max(map(memory, self.scenario.cells()))


def memory(cell: RiskCell) -> float:
    """Bytes of a run: three copies of the inputs, and three matrices of the smaller dimension."""
    return 8.0 * 3 * (cell.P * cell.N + min(cell.P, cell.N) ** 2)


def problem_of(cell: RiskCell, data: TeacherData, lam: float) -> Problem:
    """Return the function that a run minimises; where lam = 0, with the penalty of lam = 1."""
    l1, l2 = map(float, cell.penalty.parts(lam if lam != 0 else 1.0))
    B, c = linear_map(data.X, data.y, cell.teacher.labels)
    if data.measure:  # weights of one penalty, along the axes that matter
        B = B[:, data.measure.varying] / np.sqrt(data.measure.ridge[data.measure.varying])
    return Problem(B, c, cell.on, l1, l2)


def learnt(cell: RiskCell, problem: Problem, separated: Separation | None, lam: float, solver: str) -> Minimum:
    """Minimise the risk of a run; the student is NaN where no best lam is known.

    Parameters
    ----------
    cell
        The parameter combination.
    problem
        The function to minimise.
    separated
        Linear separability of the labels, where lam = 0.
    lam
        Strength of the penalty, 0 for the limit of a vanishing one.
    solver
        `minimise`, or `amp` for message passing.
    """
    if np.isnan(lam):
        return nowhere(cell.N)
    if lam == 0:
        return vanishing(problem, separated)
    if solver == "amp":
        w = minimise_by_messages(problem).w
        return Minimum(w, gap_of(problem, w))
    return minimise(problem)


def measured(cell: RiskCell, data: TeacherData, problem: Problem, found: Minimum, lam: float) -> dict[str, float]:
    """Measure the variables of a student; without one, or far from the minimum, only its gap.

    Parameters
    ----------
    cell, data
        The parameter combination, and the examples.
    problem
        The function that was minimised.
    found
        The student.
    lam
        Strength of the penalty.
    """
    values = {"gap": found.gap, "converged": found.converged}
    if not found.gap < FOUND:
        return values
    x = problem.x(found.w)
    values |= _student(cell, data, found.w) | {"train_loss": mean_loss(problem, x)}
    if cell.teacher.labels:
        values["eps_t"] = float(np.mean((1 - np.sign(x)) / 2))
    if cell.penalty.share == 0 and not problem.loss.kinks:
        bare = problem if lam > 0 else problem._replace(l2=0.0)
        values["V"] = _response(bare, found.w, data.measure) if data.measure else susceptibility(bare, found.w)
    return values


def mean_loss(problem: Problem, x: np.ndarray) -> float:
    """The mean loss of the examples; 0 where all lie at the loss's smallest value but for rounding."""
    mean = float(problem.loss.value(x).mean())
    return mean if mean > ROUNDING * float(problem.loss.value(problem.c).mean()) else 0.0


def cosine(w: np.ndarray, teacher: np.ndarray) -> float:
    """The cosine of two weight vectors; 0 for one of length 0."""
    length = np.linalg.norm(w)
    return float(w @ teacher / (length * np.linalg.norm(teacher))) if length > 0 else 0.0


def _response(problem: Problem, w: np.ndarray, measure: Measure) -> float:
    r"""V, the mean response of a field to a force on it: the trace of the covariance over the Hessian, over N."""
    inverse = inverse_hessian(problem, w)
    if inverse is None:
        return np.inf
    root = np.sqrt(measure.ridge[measure.varying])
    return measure.spread(inverse / root[:, None] / root) / len(measure.ridge)


def _student(cell: RiskCell, data: TeacherData, w: np.ndarray) -> dict[str, float]:
    """R, length and the errors of a student w; w = 0 answers by a fair coin."""
    if data.measure:
        whole = np.zeros(cell.N)
        whole[data.measure.varying] = w / np.sqrt(data.measure.ridge[data.measure.varying])
        return data.measure.measured(cell, whole)
    teacher = data.teacher
    unit = teacher / np.linalg.norm(teacher)
    along = w @ unit
    student = describe_student(along, np.asarray(np.linalg.norm(w - along * unit))) if w.any() else GUESSES
    values = {"R": student["R"], "length": student["length"] / np.sqrt(cell.N), "eps_g": student["eps_g"]}
    if isinstance(cell.teacher, LabelTeacher):
        values["eps_y"] = float(label_error(cell.teacher, values["R"]))
        return values | _in_fields(values)
    return values | _in_fields(values) | {"mse": float(np.mean((w - teacher) ** 2))}


def _in_fields(values: dict[str, float]) -> dict[str, float]:
    """Cosine and length of fields, which are those of weights: inputs are of equal variance."""
    return {"R_field": values["R"], "length_field": values["length"]}


def _separable(problem: Problem, separated: Separation | None, found: Minimum, full: bool) -> bool:
    """True if labels can be separated; often the student does it, and N examples are always if inputs are `full`."""
    if separated is not None:
        return separated.exists
    P, N = problem.B.shape
    return (full and P <= N) or bool(np.all(problem.x(found.w) > 0)) or separation(problem.B).exists
