"""Simulation of learners that minimise a convex loss: draws of teachers and examples, and minimisation.

`simulate.kernels.teacher_data` draws teachers and examples: every loss, penalty, lam and alpha of a sweep sees the same
ones.
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

FOUND = 1.0  # larger relative distances from the minimum are no students: F is never negative
ROUNDING = 1e-14  # relative to the loss at w = 0
STEPS = 500  # message passing to the Bayes-optimal student
GUESSES = {"R": 0.0, "length": 0.0, "eps_g": 0.5}


class Simulator(units.RunByRun[RiskCell]):
    """Learners that minimise a convex loss, one run after the other."""

    source = "minimisation of a convex loss"
    scenario: Risk

    def simulate(self, cell: RiskCell, seed: int) -> dict[str, float]:
        """Simulate the variables of one run."""
        data = drawn(cell, self.scenario.key, seed)
        lam = self.strength(cell)
        problem = problem_of(cell, data, lam)
        separated = separation(problem.B) if cell.teacher.labels and lam == 0 else None
        minimum = learnt(cell, problem, separated, lam, self.scenario.solver)
        values = measured(cell, data, problem, minimum, lam)
        if cell.teacher.labels:
            values["separable"] = _separable(problem, separated, minimum, cell.inputs.isotropic)
        if self.scenario.bayes:
            values["R_bayes"] = cosine(posterior_mean(data, cell, STEPS), data.teacher)
        return {name: value for name, value in values.items() if name in self.scenario.variables}

    def strength(self, cell: RiskCell) -> float:
        """Return the strength of the penalty. The best one minimises the error for N -> infinity."""
        if isinstance(cell.lam, str):
            return taken(self._best(cell.setting)[cell.alpha])
        return float(cell.lam)

    @cached_property
    def _best(self) -> Callable[[Setting], Mapping[float, float]]:
        """The best penalties of a setting for all its alphas together, solved when the first run needs one."""
        alphas: defaultdict[Setting, list[float]] = defaultdict(list)
        for cell in self.scenario.cells():
            alphas[cell.setting].append(cell.alpha)

        @cache
        def solve_setting(setting: Setting) -> Mapping[float, float]:
            return best_lambdas(*setting.learner, alphas[setting], setting.inputs)

        return solve_setting

    def check(self) -> None:
        """Raise `ScenarioError` for examples that do not fit into memory, and for message passing without a penalty."""
        for cell in self.scenario.cells():
            if self.scenario.solver == "amp" and cell.lam == 0:
                raise ScenarioError([(("lam",), "message passing needs a penalty: solver amp, but lam = 0")])
            run = f"a run with {cell.P:,} examples in {cell.N:,} dimensions"
            units.check_memory("alpha", run, memory(cell))

    def memory(self) -> float:
        """Return the bytes of the largest run."""
        return max(map(memory, self.scenario.cells()))


def memory(cell: RiskCell) -> float:
    """Return the bytes of a run: three copies of the inputs, and three matrices of the smaller dimension."""
    return 8.0 * 3 * (cell.P * cell.N + min(cell.P, cell.N) ** 2)


def problem_of(cell: RiskCell, data: TeacherData, lam: float) -> Problem:
    """Return the function that a run minimises. At lam = 0 it has the penalty of lam = 1."""
    l1, l2 = map(float, cell.penalty.parts(lam if lam != 0 else 1.0))
    B, c = linear_map(data.X, data.y, cell.teacher.labels)
    if data.measure:  # weights scaled to the same penalty, on the axes with variance
        B = B[:, data.measure.varying] / np.sqrt(data.measure.ridge[data.measure.varying])
    return Problem(B, c, cell.on, l1, l2)


def learnt(cell: RiskCell, problem: Problem, separated: Separation | None, lam: float, solver: str) -> Minimum:
    """Minimise the risk of a run. The student is NaN if no best lam is known.

    Parameters
    ----------
    cell
        The parameter combination.
    problem
        The function to minimise.
    separated
        Linear separability of the labels, where lam = 0.
    lam
            Strength of the penalty, or 0 for the limit of a vanishing penalty.
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
    """Measure the variables of a student. Without one, or far from the minimum, only the gap is returned.

    Parameters
    ----------
    cell, data
        The parameter combination, and the examples.
    problem
            The minimised function.
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
    """Return the mean loss of the examples, set to 0 if it equals the minimum of the loss up to rounding."""
    mean = float(problem.loss.value(x).mean())
    return mean if mean > ROUNDING * float(problem.loss.value(problem.c).mean()) else 0.0


def cosine(w: np.ndarray, teacher: np.ndarray) -> float:
    """Return the cosine of two weight vectors, or 0 for a vector of length 0."""
    length = np.linalg.norm(w)
    return float(w @ teacher / (length * np.linalg.norm(teacher))) if length > 0 else 0.0


def _response(problem: Problem, w: np.ndarray, measure: Measure) -> float:
    r"""Return V, the mean response of a field to a force on it: the trace of covariance over Hessian, divided by N."""
    inverse = inverse_hessian(problem, w)
    if inverse is None:
        return np.inf
    root = np.sqrt(measure.ridge[measure.varying])
    return measure.spread(inverse / root[:, None] / root) / len(measure.ridge)


def _student(cell: RiskCell, data: TeacherData, w: np.ndarray) -> dict[str, float]:
    """Return R, length and the errors of a student w. The zero student answers by a fair coin."""
    if data.measure:
        weights = np.zeros(cell.N)
        weights[data.measure.varying] = w / np.sqrt(data.measure.ridge[data.measure.varying])
        return data.measure.measured(cell, weights)
    teacher = data.teacher
    unit = teacher / np.linalg.norm(teacher)
    parallel = w @ unit
    student = describe_student(parallel, np.asarray(np.linalg.norm(w - parallel * unit))) if w.any() else GUESSES
    values = {"R": student["R"], "length": student["length"] / np.sqrt(cell.N), "eps_g": student["eps_g"]}
    if isinstance(cell.teacher, LabelTeacher):
        values["eps_y"] = float(label_error(cell.teacher, values["R"]))
        return values | _in_fields(values)
    return values | _in_fields(values) | {"mse": float(np.mean((w - teacher) ** 2))}


def _in_fields(values: dict[str, float]) -> dict[str, float]:
    """Return cosine and length of fields, which equal the weights' because all inputs have the same variance."""
    return {"R_field": values["R"], "length_field": values["length"]}


def _separable(problem: Problem, separated: Separation | None, found: Minimum, full: bool) -> bool:
    """Return True if the labels are separable.

    In many cases the student itself separates them. N examples are always separable if inputs have full rank.
    """
    if separated is not None:
        return separated.exists
    P, N = problem.B.shape
    return (full and P <= N) or bool(np.all(problem.x(found.w) > 0)) or separation(problem.B).exists
