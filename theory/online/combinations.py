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
from statmech.parameters import RealParameterFamily
from statmech.rules import Rule
from statmech.runtime.programs import fast_compiled_program
from statmech.schedules import TimeDependence
from theory.fluctuations import student_fluctuations, student_noise
from theory.fluctuations.student_fluctuations import StudentFluctuations
from theory.fluctuations.student_noise import StabilityNodes, StepMoments
from theory.numerics.dormand_prince import integrate
from theory.online.equations import LOG_LENGTH_CLIP, compute_logarithmic_rates, compute_rates
from theory.online.rate_terms import ATOL, VERSINE_ATOL
from theory.online.students import Students

RTOL = 1e-9
FLUCTUATION_ATOL = 1e-9  # applies to fluctuations of order 1/N


@dataclass(frozen=True)
class StudentSolverOptions:
    """Static arguments of the compiled solver.

    `use_closed_forms` selects closed forms instead of quadrature. `num_distinct_students` is the number of distinct
    students. `is_time_dependent` is True if drift, decay or a schedule may differ from their defaults. `paired` is True
    if there are pairs, whose averages by quadrature take most of the time. `has_fluctuations` is True if fluctuations
    are integrated, and `has_linear_rules` if the rules are then linear.
    """

    rules: tuple[RealParameterFamily, ...]
    use_closed_forms: bool
    num_distinct_students: int
    is_time_dependent: bool
    has_pairs: bool
    has_fluctuations: bool = False
    has_linear_rules: bool = False


class StudentBatch(NamedTuple):
    """Run-time arguments of the solver, with the batch as the last axis.

    `rule_index` is the index of the rule. `fluctuations` has shape (5 S, L), or (0, L) if fluctuations are not
    integrated.
    """

    rule_index: Array
    parameters: dict[str, Array]
    flip: Array
    changes: TimeDependence
    start: Students
    fluctuations: Array


class StudentRateArguments(NamedTuple):
    """Arguments of the rate equations for one batch element, apart from its state.

    `t` is empty if nothing changes with time.
    """

    t: Array
    rule_index: Array
    parameters: dict[str, Array]
    flip: Array
    changes: TimeDependence


@fast_compiled_program
def solve_batch(
    equations: StudentSolverOptions, batch: StudentBatch, times: Array, max_steps: Array
) -> tuple[Array, ...]:
    """Integrate a batch, and return log l, y, c and the fluctuation rows (T, ..., L).

    Also returns a mask of elements that have reached the last time.
    """
    S, pairs, num_fluctuations = equations.num_distinct_students, batch.start.c.shape[0], batch.fluctuations.shape[0]
    cuts = [S, 2 * S, 2 * S + pairs, 2 * S + pairs + num_fluctuations]
    student_rates = jax.vmap(partial(_compute_student_rates, equations), in_axes=-1, out_axes=-1)

    def field(y: Array) -> Array:
        *state, rows, t = jnp.split(y, cuts)
        students = Students(*state)
        setting = StudentRateArguments(t, batch.rule_index, batch.parameters, batch.flip, batch.changes)
        fluctuation_rates = (
            _compute_fluctuation_row_rates(equations, students, rows, setting) if equations.has_fluctuations else rows
        )
        return jnp.concatenate([*student_rates(students, setting), fluctuation_rates, jnp.ones_like(t)])

    # the last row is the time
    start = [*batch.start, batch.fluctuations, jnp.zeros((1 if equations.is_time_dependent else 0, batch.flip.size))]
    first = [ATOL] * S + [VERSINE_ATOL] * S + [ATOL] * pairs, [ATOL] * len(start[-1])
    atol = jnp.asarray(first[0] + [FLUCTUATION_ATOL] * num_fluctuations + first[1])[:, None]
    values, completed = integrate(field, jnp.concatenate(start), times, RTOL, atol, max_steps)
    return *jnp.split(values, cuts, axis=1)[:4], completed


def _make_current_rule(
    equations: StudentSolverOptions, family: RealParameterFamily, setting: StudentRateArguments
) -> Rule:
    """Return the rule of a batch element at the current time."""
    parameters = setting.parameters
    if equations.is_time_dependent:
        parameters = {**parameters, "eta": setting.changes.schedule.rate(parameters["eta"], setting.t[0])}
    rule: Rule = family(**{name: parameters[name] for name in family.real_parameter_names})
    return rule


