"""Trajectories of students and of their fluctuations for each parameter combination.

Parameter combinations that share a compiled program are integrated in parallel
(`theory.online.order_parameter_equations`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from statmech.errors import DivergedStudentError, SolverError
from statmech.kinds.online_student import OnlineCell
from statmech.numerics.gaussian import Array
from statmech.parameters.parameter_fields import RealParameterFamily, get_real_parameter_family
from statmech.runtime.compiled_programs import pad_array_length
from statmech.runtime.jax_and_blas_settings import use_cpu_double_precision
from statmech.runtime.operating_system import record_jax_use
from statmech.students.order_parameters import angle_from_versine
from theory.numerics.runge_kutta import pad_times, split_times_into_pieces
from theory.online import student_fluctuations
from theory.online.order_parameter_equations import StudentBatch, StudentSolverOptions, solve_batch
from theory.online.student_fluctuations import StudentFluctuations
from theory.online.student_states import Students, make_initial_students

MAX_LOG_LENGTH = 700.0  # for larger |log l|, l or 1/l overflows
MAX_STEPS = 2_000_000
MAX_ONLINE_CELLS_PER_BATCH = 128  # other rules are solved one by one


InitialState = tuple[Students, StudentFluctuations | None]


class CellInitialValueProblem(NamedTuple):
    """A cell with its initial state, and the index of its rule in the compiled program."""

    cell: OnlineCell
    rule_index: int
    start: Students
    fluctuations: StudentFluctuations | None = None


def solve_cells(cells: list[OnlineCell], times: Iterable[float]) -> list[Students]:
    """Solve the equations of each cell for its students at each time.

    Arrays have a leading axis of times. Raises `SolverError` if the integration stops early, and `DivergedStudentError`
    if a length leaves the floating-point range.
    """
    return [students for students, _ in _solve_in_pieces(cells, times, with_fluctuations=False)]


def solve_with_fluctuations(
    cells: list[OnlineCell], times: Iterable[float]
) -> list[tuple[Students, StudentFluctuations]]:
    """Solve the equations of each cell for its students, with fluctuations of order 1/N.

    Raises errors like `solve_cells`.
    """
    return _solve_in_pieces(cells, times, with_fluctuations=True)


def _solve_in_pieces(
    cells: list[OnlineCell], times: Iterable[float], with_fluctuations: bool
) -> list[tuple[Students, StudentFluctuations]]:
    """Solve cells piece by piece, between the edges of their functions of time."""
    t, edges = np.asarray(list(times), float), [cell.edges for cell in cells]
    starts, solutions = (
        _make_initial_states(cells, with_fluctuations),
        dict[int, tuple[Students, StudentFluctuations]](),
    )
    if not any(edges):
        return _solve_by_program(cells, t, starts, with_fluctuations)
    for common_edges in dict.fromkeys(edges):
        members = [index for index, cell_edges in enumerate(edges) if cell_edges == common_edges]
        group, state = [cells[index] for index in members], [starts[index] for index in members]
        parts = []
        for begin, piece_times, recorded in split_times_into_pieces(common_edges or (0.0,), t):
            piece_solutions = _solve_by_program(
                [cell.after(begin) if common_edges else cell for cell in group], piece_times, state, with_fluctuations
            )
            state = [_select_times(solution, -1) for solution in piece_solutions]
            parts.append([_select_times(solution, slice(recorded)) for solution in piece_solutions])
        solutions |= {
            index: _join_pieces(cell_parts) for index, cell_parts in zip(members, zip(*parts, strict=True), strict=True)
        }
    return [solutions[index] for index in range(len(cells))]


def _select_times(
    solution: tuple[Students, StudentFluctuations], selection: Any
) -> tuple[Students, StudentFluctuations]:
    """Select times of a solution, by an index or a slice."""
    selected: tuple[Students, StudentFluctuations] = jax.tree.map(lambda rows: rows[selection], solution)
    return selected


def _join_pieces(parts: Sequence[tuple[Students, StudentFluctuations]]) -> tuple[Students, StudentFluctuations]:
    """Join the solutions of successive pieces."""
    joined: tuple[Students, StudentFluctuations] = jax.tree.map(lambda *rows: np.concatenate(rows), *parts)
    return joined


def _solve_by_program(
    cells: list[OnlineCell], t: np.ndarray, starts: list[InitialState], with_fluctuations: bool
) -> list[tuple[Students, StudentFluctuations]]:
    """Solve cells in parallel, grouped by the compiled program that they share.

    Fluctuations are empty unless `with_fluctuations`. Cells with the same number of distinct students are integrated in
    parallel. All rules with closed forms share one batch, since tracing the solver takes longer than solving. Cells of
    other rules are solved one by one.
    """
    families = [get_real_parameter_family(cell.rule) for cell in cells]
    groups: dict[Any, list[int]] = {}
    for index, (cell, (start, _), family) in enumerate(zip(cells, starts, families, strict=True)):
        closed, linear = cell.rule.has_closed_form, with_fluctuations and bool(cell.rule.linear)
        changing = (cell.annealing, *dict(cell.controls)) if cell.has_time_dependence else None
        program = closed, start.y.size, changing, closed or cell.K > 1, linear, None if closed else family
        groups.setdefault(program, []).append(index)
    record_jax_use()
    solutions: dict[int, tuple[Students, StudentFluctuations]] = {}
    with use_cpu_double_precision():
        for (closed, students, changing, paired, linear, _), members in groups.items():
            rules = tuple(dict.fromkeys(families[index] for index in members))
            equations = StudentSolverOptions(
                rules, closed, students, changing is not None, paired, with_fluctuations, linear
            )
            size = MAX_ONLINE_CELLS_PER_BATCH if closed else 1
            for batch in (members[first : first + size] for first in range(0, len(members), size)):
                problems = [
                    CellInitialValueProblem(cells[index], rules.index(families[index]), *starts[index])
                    for index in batch
                ]
                solutions |= dict(zip(batch, _solve_with_one_program(equations, problems, t), strict=True))
    return [solutions[index] for index in range(len(cells))]


def _make_initial_states(cells: list[OnlineCell], with_fluctuations: bool) -> list[InitialState]:
    """Return the initial state of each cell, and its fluctuations if requested.

    Many parameter combinations start from the same initial state.
    """
    different = {(id(cell.start), cell.K): cell for cell in cells}
    computed = {key: _make_initial_state(cell, with_fluctuations) for key, cell in different.items()}
    return [computed[id(cell.start), cell.K] for cell in cells]


def _make_initial_state(cell: OnlineCell, with_fluctuations: bool) -> InitialState:
    students = make_initial_students(cell)
    fluctuations = (
        student_fluctuations.make_initial_fluctuations(angle_from_versine(students.y), random=cell.start is None)
        if with_fluctuations
        else None
    )
    return students, fluctuations


def _solve_with_one_program(
    equations: StudentSolverOptions, problems: list[CellInitialValueProblem], times: np.ndarray
) -> list[tuple[Students, StudentFluctuations]]:
    """Solve one batch of cells that share a compiled program.

    Cells and times are padded, so that few programs are compiled.
    """
    missing = pad_array_length(len(problems)) - len(problems)
    problem = _stack_initial_value_problems(problems + problems[-1:] * missing, equations.rules)
    padded_times = pad_times(times, sum(part.size for part in (*problem.start, problem.fluctuations)))
    *state, completed = map(np.asarray, solve_batch(equations, problem, padded_times, np.int64(MAX_STEPS)))
    log_length, y, c, fluctuations = (np.moveaxis(part[: times.size], -1, 0)[: len(problems)] for part in state)
    students = Students(log_length, y, np.clip(c, -1, 1))  # rounding
    completed = completed[: len(problems)] & np.isfinite(fluctuations).all(axis=(1, 2))
    _check_solution([cell_problem.cell for cell_problem in problems], students, completed, times[-1])
    return [
        (Students(*state), _unpack_fluctuations(rows)) for *state, rows in zip(*students, fluctuations, strict=True)
    ]


def _stack_initial_value_problems(
    problems: list[CellInitialValueProblem], rules: tuple[RealParameterFamily, ...]
) -> StudentBatch:
    """Stack cells whose rules are among `rules` into one batch.

    A parameter that a cell's rule does not have is set to 1.
    """
    names = sorted({name for family in rules for name in family.real_parameter_names})
    parameters = {
        name: np.asarray([getattr(problem.cell.rule, name, 1.0) for problem in problems], float) for name in names
    }
    start = Students(*(np.stack(part, axis=-1) for part in zip(*(problem.start for problem in problems), strict=True)))
    rule, flip = (
        [problem.rule_index for problem in problems],
        np.asarray([problem.cell.flip for problem in problems], float),
    )
    changes = jax.tree.map(
        lambda *values: np.stack(values, axis=-1), *(problem.cell.time_dependence for problem in problems)
    )
    fluctuations = np.stack([_pack_fluctuations(problem.fluctuations) for problem in problems], axis=-1)
    return StudentBatch(np.asarray(rule), parameters, flip, changes, start, fluctuations)


def _pack_fluctuations(fluctuations: StudentFluctuations | None) -> np.ndarray:
    """Pack fluctuations into rows of the solver's state."""
    return np.zeros(0) if fluctuations is None else np.concatenate(fluctuations).reshape(-1)


def _unpack_fluctuations(rows: Array) -> StudentFluctuations:
    """Unpack fluctuations from rows (..., 5 S) of the solver's state."""
    parts = rows.reshape(*rows.shape[:-1], 5, -1)
    return StudentFluctuations(parts[..., :3, :], parts[..., 3:, :])


def _check_solution(cells: list[OnlineCell], students: Students, completed: np.ndarray, last_time: float) -> None:
    """Raise `SolverError` for a cell that stops early, and `DivergedStudentError` for lengths that overflow.

    Lengths can overflow although their logarithms do not.
    """
    completed = completed & np.all([np.isfinite(part).all(axis=(1, 2)) for part in students], axis=0)
    overflow = np.any(np.abs(students.log_length) > MAX_LOG_LENGTH, axis=(1, 2))
    for index in np.flatnonzero(~completed | overflow):
        if not completed[index]:
            raise SolverError(
                f"the order-parameter equations of {cells[index].message_description} stop before t = {last_time:g}"
            )
        bounds = f"{np.exp(-MAX_LOG_LENGTH):.0e} to {np.exp(MAX_LOG_LENGTH):.0e}"
        raise DivergedStudentError(f"{cells[index].message_description} has diverged: a student's length left {bounds}")
