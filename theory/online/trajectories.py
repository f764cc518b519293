"""Trajectories of students and of their fluctuations for each parameter combination.

Parameter combinations that share a compiled program are integrated in parallel (`theory.online.combinations`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from statmech.errors import DivergedError, SolverError
from statmech.numerics.gaussian import Array
from statmech.order_parameters import angle_from_versine
from statmech.parameters import Family, family_of
from statmech.runtime.devices import double_precision
from statmech.runtime.forks import check_fork
from statmech.runtime.programs import filled_up
from statmech.scenarios.online import OnlineCell
from theory.fluctuations import student_fluctuations
from theory.fluctuations.student_fluctuations import Fluctuations
from theory.numerics.dormand_prince import padded
from theory.numerics.pieces import pieces
from theory.online.combinations import Equations, Problem, solve_lanes
from theory.online.students import Students, initial

LAST = 700.0  # larger |log l| overflow in l or 1/l
MAX_STEPS = 2_000_000
LANES = 128  # only for rules with closed forms


Start = tuple[Students, Fluctuations | None]


class Lane(NamedTuple):
    """A cell with the index of its rule in its program, and its initial state."""

    cell: OnlineCell
    rule: int
    start: Students
    fluctuations: Fluctuations | None = None


def solve_cells(cells: list[OnlineCell], times: Iterable[float]) -> list[Students]:
    """Solve the students of each cell at each time.

    Arrays have a leading axis of times. Raises `SolverError` if the integration stops early, `DivergedError` for
    lengths beyond floating point numbers.
    """
    return [students for students, _ in _solve_in_pieces(cells, times, corrected=False)]


def solve_corrected(cells: list[OnlineCell], times: Iterable[float]) -> list[tuple[Students, Fluctuations]]:
    """Solve the students of each cell at each time, with their fluctuations of order 1/N.

    Raises errors like `solve_cells`.
    """
    return _solve_in_pieces(cells, times, corrected=True)


def _solve_in_pieces(
    cells: list[OnlineCell], times: Iterable[float], corrected: bool
) -> list[tuple[Students, Fluctuations]]:
    """Solve students and fluctuations of cells piece by piece, between the edges of their functions of time."""
    t, edges = np.asarray(list(times), float), [cell.edges for cell in cells]
    starts, solutions = _starts(cells, corrected), dict[int, tuple[Students, Fluctuations]]()
    if not any(edges):
        return _solve_cells(cells, t, starts, corrected)
    for common_edges in dict.fromkeys(edges):
        members = [index for index, cell_edges in enumerate(edges) if cell_edges == common_edges]
        group, state = [cells[index] for index in members], [starts[index] for index in members]
        parts = []
        for begin, piece_times, recorded in pieces(common_edges or (0.0,), t):
            piece_solutions = _solve_cells(
                [cell.after(begin) if common_edges else cell for cell in group], piece_times, state, corrected
            )
            state = [_at(solution, -1) for solution in piece_solutions]
            parts.append([_at(solution, slice(recorded)) for solution in piece_solutions])
        solutions |= {
            index: _joined(cell_parts) for index, cell_parts in zip(members, zip(*parts, strict=True), strict=True)
        }
    return [solutions[index] for index in range(len(cells))]


def _at(solution: tuple[Students, Fluctuations], where: Any) -> tuple[Students, Fluctuations]:
    """Select some of the times of a solution."""
    selected: tuple[Students, Fluctuations] = jax.tree.map(lambda rows: rows[where], solution)
    return selected


def _joined(parts: Sequence[tuple[Students, Fluctuations]]) -> tuple[Students, Fluctuations]:
    """Join the solutions of successive pieces."""
    joined: tuple[Students, Fluctuations] = jax.tree.map(lambda *rows: np.concatenate(rows), *parts)
    return joined


def _solve_cells(
    cells: list[OnlineCell], t: np.ndarray, starts: list[Start], corrected: bool
) -> list[tuple[Students, Fluctuations]]:
    """Solve the students of each cell at each time, and their fluctuations.

    Fluctuations are empty unless `corrected`. Cells with the same number of distinct students are integrated in
    parallel. All rules with closed forms share one batch, since tracing the solver takes longer than solving. Cells of
    other rules are solved one by one.
    """
    families = [family_of(cell.rule) for cell in cells]
    groups: dict[Any, list[int]] = {}
    for index, (cell, (start, _), family) in enumerate(zip(cells, starts, families, strict=True)):
        closed, linear = cell.rule.has_closed_form, corrected and bool(cell.rule.linear)
        changing = (cell.annealing, *dict(cell.controls)) if cell.varies else None
        program = closed, start.y.size, changing, closed or cell.K > 1, linear, None if closed else family
        groups.setdefault(program, []).append(index)
    check_fork()
    solutions: dict[int, tuple[Students, Fluctuations]] = {}
    with double_precision():
        for (closed, students, changing, paired, linear, _), members in groups.items():
            rules = tuple(dict.fromkeys(families[index] for index in members))
            equations = Equations(rules, closed, students, changing is not None, paired, corrected, linear)
            size = LANES if closed else 1
            for batch in (members[first : first + size] for first in range(0, len(members), size)):
                problems = [Lane(cells[index], rules.index(families[index]), *starts[index]) for index in batch]
                solutions |= dict(zip(batch, _solve_together(equations, problems, t), strict=True))
    return [solutions[index] for index in range(len(cells))]


def _starts(cells: list[OnlineCell], corrected: bool) -> list[Start]:
    """Return the initial state of each cell, and its fluctuations if requested.

    Cells of a sweep share few initial states.
    """
    different = {(id(cell.start), cell.K): cell for cell in cells}
    computed = {key: _start(cell, corrected) for key, cell in different.items()}
    return [computed[id(cell.start), cell.K] for cell in cells]


def _start(cell: OnlineCell, corrected: bool) -> Start:
    students = initial(cell)
    fluctuations = (
        student_fluctuations.initial(angle_from_versine(students.y), drawn=cell.start is None) if corrected else None
    )
    return students, fluctuations


def _solve_together(equations: Equations, lanes: list[Lane], times: np.ndarray) -> list[tuple[Students, Fluctuations]]:
    """Solve at most `LANES` cells at each time, with their fluctuations.

    Cells and times are padded, so that few programs are compiled.
    """
    missing = filled_up(len(lanes)) - len(lanes)
    problem = _stacked(lanes + lanes[-1:] * missing, equations.rules)
    padded_times = padded(times, sum(part.size for part in (*problem.start, problem.fluctuations)))
    *state, completed = map(np.asarray, solve_lanes(equations, problem, padded_times, np.int64(MAX_STEPS)))
    log_length, y, c, fluctuations = (np.moveaxis(part[: times.size], -1, 0)[: len(lanes)] for part in state)
    students = Students(log_length, y, np.clip(c, -1, 1))  # rounding
    completed = completed[: len(lanes)] & np.isfinite(fluctuations).all(axis=(1, 2))
    _check([cell_problem.cell for cell_problem in lanes], students, completed, times[-1])
    return [(Students(*state), _by_student(rows)) for *state, rows in zip(*students, fluctuations, strict=True)]


def _stacked(lanes: list[Lane], rules: tuple[Family, ...]) -> Problem:
    """Stack cells into the problem of a batch, with rules among `rules`.

    A parameter that a cell's rule does not have is set to 1.
    """
    names = sorted({name for family in rules for name in family.reals})
    parameters = {
        name: np.asarray([getattr(problem.cell.rule, name, 1.0) for problem in lanes], float) for name in names
    }
    start = Students(*(np.stack(part, axis=-1) for part in zip(*(problem.start for problem in lanes), strict=True)))
    rule, flip = [problem.rule for problem in lanes], np.asarray([problem.cell.flip for problem in lanes], float)
    changes = jax.tree.map(lambda *values: np.stack(values, axis=-1), *(problem.cell.changing for problem in lanes))
    fluctuations = np.stack([_rows(problem.fluctuations) for problem in lanes], axis=-1)
    return Problem(np.asarray(rule), parameters, flip, changes, start, fluctuations)


def _rows(around: Fluctuations | None) -> np.ndarray:
    """Return fluctuations as rows of the solver's state."""
    return np.zeros(0) if around is None else np.concatenate(around).reshape(-1)


def _by_student(rows: Array) -> Fluctuations:
    """Return fluctuations from the rows (..., 5 S) of the solver's state."""
    parts = rows.reshape(*rows.shape[:-1], 5, -1)
    return Fluctuations(parts[..., :3, :], parts[..., 3:, :])


def _check(cells: list[OnlineCell], solved: Students, completed: np.ndarray, last: float) -> None:
    """Raise `SolverError` for a cell that stops early, and `DivergedError` for lengths that overflow.

    Lengths can overflow although their logarithms do not.
    """
    completed = completed & np.all([np.isfinite(part).all(axis=(1, 2)) for part in solved], axis=0)
    overflow = np.any(np.abs(solved.log_length) > LAST, axis=(1, 2))
    for index in np.flatnonzero(~completed | overflow):
        if not completed[index]:
            raise SolverError(f"the order-parameter equations of {cells[index].described} stop before t = {last:g}")
        bounds = f"{np.exp(-LAST):.0e} to {np.exp(LAST):.0e}"
        raise DivergedError(f"{cells[index].described} has diverged: a student's length left {bounds}")