def _compute_student_rates(
    equations: StudentSolverOptions, students: Students, setting: StudentRateArguments
) -> Students:
    """Return the time derivative of the students in one batch element."""

    def make_rule_rates(family: RealParameterFamily) -> Callable[[Students], Students]:
        rule, changes = (
            _make_current_rule(equations, family, setting),
            setting.changes if equations.is_time_dependent else None,
        )
        return lambda students: compute_rates(
            rule, equations.use_closed_forms, students, setting.flip, changes, equations.has_pairs
        )

    inside = Students(students.log_length, jnp.clip(students.y, 0.0, 2.0), jnp.clip(students.c, -1.0, 1.0))
    state: Students = jax.lax.switch(
        setting.rule_index, [make_rule_rates(family) for family in equations.rules], inside
    )
    return state


def _compute_fluctuation_row_rates(
    equations: StudentSolverOptions, students: Students, rows: Array, setting: StudentRateArguments
) -> Array:
    """Return the time derivative of the fluctuation rows (5 S, L) for students (S, L).

    Each student is treated as a separate batch element.
    """
    log_length, theta = students.log_length.reshape(-1), angle_from_versine(jnp.clip(students.y, 0.0, 2.0)).reshape(-1)
    student_setting: StudentRateArguments = jax.tree.map(
        lambda array: jnp.tile(array, equations.num_distinct_students), setting
    )
    fluctuations = StudentFluctuations(*jnp.split(rows.reshape(5, -1), [3]))
    rates_by_rule = [
        jnp.concatenate(
            _compute_fluctuation_rates(equations, family, log_length, theta, fluctuations, student_setting)
        ).reshape(rows.shape)
        for family in equations.rules
    ]
    return (
        rates_by_rule[0]
        if len(rates_by_rule) == 1
        else jnp.select([student_setting.rule_index == index for index in range(len(rates_by_rule))], rates_by_rule)
    )


def _compute_fluctuation_rates(
    equations: StudentSolverOptions,
    family: RealParameterFamily,
    log_length: Array,
    theta: Array,
    fluctuations: StudentFluctuations,
    setting: StudentRateArguments,
) -> StudentFluctuations:
    """Return the time derivative of fluctuations (., L) under one rule, one student per batch element.

    Nodes are mapped outside of the batch, so that the batch is the last axis of all arrays: this is several times
    faster.
    """
    length, over_batch = (
        jnp.exp(jnp.clip(log_length, -LOG_LENGTH_CLIP, LOG_LENGTH_CLIP)),
        partial(jax.vmap, in_axes=-1, out_axes=-1),
    )

    def current_changes(setting: StudentRateArguments) -> TimeDependence | None:
        return setting.changes if equations.is_time_dependent else None

    def edges(theta: Array, length: Array, setting: StudentRateArguments) -> list[Array]:
        return student_noise.compute_stability_panel_edges(
            _make_current_rule(equations, family, setting), theta, length
        )

    def examples(nodes: StabilityNodes, theta: Array, length: Array, setting: StudentRateArguments) -> StepMoments:
        rule = _make_current_rule(equations, family, setting)
        return student_noise.compute_weighted_step_terms(
            rule, nodes, theta, length, setting.flip, current_changes(setting)
        )

    def rates(
        example: StepMoments,
        log_length: Array,
        theta: Array,
        fluctuations: StudentFluctuations,
        setting: StudentRateArguments,
    ) -> StudentFluctuations:
        step = student_noise.convert_to_step_averages(theta, example, current_changes(setting))

        def field(log_length: Array, log_theta: Array, t: Array) -> tuple[Array, Array]:
            rule = _make_current_rule(equations, family, setting._replace(t=t))
            return compute_logarithmic_rates(
                rule, equations.use_closed_forms, (log_length, log_theta), setting.flip, current_changes(setting)
            )

        return student_fluctuations.compute_fluctuation_rates(
            field, (log_length, jnp.log(theta)), setting.t, step, fluctuations
        )

    if equations.has_linear_rules:
        stabilities = student_noise.make_linear_rule_nodes(theta, setting.flip)
    else:
        stabilities = student_noise.make_stability_nodes(over_batch(edges)(theta, length, setting), theta, setting.flip)
    terms = jax.vmap(lambda stability: over_batch(examples)(stability, theta, length, setting))(stabilities)
    means: StepMoments = jax.tree.map(partial(jnp.sum, axis=0), terms)
    fluctuation_rates: StudentFluctuations = over_batch(rates)(means, log_length, theta, fluctuations, setting)
    return fluctuation_rates
