"""The learner that minimises a convex loss, for N -> infinity: cosine, length, errors and training loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from statmech.convex.limits import smallest, threshold
from statmech.convex.losses import Loss, on_labels
from statmech.convex.penalties import Penalty
from statmech.convex.teachers import LabelTeacher, Teacher
from statmech.convex.weights import Weights
from statmech.population import Population
from theory.convex.averages import fresh_error, training_of_labels, training_of_residuals
from theory.convex.mode_sums import ModeSums
from theory.convex.recovery import recovers, vanishing_response
from theory.convex.saddle_point import SOLVED, Equations, Point, Solved, newton, solve
from theory.convex.sides import Isotropic

LEAST_V = 1e-12  # substitute for 0, whose logarithm is infinite
SLIGHT = 1e-6  # Newton's method converges from here to the limit lambda = 0


class LearnerState(NamedTuple):
    """The state of learners, arrays (batch,), NaN where the equations have no solution.

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


Phase = Callable[[Equations, np.ndarray, np.ndarray, float], LearnerState]


def equations_of(
    loss: Loss, teacher: Teacher, penalty: Penalty, weights: Weights, inputs: Population | None = None
) -> Equations:
    """Make the equations of a loss, which is given as in the config.

    Parameters
    ----------
    loss, teacher, penalty, weights
        The learner, and the distribution of the teacher's weights.
    inputs
        Inputs of unequal variance, with an l2 penalty, or None for isotropic inputs.
    """
    side = ModeSums(inputs.modes) if inputs else Isotropic(weights if penalty.share else None)
    return Equations(on_labels(loss) if teacher.labels else loss, teacher, side)


