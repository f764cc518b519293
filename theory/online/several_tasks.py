r"""Order-parameter equations of a perceptron that learns several tasks online, for N -> infinity.

Let :math:`T_{sa}` be the cosines between the tasks' teachers, and :math:`R_s` the cosines between student and teachers.
An example of task a moves the student towards teacher a. `theory.online.order_parameter_equations` at the angle to this
teacher has the averages :math:`\langle fu\rangle_a`, :math:`D_a` and :math:`\langle f^2\rangle_a`. With probabilities
:math:`p_a(t)` of tasks (`statmech.parameters.task_protocols`) and b examples per step,

.. math::
    \frac{d\log l}{dt} &= \sum_a p_a\left[\frac{\langle fu\rangle_a}{l} + \frac{\langle f^2\rangle_a}{2bl^2}\right]
        - \nu, \\
    \dot R_s &= \sum_a p_a\left[(T_{sa} - R_sR_a)\,\frac{D_a}{l} - R_s\frac{\langle f^2\rangle_a}{2bl^2}\right] .

We integrate :math:`y_s = 1 - R_s`, which keeps its digits as a task is learnt: with :math:`d_{sa} = 1 - T_{sa}`, which
is exactly 0 for s = a, :math:`T_{sa} - R_sR_a = y_s + y_a - y_sy_a - d_{sa}`. For one task these are the equations of
`theory.online.order_parameter_equations`. A step that averages b examples is equivalent to b steps with one example at
the rates :math:`\eta/b` and :math:`\nu/b`: only :math:`\eta^2` becomes :math:`\eta^2/b`.

A truth that gives no labels is a further teacher s with :math:`p_s = 0` and the same cosine :math:`R_B` with every
teacher: teachers that learnt it, or an ensemble of teachers. With the mean teacher, and teachers of overlap q, the
student's cosine with the truth is
:math:`\cos(\mathbf J, \langle\mathbf B\rangle)\,R_B/\sqrt{q + (1-q)/K}`.

The probabilities jump where a piece of the protocol begins, and functions of time jump at their edges, so the pieces
are integrated separately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.kinds.online_tasks import OnlineTaskCell
from statmech.numerics.gaussian import Array
from statmech.parameters.parameter_fields import RealParameterFamily, get_real_parameter_family
from statmech.parameters.schedules_and_controls import TimeDependence
from statmech.runtime.compiled_programs import fast_compiled_program
from statmech.runtime.jax_and_blas_settings import use_cpu_double_precision
from statmech.runtime.operating_system import record_jax_use
from statmech.students.rules import Rule, RuleAverages
from statmech.students.student_geometry import angle_from_versine
from theory.numerics.batch_integration import (
    check_integration_complete,
    integrate,
    integrate_in_pieces,
    pad_with_last_member,
    solve_in_batches,
)
from theory.online.order_parameter_equations import compute_rule_averages
from theory.online.student_states import ATOL, LOG_LENGTH_CLIP, VERSINE_ATOL, check_length_overflow

RTOL = 1e-12
MAX_STEPS = 2_000_000
MAX_TASK_CELLS_PER_BATCH = 128  # other rules are solved one by one


class TaskStudent(NamedTuple):
    """State of the student: log l (...,), and y = 1 - R with the teacher of each task (..., tasks)."""

    log_length: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class TaskStudentSolverOptions:
    """Static arguments of the compiled solver.

    `use_closed_forms` selects closed forms instead of quadrature. `has_changing_learning_rate` is True if the learning
    rate changes within a piece.
    """

    rules: tuple[RealParameterFamily, ...]
    use_closed_forms: bool
    has_changing_learning_rate: bool


class TaskStudentSetting(NamedTuple):
    """Run-time arguments of the solver, with the batch as the last axis.

    `rule_index` is the index of the rule, `teacher_versines` the distances d (tasks, tasks, L) between the teachers,
    and `examples_per_step` the number of examples per step.
    """

    rule_index: Array
    parameters: dict[str, Array]
    flip: Array
    changes: TimeDependence
    teacher_versines: Array
    examples_per_step: Array


def compute_task_rates(
    task_averages: RuleAverages, length: Array, y: Array, setting: TaskStudentSetting, task_probabilities: Array
) -> tuple[Array, Array]:
    """Return the time derivatives of log l, and of y (tasks,) with the teacher of each task.

    Parameters
    ----------
    task_averages
        Averages over examples of each task, arrays (tasks,), including the learning rate.
    length, y
        The student's length, and 1 - R with the teacher of each task (tasks,).
    setting
        The setting of one batch element.
    task_probabilities
        Probabilities of the tasks (tasks,).
    """
    half_diffusion = task_averages.ff / length**2 / setting.examples_per_step / 2
    growth = task_probabilities @ (task_averages.fu / length + half_diffusion) - setting.changes.decay
    # T_sa - R_s R_a for each teacher s and active teacher a
    towards = y[:, None] + (1 - y[:, None]) * y - setting.teacher_versines
    return growth, (1 - y) * (task_probabilities @ half_diffusion) - towards @ (
        task_probabilities * task_averages.response / length
    )


def _compute_row_rates(
    equations: TaskStudentSolverOptions, rows: Array, setting: TaskStudentSetting, task_probabilities: Array
) -> Array:
    """Return the time derivative of the rows of one batch element: log l, y of all tasks, and the time."""
    log_length, y, t = rows[0], jnp.clip(rows[1:-1], 0.0, 2.0), rows[-1]
    theta, length = angle_from_versine(y), jnp.exp(jnp.clip(log_length, -LOG_LENGTH_CLIP, LOG_LENGTH_CLIP))

    def make_rule_rates(family: RealParameterFamily) -> Callable[[], tuple[Array, Array]]:
        parameters = {name: setting.parameters[name] for name in family.real_parameter_names}
        if equations.has_changing_learning_rate:
            parameters["eta"] = setting.changes.schedule.rate(parameters["eta"], t)
        rule: Rule = family(**parameters)

        def rates() -> tuple[Array, Array]:
            task_averages = compute_rule_averages(rule, equations.use_closed_forms, theta, length, setting.flip)
            return compute_task_rates(
                RuleAverages(*(part + 0.0 * theta for part in task_averages)), length, y, setting, task_probabilities
            )

        return rates

    growth, y_rate = jax.lax.switch(setting.rule_index, [make_rule_rates(family) for family in equations.rules])
    return jnp.concatenate([growth[None], y_rate, jnp.ones(1)])


@fast_compiled_program
def solve_piece(
    equations: TaskStudentSolverOptions,
    setting: TaskStudentSetting,
    task_probabilities: Array,
    start: Array,
    times: Array,
    max_steps: Array,
) -> tuple[Array, Array]:
    """Integrate the state rows (T, C, L) of students over a piece with constant task probabilities.

    Also returns True for the elements that have reached the last time.

    Parameters
    ----------
    equations, setting
        Static and run-time arguments.
    task_probabilities
        Probabilities of the tasks (tasks, L).
    start, times, max_steps
        Arguments of `theory.numerics.batch_integration.integrate`, from the beginning of the piece.
    """
    batch_rates = jax.vmap(lambda *arguments: _compute_row_rates(equations, *arguments), in_axes=-1, out_axes=-1)
    atol = jnp.asarray([ATOL, *[VERSINE_ATOL] * len(task_probabilities), ATOL])[:, None]
    return integrate(lambda rows: batch_rates(rows, setting, task_probabilities), start, times, RTOL, atol, max_steps)


def solve_cells(cells: Sequence[OnlineTaskCell], times: Iterable[float]) -> list[TaskStudent]:
    """Solve for the student of each cell, and for its overlaps with the teachers of all tasks, at each time.

    Arrays have a leading axis of times. Raises `SolverError` if the integration stops early, and `DivergedStudentError`
    if a length leaves the floating-point range. Cells whose pieces begin together are integrated in parallel. Cells
    that differ only in N share a solution.
    """
    record_jax_use()
    t = np.asarray(list(times), float)

    def program(cell: OnlineTaskCell) -> tuple[Any, ...]:
        closed, scheduled = cell.rule.has_closed_form, None if cell.schedule is None else cell.annealing
        return (
            closed,
            None if closed else get_real_parameter_family(cell.rule),
            scheduled,
            len(cell.teacher_overlaps),
            cell.control_segment_layout,
        )

    return solve_in_batches(
        cells,
        _make_solution_key,
        program,
        lambda program: MAX_TASK_CELLS_PER_BATCH if program[0] else 1,
        lambda _, batch: _solve_with_one_program(batch, t),
    )


def _make_solution_key(cell: OnlineTaskCell) -> tuple[Any, ...]:
    """Return a key of everything that determines a cell's equations and initial state."""
    rule = (cell.name, *cell.rule_parameters.values(), cell.flip, *cell.nondefault_time_dependence.items())
    return (
        *rule,
        id(cell.start),
        cell.overlap,
        cell.truth_cosine,
        cell.batch,
        cell.protocol,
        cell.switch,
        *cell.controls,
    )


