r"""Replica-symmetric equations of a learner whose labels have two sources, and of chains of such learners.

A fraction r of the P = alpha N examples has true labels, and the others have the labels of an earlier student. The two
sources have teachers of cosine G with each other, :math:`G_{kk} = 1`. Let :math:`A_k, B_k, C_k` be the averages of
`theory.convex.example_averages` over the examples of source k, at the student's angle :math:`\theta_k` to its teacher,
and :math:`r_k` the fractions of the sources. An l2 penalty and isotropic inputs give

.. math:: l\cos\theta_k = \sum_jG_{kj}\,\alpha r_jC_j, \qquad
          l^2 = \alpha^2\sum_{jk}r_jr_kG_{jk}C_jC_k + \alpha\sum_kr_kB_k, \qquad
          \lambda V + \alpha\sum_kr_kA_k = 1,

because the student is :math:`\sum_k\alpha r_kC_k` times each teacher, plus a part in no special direction. For equal
teachers these are the equations of `theory.convex.saddle_point`. They are solved in the same way, by continuation in
lambda, for the logarithms of :math:`\tan\theta_1, \tan\theta_2, l` and V.

**Chains.** A student g labels by :math:`\mathrm{sgn}\,h_g`, without noise, and student g + 1 learns these labels of
fresh inputs. For r = 0 its direction within the space perpendicular to student g is random, so that cosines multiply:
:math:`R_{g+1} = \rho R_g`. For r > 0 the cosine converges to a fixed point.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from statmech.convex.losses import Loss, Penalty, find_minimiser_interval
from statmech.convex.teachers import LabelTeacher, SignTeacher, label_error
from statmech.convex.weight_distributions import Gauss
from theory.convex.empirical_risk import ZERO_LIMIT_START_LAMBDA, solve_loss_minimum
from theory.convex.example_averages import (
    average_label_training_loss,
    average_labelled_examples,
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
from theory.convex.weight_averages import IsotropicWeightEquations, LinearisedEquations

STUDENT_AS_TEACHER = SignTeacher()  # students label without noise
FIXED_POINT_TOL = 1e-12  # difference of R between two generations
MAX_FIXED_POINT_STEPS = 200


class GenerationState(NamedTuple):
    """Order parameters and errors of students in one generation or several, NaN without a minimum."""

    R: np.ndarray
    length: np.ndarray
    V: np.ndarray
    residual: np.ndarray
    train_loss: np.ndarray
    eps_t: np.ndarray
    eps_g: np.ndarray
    eps_y: np.ndarray


@dataclass(frozen=True)
class LabelMixtureEquations:
    """Saddle-point equations of a learner with two sources of labels.

    Parameters
    ----------
    loss
        Loss of stabilities.
    teachers
        Both teachers, which give the labels.
    fractions
        Fraction of the examples with labels of each teacher.
    cosine
        Cosine of the teachers.
    """

    loss: Loss
    teachers: tuple[LabelTeacher, LabelTeacher]
    fractions: tuple[float, float]
    cosine: float

    @property
    def teacher_cosines(self) -> np.ndarray:
        """Cosines (2, 2) of the teachers."""
        return np.array([[1.0, self.cosine], [self.cosine, 1.0]])

    @property
    def single_source_equations(self) -> list[ConvexEquations]:
        """Equations of a learner from each teacher alone."""
        return [ConvexEquations(self.loss, teacher, IsotropicWeightEquations()) for teacher in self.teachers]

    @property
    def initial_loss_slope(self) -> float:
        return self.single_source_equations[0].initial_loss_slope

    def linearise(self, x: np.ndarray, alpha: np.ndarray, point: PenaltyPoint) -> LinearisedEquations:
        """Compute the residuals of the equations and their derivatives at ln tan (2), ln l and ln V (4, batch)."""
        with np.errstate(all="ignore"):  # steps that give NaN are rejected later
            counts = np.multiply.outer(self.fractions, alpha)  # examples per weight of each source (2, batch)
            parts = [
                average_labelled_examples(self.loss, teacher, np.array([log_tan, *x[2:]]))
                for teacher, log_tan in zip(self.teachers, x[:2], strict=True)
            ]
            A, B, C = counts * np.stack([part.values for part in parts], axis=1)
            slopes = np.zeros((3, 2, 4, x.shape[1]))  # derivatives of A, B, C for each source and unknown
            for source, part in enumerate(parts):
                slopes[:, source, [source, 2, 3]] = counts[source] * part.slopes
            tan, G = np.exp(x[:2]), self.teacher_cosines
            overlaps, overlap_slopes = G @ C, np.einsum("jk,kub->jub", G, slopes[2])
            square = np.sum(C * overlaps + B, axis=0)
            square_slopes = np.sum(2 * overlaps[:, None] * slopes[2] + slopes[1], axis=0)
            restoring, response = np.exp(point.log_lam + x[3]), A.sum(axis=0)
            F = np.array(
                [
                    *(np.log(overlaps * np.hypot(1, tan)) - x[2]),
                    0.5 * np.log(square) - x[2],
                    np.log(restoring + response),
                ]
            )
            J = np.array(
                [*(overlap_slopes / overlaps[:, None]), 0.5 * square_slopes / square, slopes[0].sum(axis=0)],
            )
            J[[0, 1], [0, 1]] += tan**2 / (1 + tan**2)
            J[:3, 2] -= 1
            J[3, 3] += restoring
            J[3] /= restoring + response
            f = np.array([*np.zeros((3, x.shape[1])), restoring / (restoring + response)])
        return LinearisedEquations(F, J, f)

    def compute_hebb_start(self, alpha: np.ndarray, log_lam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the solution for Hebb's rule, with a ln lambda large enough for this approximation."""
        single = self.single_source_equations
        log_lam = single[0].compute_hebb_start(alpha, log_lam)[1]
        signal_strengths = np.multiply(self.fractions, [part.label_field_correlation for part in single])
        signals = np.multiply.outer(signal_strengths, alpha)
        overlaps = self.teacher_cosines @ signals
        square = np.sum(signals * overlaps, axis=0) + alpha
        log_tan = 0.5 * np.log(square / overlaps**2 - 1)
        log_length = np.log(single[0].initial_loss_slope) - log_lam + 0.5 * np.log(square)
        return np.array([*log_tan, log_length, -log_lam]), log_lam


