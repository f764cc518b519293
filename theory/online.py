r"""Order-parameter equations of online learning in the limit N -> infinity.

For :math:`\mathbf J_k \leftarrow \mathbf J_k + f_k\mathbf x`, self-averaging gives the Gram matrix of
:math:`\mathbf w = (\mathbf B, \mathbf J_1, \dots, \mathbf J_K)` with fields :math:`h_i = \mathbf w_i\cdot\mathbf x`

.. math:: \dot G_{ij} = \langle f_i h_j\rangle + \langle f_j h_i\rangle + \langle f_i f_j\rangle, \qquad f_0 = 0,

which is eqs (3.5) and (3.6) of Miyoshi, Hara & Okada by the chain rule. As R, q -> 1 those lose their digits: R and
q round to 1. We integrate them in :math:`\log l_k`, :math:`y_k = 1 - R_k = 1 - \cos\theta_k` itself, and the cosines
:math:`c_{kj} = (q_{kj} - R_kR_j)/(\sin\theta_k\sin\theta_j)` of the students' parts across the teacher. With
:math:`D_k = \langle\partial f_k/\partial v\rangle` (`statmech.rules.Averages`) and Stein's lemma,

.. math::
    \frac{d\log l_k}{dt} &= \frac{\langle f_ku_k\rangle}{l_k} + \frac{\langle f_k^2\rangle}{2l_k^2}, \\
    \dot y_k &= -\sin^2\theta_k\,\frac{D_k}{l_k} + \cos\theta_k\,\frac{\langle f_k^2\rangle}{2l_k^2}, \\
    \dot c_{kj} &= \frac{\langle f_kf_j\rangle}{l_kl_j\sin\theta_k\sin\theta_j}
        - \frac{c_{kj}}{2}\left(\frac{\langle f_k^2\rangle}{l_k^2\sin^2\theta_k}
        + \frac{\langle f_j^2\rangle}{l_j^2\sin^2\theta_j}\right).

No term is larger than the sum's own size when :math:`\theta` is 1e-6, so eps_g keeps its digits to t = 1e6 and beyond.
Students with equal initial conditions stay equal: one of them, and one pair, represent all (the symmetric reduction).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.errors import DivergedError, SolverError
from statmech.forks import check_fork
from statmech.gaussian import Array
from statmech.order_parameters import angle_from_versine
from statmech.parameters import Family, family_of
from statmech.programs import kept
from statmech.rules import Averages, Rule
from statmech.scenarios.online import Cell
from theory.averages import Pair, averages, pair_average

RTOL = 1e-9
ATOL = 1e-12  # of log l and c
ATOL_Y = 1e-60  # so that 1 - R is accurate to RTOL however small it gets
LONGEST = 300.0  # log l is clipped here: a rule that scales with l has the same rates at any length
LAST = 700.0  # log l beyond which l itself, or 1/l, overflows
MAX_STEPS = 2_000_000


class Students(NamedTuple):
    """Students' state: log l and y = 1 - R (..., S), transverse cosines of the pairs followed (..., pairs)."""

    log_length: Array
    y: Array
    c: Array


@dataclass(frozen=True)
class Equations:
    """Static arguments of the compiled solver: rules, closed forms or quadrature, the number of distinct students."""

    rules: tuple[Family, ...]
    closed: bool
    students: int


class Problem(NamedTuple):
    """Run-time arguments of the solver: a rule's index among all, its parameters, label noise, initial students."""

    rule: Array
    parameters: dict[str, Array]
    flip: Array
    start: Students


