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

A teacher that drifts at rate :math:`\delta` (`drift`) turns away from all students, :math:`\dot R_k = -\delta R_k`, so
with :math:`\rho_k = \cot\theta_k` the rates gain :math:`\delta\cos\theta_k` and :math:`\delta\,(2\rho_k\rho_j -
c_{kj}(\rho_k^2 + \rho_j^2))`; weights that decay at rate w (`decay`) lose w in :math:`\log l_k`; and a `schedule`
divides the learning rate by :math:`1 + t/t_0`.

No term is larger than the sum's own size when :math:`\theta` is 1e-6, so eps_g keeps its digits to t = 1e6 and beyond.
Where corrections are asked for, the fluctuations of order 1/N of each student (`theory.fluctuations`) are integrated
beside it.

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
from statmech.gaussian import Array, one_minus_cos
from statmech.order_parameters import angle_from_versine
from statmech.parameters import Family, family_of
from statmech.programs import kept
from statmech.rules import Averages, Rule
from statmech.scenarios.online import Cell
from theory import fluctuations
from theory.averages import Pair, averages, pair_average
from theory.dormand_prince import TOGETHER, integrate
from theory.fluctuations import Fluctuations

RTOL = 1e-9
ATOL = 1e-12  # of log l and c
RTOL_1, ATOL_1 = 1e-9, 1e-9  # of the fluctuations of order 1/N
ATOL_Y = 1e-60  # so that 1 - R is accurate to RTOL however small it gets
LONGEST = 300.0  # log l is clipped here: a rule that scales with l has the same rates at any length
LAST = 700.0  # log l beyond which l itself, or 1/l, overflows
MAX_STEPS = 2_000_000
LANES = 128  # parameter combinations that are integrated side by side, if their rules have closed forms


class Students(NamedTuple):
    """Students' state: log l and y = 1 - R (..., S), transverse cosines of the pairs followed (..., pairs)."""

    log_length: Array
    y: Array
    c: Array


@dataclass(frozen=True)
class Equations:
    """Static arguments of the compiled solver: rules, closed forms or quadrature, the number of distinct students,
    whether drift, decay or a schedule may differ from their defaults, whether there are pairs (averages of pairs by
    quadrature take most of the time, and a single student has none), whether fluctuations are followed, and then
    whether the rules are linear."""

    rules: tuple[Family, ...]
    closed: bool
    students: int
    changing: bool
    paired: bool
    corrected: bool = False
    linear: bool = False


class Changes(NamedTuple):
    """The teacher's drift, the weights' decay, and the t0 of the learning rate."""

    drift: Array
    decay: Array
    t0: Array


class Lane(NamedTuple):
    """A cell, its rule's index among those of its program, and its initial state."""

    cell: Cell
    rule: int
    start: Students
    fluctuations: Fluctuations | None = None


class Problem(NamedTuple):
    """Run-time arguments of the solver, lanes last: a rule's index among all, its parameters, label noise, what
    changes, initial students, and their fluctuations (5 S, L), or (0, L) where they are not followed."""

    rule: Array
    parameters: dict[str, Array]
    flip: Array
    changes: Changes
    start: Students
    fluctuations: Array


def solve_cells(cells: list[Cell], times: Iterable[float]) -> list[Students]:
    """The students of each cell at each time, arrays with a leading axis of times.

    Raises `SolverError` if the integration stops early, `DivergedError` for lengths beyond floating point numbers.
    """
    return [students for students, _ in _solve_cells(cells, times, corrected=False)]


def solve_corrected(cells: list[Cell], times: Iterable[float]) -> list[tuple[Students, Fluctuations]]:
    """The students of each cell at each time, and their fluctuations of order 1/N; raises like `solve_cells`."""
    return _solve_cells(cells, times, corrected=True)