def solve_label_mixture(
    equations: LabelMixtureEquations, alpha: float, lam: float, start: np.ndarray | None = None
) -> tuple[GenerationState, np.ndarray]:
    """Compute the minimum of a loss with two sources of labels, and its unknowns (4, 1).

    Parameters
    ----------
    equations
        The equations.
    alpha, lam
        Examples per weight of both sources, and the strength of the penalty, 0 for the limit of a vanishing one.
    start
        Unknowns near the solution, if known.
    """
    alphas, ones = np.array([alpha]), np.ones(1)
    no_l1 = 0 * ones
    if lam > 0:
        point = PenaltyPoint(np.log(lam * ones), no_l1)
        solution = None if start is None else run_newton(equations, start, alphas, point)
        if solution is None or not solution.residual[0] <= SOLUTION_RESIDUAL_TOL:
            solution = solve_saddle_point(equations, alphas, lam * ones, 0.0)
        return _describe_minimum(equations, solution, equations.loss), solution.x
    nearby = solve_saddle_point(equations, alphas, ZERO_LIMIT_START_LAMBDA * ones, 0.0).x
    solution = run_newton(equations, nearby, alphas, PenaltyPoint(ones - np.inf, no_l1))
    interval = find_minimiser_interval(equations.loss)
    if solution.residual[0] <= SOLUTION_RESIDUAL_TOL or interval is None:
        return _describe_minimum(equations, solution, equations.loss), solution.x
    nearby[-1] += np.log(ZERO_LIMIT_START_LAMBDA)
    limit = replace(equations, loss=interval)  # all examples reach the minimum of the loss, and V diverges
    solution = run_newton(limit, nearby, alphas, PenaltyPoint(no_l1, no_l1))
    state = _describe_minimum(limit, solution, equations.loss)
    return state._replace(V=state.V + np.inf), solution.x


