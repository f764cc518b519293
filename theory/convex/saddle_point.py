r"""Replica-symmetric equations of a learner that minimises a penalised convex loss, in the limit N -> infinity.

The learner minimises :math:`\sum_\mu\ell(x^\mu) + \lambda_1|\mathbf w|_1 + \tfrac12\lambda_2|\mathbf w|^2` over
P = alpha N examples. Its angle theta to the teacher, its length :math:`l = |\mathbf w|/\sqrt N` and the
susceptibility V of a field to a force on it follow from the averages A, B, C over the examples
(`theory.convex.example_averages`), which are the hats

.. math:: \hat V = \alpha A/V, \qquad \hat q = \alpha B/V^2, \qquad \hat m = \alpha C/V,

and from the equations of the weights, which depend on inputs and penalty (`theory.convex.weight_averages`). For
isotropic inputs and :math:`\lambda_1 = 0` the equations are

.. math:: l\cos\theta = \alpha C, \qquad l^2\sin^2\theta = \alpha B, \qquad \lambda_2V + \alpha A = 1 .

For a linear teacher the only unknowns are :math:`s^2 = \sigma^2 + \langle(w-w^*)^2\rangle` and V. (Thrampoulidis,
Abbasi & Hassibi 2018, eq 11; Aubin, Krzakala, Lu & Zdeborova 2020, eq 10, in other variables.)

**Newton's method** solves for the logarithms of the unknowns x, with all derivatives from one sweep over the nodes. It
also gives the tangent :math:`\partial x/\partial\ln\lambda`. Solutions are followed in its direction from a large
lambda, where students follow Hebb's rule, to a small lambda. (Below a lambda of about 1e-8, Newton's method from a cold
start ends far from a solution.) The l1 norm is switched on afterwards. All points of a grid form one batch, the last
axis of arrays. The elements of a batch do not depend on each other, in any bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from statmech.convex.losses import Loss
from statmech.convex.teachers import LabelTeacher, LinearTeacher, Teacher
from theory.convex.example_averages import ExampleAverages, average_labelled_examples, average_over_residuals
from theory.convex.weight_averages import (
    HatsWithSlopes,
    HatVariables,
    LinearisedEquations,
    StudentOrderParameters,
    WeightEquations,
)

NEWTON_RESIDUAL_TOL = 1e-13  # target residual of Newton's method
SOLUTION_RESIDUAL_TOL = 1e-9  # solutions with larger residuals are rejected
MAX_NEWTON_SWEEPS = 16  # afterwards the step along the path is shortened
MAX_NEWTON_LOG_STEP = 2.0  # clips the Newton step of each log unknown
FIRST_LOG_LAMBDA_STEP = 3.5  # initial step in ln lambda
MIN_PATH_STEP_FRACTION = 1e-3  # relative to the length of the path
RIGID_MINUS_LOG_V = 25.0  # -ln V for weights that hardly respond to the examples


class PenaltyPoint(NamedTuple):
    """Penalty of each batch element, given by ln lambda and the fraction of the l1 norm, as arrays (batch,)."""

    log_lam: np.ndarray
    l1_fraction: np.ndarray

    @property
    def l1_l2_strengths(self) -> tuple[np.ndarray, np.ndarray]:
        """Strengths of the l1 and l2 penalties."""
        lam = np.exp(self.log_lam)
        return lam * self.l1_fraction, lam * (1 - self.l1_fraction)


class PenaltyEquations(Protocol):
    """Interface of equations that can be solved by continuation in the penalty."""

    @property
    def initial_loss_slope(self) -> float: ...

    def linearise(self, x: np.ndarray, alpha: np.ndarray, point: PenaltyPoint) -> LinearisedEquations: ...

    def compute_hebb_start(self, alpha: np.ndarray, log_lam: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...


class SaddlePointSolution(NamedTuple):
    """Unknowns x (k, batch) of a solution, its residual (batch,) and its tangent dx/d ln lambda (k, batch)."""

    x: np.ndarray
    residual: np.ndarray
    tangent: np.ndarray

    def select_elements(self, elements: np.ndarray) -> SaddlePointSolution:
        """Return the solution for some elements of the batch."""
        return SaddlePointSolution(*(part[..., elements] for part in self))


@dataclass(frozen=True)
class ConvexEquations:
    """Saddle-point equations of a learner, for a loss of stabilities (labels) or of residuals (linear teacher)."""

    loss: Loss
    teacher: Teacher
    weight_equations: WeightEquations

    def linearise(self, x: np.ndarray, alpha: np.ndarray, point: PenaltyPoint) -> LinearisedEquations:
        """Compute the residuals of the saddle-point equations and their derivatives at the unknowns x (k, batch)."""
        with np.errstate(all="ignore"):  # steps that give NaN are rejected later
            hats, parts = _linearise_hats(self._compute_averages(x), x[-1], alpha), point.l1_l2_strengths
            if isinstance(self.teacher, LabelTeacher):
                return self.weight_equations.linearise_for_labels(hats, x, *parts)
            return self.weight_equations.linearise_for_linear_teacher(hats, x, self.noise, *parts)

    def describe_student(self, x: np.ndarray, alpha: np.ndarray, point: PenaltyPoint) -> StudentOrderParameters:
        """Compute the student's order parameters at a saddle point x (k, batch)."""
        forces, (l1, l2) = partial(self._compute_hats, x, alpha), point.l1_l2_strengths
        if isinstance(self.teacher, LabelTeacher):
            return self.weight_equations.describe_student_of_labels(x, forces, l2)
        return self.weight_equations.describe_student_of_outputs(forces(), l1, l2)

    def _compute_averages(self, x: np.ndarray) -> ExampleAverages:
        if isinstance(self.teacher, LabelTeacher):
            return average_labelled_examples(self.loss, self.teacher, x)
        return average_over_residuals(self.loss, x)

    def _compute_hats(self, x: np.ndarray, alpha: np.ndarray) -> HatVariables:
        (A, B, C), V = self._compute_averages(x).values, np.exp(x[-1])
        return HatVariables(alpha * A / V, alpha * B / V**2, alpha * C / V)

    def has_zero_weights(self, alpha: np.ndarray, l1: np.ndarray) -> np.ndarray:
        """Return True where the l1 norm exceeds the fields of all weights at w = 0, which is then the saddle point."""
        q, m = alpha * self.initial_loss_slope**2, alpha * self.initial_loss_slope * self.label_field_correlation
        if not isinstance(self.teacher, LabelTeacher):
            (A, B, _), _ = average_over_residuals(
                self.loss, np.array([[0.5 * np.log1p(self.noise**2)], [-RIGID_MINUS_LOG_V]])
            )
            q, m = alpha * B * np.exp(2 * RIGID_MINUS_LOG_V), alpha * A * np.exp(RIGID_MINUS_LOG_V)
        return self.weight_equations.has_zero_weights(q, m, l1)

    @property
    def label_field_correlation(self) -> float:
        """Correlation between label and teacher's field in the saddle-point equations, 1 for a linear teacher."""
        teacher = self.teacher
        return (
            2 * float(teacher.mean_probability_slope(np.zeros(1), np.ones(1))[0])
            if isinstance(teacher, LabelTeacher)
            else 1.0
        )

    @property
    def noise(self) -> float:
        return self.teacher.noise if isinstance(self.teacher, LinearTeacher) else 0.0

    @property
    def initial_loss_slope(self) -> float:
        """Absolute slope of the loss before training, or 1 if this slope vanishes."""
        x = 0.0 if isinstance(self.teacher, LabelTeacher) else np.sqrt(1 + self.noise**2)
        return float(np.abs(self.loss.slope(np.array([x])))[0]) or 1.0

    def compute_hebb_start(self, alpha: np.ndarray, log_lam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the saddle point for Hebb's rule, with a ln lambda large enough for this approximation.

        The returned ln lambda is at least `log_lam`.
        """
        slope, bend = self.initial_loss_slope, float(self.loss.curvature(np.zeros(1))[0])
        scale = slope * np.sqrt(alpha * (1 + alpha)) + slope + bend * alpha
        log_lam = np.maximum(
            log_lam, np.log(3 * scale + 3 * (1 + alpha)) + np.log(self.weight_equations.max_variance_penalty_ratio)
        )
        if isinstance(self.teacher, LabelTeacher):
            return self.weight_equations.compute_hebb_label_unknowns(
                slope, self.label_field_correlation, alpha, log_lam
            ), log_lam
        return self.weight_equations.compute_hebb_output_unknowns(slope, self.noise, alpha, log_lam), log_lam


def _linearise_hats(averages: ExampleAverages, log_V: np.ndarray, alpha: np.ndarray) -> HatsWithSlopes:
    """Compute the conjugate order parameters of the saddle point and their derivatives from averages over examples."""
    (A, B, C), (A_x, B_x, C_x) = averages
    last = np.eye(len(A_x))[-1][:, None]
    ratio = alpha * np.exp(-log_V)
    logs = np.log(ratio * B) - log_V, np.log(ratio * C)
    return HatsWithSlopes(ratio * A, *logs, ratio * (A_x - A * last), B_x / B - 2 * last, C_x / C - last)


def solve_saddle_point(
    equations: PenaltyEquations, alpha: np.ndarray, lam: np.ndarray, l1_fraction: float
) -> SaddlePointSolution:
    """Solve the saddle-point equations at each alpha and lambda > 0 (batch,), NaN where this fails."""
    target = PenaltyPoint(np.log(lam), np.full_like(lam, l1_fraction))
    if l1_fraction == 0:
        return _follow_via_l2(equations, alpha, target, target.log_lam)
    solution = _follow_via_l2(
        equations, alpha, target, np.minimum(target.log_lam, estimate_moderate_l1_log_lambda(equations, alpha))
    )
    unsolved = np.flatnonzero(np.isnan(solution.residual))  # the smaller lambda may recover the teacher exactly
    if len(unsolved):
        again = _follow_via_l2(
            equations, alpha[unsolved], PenaltyPoint(*(part[unsolved] for part in target)), target.log_lam[unsolved]
        )
        for values, part in zip(solution, again, strict=True):
            values[..., unsolved] = part
    return solution


def _follow_via_l2(
    equations: PenaltyEquations, alpha: np.ndarray, target: PenaltyPoint, switch_log_lam: np.ndarray
) -> SaddlePointSolution:
    """Continue a saddle point with an l2 norm to ln lambda = `switch_log_lam`, switch on the l1 norm, and continue."""
    x, log_lam = equations.compute_hebb_start(alpha, switch_log_lam)
    corners = [
        PenaltyPoint(log_lam, 0 * switch_log_lam),
        PenaltyPoint(switch_log_lam, 0 * switch_log_lam),
        PenaltyPoint(switch_log_lam, target.l1_fraction),
        target,
    ]
    solution = run_newton(equations, x, alpha, corners[0])
    for begin, end in pairwise(corners):
        solution = follow_solution(equations, alpha, solution, begin, end)
    return solution


def estimate_moderate_l1_log_lambda(equations: PenaltyEquations, alpha: np.ndarray) -> np.ndarray:
    """Estimate the ln lambda of an l1 penalty that leaves a good part of the weights nonzero.

    The field on a weight has a width of about sqrt(alpha) l'.
    """
    return np.log(0.5 * equations.initial_loss_slope * np.sqrt(alpha))


def follow_solution(
    equations: PenaltyEquations,
    alpha: np.ndarray,
    solution: SaddlePointSolution,
    begin: PenaltyPoint,
    end: PenaltyPoint,
    residual_tol: float = NEWTON_RESIDUAL_TOL,
) -> SaddlePointSolution:
    """Continue a saddle point along a straight path in the penalty, with an adaptive step.

    Parameters
    ----------
    equations
        The equations.
    alpha
        Examples per weight (batch,).
    solution
        The solution at `begin`.
    begin, end
        The penalty at both ends of the path.
    residual_tol
        Newton's method takes its last step at this residual.
    """
    x, residual, tangent = (np.array(part) for part in solution)
    distance = np.abs(end.log_lam - begin.log_lam)
    progress = np.zeros(len(alpha))
    step = np.minimum(1.0, FIRST_LOG_LAMBDA_STEP / np.maximum(distance, FIRST_LOG_LAMBDA_STEP))
    progress[(distance == 0) & (end.l1_fraction == begin.l1_fraction)] = 1.0
    failed = ~(residual <= max(SOLUTION_RESIDUAL_TOL, residual_tol))
    while len(active := np.flatnonzero((progress < 1) & ~failed)):
        ahead = np.minimum(1.0, progress[active] + step[active])
        point = PenaltyPoint(*(b[active] + (e[active] - b[active]) * ahead for b, e in zip(begin, end, strict=True)))
        point = PenaltyPoint(*(np.where(ahead == 1, e[active], p) for p, e in zip(point, end, strict=True)))
        log_lam_change = (end.log_lam - begin.log_lam)[active] * (ahead - progress[active])
        new = run_newton(
            equations,
            x[:, active]
            + np.clip(tangent[:, active] * log_lam_change, -2 * FIRST_LOG_LAMBDA_STEP, 2 * FIRST_LOG_LAMBDA_STEP),
            alpha[active],
            point,
            residual_tol,
        )
        succeeded = new.residual <= max(SOLUTION_RESIDUAL_TOL, residual_tol)
        advanced = active[succeeded]
        x[:, advanced], residual[advanced], tangent[:, advanced] = (
            new.x[:, succeeded],
            new.residual[succeeded],
            new.tangent[:, succeeded],
        )
        progress[advanced] = ahead[succeeded]
        step[active] *= np.where(succeeded, 2.0, 0.25)
        failed[active] = step[active] < MIN_PATH_STEP_FRACTION
    nan_if_failed = np.where(failed, np.nan, 0.0)
    return SaddlePointSolution(x + nan_if_failed, residual + nan_if_failed, tangent + nan_if_failed)


def run_newton(
    equations: PenaltyEquations,
    x: np.ndarray,
    alpha: np.ndarray,
    point: PenaltyPoint,
    residual_tol: float = NEWTON_RESIDUAL_TOL,
) -> SaddlePointSolution:
    """Run Newton's method on saddle-point equations, and return the best iterate of each batch element.

    Elements stop once their residual is below `residual_tol`.

    Parameters
    ----------
    equations
        The equations.
    x
        Initial unknowns (k, batch).
    alpha, point
        Examples per weight (batch,), and the penalty.
    residual_tol
        The last step is taken at this residual.
    """
    best = SaddlePointSolution(np.array(x), np.full(len(alpha), np.inf), np.full_like(x, np.nan))
    x, active = np.array(x), np.arange(len(alpha))
    for _ in range(MAX_NEWTON_SWEEPS):
        linear = equations.linearise(x[:, active], alpha[active], PenaltyPoint(*(part[active] for part in point)))
        step, tangent = _solve_cramer(linear.J, -np.array([linear.F, linear.f]))
        residual = np.max(np.abs(linear.F), axis=0)
        better = residual < best.residual[active]
        improved = active[better]
        last = x[:, active] + np.where(residual <= residual_tol, step, 0.0)  # polishes to rounding at no cost
        for values, part in zip(best, (last, residual, tangent), strict=True):
            values[..., improved] = part[..., better]
        unfinished = (residual > residual_tol) & np.all(np.isfinite(step), axis=0)
        x[:, active] += np.clip(np.where(unfinished, step, 0.0), -MAX_NEWTON_LOG_STEP, MAX_NEWTON_LOG_STEP)
        active = active[unfinished]
        if not len(active):
            break
    return best


def _solve_cramer(J: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve the linear systems J (k, k, batch) of Newton steps to saddle points by Cramer's rule.

    The solutions (r, k, batch) are NaN or infinite where J is singular.
    """
    column = np.eye(len(J), dtype=bool)[:, None, :, None]
    replaced = np.where(column, right[:, None, :, None], J)  # axes (right side, replaced column, k, k, batch)
    with np.errstate(all="ignore"):
        return determinant(np.moveaxis(replaced, (2, 3), (0, 1))) / determinant(J)


def determinant(J: np.ndarray) -> np.ndarray:
    """Compute the determinants (...) of the small Jacobians (k, k, ...) of saddle-point equations."""
    if len(J) == 2:
        return J[0, 0] * J[1, 1] - J[0, 1] * J[1, 0]
    if len(J) > 3:
        minors = ((-1) ** k * J[0, k] * determinant(np.delete(J[1:], k, axis=1)) for k in range(len(J)))
        return np.sum([*minors], axis=0)
    (a, b, c), (d, e, f) = J[1:]
    return J[0, 0] * (b * f - c * e) + J[0, 1] * (c * d - a * f) + J[0, 2] * (a * e - b * d)