def _solve_cells(cells: list[Cell], times: Iterable[float], corrected: bool) -> list[tuple[Students, Fluctuations]]:
    """The students of each cell at each time, and their fluctuations, empty if they are not followed.

    Cells with the same number of distinct students are integrated side by side: all rules with closed forms together,
    since tracing the solver takes longer than solving, and cells of a rule without them one after the other.
    """
    starts, families = _starts(cells), [family_of(cell.rule) for cell in cells]
    groups: dict[Any, list[int]] = {}
    for index, (cell, start, family) in enumerate(zip(cells, starts, families, strict=True)):
        closed, changing, linear = cell.rule.has_closed_form, bool(cell.changes), corrected and bool(cell.rule.linear)
        program = closed, start.y.size, changing, closed or cell.K > 1, linear, None if closed else family
        groups.setdefault(program, []).append(index)
    check_fork()
    solutions: dict[int, tuple[Students, Fluctuations]] = {}
    with jax.enable_x64(True):
        t = np.asarray(list(times), float)
        for (closed, students, changing, paired, linear, _), members in groups.items():
            rules = tuple(dict.fromkeys(families[index] for index in members))
            equations = Equations(rules, closed, students, changing, paired, corrected, linear)
            size = LANES if closed else 1
            for some in (members[first : first + size] for first in range(0, len(members), size)):
                lanes = [_lane(cells[index], rules.index(families[index]), starts[index], corrected) for index in some]
                solutions |= dict(zip(some, _solve_together(equations, lanes, t), strict=True))
    return [solutions[index] for index in range(len(cells))]


def _starts(cells: list[Cell]) -> list[Students]:
    """The initial state of each cell; those of a sweep share few."""
    different = {(id(cell.start), cell.K): cell for cell in cells}
    computed = {key: initial(cell) for key, cell in different.items()}
    return [computed[id(cell.start), cell.K] for cell in cells]


def _lane(cell: Cell, rule: int, start: Students, corrected: bool) -> Lane:
    if not corrected:
        return Lane(cell, rule, start)
    return Lane(cell, rule, start, fluctuations.initial(angle_from_versine(start.y), drawn=cell.start is None))


def _solve_together(equations: Equations, lanes: list[Lane], times: np.ndarray) -> list[tuple[Students, Fluctuations]]:
    """The students of at most `LANES` cells at each time, and their fluctuations.

    Lanes and times are filled up to powers of two, so that few programs are compiled.
    """
    missing = _power_of_two(len(lanes)) - len(lanes)
    problem = _stacked(lanes + lanes[-1:] * missing, equations.rules)
    filled = np.pad(times, (0, max(TOGETHER, _power_of_two(times.size)) - times.size), constant_values=np.inf)
    *state, completed = map(np.asarray, _solve_lanes(equations, problem, filled, np.int64(MAX_STEPS)))
    log_length, y, c, around = (np.moveaxis(part[: times.size], -1, 0)[: len(lanes)] for part in state)
    solved = Students(log_length, y, np.clip(c, -1, 1))  # rounding
    completed = completed[: len(lanes)] & np.isfinite(around).all(axis=(1, 2))
    _check([lane.cell for lane in lanes], solved, completed, times[-1])
    return [(Students(*state), _by_student(rows)) for *state, rows in zip(*solved, around, strict=True)]


def _by_student(rows: Array) -> Fluctuations:
    """Fluctuations from the rows (..., 5 S) of the solver's state."""
    parts = rows.reshape(*rows.shape[:-1], 5, -1)
    return Fluctuations(parts[..., :3, :], parts[..., 3:, :])


def _check(cells: list[Cell], solved: Students, completed: np.ndarray, last: float) -> None:
    """Raise `SolverError` for a cell that stops early, and `DivergedError` for lengths that overflow, though their
    logarithms do not."""
    completed = completed & np.all([np.isfinite(part).all(axis=(1, 2)) for part in solved], axis=0)
    overflow = np.any(np.abs(solved.log_length) > LAST, axis=(1, 2))
    for index in np.flatnonzero(~completed | overflow):
        if not completed[index]:
            raise SolverError(f"the order-parameter equations of {cells[index].described} stop before t = {last:g}")
        bounds = f"{np.exp(-LAST):.0e} to {np.exp(LAST):.0e}"
        raise DivergedError(f"{cells[index].described} has diverged: a student's length left {bounds}")


def _power_of_two(least: int) -> int:
    """The lowest power of two that is not below an integer.

    >>> [_power_of_two(least) for least in (1, 8, 9)]
    [1, 8, 16]
    """
    return 1 << (least - 1).bit_length()


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


