"""The order-parameter equations of many parameter combinations side by side, in one compiled program.

Each lane is one of them: `theory.online.equations` for its students, and beside these, where asked for, the
fluctuations of order 1/N of each student (`theory.fluctuations.student_fluctuations`). A rule's index selects its
equations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from statmech.numerics.gaussian import Array
from statmech.order_parameters import angle_from_versine
from statmech.parameters import Family
from statmech.rules import Rule
from statmech.runtime.programs import quickly_compiled
from statmech.schedules import Changes
from theory.fluctuations import student_fluctuations, student_noise
from theory.fluctuations.student_fluctuations import Fluctuations
from theory.fluctuations.student_noise import Noise, Stability
from theory.numerics.dormand_prince import integrate
from theory.online.equations import LONGEST, logarithmic_rates, rates
from theory.online.rate_terms import ATOL, ATOL_Y
from theory.online.students import Students

RTOL = 1e-9
ATOL_1 = 1e-9  # of the fluctuations of order 1/N


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


class Problem(NamedTuple):
    """Run-time arguments of the solver, lanes last: a rule's index among all, its parameters, label noise, what
    changes, initial students, and their fluctuations (5 S, L), or (0, L) where they are not followed."""

    rule: Array
    parameters: dict[str, Array]
    flip: Array
    changes: Changes
    start: Students
    fluctuations: Array


class Setting(NamedTuple):
    """Arguments of one lane's equations besides the state; t is empty where nothing changes with time."""

    t: Array
    rule: Array
    parameters: dict[str, Array]
    flip: Array
    changes: Changes


@quickly_compiled
def solve_lanes(equations: Equations, problem: Problem, times: Array, most: Array) -> tuple[Array, ...]:
    """log l, y, c and the fluctuations' rows (T, ..., L) of L lanes, and whether each has reached the last time."""
    S, pairs, around = equations.students, problem.start.c.shape[0], problem.fluctuations.shape[0]
    cuts = [S, 2 * S, 2 * S + pairs, 2 * S + pairs + around]
    one = jax.vmap(partial(_rates, equations), in_axes=-1, out_axes=-1)

    def field(y: Array) -> Array:
        *state, rows, t = jnp.split(y, cuts)
        students = Students(*state)
        setting = Setting(t, problem.rule, problem.parameters, problem.flip, problem.changes)
        around = _rates_around(equations, students, rows, setting) if equations.corrected else rows
        return jnp.concatenate([*one(students, setting), around, jnp.ones_like(t)])

    # the last row is the time
    start = [*problem.start, problem.fluctuations, jnp.zeros((1 if equations.changing else 0, problem.flip.size))]
    first = [ATOL] * S + [ATOL_Y] * S + [ATOL] * pairs, [ATOL] * len(start[-1])
    atol = jnp.asarray(first[0] + [ATOL_1] * around + first[1])[:, None]
    values, completed = integrate(field, jnp.concatenate(start), times, RTOL, atol, most)
    return *jnp.split(values, cuts, axis=1)[:4], completed


def _rule(equations: Equations, family: Family, setting: Setting) -> Rule:
    """The rule of a lane at its time."""
    parameters = setting.parameters
    if equations.changing:
        parameters = {**parameters, "eta": setting.changes.schedule.rate(parameters["eta"], setting.t[0])}
    rule: Rule = family(**{name: parameters[name] for name in family.reals})
    return rule


def _rates(equations: Equations, students: Students, setting: Setting) -> Students:
    """The time derivative of one lane's students."""

    def under(family: Family) -> Callable[[Students], Students]:
        rule, changes = _rule(equations, family, setting), setting.changes if equations.changing else None
        return lambda students: rates(rule, equations.closed, students, setting.flip, changes, equations.paired)

    inside = Students(students.log_length, jnp.clip(students.y, 0.0, 2.0), jnp.clip(students.c, -1.0, 1.0))
    state: Students = jax.lax.switch(setting.rule, [under(family) for family in equations.rules], inside)
    return state


def _rates_around(equations: Equations, students: Students, rows: Array, setting: Setting) -> Array:
    """The time derivative of the fluctuations' rows (5 S, L) of students (S, L), each in a lane of its own."""
    log_length, theta = students.log_length.reshape(-1), angle_from_versine(jnp.clip(students.y, 0.0, 2.0)).reshape(-1)
    own: Setting = jax.tree.map(lambda of_lane: jnp.tile(of_lane, equations.students), setting)
    around = Fluctuations(*jnp.split(rows.reshape(5, -1), [3]))
    found = [
        jnp.concatenate(_around(equations, family, log_length, theta, around, own)).reshape(rows.shape)
        for family in equations.rules
    ]
    return found[0] if len(found) == 1 else jnp.select([own.rule == index for index in range(len(found))], found)


def _around(
    equations: Equations, family: Family, log_length: Array, theta: Array, around: Fluctuations, setting: Setting
) -> Fluctuations:
    """The time derivative of the fluctuations (., L) of a student a lane, under one rule.

    Nodes are mapped outside of lanes, so that lanes are the last axis of all arrays: this is several times faster.
    """
    length, by_lane = jnp.exp(jnp.clip(log_length, -LONGEST, LONGEST)), partial(jax.vmap, in_axes=-1, out_axes=-1)

    def moving(setting: Setting) -> Changes | None:
        return setting.changes if equations.changing else None

    def edges(theta: Array, length: Array, setting: Setting) -> list[Array]:
        return student_noise.edges(_rule(equations, family, setting), theta, length)

    def examples(place: Stability, theta: Array, length: Array, setting: Setting) -> Noise:
        rule = _rule(equations, family, setting)
        return student_noise.examples(rule, place, theta, length, setting.flip, moving(setting))

    def rates(example: Noise, log_length: Array, theta: Array, around: Fluctuations, setting: Setting) -> Fluctuations:
        step = student_noise.averaged(theta, example, moving(setting))

        def field(log_length: Array, log_theta: Array, t: Array) -> tuple[Array, Array]:
            rule = _rule(equations, family, setting._replace(t=t))
            return logarithmic_rates(rule, equations.closed, (log_length, log_theta), setting.flip, moving(setting))

        return student_fluctuations.rates(field, (log_length, jnp.log(theta)), setting.t, step, around)

    if equations.linear:
        places = student_noise.of_linear(theta, setting.flip)
    else:
        places = student_noise.on_panels(by_lane(edges)(theta, length, setting), theta, setting.flip)
    terms = jax.vmap(lambda place: by_lane(examples)(place, theta, length, setting))(places)
    means: Noise = jax.tree.map(partial(jnp.sum, axis=0), terms)
    found: Fluctuations = by_lane(rates)(means, log_length, theta, around, setting)
    return found
