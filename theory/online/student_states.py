"""State of students that learn online, and the terms in a student's rates of log l and y = 1 - R.

States: one student and one pair represent all students with equal starts.

Rate terms: the terms in one student's rates are derived in `theory.online.order_parameter_equations`. The arithmetic
works for any arrays, so that theories without JAX (`theory.classification.attentive_perceptron`) can use it.

Lengths: a student whose length leaves the floating-point range has diverged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from statmech.errors import DivergedStudentError
from statmech.kinds.online_learning import OnlineCell
from statmech.numerics.gaussian import Array
from statmech.parameters.schedules_and_controls import TimeDependence
from statmech.students.rules import RuleAverages

ATOL = 1e-12  # applies to log l and c
VERSINE_ATOL = 1e-60  # negligible: the relative tolerance holds for arbitrarily small 1 - R
LOG_LENGTH_CLIP = 300.0  # harmless: rules with diverging lengths have the same rates at any length
MAX_LOG_LENGTH = 700.0  # for larger |log l|, l or 1/l overflows


class RateTerms(NamedTuple):
    """Terms in one student's rates of log l and y = 1 - R: learning, noise, and decay or drift."""

    log_length_terms: tuple[Array, Array, Array]
    y_terms: tuple[Array, Array, Array]


def compute_rate_terms(averages: RuleAverages, y: Array, length: Array, changes: TimeDependence | None) -> RateTerms:
    """Compute the terms in the rates of one student's state from the averages of its rule.

    Without `changes` there is no drift and no decay.
    """
    half_diffusion = averages.ff / length**2 / 2
    drift, decay = (0.0, 0.0) if changes is None else (changes.drift, changes.decay)
    return RateTerms(
        (averages.fu / length, half_diffusion, -decay),
        (-y * (2 - y) * averages.response / length, (1 - y) * half_diffusion, (1 - y) * drift),
    )


class Students(NamedTuple):
    """State of students: log l and y = 1 - R (..., S), and transverse cosines of the integrated pairs (..., pairs)."""

    log_length: Array
    y: Array
    c: Array


def count_distinct_students(cell: OnlineCell) -> int:
    """Return the number of distinct students: 1 if all have the same initial condition, else K."""
    return 1 if cell.has_equal_starts else cell.K


def make_pair_indices(num_students: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of all pairs of distinct students.

    A single student forms a pair with a copy of itself.
    """
    return np.triu_indices(num_students, 1) if num_students > 1 else (np.array([0]), np.array([0]))


def make_initial_students(cell: OnlineCell) -> Students:
    """Return the initial state of a cell's distinct students.

    >>> from statmech import Scenario
    >>> [cell] = Scenario(rule="hebb", K=2, t=[1], start={"R": 0.6}).cells()
    >>> make_initial_students(cell)
    Students(log_length=array([0.]), y=array([0.4]), c=array([-0.5625]))
    """
    S, (length, R, q) = count_distinct_students(cell), cell.start_order_parameters
    first, second = make_pair_indices(S) if S > 1 else (np.array([0]), np.array([min(1, cell.K - 1)]))
    sin2 = (1 - R) * (1 + R)
    scale = np.sqrt(sin2[first] * sin2[second])
    perpendicular = q[first, second] - R[first] * R[second]
    # students on the teacher's axis have no transverse direction, and move together
    c = np.divide(perpendicular, scale, out=np.ones_like(perpendicular), where=scale > 0)
    c = np.where(q[first, second] == 1, 1.0, c)  # rounding errors would separate identical students
    return Students(np.log(length[:S]), 1 - R[:S], np.clip(c, -1, 1))


def compute_clipped_length(log_length: np.ndarray) -> np.ndarray:
    """Return lengths, clipped to the floating-point range."""
    # several times as fast as np.clip
    return np.exp(np.minimum(np.maximum(log_length, -LOG_LENGTH_CLIP), LOG_LENGTH_CLIP))


def check_length_overflow(log_length: np.ndarray, cell_description: str) -> None:
    """Raise `DivergedStudentError` if a length leaves the floating-point range."""
    if np.any(np.abs(log_length) > MAX_LOG_LENGTH):
        bounds = f"{np.exp(-MAX_LOG_LENGTH):.0e} to {np.exp(MAX_LOG_LENGTH):.0e}"
        raise DivergedStudentError(f"{cell_description} has diverged: a student's length left {bounds}")