def rates(rule: Rule, closed: bool, students: Students, flip: Array, paired: bool = True) -> Students:
    """Time derivative of the state of distinct students.

    The equations of `theory.online`; `closed` selects the rule's closed forms, `flip` is the label noise. A single
    student's c, which means nothing, stays where it is unless `paired`.
    """
    theta, length = angle_from_versine(students.y), jnp.exp(jnp.clip(students.log_length, -LONGEST, LONGEST))
    # computed once, and not in each of the three rates: this halves the time
    theta, length = jax.lax.optimization_barrier((theta, length))
    single = averages(rule, closed, theta, length, flip)
    log_rate, y_rate = one_student(single, students.y, length)
    if not paired:
        return Students(log_rate, y_rate, jnp.zeros_like(students.c))
    angles, lengths = _of_pairs(theta), _of_pairs(length)
    pair = Pair(angles, students.c, lengths)
    sin = jnp.sqrt(students.y * (2 - students.y))
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


def changed(rates: Students, students: Students, changes: Changes) -> Students:
    """The rates of students whose weights decay, and whose teacher drifts."""
    cos, sin = 1 - students.y, jnp.sqrt(students.y * (2 - students.y))
    first, second = _of_pairs(_ratio(cos, sin))
    turn = 2 * first * second - students.c * (first**2 + second**2)
    return Students(rates.log_length - changes.decay, rates.y + changes.drift * cos, rates.c + changes.drift * turn)


def logarithmic_rates(
    rule: Rule, closed: bool, state: tuple[Array, Array], flip: Array, changes: Changes | None
) -> tuple[Array, Array]:
    """Time derivative of one student's (log l, log theta), where nothing changes if `changes` is None."""
    length, theta = jnp.exp(jnp.clip(state[0], -LONGEST, LONGEST)), jnp.exp(state[1])
    log_rate, y_rate = one_student(averages(rule, closed, theta, length, flip), one_minus_cos(theta), length)
    if changes is not None:
        log_rate, y_rate = log_rate - changes.decay, y_rate + changes.drift * jnp.cos(theta)
    return log_rate, y_rate / (theta * jnp.sin(theta))


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
def _solve_lanes(equations: Equations, problem: Problem, times: Array, most: Array) -> tuple[Array, ...]:
    """log l, y, c and the fluctuations' rows (T, ..., L) of L lanes, and whether each has reached the last time."""
    S, pairs, around = equations.students, problem.start.c.shape[0], problem.fluctuations.shape[0]
    cuts = [S, 2 * S, 2 * S + pairs, 2 * S + pairs + around]
    one = jax.vmap(partial(_rates, equations), in_axes=-1, out_axes=-1)
    of_lanes = problem.rule, problem.parameters, problem.flip, problem.changes

    def field(y: Array) -> Array:
        *state, rows, t = jnp.split(y, cuts)
        students = Students(*state)
        around = _rates_around(equations, students, rows, t, *of_lanes) if equations.corrected else rows
        return jnp.concatenate([*one(students, t, *of_lanes), around, jnp.ones_like(t)])

    # the last row is the time
    start = [*problem.start, problem.fluctuations, jnp.zeros((1 if equations.changing else 0, problem.flip.size))]
    first = [ATOL] * S + [ATOL_Y] * S + [ATOL] * pairs, [ATOL] * len(start[-1])
    atol = jnp.asarray(first[0] + [ATOL_1] * around + first[1])[:, None]
    values, completed = integrate(field, jnp.concatenate(start), times, RTOL, atol, most)
    return *jnp.split(values, cuts, axis=1)[:4], completed


def _rates(
    equations: Equations,
    students: Students,
    t: Array,
    rule: Array,
    parameters: dict[str, Array],
    flip: Array,
    changes: Changes,
) -> Students:
    """The time derivative of one lane's students; t is empty where nothing changes with time."""

    def under(family: Family) -> Callable[[Students], Students]:
        given = _given(equations, family, parameters, changes, t)

        def of(students: Students) -> Students:
            unchanged = rates(given, equations.closed, students, flip, equations.paired)
            return changed(unchanged, students, changes) if equations.changing else unchanged

        return of

    inside = Students(students.log_length, jnp.clip(students.y, 0.0, 2.0), jnp.clip(students.c, -1.0, 1.0))
    state: Students = jax.lax.switch(rule, [under(family) for family in equations.rules], inside)
    return state


def _given(equations: Equations, family: Family, parameters: dict[str, Array], changes: Changes, t: Array) -> Rule:
    """The rule of a lane at time t."""
    if equations.changing:
        parameters = {**parameters, "eta": parameters["eta"] / (1 + t[0] / changes.t0)}
    rule: Rule = family(**{name: parameters[name] for name in family.reals})
    return rule


