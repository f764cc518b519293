r"""Equations of the time averages of online students' weights, for N -> infinity.

The average of a student is the direction of :math:`\mathbf A`, which gains :math:`\mathbf J/N` before each step, so
that :math:`\dot{\mathbf A} = \mathbf J`. Only its products with the teacher and with its own student are needed. With
:math:`D = \langle\partial f/\partial v\rangle` (`theory.online.order_parameter_equations`), Stein's lemma gives for the
components :math:`\mathbf A_\perp` and :math:`\mathbf J_\perp` perpendicular to the teacher
:math:`\langle f\,\mathbf A_\perp\cdot\mathbf x\rangle = (\langle fu\rangle - \cos\theta\,D)\,
\mathbf A_\perp\cdot\mathbf J_\perp/(Nl)`. In units of the student's length l,

.. math::
    a = \frac{\mathbf A\cdot\mathbf B}{Nl}, \qquad s = \frac{\mathbf A_\perp\cdot\mathbf J_\perp}{Nl^2}, \qquad
    p = \frac{|\mathbf A_\perp|^2}{Nl^2},

the equations are, with :math:`\lambda = d\log l/dt`, the drift :math:`\delta` and the decay :math:`\nu`,

.. math::
    \dot a &= \cos\theta - (\lambda + \delta)\,a, \\
    \dot s &= \sin^2\theta + \left(\frac{\langle fu\rangle - \cos\theta\,D}{l} - \nu - 2\lambda\right)s
        + 2\delta\cos\theta\,a, \\
    \dot p &= 2s - 2\lambda p + 2\delta a^2,

and the generalization error is :math:`\epsilon_g = \arctan(\sqrt p/a)/\pi`. No term is larger than the sum, and p is
integrated instead of the cosine, so the error keeps its digits for t > 1e7. The equations of the student itself are
integrated together with these.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from statmech.kinds.online_learning import OnlineCell
from statmech.parameters.schedules_and_controls import TimeDependence
from statmech.runtime.jax_and_blas_settings import use_cpu_double_precision
from statmech.runtime.operating_system import record_jax_use
from statmech.students.rules import RuleAverages
from statmech.students.student_geometry import angle_from_versine
from theory.numerics.batch_integration import split_times_into_pieces
from theory.numerics.stiff_and_linear_equations import integrate_stiff_equations
from theory.online.anisotropic_inputs import StudentFields, compute_field_averages
from theory.online.student_states import (
    Students,
    check_length_overflow,
    compute_clipped_length,
    compute_rate_terms,
    make_initial_students,
)

# absolute tolerances of log l, 1 - cos(theta), a, s, p; averages start at 0, where much smaller ones would cost steps
STATE_ATOL = np.array([1e-12, 1e-24, 1e-18, 1e-18, 1e-18])


def solve_averaged_students(cells: Iterable[OnlineCell], times: Iterable[float]) -> list[dict[str, np.ndarray]]:
    """Solve the equations of each cell for R, length and error (T, S) of the distinct students' averaged weights.

    Until the burn-in ends there is nothing to average, and the average is the student itself. Raises `SolverError` if
    the integration stops early, `DivergedStudentError` if a length leaves the floating-point range.
    """
    record_jax_use()
    with use_cpu_double_precision():
        return [_solve_cell(cell, times) for cell in cells]


def _solve_cell(cell: OnlineCell, times: Iterable[float]) -> dict[str, np.ndarray]:
    t, start = np.asarray(list(times), float), make_initial_students(cell)
    students = [_solve_student(cell, start, index, t) for index in range(start.y.size)]
    log_length, y, parallel, _, perpendicular = np.moveaxis(np.stack(students), 0, -1)
    check_length_overflow(log_length, cell.message_description)
    elapsed, theta, length = (t - cell.burn_in)[:, None], angle_from_versine(y), np.exp(log_length)
    averaged = elapsed > 0
    root = np.sqrt(np.maximum(perpendicular, 0.0))
    size = np.hypot(parallel, root)
    return {
        "R_averaged": np.where(averaged, parallel / np.where(averaged, size, 1.0), np.cos(theta)),
        "length_averaged": np.where(averaged, length * size / np.where(averaged, elapsed, 1.0), length),
        "eps_g_averaged": np.where(averaged, np.arctan2(root, parallel), theta) / np.pi,
    }


def _solve_student(cell: OnlineCell, start: Students, index: int, times: np.ndarray) -> np.ndarray:
    """Integrate one student and its average, and return the state (5, T), in pieces between jumps of the equations."""
    state = np.array([start.log_length[index], start.y[index], 0.0, 0.0, 0.0])
    edges = [edge for edge in sorted({0.0, cell.burn_in, *cell.edges}) if edge <= times[-1]]
    parts = []
    for begin, piece_times, recorded in split_times_into_pieces(edges, times):
        edge = max((edge for edge in cell.edges if edge <= begin), default=0.0)
        piece_cell = cell.after(edge) if cell.edges else cell

        changes = piece_cell.time_dependence

        def rates(
            t: float,
            values: np.ndarray,
            cell: OnlineCell = piece_cell,
            changes: TimeDependence = changes,
            shift: float = begin - edge,
        ) -> np.ndarray:
            return _compute_rates(cell, changes, t + shift, values)

        averaging = begin >= cell.burn_in
        variables = slice(STATE_ATOL.size if averaging else 2)
        rows = np.zeros((piece_times.size, STATE_ATOL.size))
        rows[:, variables] = integrate_stiff_equations(
            rates, state[variables], piece_times, STATE_ATOL[variables], cell.message_description
        )
        parts.append(rows[:recorded])
        state = rows[-1]
    return np.concatenate(parts).T


def _compute_rates(cell: OnlineCell, changes: TimeDependence, t: float, values: np.ndarray) -> np.ndarray:
    """Return the rates (n,) of a student and, if `values` contains it, of its average, at one time."""
    y, length = np.minimum(np.maximum(values[1:2], 0.0), 2.0), compute_clipped_length(values[:1])
    theta, cos, learning_probability = angle_from_versine(y), 1 - y, cell.learning_probability
    rule = replace(cell.rule, eta=changes.schedule.rate(cell.rule.eta, t)) if cell.has_time_dependence else cell.rule
    step = compute_field_averages(rule, StudentFields(theta, length, np.ones(1)), cell.flip)
    averages = RuleAverages(*(learning_probability * part for part in step))
    growth, y_rate = (sum(terms) for terms in compute_rate_terms(averages, y, length, changes))
    if values.size == 2:
        return np.concatenate([growth, y_rate])
    parallel, overlap, perpendicular = values[2:, None]
    relaxation = (averages.fu - cos * averages.response) / length - cell.decay - 2 * growth
    return np.concatenate(
        [
            growth,
            y_rate,
            cos - (growth + cell.drift) * parallel,
            y * (2 - y) + relaxation * overlap + 2 * cell.drift * cos * parallel,
            2 * overlap - 2 * growth * perpendicular + 2 * cell.drift * parallel**2,
        ]
    )
