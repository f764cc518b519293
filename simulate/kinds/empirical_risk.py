"""Simulation of learners that minimise a convex loss on random examples of a random teacher.

`simulate.convex.training_data` draws teachers and examples, which are shared by every loss, penalty, lam and alpha of a
sweep.
"""

from __future__ import annotations

import numpy as np

from simulate.convex.message_passing import compute_posterior_mean, minimise_by_message_passing
from simulate.convex.minimisation import minimise, minimise_vanishing_penalty
from simulate.convex.newton import compute_inverse_hessian, compute_susceptibility
from simulate.convex.objective_and_certificates import (
    Minimum,
    Problem,
    bound_relative_gap,
    make_loss_argument_map,
    make_missing_minimum,
)
from simulate.convex.separability import Separation, find_separation
from simulate.convex.training_data import StudentMeasure, TeacherData, draw_teacher_data
from simulate.kinds.convex_fits import PenalisedFitSimulator
from statmech.convex.teachers import LabelTeacher, label_error
from statmech.errors import ScenarioError
from statmech.keys.sweep_grid import ensure_tuple
from statmech.kinds.empirical_risk import Risk, RiskCell
from statmech.students.order_parameters import compute_student_order_parameters
from theory.convex.best_penalty import find_best_group_lambdas

MAX_MEASURABLE_RISK_GAP = 1.0  # relative distance of F >= 0 from its minimum: at larger gaps, minimisation has failed
ZERO_MEAN_LOSS_RTOL = 1e-14  # smaller mean losses, relative to the loss at w = 0, are set to 0
MAX_BAYES_MESSAGE_STEPS = 500  # steps of message passing towards the Bayes-optimal student
ZERO_WEIGHT_VARIABLES = {"R": 0.0, "length": 0.0, "eps_g": 0.5}


class Simulator(PenalisedFitSimulator[RiskCell]):
    """Simulator of learners that minimise a convex loss, one run after the other."""

    scenario: Risk
    find_best_penalties = staticmethod(find_best_group_lambdas)

    def simulate(self, cell: RiskCell, seed: int) -> dict[str, float]:
        """Simulate the variables of one run."""
        data = draw_teacher_data(cell, self.scenario.key, seed)
        lam = self.get_penalty_strength(cell)
        problem = make_risk_problem(cell, data, lam)
        separated = find_separation(problem.B) if cell.teacher.labels and lam == 0 else None
        minimum = minimise_risk(problem, separated, lam, self.scenario.solver)
        values = measure_student(cell, data, problem, minimum, lam)
        if cell.teacher.labels:
            values["separable"] = is_separable(problem, separated, minimum, cell.inputs.isotropic)
        if self.scenario.bayes:
            values["R_bayes"] = compute_cosine(
                compute_posterior_mean(data, cell, MAX_BAYES_MESSAGE_STEPS), data.teacher
            )
        return {name: value for name, value in values.items() if name in self.scenario.variables}

    def check_resources(self) -> None:
        """Raise `ScenarioError` if the examples do not fit into memory, or for message passing without a penalty."""
        if self.scenario.solver == "amp" and 0 in ensure_tuple(self.scenario.lam):
            raise ScenarioError([(("lam",), "message passing needs a penalty: solver amp requires lam > 0")])
        super().check_resources()

    def count_run_bytes(self, cell: RiskCell) -> float:
        """Return the bytes of a run: three copies of the inputs, and three matrices of the smaller dimension."""
        return 8.0 * 3 * (cell.P * cell.N + min(cell.P, cell.N) ** 2)


def make_risk_problem(cell: RiskCell, data: TeacherData, lam: float) -> Problem:
    """Make the problem that a run minimises, with the penalty of lam = 1 if lam = 0."""
    l1, l2 = map(float, cell.penalty.split_strength(lam if lam != 0 else 1.0))
    B, c = make_loss_argument_map(data.X, data.y, cell.teacher.labels)
    if data.student_measure:  # scale weights to equal penalties, and omit axes without variance
        B = B[:, data.student_measure.varying_axes] / np.sqrt(
            data.student_measure.ridge[data.student_measure.varying_axes]
        )
    return Problem(B, c, cell.loss_for_teacher_outputs, l1, l2)


def minimise_risk(problem: Problem, separation: Separation | None, lam: float, solver: str = "minimise") -> Minimum:
    """Minimise the risk of a run, or return a NaN student if no best lam is known.

    Parameters
    ----------
    problem
        The function to minimise.
    separation
        Linear separability of the labels, where lam = 0.
    lam
        Strength of the penalty, or 0 for the limit of a vanishing penalty.
    solver
        `minimise`, or `amp` for message passing.
    """
    if np.isnan(lam):
        return make_missing_minimum(problem.B.shape[1])
    if lam == 0:
        return minimise_vanishing_penalty(problem, separation)
    if solver == "amp":
        w = minimise_by_message_passing(problem).w
        return Minimum(w, bound_relative_gap(problem, w))
    return minimise(problem)


def measure_student(
    cell: RiskCell, data: TeacherData, problem: Problem, minimum: Minimum, lam: float
) -> dict[str, float]:
    """Measure the variables of a student, or return only the gap if it is far from the minimum.

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


def compute_mean_loss(problem: Problem, x: np.ndarray) -> float:
    """Return the mean loss of the examples, set to 0 if only rounding errors remain."""
    mean = float(problem.loss.value(x).mean())
    return mean if mean > ZERO_MEAN_LOSS_RTOL * float(problem.loss.value(problem.c).mean()) else 0.0


def compute_cosine(w: np.ndarray, teacher: np.ndarray) -> float:
    """Return the cosine of two weight vectors, or 0 for a vector of length 0."""
    length = np.linalg.norm(w)
    return float(w @ teacher / (length * np.linalg.norm(teacher))) if length > 0 else 0.0


def _compute_field_response(problem: Problem, w: np.ndarray, measure: StudentMeasure) -> float:
    r"""Return V, the mean response of a field to a force: the trace of covariance over Hessian, divided by N."""
    inverse = compute_inverse_hessian(problem, w)
    if inverse is None:
        return np.inf
    root = np.sqrt(measure.ridge[measure.varying_axes])
    return measure.trace_with_covariance(inverse / root[:, None] / root) / len(measure.ridge)


def _measure_weights(cell: RiskCell, data: TeacherData, w: np.ndarray) -> dict[str, float]:
    """Return R, length and errors of a student w. Zero weights guess at random."""
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


def is_separable(problem: Problem, separation: Separation | None, minimum: Minimum, full_rank: bool = True) -> bool:
    """Return True if the labels are linearly separable.

    Often the student itself separates the labels. Up to N examples are separable if inputs have full rank.
    """
    if separation is not None:
        return separation.exists
    P, N = problem.B.shape
    return (full_rank and P <= N) or bool(np.all(problem.x(minimum.w) > 0)) or find_separation(problem.B).exists
