"""Simulation of learners that minimise a convex loss on random examples of a random teacher.

`PenalisedFitSimulator` also serves learners of clusters and of table rows: it finds the penalties of `lam: best`.
`simulate.convex.training_data` draws teachers and examples, which are shared by every loss, penalty, lam and alpha of a
sweep.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, TypeVar

import numpy as np

from simulate.convex.message_passing import compute_posterior_mean
from simulate.convex.minimisation_and_separability import Separation, find_separation, is_separable, minimise_risk
from simulate.convex.newton import compute_inverse_hessian, compute_susceptibility
from simulate.convex.objective_and_certificates import (
    Minimum,
    Problem,
    make_loss_argument_map,
)
from simulate.convex.training_data import (
    VOTE_STREAM,
    StudentMeasure,
    TeacherData,
    draw_learnt_examples,
    draw_teacher_data,
    make_random_stream,
)
from simulate.execution.work_units import ConvexFitSimulator
from statmech.convex.teachers import LabelTeacher, label_error
from statmech.errors import ScenarioError
from statmech.keys.sweep_grid import ensure_tuple
from statmech.kinds.convex_fit import PenalisedCell
from statmech.kinds.empirical_risk import Risk, RiskCell
from statmech.students.ensemble_vote import (
    MAX_EXACT_STUDENTS,
    choose_test_circle_count,
    draw_random_circles,
    few_student_vote_error,
    measure_near_equal_vote_error,
)
from statmech.students.student_geometry import compute_ensemble_order_parameters, compute_student_order_parameters
from theory.convex.best_lambda import cap_infinite_lambda, find_best_group_lambdas

MAX_MEASURABLE_RISK_GAP = 1.0  # relative distance of F >= 0 from its minimum: at larger gaps, minimisation has failed
ZERO_MEAN_LOSS_RTOL = 1e-14  # smaller mean losses, relative to the loss at w = 0, are set to 0
MAX_BAYES_MESSAGE_STEPS = 500  # steps of message passing towards the Bayes-optimal student
ZERO_WEIGHT_VARIABLES = {"R": 0.0, "length": 0.0, "eps_g": 0.5}
PenalisedCellT = TypeVar("PenalisedCellT", bound=PenalisedCell)


class PenalisedFitSimulator(ConvexFitSimulator[PenalisedCellT]):
    """Base class of simulators of learners that minimise a loss with a given or with the best penalty."""

    source = "minimisation of a convex loss"

    @abstractmethod
    def find_best_penalties(self, cells: Sequence[PenalisedCellT]) -> Iterable[float]:
        """Return the penalty of the smallest error in theory for each cell of one setting."""

    def get_penalty_strength(self, cell: PenalisedCellT) -> float:
        """Return the penalty strength of a cell, where `best` minimises the error predicted by theory."""
        if isinstance(cell.lam, str):
            return cap_infinite_lambda(self._best_penalties(cell.shared_setting)[cell.sample_size])
        return float(cell.lam)

    @cached_property
    def _best_penalties(self) -> Any:
        """Function of a setting that returns the best penalty of its simulated runs at each sample size."""
        groups: dict[Hashable, list[PenalisedCellT]] = {}
        for cell in self.scenario.cells():
            groups.setdefault(cell.shared_setting, []).append(cell)

        @cache
        def search_setting(setting: Hashable) -> Mapping[float, float]:
            sizes = (cell.sample_size for cell in groups[setting])
            return dict(zip(sizes, self.find_best_penalties(groups[setting]), strict=True))

        return search_setting


class Simulator(PenalisedFitSimulator[RiskCell]):
    """Simulator of learners that minimise a convex loss, one run after the other."""

    scenario: Risk
    find_best_penalties = staticmethod(find_best_group_lambdas)

    def simulate(self, cell: RiskCell, seed: int) -> dict[str, float]:
        """Simulate one minimisation of a loss on examples of a random teacher, and return its variables."""
        data = draw_teacher_data(cell, self.scenario.key, seed)
        lam = self.get_penalty_strength(cell)
        if cell.resample:
            values = self._simulate_ensemble(cell, data, lam, seed)
        else:
            problem, separated, minimum = fit_student(cell, data, lam, self.scenario.solver)
            values = measure_student(cell, data, problem, minimum, lam)
            if cell.teacher.labels:
                values["separable"] = is_separable(problem, separated, minimum, cell.inputs.isotropic)
        if self.scenario.bayes:
            values["R_bayes"] = compute_cosine(
                compute_posterior_mean(data, cell, MAX_BAYES_MESSAGE_STEPS), data.teacher
            )
        return {name: value for name, value in values.items() if name in self.scenario.variables}

    def _simulate_ensemble(self, cell: RiskCell, data: TeacherData, lam: float, seed: int) -> dict[str, float]:
        """Fit the students of an ensemble to their parts of the examples, and return means and ensemble variables."""
        students, weights = list[dict[str, float]](), list[np.ndarray]()
        for student in range(cell.K):
            rows = draw_learnt_examples(cell, self.scenario.key, seed, student)
            part = data._replace(X=data.X[rows], y=data.y[rows])
            problem, _, minimum = fit_student(cell, part, lam, self.scenario.solver)
            students.append(measure_student(cell, part, problem, minimum, lam))
            weights.append(minimum.w)
        values = average_over_students(students)
        if not np.isfinite(values["R"]):
            return values
        rng = make_random_stream(VOTE_STREAM, N=cell.N, key=self.scenario.key, seed=seed, K=cell.K)
        return values | measure_ensemble(data.teacher, np.array(weights), rng)

    def check_resources(self) -> None:
        """Raise `ScenarioError` if the examples do not fit into memory, or for message passing without a penalty."""
        if self.scenario.solver == "amp" and 0 in ensure_tuple(self.scenario.lam):
            raise ScenarioError([(("lam",), "message passing needs a penalty: solver amp requires lam > 0")])
        super().check_resources()

    def count_run_bytes(self, cell: RiskCell) -> float:
        """Return the bytes of a run: three copies of the inputs, and three matrices of the smaller dimension.

        Ensembles need a copy of the inputs that one student learns, and the weights of all students.
        """
        ensemble = cell.num_learnt_examples * cell.N + cell.K * cell.N if cell.resample else 0
        return 8.0 * (3 * (cell.P * cell.N + min(cell.P, cell.N) ** 2) + ensemble)


def fit_student(
    cell: RiskCell, data: TeacherData, lam: float, solver: str = "minimise"
) -> tuple[Problem, Separation | None, Minimum]:
    """Minimise the risk of one student on these examples, and return the separation of labels at lam = 0."""
    problem = make_risk_problem(cell, data, lam)
    separated = find_separation(problem.B) if cell.teacher.labels and lam == 0 else None
    return problem, separated, minimise_risk(problem, separated, lam, solver)


def make_risk_problem(cell: RiskCell, data: TeacherData, lam: float) -> Problem:
    """Make the problem of minimising the risk of a random teacher, with the penalty of lam = 1 if lam = 0."""
    l1, l2 = map(float, cell.penalty.split_strength(lam if lam != 0 else 1.0))
    B, c = make_loss_argument_map(data.X, data.y, cell.teacher.labels)
    if data.student_measure:  # scale weights to equal penalties, and omit axes without variance
        B = B[:, data.student_measure.varying_axes] / np.sqrt(
            data.student_measure.ridge[data.student_measure.varying_axes]
        )
    return Problem(B, c, cell.loss_for_teacher_outputs, l1, l2)


def measure_student(
    cell: RiskCell, data: TeacherData, problem: Problem, minimum: Minimum, lam: float
) -> dict[str, float]:
    """Measure the variables of a student of a random teacher, or only its gap if it is far from the minimum.

    Parameters
    ----------
    cell, data
        The parameter combination, and the examples.
    problem
        The minimised function.
    minimum
        The student.
    lam
        Strength of the penalty.
    """
    values = {"gap": minimum.gap, "converged": minimum.converged}
    if not minimum.gap < MAX_MEASURABLE_RISK_GAP:
        return values
    x = problem.x(minimum.w)
    values |= _measure_weights(cell, data, minimum.w) | {"train_loss": compute_mean_loss(problem, x)}
    if cell.teacher.labels:
        values["eps_t"] = float(np.mean((1 - np.sign(x)) / 2))
    if cell.penalty.share == 0 and not problem.loss.kinks:
        bare = problem if lam > 0 else problem._replace(l2=0.0)
        values["V"] = (
            _compute_field_response(bare, minimum.w, data.student_measure)
            if data.student_measure
            else compute_susceptibility(bare, minimum.w)
        )
    return values


def average_over_students(students: Sequence[dict[str, float]]) -> dict[str, float]:
    """Average the variables of an ensemble's students, with the largest gap, NaN where a student lacks a variable.

    >>> average_over_students([{"gap": 1e-9, "converged": True, "R": 0.5}, {"gap": 0.1, "converged": False, "R": 0.3}])
    {'gap': 0.1, 'converged': False, 'R': 0.4}
    """
    names = dict.fromkeys(["gap", "converged", "R", *(name for student in students for name in student)])
    values = {name: float(np.mean([student.get(name, np.nan) for student in students])) for name in names}
    gaps = [student["gap"] for student in students]
    return values | {"gap": float(np.max(gaps)), "converged": all(student["converged"] for student in students)}


def measure_ensemble(teacher: np.ndarray, weights: np.ndarray, rng: np.random.Generator) -> dict[str, float]:
    """Measure q and the errors of an ensemble of students with weights (K, N).

    The majority vote is exact for few students, and measured on random circles of inputs for many.
    """
    K, N = weights.shape
    unit = teacher / np.linalg.norm(teacher)
    parallel = weights @ unit
    perpendicular = weights - np.outer(parallel, unit)
    gram = perpendicular @ perpendicular.T
    ensemble = compute_ensemble_order_parameters(parallel, gram)
    if K <= MAX_EXACT_STUDENTS:
        vote = few_student_vote_error(parallel, gram)
    else:
        circles = draw_random_circles(rng, choose_test_circle_count(K, N), K)
        vote = measure_near_equal_vote_error(parallel, gram, circles)
    return {
        "q": float(ensemble["q"].mean()),
        "eps_g_majority_vote": float(vote),
        "eps_g_weight_mean": float(ensemble["eps_g_weight_mean"]),
    }


def compute_mean_loss(problem: Problem, x: np.ndarray) -> float:
    """Return the mean loss of the examples, set to 0 if only rounding errors remain."""
    mean = float(problem.loss.value(x).mean())
    return mean if mean > ZERO_MEAN_LOSS_RTOL * float(problem.loss.value(problem.c).mean()) else 0.0


def compute_cosine(w: np.ndarray, teacher: np.ndarray) -> float:
    """Return the cosine of two weight vectors, or 0 for a vector of length 0."""
    length = np.linalg.norm(w)
    return float(w @ teacher / (length * np.linalg.norm(teacher))) if length > 0 else 0.0


def _compute_field_response(problem: Problem, w: np.ndarray, measure: StudentMeasure) -> float:
    r"""Return V for the student of a teacher with anisotropic inputs, the mean response of a field to a force.

    V is the trace of covariance over Hessian, divided by N.
    """
    inverse = compute_inverse_hessian(problem, w)
    if inverse is None:
        return np.inf
    root = np.sqrt(measure.ridge[measure.varying_axes])
    return measure.trace_with_covariance(inverse / root[:, None] / root) / len(measure.ridge)


def _measure_weights(cell: RiskCell, data: TeacherData, w: np.ndarray) -> dict[str, float]:
    """Return R, length and errors of weights w that minimise a risk. Zero weights guess at random."""
    if data.student_measure:
        weights = np.zeros(cell.N)
        weights[data.student_measure.varying_axes] = w / np.sqrt(
            data.student_measure.ridge[data.student_measure.varying_axes]
        )
        return data.student_measure.measure_student(cell, weights)
    teacher = data.teacher
    unit = teacher / np.linalg.norm(teacher)
    parallel = w @ unit
    student = (
        compute_student_order_parameters(parallel, np.asarray(np.linalg.norm(w - parallel * unit)))
        if w.any()
        else ZERO_WEIGHT_VARIABLES
    )
    values = {"R": student["R"], "length": student["length"] / np.sqrt(cell.N), "eps_g": student["eps_g"]}
    if isinstance(cell.teacher, LabelTeacher):
        values["eps_y"] = float(label_error(cell.teacher, values["R"]))
        return values | _copy_as_field_variables(values)
    return values | _copy_as_field_variables(values) | {"mse": float(np.mean((w - teacher) ** 2))}


def _copy_as_field_variables(values: dict[str, float]) -> dict[str, float]:
    """Return R and length of the fields, which for isotropic inputs equal R and length of the weights."""
    return {"R_field": values["R"], "length_field": values["length"]}