def _solve_with_one_program(cells: Sequence[OnlineTaskCell], times: np.ndarray) -> list[TaskStudent]:
    """Solve students that learn a sequence of tasks with one compiled program, padded to a common batch size."""
    rules = tuple(dict.fromkeys(get_real_parameter_family(cell.rule) for cell in cells))
    padded_cells = pad_with_last_member(cells)
    start = np.stack([make_initial_state_rows(cell) for cell in padded_cells], axis=-1)

    def solve(begin: float, rows: Array, recorded: Array) -> tuple[Array, Array]:
        current_cells = [cell.after(begin) for cell in padded_cells]
        probabilities = np.stack([cell.teacher_pieces.at(np.float64(begin)) for cell in padded_cells], axis=-1)
        # eta is then a polynomial in the time since the start of the piece
        controlled = "eta" in current_cells[0].known_controls
        if controlled:
            rows = np.append(rows[:-1], np.zeros_like(rows[-1:]), axis=0)
        equations = TaskStudentSolverOptions(
            rules, current_cells[0].rule.has_closed_form, controlled or current_cells[0].schedule is not None
        )
        return solve_piece(
            equations, make_task_setting(current_cells, rules), probabilities, rows, recorded, np.int64(MAX_STEPS)
        )

    with use_cpu_double_precision():
        rows, completed = integrate_in_pieces(solve, cells[0].edges, start, times)
    solutions = [rows[..., index] for index in range(len(cells))]
    check_integration_complete(cells, solutions, completed, times[-1])
    for cell, solution in zip(cells, solutions, strict=True):
        check_length_overflow(solution[:, 0], cell.message_description)
    return [TaskStudent(solution[:, 0], solution[:, 1:-1]) for solution in solutions]


def make_initial_state_rows(cell: OnlineTaskCell) -> np.ndarray:
    """Return the state rows (C,) of a cell at t = 0."""
    length, R = cell.start_length_and_R
    return np.concatenate([[np.log(length)], 1 - R, [0.0]])


def make_task_setting(cells: Sequence[OnlineTaskCell], rules: tuple[RealParameterFamily, ...]) -> TaskStudentSetting:
    """Return the run-time arguments of students that learn a sequence of tasks, with rules among `rules`.

    A parameter that a cell's rule does not have is set to 1.
    """
    names = sorted({name for family in rules for name in family.real_parameter_names})
    return TaskStudentSetting(
        np.array([rules.index(get_real_parameter_family(cell.rule)) for cell in cells]),
        {name: np.array([getattr(cell.rule, name, 1.0) for cell in cells], float) for name in names},
        np.array([cell.flip for cell in cells], float),
        jax.tree.map(lambda *values: np.asarray(values), *(cell.time_dependence for cell in cells)),
        np.stack([1 - cell.teacher_overlaps for cell in cells], axis=-1),
        np.array([cell.batch for cell in cells], float),
    )