def _rates_around(
    equations: Equations, students: Students, rows: Array, t: Array, rule: Array, *of_lanes: Any
) -> Array:
    """The time derivative of the fluctuations' rows (5 S, L) of students (S, L), each in a lane of its own."""
    log_length, y = (part.reshape(-1) for part in (students.log_length, students.y))
    each = (log_length, angle_from_versine(jnp.clip(y, 0.0, 2.0)), rows.reshape(5, -1))
    own = jax.tree.map(lambda of_lane: jnp.tile(of_lane, equations.students), (t, *of_lanes))
    found = [_around(equations, family, *each, *own).reshape(rows.shape) for family in equations.rules]
    return found[0] if len(found) == 1 else jnp.select([rule == index for index in range(len(found))], found)


def _around(
    equations: Equations, family: Family, log_length: Array, theta: Array, rows: Array, t: Array, *of_lanes: Any
) -> Array:
    """The time derivative of the fluctuations' rows (5, L) of a student a lane, under one rule.

    Nodes are mapped outside of lanes, so that lanes are the last axis of all arrays: this is several times faster.
    """
    by_lane = partial(jax.vmap, in_axes=-1, out_axes=-1)

    def rule_at(t: Array, parameters: dict[str, Array], changes: Changes) -> Rule:
        return _given(equations, family, parameters, changes, t)

    def length_of(log_length: Array) -> Array:
        return jnp.exp(jnp.clip(log_length, -LONGEST, LONGEST))

    def edges(log_length: Array, theta: Array, t: Array, parameters: Any, flip: Array, changes: Changes) -> Any:
        return fluctuations.edges(rule_at(t, parameters, changes), theta, length_of(log_length))

    def examples(
        place: Any, log_length: Array, theta: Array, t: Array, parameters: Any, flip: Array, changes: Any
    ) -> Any:
        moving, rule = changes if equations.changing else None, rule_at(t, parameters, changes)
        return fluctuations.examples(rule, place, theta, length_of(log_length), flip, moving)

    def rates(
        example: Any, log_length: Array, theta: Array, rows: Array, t: Array, parameters: Any, flip: Array, changes: Any
    ) -> Array:
        moving = changes if equations.changing else None
        step = fluctuations.averaged(theta, example, moving)

        def field(log_length: Array, log_theta: Array, t: Array) -> tuple[Array, Array]:
            rule = rule_at(t, parameters, changes)
            return logarithmic_rates(rule, equations.closed, (log_length, log_theta), flip, moving)

        around = Fluctuations(rows[:3], rows[3:])
        return jnp.concatenate(fluctuations.rates(field, (log_length, jnp.log(theta)), t, step, around))

    own = t, *of_lanes
    flip = of_lanes[1]
    if equations.linear:
        places = fluctuations.of_linear(theta, flip)
    else:
        places = fluctuations.on_panels(by_lane(edges)(log_length, theta, *own), theta, flip)
    terms = jax.vmap(lambda place: by_lane(examples)(place, log_length, theta, *own))(places)
    means = jax.tree.map(partial(jnp.sum, axis=0), terms)
    found: Array = by_lane(rates)(means, log_length, theta, rows, *own)
    return found


def _stacked(lanes: list[Lane], rules: tuple[Family, ...]) -> Problem:
    """The problem of cells whose rules are among `rules`; a parameter that a cell's rule does not have is 1."""
    names = sorted({name for family in rules for name in family.reals})
    parameters = {name: np.asarray([getattr(lane.cell.rule, name, 1.0) for lane in lanes], float) for name in names}
    start = Students(*(np.stack(part, axis=-1) for part in zip(*(lane.start for lane in lanes), strict=True)))
    rule, flip = [lane.rule for lane in lanes], np.asarray([lane.cell.flip for lane in lanes], float)
    of_each = [(lane.cell.drift, lane.cell.decay, lane.cell.t0) for lane in lanes]
    changes = Changes(*(np.asarray(values, float) for values in zip(*of_each, strict=True)))
    around = np.stack([_rows(lane.fluctuations) for lane in lanes], axis=-1)
    return Problem(np.asarray(rule), parameters, flip, changes, start, around)


def _rows(around: Fluctuations | None) -> np.ndarray:
    """Fluctuations as rows of the solver's state."""
    return np.zeros(0) if around is None else np.concatenate(around).reshape(-1)


def _ratio(x: Array, y: Array) -> Array:
    """x / y, and 0 where both vanish: a student on the teacher's axis with zero update stays there."""
    return jnp.where(y > 0, x / jnp.where(y > 0, y, 1.0), 0.0)
