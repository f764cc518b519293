r"""Order-parameter equations of a perceptron that learns several tasks online, for N -> infinity.

Let :math:`T_{sa}` be the cosines between the tasks' teachers, and :math:`R_s` the cosines between student and teachers.
An example of task a moves the student towards teacher a. `theory.online.averages` at the angle to this teacher has the
averages :math:`\langle fu\rangle_a`, :math:`D_a` and :math:`\langle f^2\rangle_a`. With probabilities :math:`p_a(t)` of
tasks (`statmech.protocols`) and b examples per step,

.. math::
    \frac{d\log l}{dt} &= \sum_a p_a\left[\frac{\langle fu\rangle_a}{l} + \frac{\langle f^2\rangle_a}{2bl^2}\right]
        - \nu, \\
    \dot R_s &= \sum_a p_a\left[(T_{sa} - R_sR_a)\,\frac{D_a}{l} - R_s\frac{\langle f^2\rangle_a}{2bl^2}\right] .

We integrate :math:`y_s = 1 - R_s`, which keeps its digits as a task is learnt: with :math:`d_{sa} = 1 - T_{sa}`, which
is exactly 0 for s = a, :math:`T_{sa} - R_sR_a = y_s + y_a - y_sy_a - d_{sa}`. For one task these are the equations of
`theory.online.equations`. A step that averages b examples is equivalent to b steps with one example at the rates
:math:`\eta/b` and :math:`\nu/b`: only :math:`\eta^2` becomes :math:`\eta^2/b`.

The probabilities jump where a piece of the protocol begins, and functions of time jump at their edges, so that pieces
are integrated separately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.numerics.gaussian import Array
from statmech.order_parameters import angle_from_versine
from statmech.parameters import Family, family_of
from statmech.rules import Averages, Rule
from statmech.runtime.devices import double_precision
from statmech.runtime.forks import check_fork
from statmech.runtime.programs import quickly_compiled
from statmech.scenarios.online_tasks import OnlineTaskCell
from statmech.schedules import Changes
from theory.numerics.dormand_prince import integrate
from theory.numerics.lanes import check_complete, side_by_side, with_last_again
from theory.numerics.pieces import in_pieces
from theory.online.averages import averages
from theory.online.equations import LONGEST
from theory.online.rate_terms import ATOL, ATOL_Y
from theory.online.stiff_equations import check_lengths

RTOL = 1e-12
MAX_STEPS = 2_000_000
LANES = 128  # only for rules with closed forms


class Student(NamedTuple):
    """State of the student: log l (...,), and y = 1 - R with the teacher of each task (..., tasks)."""

    log_length: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Equations:
    """Static arguments of the compiled solver.

    `closed` selects closed forms instead of quadrature. `changing` is True if the learning rate changes within a piece.
    """

    rules: tuple[Family, ...]
    closed: bool
    changing: bool


class Setting(NamedTuple):
    """Run-time arguments with the batch as last axis.

    `rule` is the index of the rule, `apart` the distances d (tasks, tasks, L) between the teachers, and `batch` the
    number of examples per step.
    """

    rule: Array
    parameters: dict[str, Array]
    flip: Array
    changes: Changes
    apart: Array
    batch: Array


def task_rates(each: Averages, length: Array, y: Array, setting: Setting, shares: Array) -> tuple[Array, Array]:
    """Return the time derivatives of log l, and of y (tasks,).

    Parameters
    ----------
    each
        Averages over examples of each task, arrays (tasks,), including the learning rate.
    length, y
        The student's length, and 1 - R with the teacher of each task (tasks,).
    setting
        The setting of one batch element.
    shares
        Probabilities of the tasks (tasks,).
    """
    half_diffusion = each.ff / length**2 / setting.batch / 2
    growth = shares @ (each.fu / length + half_diffusion) - setting.changes.decay
    towards = y[:, None] + (1 - y[:, None]) * y - setting.apart  # T - R R for each teacher and active teacher
    return growth, (1 - y) * (shares @ half_diffusion) - towards @ (shares * each.response / length)


def _rates(equations: Equations, rows: Array, setting: Setting, shares: Array) -> Array:
    """Return the time derivative of one batch element's rows: log l, y, and the time."""
    log_length, y, t = rows[0], jnp.clip(rows[1:-1], 0.0, 2.0), rows[-1]
    theta, length = angle_from_versine(y), jnp.exp(jnp.clip(log_length, -LONGEST, LONGEST))

    def make_rule_rates(family: Family) -> Callable[[], tuple[Array, Array]]:
        parameters = {name: setting.parameters[name] for name in family.reals}
        if equations.changing:
            parameters["eta"] = setting.changes.schedule.rate(parameters["eta"], t)
        rule: Rule = family(**parameters)

        def rates() -> tuple[Array, Array]:
            task_averages = averages(rule, equations.closed, theta, length, setting.flip)
            return task_rates(Averages(*(part + 0.0 * theta for part in task_averages)), length, y, setting, shares)

        return rates

    growth, y_rate = jax.lax.switch(setting.rule, [make_rule_rates(family) for family in equations.rules])
    return jnp.concatenate([growth[None], y_rate, jnp.ones(1)])