def solve_cells(cells: list[Cell], times: Iterable[float]) -> list[Students]:
    """The students of each cell at each time, arrays with a leading axis of times.

    Cells with the same number of distinct students are integrated in one vmapped call: all rules with closed forms
    together, since tracing the solver takes longer than solving, and each rule without them separately. Raises
    `SolverError` if the integration stops early, `DivergedError` for lengths beyond floating point numbers.
    """
    solutions: dict[int, Students] = {}
    groups: dict[Any, list[int]] = {}
    for index, cell in enumerate(cells):
        closed = cell.rule.has_closed_form
        groups.setdefault((closed, None if closed else family_of(cell.rule), distinct(cell)), []).append(index)
    check_fork()
    t = np.asarray(list(times), float)
    with jax.enable_x64(True):
        for (closed, _, students), members in groups.items():
            batch = [cells[index] for index in members]
            rules = tuple(dict.fromkeys(family_of(cell.rule) for cell in batch))
            solved = _solve_batch(Equations(rules, closed, students), _stacked(batch, rules), t)
            for index, *state, ok in zip(members, *map(np.asarray, solved), strict=True):
                if not ok:
                    raise SolverError(
                        f"the order-parameter equations of {cells[index].described} stop before t = {t[-1]:g}"
                    )
                solutions[index] = Students(*state)
                _check_lengths(cells[index], solutions[index])
    return [solutions[index] for index in range(len(cells))]


def _check_lengths(cell: Cell, students: Students) -> None:
    """Raise `DivergedError` for lengths that overflow, though their logarithms do not."""
    if np.any(np.abs(students.log_length) > LAST):
        bounds = f"{np.exp(-LAST):.0e} to {np.exp(LAST):.0e}"
        raise DivergedError(f"{cell.described} has diverged: a student's length left {bounds}")


def distinct(cell: Cell) -> int:
    """The number of students that the equations follow: 1 if all have the same initial condition, else K."""
    return 1 if cell.alike else cell.K


def pairs(students: int) -> tuple[np.ndarray, np.ndarray]:
    """The pairs followed: all pairs of distinct students, or two copies of the one that represents all."""
    return np.triu_indices(students, 1) if students > 1 else (np.array([0]), np.array([0]))


def initial(cell: Cell) -> Students:
    """The initial state of a cell's distinct students.

    >>> from statmech import Scenario
    >>> [cell] = Scenario(rule="hebb", K=2, t=[1], start={"R": 0.6}).cells()
    >>> initial(cell)
    Students(log_length=array([0.]), y=array([0.4]), c=array([-0.5625]))
    """
    S, (length, R, q) = distinct(cell), cell.order_parameters
    first, second = pairs(S) if S > 1 else (np.array([0]), np.array([min(1, cell.K - 1)]))
    sin2 = (1 - R) * (1 + R)
    scale = np.sqrt(sin2[first] * sin2[second])
    across = q[first, second] - R[first] * R[second]
    # students on the teacher's axis have no transverse direction, and move together
    c = np.divide(across, scale, out=np.ones_like(across), where=scale > 0)
    return Students(np.log(length[:S]), 1 - R[:S], np.clip(c, -1, 1))


def rates(rule: Rule, closed: bool, students: Students, flip: Array) -> Students:
    """Time derivative of the state of distinct students.

    The equations of `theory.online`; `closed` selects the rule's closed forms, `flip` is the label noise.
    """
    theta, length = angle_from_versine(students.y), jnp.exp(jnp.clip(students.log_length, -LONGEST, LONGEST))
    single = averages(rule, closed, theta, length, flip)
    angles, lengths = _of_pairs(theta), _of_pairs(length)
    pair = Pair(angles, students.c, lengths)
    sin = jnp.sqrt(students.y * (2 - students.y))
    log_rate, y_rate = one_student(single, students.y, length)
    diffusion = single.ff / length**2  # of the direction, per unit time
    across = _ratio(diffusion, sin**2)
    common = pair_average(rule, closed, pair, flip) / prod(lengths)
    c_rate = _ratio(common, prod(_of_pairs(sin))) - students.c / 2 * sum(_of_pairs(across))
    # identical students stay identical; but q = 1 may be unstable (perceptron), and rounding would separate them
    separate = (students.c < 1) | (angles[0] != angles[1]) | (lengths[0] != lengths[1])
    return Students(
        log_length=log_rate,
        y=y_rate,
        c=jnp.where(separate, c_rate, 0.0),
    )


