"""Order parameters, errors and training loss of the minimiser of a convex loss, for N -> infinity."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from statmech.convex.losses import Loss, Penalty, convert_to_stability_loss, find_minimiser_interval
from statmech.convex.separability_thresholds import compute_interpolation_threshold
from statmech.convex.teachers import LabelTeacher, Teacher
from statmech.convex.weight_distributions import WeightDistribution
from statmech.inputs.input_distributions import InputPopulation
from theory.convex.example_averages import (
    average_label_training_loss,
    average_residual_training_loss,
    compute_fresh_label_error,
)
from theory.convex.saddle_point import (
    SOLUTION_RESIDUAL_TOL,
    ConvexEquations,
    PenaltyPoint,
    SaddlePointSolution,
    run_newton,
    solve_saddle_point,
)
from theory.convex.thresholds import compute_response_at_recovery, recovers_teacher
from theory.convex.weight_averages import IsotropicWeightEquations, ModeWeightEquations

MIN_SUSCEPTIBILITY = 1e-12  # replaces 0, which has no finite logarithm
ZERO_LIMIT_START_LAMBDA = 1e-6  # Newton's method starts from this solution to reach the limit lambda = 0


class LearnerState(NamedTuple):
    """Order parameters and errors of learners, as arrays (batch,), NaN where the equations have no solution.

    `eps_y` and `eps_t` are defined for labels, and `mse` for a linear teacher. R and length describe the weight
    vectors, R_field and length_field the fields. They differ if inputs have unequal variances.
    """

    R: np.ndarray
    length: np.ndarray
    V: np.ndarray
    residual: np.ndarray
    train_loss: np.ndarray
    eps_t: np.ndarray
    eps_g: np.ndarray
    eps_y: np.ndarray
    mse: np.ndarray
    R_field: np.ndarray
    length_field: np.ndarray


PhaseSolver = Callable[[ConvexEquations, np.ndarray, np.ndarray, float], LearnerState]


def make_convex_equations(
    loss: Loss, teacher: Teacher, penalty: Penalty, weights: WeightDistribution, inputs: InputPopulation | None = None
) -> ConvexEquations:
    """Make the saddle-point equations of a learner with isotropic or structured inputs.

    Parameters
    ----------
    loss, teacher, penalty, weights
        The learner, and the distribution of the teacher's weights.
    inputs
        Inputs of unequal variance, with an l2 penalty, or None for isotropic inputs.
    """
    side = ModeWeightEquations(inputs.modes) if inputs else IsotropicWeightEquations(weights if penalty.share else None)
    return ConvexEquations(convert_to_stability_loss(loss) if teacher.labels else loss, teacher, side)


def solve_loss_minimum(
    loss: Loss,
    teacher: Teacher,
    penalty: Penalty,
    weights: WeightDistribution,
    alpha: np.ndarray,
    lam: np.ndarray,
    inputs: InputPopulation | None = None,
) -> LearnerState:
    """Compute a learner's state at the minimum of its penalised loss for each alpha and lambda (batch,).

    Parameters
    ----------
    loss, teacher, penalty, weights
        The learner, and the distribution of the teacher's weights.
    alpha
        Examples per weight (batch,).
    lam
        Strength of the penalty (batch,), 0 for the limit of a vanishing penalty.
    inputs
        Inputs of unequal variance, with an l2 penalty, or None for isotropic inputs.
    """
    equations = make_convex_equations(loss, teacher, penalty, weights, inputs)
    result = LearnerState(*(np.full(len(alpha), np.nan) for _ in LearnerState._fields))
    exact = recovers_teacher(equations.loss, teacher, penalty, weights, alpha, lam, inputs)
    for values, part in zip(
        result, _describe_recovered_teacher(equations, penalty, weights, alpha[exact]), strict=True
    ):
        values[exact] = part
    for members, phase in _iterate_phases(equations, alpha, lam, penalty.share):
        elements = members[~exact[members]]
        if not len(elements):
            continue
        state = phase(equations, alpha[elements], lam[elements], penalty.share)
        for values, part in zip(result, state, strict=True):
            values[elements] = part
    return result


def _describe_recovered_teacher(
    equations: ConvexEquations, penalty: Penalty, weights: WeightDistribution, alpha: np.ndarray
) -> LearnerState:
    """Describe minima of a penalised loss that equal the teacher.

    V is 0 for a loss with a kink.
    """
    loss, side = equations.loss, equations.weight_equations
    nans, ones, zeros = np.full(len(alpha), np.nan), np.ones(len(alpha)), np.zeros(len(alpha))
    if 0.0 in loss.kinks:
        V = zeros
    else:
        V = np.array(
            [compute_response_at_recovery(penalty, weights, ratio) for ratio in (alpha / side.rank_fraction).tolist()]
        )
        V = V / loss.curvature(zeros)
    length = side.teacher_length * ones
    return LearnerState(ones, length, V, zeros, loss.value(zeros), nans, zeros, nans, zeros, ones, ones)


def _iterate_phases(
    equations: ConvexEquations, alpha: np.ndarray, lam: np.ndarray, l1_fraction: float
) -> Iterator[tuple[np.ndarray, PhaseSolver]]:
    """Yield the batch elements of each phase of a loss's minimum, with the solver of this phase.

    The phases are: all weights 0 due to an l1 norm, a penalty, and no penalty below, above and at the interpolation
    threshold.
    """
    empty = equations.has_zero_weights(alpha, lam * l1_fraction)
    yield np.flatnonzero(empty), _describe_zero_weights
    yield np.flatnonzero((lam > 0) & ~empty), _solve_penalised
    if np.any(lam == 0):
        end = compute_interpolation_threshold(
            equations.loss,
            equations.teacher,
            equations.weight_equations.signal_fraction,
            equations.weight_equations.rank_fraction,
        )
        yield np.flatnonzero((lam == 0) & (alpha < end)), _solve_interpolating
        yield np.flatnonzero((lam == 0) & (alpha > end)), _solve_unpenalised
        yield np.flatnonzero((lam == 0) & (alpha == end)), _describe_diverging_students


def _describe_zero_weights(
    equations: ConvexEquations, alpha: np.ndarray, lam: np.ndarray, l1_fraction: float
) -> LearnerState:
    """Describe minima of a penalised loss with all weights 0, which guess at random."""
    nans, zeros, coin = np.full(len(alpha), np.nan), 0 * alpha, 0 * alpha + 0.5
    if isinstance(equations.teacher, LabelTeacher):
        return LearnerState(
            zeros, zeros, zeros, zeros, equations.loss.value(zeros), coin, coin, coin, nans, zeros, zeros
        )
    s = np.sqrt(1 + equations.noise**2)
    loss = average_residual_training_loss(
        equations.loss, np.log(np.array([zeros + s, zeros + MIN_SUSCEPTIBILITY])), equations.loss
    ).loss
    return LearnerState(zeros, zeros, zeros, zeros, loss, nans, coin, nans, zeros + 1, zeros, zeros)


def _solve_penalised(
    equations: ConvexEquations, alpha: np.ndarray, lam: np.ndarray, l1_fraction: float
) -> LearnerState:
    """Compute the state at a penalty lambda > 0."""
    point = PenaltyPoint(np.log(lam), np.full_like(lam, l1_fraction))
    return describe_state(equations, solve_saddle_point(equations, alpha, lam, l1_fraction), alpha, point)


def _solve_unpenalised(
    equations: ConvexEquations, alpha: np.ndarray, lam: np.ndarray, l1_fraction: float
) -> LearnerState:
    """Compute the state without a penalty, where the minimum of the loss is unique."""
    nearby = solve_saddle_point(equations, alpha, lam + ZERO_LIMIT_START_LAMBDA, l1_fraction)
    point = PenaltyPoint(lam - np.inf, np.full_like(lam, l1_fraction))
    return describe_state(equations, run_newton(equations, nearby.x, alpha, point), alpha, point)


def _solve_interpolating(
    equations: ConvexEquations, alpha: np.ndarray, lam: np.ndarray, l1_fraction: float
) -> LearnerState:
    """Compute the minimum of a loss in the limit of a vanishing penalty, where students fit all examples."""
    limit_loss = find_minimiser_interval(equations.loss)
    if limit_loss is None:
        return LearnerState(*(np.full(len(alpha), np.nan) for _ in LearnerState._fields))
    nearby = solve_saddle_point(equations, alpha, lam + ZERO_LIMIT_START_LAMBDA, l1_fraction)
    x, point = nearby.x, PenaltyPoint(0 * lam, np.full_like(lam, l1_fraction))
    x[-1] += np.log(ZERO_LIMIT_START_LAMBDA)
    limit_equations = replace(equations, loss=limit_loss)
    state = describe_state(limit_equations, run_newton(limit_equations, x, alpha, point), alpha, point, equations.loss)
    return state._replace(V=np.where(np.isnan(state.V), np.nan, np.inf))


def _describe_diverging_students(
    equations: ConvexEquations, alpha: np.ndarray, lam: np.ndarray, l1_fraction: float
) -> LearnerState:
    """Describe the minimum of a loss at the interpolation threshold, where the students' length diverges."""
    unknown = LearnerState(*(np.full(len(alpha), np.nan) for _ in LearnerState._fields))
    limit_loss = find_minimiser_interval(equations.loss)
    if limit_loss is None or limit_loss.low < limit_loss.high:
        return unknown
    far = np.full(len(alpha), np.inf)
    state = unknown._replace(
        R=0 * alpha, length=far, V=far, residual=0 * alpha, train_loss=0 * alpha, eps_g=0 * alpha + 0.5
    )._replace(R_field=0 * alpha, length_field=far)
    return (
        state._replace(mse=far) if not equations.teacher.labels else state._replace(eps_t=0 * alpha, eps_y=state.eps_g)
    )


