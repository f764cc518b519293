"""Order-parameter equations of many parameter combinations in parallel, in one compiled program.

Parameter combinations form a batch along the last axis, of length L. Each batch element uses `theory.online.equations`
for its students and, if requested, `theory.fluctuations.student_fluctuations` for their fluctuations of order 1/N. The
index of its rule selects the equations.
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
ATOL_1 = 1e-9  # for fluctuations of order 1/N


@dataclass(frozen=True)
class Equations:
    """Static arguments of the compiled solver.

    `closed` selects closed forms instead of quadrature. `students` is the number of distinct students. `changing` is
    True if drift, decay or a schedule may differ from their defaults. `paired` is True if there are pairs, whose
    averages by quadrature take most of the time. `corrected` is True if fluctuations are integrated, and `linear` if
    the rules are then linear.
    """

    rules: tuple[Family, ...]
    closed: bool
    students: int
    changing: bool
    paired: bool
    corrected: bool = False
    linear: bool = False


class Problem(NamedTuple):
    """Run-time arguments of the solver with the batch as last axis.

    `rule` is the index of the rule. `fluctuations` has shape (5 S, L), or (0, L) if fluctuations are not integrated.
    """

    rule: Array
    parameters: dict[str, Array]
    flip: Array
    changes: Changes
    start: Students
    fluctuations: Array


class Setting(NamedTuple):
    """Arguments of the equations in addition to the state, for one batch element.

    `t` is empty if nothing changes with time.
    """

    t: Array
    rule: Array
    parameters: dict[str, Array]
    flip: Array
    changes: Changes


@quickly_compiled
def solve_lanes(equations: Equations, problem: Problem, times: Array, most: Array) -> tuple[Array, ...]:
    """Integrate a batch, and return log l, y, c and the rows of the fluctuations (T, ..., L).

    Also returns a mask of elements that have reached the last time.
    """
    S, pairs, num_fluctuations = equations.students, problem.start.c.shape[0], problem.fluctuations.shape[0]
    cuts = [S, 2 * S, 2 * S + pairs, 2 * S + pairs + num_fluctuations]
    student_rates = jax.vmap(partial(_rates, equations), in_axes=-1, out_axes=-1)

    def field(y: Array) -> Array:
        *state, rows, t = jnp.split(y, cuts)
        students = Students(*state)
        setting = Setting(t, problem.rule, problem.parameters, problem.flip, problem.changes)
        fluctuation_rates = _rates_around(equations, students, rows, setting) if equations.corrected else rows
        return jnp.concatenate([*student_rates(students, setting), fluctuation_rates, jnp.ones_like(t)])

    # the last row is the time
    start = [*problem.start, problem.fluctuations, jnp.zeros((1 if equations.changing else 0, problem.flip.size))]
    first = [ATOL] * S + [ATOL_Y] * S + [ATOL] * pairs, [ATOL] * len(start[-1])
    atol = jnp.asarray(first[0] + [ATOL_1] * num_fluctuations + first[1])[:, None]
    values, completed = integrate(field, jnp.concatenate(start), times, RTOL, atol, most)
    return *jnp.split(values, cuts, axis=1)[:4], completed


def _rule(equations: Equations, family: Family, setting: Setting) -> Rule:
    """Return the rule of a batch element at its time."""
    parameters = setting.parameters
    if equations.changing:
        parameters = {**parameters, "eta": setting.changes.schedule.rate(parameters["eta"], setting.t[0])}
    rule: Rule = family(**{name: parameters[name] for name in family.reals})
    return rule


def _rates(equations: Equations, students: Students, setting: Setting) -> Students:
    """Return the time derivative of the students in one batch element."""

    def make_rule_rates(family: Family) -> Callable[[Students], Students]:
        rule, changes = _rule(equations, family, setting), setting.changes if equations.changing else None
        return lambda students: rates(rule, equations.closed, students, setting.flip, changes, equations.paired)

    inside = Students(students.log_length, jnp.clip(students.y, 0.0, 2.0), jnp.clip(students.c, -1.0, 1.0))
    state: Students = jax.lax.switch(setting.rule, [make_rule_rates(family) for family in equations.rules], inside)
    return state


def _rates_around(equations: Equations, students: Students, rows: Array, setting: Setting) -> Array:
    """Return the time derivative of the fluctuations' rows (5 S, L) for students (S, L).

    Each student is a batch element of its own.
    """
    log_length, theta = students.log_length.reshape(-1), angle_from_versine(jnp.clip(students.y, 0.0, 2.0)).reshape(-1)
    student_setting: Setting = jax.tree.map(lambda array: jnp.tile(array, equations.students), setting)
    fluctuations = Fluctuations(*jnp.split(rows.reshape(5, -1), [3]))
    rates_by_rule = [
        jnp.concatenate(_around(equations, family, log_length, theta, fluctuations, student_setting)).reshape(
            rows.shape
        )
        for family in equations.rules
    ]
    return (
        rates_by_rule[0]
        if len(rates_by_rule) == 1
        else jnp.select([student_setting.rule == index for index in range(len(rates_by_rule))], rates_by_rule)
    )


def _around(
    equations: Equations, family: Family, log_length: Array, theta: Array, around: Fluctuations, setting: Setting
) -> Fluctuations:
    """Return the time derivative of the fluctuations (., L) under one rule, with a student per batch element.

    Nodes are mapped outside of the batch, so that the batch is the last axis of all arrays: this is several times
    faster.
    """
    length, over_batch = jnp.exp(jnp.clip(log_length, -LONGEST, LONGEST)), partial(jax.vmap, in_axes=-1, out_axes=-1)

    def current_changes(setting: Setting) -> Changes | None:
        return setting.changes if equations.changing else None

    def edges(theta: Array, length: Array, setting: Setting) -> list[Array]:
        return student_noise.edges(_rule(equations, family, setting), theta, length)

    def examples(place: Stability, theta: Array, length: Array, setting: Setting) -> Noise:
        rule = _rule(equations, family, setting)
        return student_noise.examples(rule, place, theta, length, setting.flip, current_changes(setting))

    def rates(example: Noise, log_length: Array, theta: Array, around: Fluctuations, setting: Setting) -> Fluctuations:
        step = student_noise.averaged(theta, example, current_changes(setting))

        def field(log_length: Array, log_theta: Array, t: Array) -> tuple[Array, Array]:
            rule = _rule(equations, family, setting._replace(t=t))
            return logarithmic_rates(
                rule, equations.closed, (log_length, log_theta), setting.flip, current_changes(setting)
            )

        return student_fluctuations.rates(field, (log_length, jnp.log(theta)), setting.t, step, around)

    if equations.linear:
        stabilities = student_noise.of_linear(theta, setting.flip)
    else:
        stabilities = student_noise.on_panels(over_batch(edges)(theta, length, setting), theta, setting.flip)
    terms = jax.vmap(lambda stability: over_batch(examples)(stability, theta, length, setting))(stabilities)
    means: Noise = jax.tree.map(partial(jnp.sum, axis=0), terms)
    fluctuation_rates: Fluctuations = over_batch(rates)(means, log_length, theta, around, setting)
    return fluctuation_rates