def one_student(averages: Averages, y: Array, length: Array) -> tuple[Array, Array]:
    """Time derivative of log l and y = 1 - R, for any rule with these averages."""
    diffusion = averages.ff / length**2
    return (
        averages.fu / length + diffusion / 2,
        -y * (2 - y) * averages.response / length + (1 - y) * diffusion / 2,
    )


def _of_pairs(x: Array) -> tuple[Array, Array]:
    """The values of the first and of the second student of each pair followed, from an array over students (S,)."""
    if x.shape[0] == 1:  # no gather in the common case, where one student represents all
        return x, x
    first, second = pairs(x.shape[0])
    return x[first], x[second]


@kept
def _solve_batch(equations: Equations, problems: Problem, t: Array) -> tuple[Array, ...]:
    """Integrate cells side by side: log l, y and c at each time, and whether a cell has reached the last."""
    students, completed = jax.vmap(partial(_solve_one, equations), in_axes=(0, None))(problems, t)
    return *students, completed


def _solve_one(equations: Equations, problem: Problem, t: Array) -> tuple[Students, Array]:
    S = equations.students
    sizes = [S, 2 * S]

    def under(family: Family) -> Callable[[Students], Students]:
        rule = family(**{name: problem.parameters[name] for name in family.reals})
        return lambda students: rates(rule, equations.closed, students, problem.flip)

    def field(_: Array, y: Array, __: None) -> Array:
        log_length, versine, c = jnp.split(y, sizes)
        students = Students(log_length, jnp.clip(versine, 0.0, 2.0), jnp.clip(c, -1.0, 1.0))
        return jnp.concatenate(jax.lax.switch(problem.rule, [under(family) for family in equations.rules], students))

    y0 = jnp.concatenate(problem.start)
    atol = jnp.asarray([ATOL] * S + [ATOL_Y] * S + [ATOL] * (y0.size - 2 * S))
    values, completed = _integrate(field, y0, atol, t)
    return Students(*jnp.split(values, sizes, axis=1)), completed


def _integrate(field: Callable[[Array, Array, None], Array], y0: Array, atol: Array, t: Array) -> tuple[Array, Array]:
    """The solution (T, C) of dy/dt = field from y0 (C,) at each time, and whether the last was reached."""
    import diffrax  # slow to import, and only needed where a program is traced

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Tsit5(),
        t0=0.0,
        t1=t[-1],
        dt0=None,
        y0=y0,
        saveat=diffrax.SaveAt(ts=t),
        stepsize_controller=diffrax.PIDController(rtol=RTOL, atol=atol),
        max_steps=MAX_STEPS,
        throw=False,
    )
    return solution.ys, (solution.result == diffrax.RESULTS.successful) & jnp.all(jnp.isfinite(solution.ys))


def _stacked(cells: list[Cell], rules: tuple[Family, ...]) -> Problem:
    """The problems of cells whose rules are among `rules`; a parameter that a cell's rule does not have is 1."""
    names = {name for family in rules for name in family.reals}
    parameters = {name: np.array([cell.parameters.get(name, 1.0) for cell in cells], float) for name in sorted(names)}
    rule = np.array([rules.index(family_of(cell.rule)) for cell in cells])
    distinct_starts = {key: initial(cell) for key, cell in {(cell.start, cell.K): cell for cell in cells}.items()}
    starts = zip(*(distinct_starts[cell.start, cell.K] for cell in cells), strict=True)
    start = Students(*map(np.stack, starts))
    return Problem(rule, parameters, np.array([cell.flip for cell in cells], float), start)


def _ratio(x: Array, y: Array) -> Array:
    """x / y, and 0 where both vanish: a student on the teacher's axis with zero update stays there."""
    return jnp.where(y > 0, x / jnp.where(y > 0, y, 1.0), 0.0)