def minimum(
    loss: Loss,
    teacher: Teacher,
    penalty: Penalty,
    weights: Weights,
    alpha: np.ndarray,
    lam: np.ndarray,
    inputs: Population | None = None,
) -> LearnerState:
    """Solve for the minimum at each alpha and lambda.

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
    equations = equations_of(loss, teacher, penalty, weights, inputs)
    result = LearnerState(*(np.full(len(alpha), np.nan) for _ in LearnerState._fields))
    exact = recovers(equations.loss, teacher, penalty, weights, alpha, lam, inputs)
    for values, part in zip(result, _recovered(equations, penalty, weights, alpha[exact]), strict=True):
        values[exact] = part
    for members, phase in _phases(equations, alpha, lam, penalty.share):
        elements = members[~exact[members]]
        if not len(elements):
            continue
        state = phase(equations, alpha[elements], lam[elements], penalty.share)
        for values, part in zip(result, state, strict=True):
            values[elements] = part
    return result


def _recovered(equations: Equations, penalty: Penalty, weights: Weights, alpha: np.ndarray) -> LearnerState:
    """Describe students that equal the teacher. V is 0 for a loss with a kink."""
    loss, side = equations.loss, equations.side
    nans, ones, zeros = np.full(len(alpha), np.nan), np.ones(len(alpha)), np.zeros(len(alpha))
    if 0.0 in loss.kinks:
        V = zeros
    else:
        V = np.array([vanishing_response(penalty, weights, ratio) for ratio in (alpha / side.rank).tolist()])
        V = V / loss.curvature(zeros)
    length = side.length_of_teacher * ones
    return LearnerState(ones, length, V, zeros, loss.value(zeros), nans, zeros, nans, zeros, ones, ones)


def _phases(
    equations: Equations, alpha: np.ndarray, lam: np.ndarray, share: float
) -> Iterator[tuple[np.ndarray, Phase]]:
    """Iterate over the phases, each with its batch elements and its solver.

    The phases are: all weights 0 by an l1 norm, a penalty, and no penalty below, above and at the threshold.
    """
    empty = equations.vanishes(alpha, lam * share)
    yield np.flatnonzero(empty), _vanished
    yield np.flatnonzero((lam > 0) & ~empty), _penalised
    if np.any(lam == 0):
        end = threshold(equations.loss, equations.teacher, equations.side.signal, equations.side.rank)
        yield np.flatnonzero((lam == 0) & (alpha < end)), _interpolating
        yield np.flatnonzero((lam == 0) & (alpha > end)), _unpenalised
        yield np.flatnonzero((lam == 0) & (alpha == end)), _diverging


def _vanished(equations: Equations, alpha: np.ndarray, lam: np.ndarray, share: float) -> LearnerState:
    """Describe students without weights, which answer by a fair coin."""
    nans, zeros, coin = np.full(len(alpha), np.nan), 0 * alpha, 0 * alpha + 0.5
    if isinstance(equations.teacher, LabelTeacher):
        return LearnerState(
            zeros, zeros, zeros, zeros, equations.loss.value(zeros), coin, coin, coin, nans, zeros, zeros
        )
    s = np.sqrt(1 + equations.noise**2)
    loss = training_of_residuals(equations.loss, np.log(np.array([zeros + s, zeros + LEAST_V])), equations.loss).loss
    return LearnerState(zeros, zeros, zeros, zeros, loss, nans, coin, nans, zeros + 1, zeros, zeros)


def _penalised(equations: Equations, alpha: np.ndarray, lam: np.ndarray, share: float) -> LearnerState:
    """Solve at lambda > 0."""
    point = Point(np.log(lam), np.full_like(lam, share))
    return described(equations, solve(equations, alpha, lam, share), alpha, point)


def _unpenalised(equations: Equations, alpha: np.ndarray, lam: np.ndarray, share: float) -> LearnerState:
    """Solve without a penalty where the minimum of the loss is unique."""
    nearby = solve(equations, alpha, lam + SLIGHT, share)
    point = Point(lam - np.inf, np.full_like(lam, share))
    return described(equations, newton(equations, nearby.x, alpha, point), alpha, point)


def _interpolating(equations: Equations, alpha: np.ndarray, lam: np.ndarray, share: float) -> LearnerState:
    """Solve the limit of a vanishing penalty where students fit all examples."""
    limit_loss = smallest(equations.loss)
    if limit_loss is None:
        return LearnerState(*(np.full(len(alpha), np.nan) for _ in LearnerState._fields))
    nearby = solve(equations, alpha, lam + SLIGHT, share)
    x, point = nearby.x, Point(0 * lam, np.full_like(lam, share))
    x[-1] += np.log(SLIGHT)
    limit_equations = replace(equations, loss=limit_loss)
    state = described(limit_equations, newton(limit_equations, x, alpha, point), alpha, point, equations.loss)
    return state._replace(V=np.where(np.isnan(state.V), np.nan, np.inf))


def _diverging(equations: Equations, alpha: np.ndarray, lam: np.ndarray, share: float) -> LearnerState:
    """Describe students at the threshold, where the length of an interpolating student diverges."""
    unknown = LearnerState(*(np.full(len(alpha), np.nan) for _ in LearnerState._fields))
    limit_loss = smallest(equations.loss)
    if limit_loss is None or limit_loss.low < limit_loss.high:
        return unknown
    far = np.full(len(alpha), np.inf)
    state = unknown._replace(
        R=0 * alpha, length=far, V=far, residual=0 * alpha, train_loss=0 * alpha, eps_g=0 * alpha + 0.5
    )._replace(R_field=0 * alpha, length_field=far)
    return (
        state._replace(mse=far) if not equations.teacher.labels else state._replace(eps_t=0 * alpha, eps_y=state.eps_g)
    )


def described(
    equations: Equations, solved: Solved, alpha: np.ndarray, at: Point, value: Loss | None = None
) -> LearnerState:
    """Compute the state of learners from the solved unknowns.

    Parameters
    ----------
    equations, solved
        The equations and their solution.
    alpha, at
        Examples per weight (batch,), and the penalty.
    value
        The loss to report, if it differs from the loss of the equations, as in a limit.
    """
    x = solved.x + np.where(solved.residual <= SOLVED, 0.0, np.nan)
    describe = _of_labels if isinstance(equations.teacher, LabelTeacher) else _of_residuals
    with np.errstate(all="ignore"):
        return describe(equations, x, solved.residual, alpha, at, value or equations.loss)


def _of_labels(
    equations: Equations, x: np.ndarray, residual: np.ndarray, alpha: np.ndarray, at: Point, value: Loss
) -> LearnerState:
    """Describe the students of a teacher of labels."""
    teacher = equations.teacher
    assert isinstance(teacher, LabelTeacher)
    training = training_of_labels(equations.loss, teacher, x, value)
    student = equations.describe_student(x, alpha, at)
    eps_g, wrong = np.arctan(np.exp(x[0])) / np.pi, fresh_error(teacher, x[0])
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


def _of_residuals(
    equations: Equations, x: np.ndarray, residual: np.ndarray, alpha: np.ndarray, at: Point, value: Loss
) -> LearnerState:
    """Describe the students of a linear teacher."""
    training = training_of_residuals(equations.loss, x, value)
    student, nans = equations.describe_student(x, alpha, at), np.full_like(x[0], np.nan)
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