def _describe_minimum(
    equations: LabelMixtureEquations, solution: SaddlePointSolution, reported_loss: Loss
) -> GenerationState:
    """Describe the student of two sources of labels, relative to the first teacher."""
    with np.errstate(all="ignore"):
        x = solution.x + np.where(solution.residual <= SOLUTION_RESIDUAL_TOL, 0.0, np.nan)
        training = [
            average_label_training_loss(equations.loss, teacher, np.array([log_tan, *x[2:]]), reported_loss)
            for teacher, log_tan in zip(equations.teachers, x[:2], strict=True)
        ]
        train_loss, eps_t = np.einsum("k,kvb->vb", equations.fractions, np.array(training))
        return GenerationState(
            1 / np.hypot(1, np.exp(x[0])),
            np.exp(x[2]),
            np.exp(x[3]),
            solution.residual,
            train_loss,
            eps_t,
            np.arctan(np.exp(x[0])) / np.pi,
            compute_fresh_label_error(equations.teachers[0], x[0]),
        )


@dataclass(frozen=True)
class GenerationChain:
    """A chain of learners that label the examples of their successors.

    Parameters
    ----------
    loss, teacher
        The loss of stabilities, and the teacher of true labels.
    real
        Fraction of true labels after generation 0.
    alpha, lam
        Examples per weight of each generation, and the strength of the l2 penalty.
    """

    loss: Loss
    teacher: LabelTeacher
    real: float
    alpha: float
    lam: float

    def solve_generations(self, last: int) -> GenerationState:
        """Compute the students of generations 0 to `last`, as arrays (last + 1,)."""
        states, x = [self._solve_single_source(self.teacher)], None
        for _ in range(last):
            state, x = self._solve_successor(states[-1], x)
            states.append(state)
        return GenerationState(*map(np.concatenate, zip(*states, strict=True)))

    def solve_fixed_point(self) -> float:
        """Compute R in the limit of many generations, by iteration with Aitken's extrapolation."""
        first = self._solve_single_source(self.teacher)
        if self.real in (0.0, 1.0):
            return float(first.R[0]) * self.real
        x = None
        for _ in range(MAX_FIXED_POINT_STEPS):
            second, x = self._solve_successor(first, x)
            third, x = self._solve_successor(second, x)
            step, change = third.R - second.R, third.R - 2 * second.R + first.R
            if not np.abs(step[0]) > FIXED_POINT_TOL:
                return float(third.R[0])
            extrapolated = third.R - step**2 / np.where(change == 0, np.inf, change)
            first = third._replace(R=np.where((extrapolated > 0) & (extrapolated < 1), extrapolated, third.R))
        return np.nan

    def _solve_successor(
        self, predecessor: GenerationState, x: np.ndarray | None
    ) -> tuple[GenerationState, np.ndarray | None]:
        """Compute the students of a generation from their predecessors, and their unknowns for the next search."""
        if self.real == 1:
            return self._solve_single_source(self.teacher), None
        if self.real == 0:
            state = self._solve_single_source(STUDENT_AS_TEACHER)
            R = state.R * predecessor.R
            return state._replace(R=R, eps_g=np.arccos(R) / np.pi, eps_y=label_error(self.teacher, R)), None
        if not np.isfinite(predecessor.R[0]):
            return predecessor, None
        teachers, fractions = (self.teacher, STUDENT_AS_TEACHER), (self.real, 1 - self.real)
        equations = LabelMixtureEquations(self.loss, teachers, fractions, float(predecessor.R[0]))
        return solve_label_mixture(equations, self.alpha, self.lam, x)

    def _solve_single_source(self, teacher: LabelTeacher) -> GenerationState:
        """Compute the student of one teacher."""
        arrays = np.array([self.alpha]), np.array([self.lam])
        state = solve_loss_minimum(self.loss, teacher, Penalty(0.0), Gauss(), *arrays)
        return GenerationState(*(getattr(state, name) for name in GenerationState._fields))