@quickly_compiled
def solve_piece(
    equations: Equations, setting: Setting, shares: Array, start: Array, times: Array, most: Array
) -> tuple[Array, Array]:
    """Integrate the state's rows (T, C, L) with constant probabilities of tasks.

    Also returns True for the elements that have reached the last time.

    Parameters
    ----------
    equations, setting
        Static and run-time arguments.
    shares
        Probabilities of the tasks (tasks, L).
    start, times, most
        Arguments of `theory.numerics.dormand_prince.integrate`, from the beginning of the piece.
    """
    batch_rates = jax.vmap(lambda *arguments: _rates(equations, *arguments), in_axes=-1, out_axes=-1)
    atol = jnp.asarray([ATOL, *[ATOL_Y] * len(shares), ATOL])[:, None]
    return integrate(lambda rows: batch_rates(rows, setting, shares), start, times, RTOL, atol, most)


def solve_cells(cells: Sequence[OnlineTaskCell], times: Iterable[float]) -> list[Student]:
    """Solve the student of each cell at each time.

    Arrays have a leading axis of times. Raises `SolverError` if the integration stops early, `DivergedError` for
    lengths beyond floating point numbers. Cells whose pieces begin together are integrated in parallel. Cells that
    differ only in N share a solution.
    """
    check_fork()
    t = np.asarray(list(times), float)

    def program(at: int) -> tuple[Any, ...]:
        cell = cells[at]
        closed, scheduled = cell.rule.has_closed_form, None if cell.schedule is None else cell.annealing
        return closed, None if closed else family_of(cell.rule), scheduled, cell.tasks, cell.layout

    def solve_group(program: tuple[Any, ...], some: list[int]) -> list[Student]:
        return _solve_together([cells[index] for index in some], t)

    return side_by_side(list(map(_identity, cells)), program, lambda program: LANES if program[0] else 1, solve_group)


def _identity(cell: OnlineTaskCell) -> tuple[Any, ...]:
    """Return a key with everything that determines a cell's equations and start."""
    rule = (cell.name, *cell.parameters.values(), cell.flip, *cell.changes.items())
    return (*rule, id(cell.start), cell.overlap, cell.batch, cell.protocol, cell.switch, *cell.controls)


def _solve_together(cells: Sequence[OnlineTaskCell], times: np.ndarray) -> list[Student]:
    """Solve cells that share one program, padded to a common batch size."""
    rules = tuple(dict.fromkeys(family_of(cell.rule) for cell in cells))
    padded_cells = with_last_again(cells)
    start = np.stack([start_of(cell) for cell in padded_cells], axis=-1)

    def solve(begin: float, rows: Array, recorded: Array) -> tuple[Array, Array]:
        current_cells = [cell.after(begin) for cell in padded_cells]
        probabilities = np.stack([cell.pieces.at(np.float64(begin)) for cell in padded_cells], axis=-1)
        controlled = (
            "eta" in current_cells[0].given
        )  # then eta is a polynomial in the time since the beginning of the piece
        if controlled:
            rows = np.append(rows[:-1], np.zeros_like(rows[-1:]), axis=0)
        equations = Equations(
            rules, current_cells[0].rule.has_closed_form, controlled or current_cells[0].schedule is not None
        )
        return solve_piece(
            equations, setting_of(current_cells, rules), probabilities, rows, recorded, np.int64(MAX_STEPS)
        )

    with double_precision():
        rows, completed = in_pieces(solve, cells[0].edges, start, times)
    solutions = [rows[..., index] for index in range(len(cells))]
    check_complete(cells, solutions, completed, times[-1])
    for cell, solution in zip(cells, solutions, strict=True):
        check_lengths(solution[:, 0], cell.described)
    return [Student(solution[:, 0], solution[:, 1:-1]) for solution in solutions]


def start_of(cell: OnlineTaskCell) -> np.ndarray:
    """Return the rows of a cell's state at t = 0 (C,)."""
    length, R = cell.length_and_R
    return np.concatenate([[np.log(length)], 1 - R, [0.0]])


def setting_of(cells: Sequence[OnlineTaskCell], rules: tuple[Family, ...]) -> Setting:
    """Return the run-time arguments of a batch of cells whose rules are among `rules`.

    A parameter that a cell's rule does not have is set to 1.
    """
    names = sorted({name for family in rules for name in family.reals})
    return Setting(
        np.array([rules.index(family_of(cell.rule)) for cell in cells]),
        {name: np.array([getattr(cell.rule, name, 1.0) for cell in cells], float) for name in names},
        np.array([cell.flip for cell in cells], float),
        jax.tree.map(lambda *values: np.asarray(values), *(cell.changing for cell in cells)),
        np.stack([1 - cell.between for cell in cells], axis=-1),
        np.array([cell.batch for cell in cells], float),
    )