def describe_state(
    equations: ConvexEquations,
    solution: SaddlePointSolution,
    alpha: np.ndarray,
    point: PenaltyPoint,
    reported_loss: Loss | None = None,
) -> LearnerState:
    """Compute the order parameters and errors at a loss's minimum from a solution of the saddle-point equations.

    Parameters
    ----------
    equations, solution
        The equations and their solution.
    alpha, point
        Examples per weight (batch,), and the penalty.
    reported_loss
        The loss to report, if it differs from the loss of the equations, as in a limit.
    """
    x = solution.x + np.where(solution.residual <= SOLUTION_RESIDUAL_TOL, 0.0, np.nan)
    describe = (
        _describe_student_of_labels if isinstance(equations.teacher, LabelTeacher) else _describe_student_of_outputs
    )
    with np.errstate(all="ignore"):
        return describe(equations, x, solution.residual, alpha, point, reported_loss or equations.loss)


def _describe_student_of_labels(
    equations: ConvexEquations,
    x: np.ndarray,
    residual: np.ndarray,
    alpha: np.ndarray,
    point: PenaltyPoint,
    reported_loss: Loss,
) -> LearnerState:
    """Describe the students that minimise a loss of a teacher's labels."""
    teacher = equations.teacher
    assert isinstance(teacher, LabelTeacher)
    training = average_label_training_loss(equations.loss, teacher, x, reported_loss)
    student = equations.describe_student(x, alpha, point)
    eps_g, wrong = np.arctan(np.exp(x[0])) / np.pi, compute_fresh_label_error(teacher, x[0])
    fields = 1 / np.hypot(1, np.exp(x[0])), student.length_field
    return LearnerState(
        student.R,
        student.length,
        np.exp(x[-1]),
        residual,
        training.loss,
        training.error,
        eps_g,
        wrong,
        student.mse,
        *fields,
    )


def _describe_student_of_outputs(
    equations: ConvexEquations,
    x: np.ndarray,
    residual: np.ndarray,
    alpha: np.ndarray,
    point: PenaltyPoint,
    reported_loss: Loss,
) -> LearnerState:
    """Describe the students that minimise a loss of a linear teacher's outputs."""
    training = average_residual_training_loss(equations.loss, x, reported_loss)
    student, nans = equations.describe_student(x, alpha, point), np.full_like(x[0], np.nan)
    t = np.exp(student.log_tan)
    fields = 1 / np.hypot(1, t), student.length_field
    return LearnerState(
        student.R,
        student.length,
        np.exp(x[-1]),
        residual,
        training.loss,
        nans,
        np.arctan(t) / np.pi,
        nans,
        student.mse,
        *fields,
    )
