r"""Schedules of the learning rate, and checks of online learning in steps of 1/N.

A schedule :math:`\eta(t) = \eta/(1 + t/t_0)` is written `schedule: {t0: 5}` in a config. Only :math:`t_0` is stored. An
axis of the sweep is a list of schedules, or the shorter `schedule: {t0: [2, 5, 20]}`.

The checks concern the number of steps, the rates of drift and decay, and annealing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from statmech.errors import Problem, quote_value
from statmech.keys.key_types import Number
from statmech.keys.sweep_grid import SCHEDULE_SYNTAX_EXAMPLE, axis_of, is_axis, make_axis_schema

T0_SCHEMA = {"type": "number", "exclusiveMinimum": 0}
SCHEDULE_SCHEMA = {
    "type": "object",
    "properties": {"t0": make_axis_schema(T0_SCHEMA, spaced=True)},
    "required": ["t0"],
    "additionalProperties": False,
}


def _extract_t0(schedule: Any) -> Any:
    """Return the t0 of a schedule in a config, or a list for an axis of schedules.

    >>> _extract_t0({"t0": 5}), _extract_t0([{"t0": 2}, {"t0": 5}])
    (5, [2, 5])
    """
    if schedule is None:
        return None
    if isinstance(schedule, list | tuple):
        return [_extract_t0(single) for single in schedule]
    if not isinstance(schedule, dict) or [*schedule] != ["t0"]:
        raise ValueError(f"must be written {SCHEDULE_SYNTAX_EXAMPLE}, not {quote_value(schedule)}")
    return schedule["t0"]


def _format_t0(t0: Any) -> Any:
    """Write t0, or an axis of t0, as schedules of a config."""
    if is_axis(t0):
        return [{"t0": value} for value in t0]
    return None if t0 is None else {"t0": t0}


ScheduleTime = Annotated[Number, Field(gt=0)]
ScheduleTimeAxis = Annotated[Any, axis_of(ScheduleTime, T0_SCHEMA)]
OptionalSchedule = Annotated[
    ScheduleTimeAxis | None,
    BeforeValidator(_extract_t0),
    PlainSerializer(_format_t0, when_used="json"),
    WithJsonSchema(
        {"anyOf": [SCHEDULE_SCHEMA, {"type": "array", "items": SCHEDULE_SCHEMA, "minItems": 1}, {"type": "null"}]}
    ),
]


MAX_STEPS = 2**62
DEFAULT_ANNEALING = "hyperbolic"  # has no effect without a schedule


def count_steps(times: Sequence[float] | np.ndarray, N: int) -> np.ndarray:
    """Return the number of steps N t, rounded to an integer, for each recorded time.

    >>> count_steps([0.01, 0.5, 1], N=20)
    array([ 0, 10, 20])
    """
    return np.rint(np.asarray(times) * N).astype(np.int64)


def find_step_count_problems(t: float, N: float) -> Iterator[Problem]:
    """Find a time t whose number of steps t N overflows a 64-bit integer.

    >>> list(find_step_count_problems(10, 100)), list(find_step_count_problems(1e10, 1e9))
    ([], [(('t',), 't N = 1e+10 N exceeds 2^62 steps')])
    """
    if t * N >= MAX_STEPS:
        yield ("t",), f"t N = {t:g} N exceeds 2^62 steps"


def find_excessive_rates(name: str, rate: float, N: float) -> Iterator[Problem]:
    """Find a rate of drift or decay that exceeds N, so that 1 - rate/N is negative.

    >>> list(find_excessive_rates("decay", 5, 4))
    [(('decay',), 'decay = 5 is too large for N = 4: 1 - decay/N would be negative')]
    """
    if rate > N:
        yield (name,), f"{name} = {rate:g} is too large for N = {N}: 1 - {name}/N would be negative"


def find_annealing_problems(schedule: object, annealing: object) -> Iterator[Problem]:
    """Find an `annealing` that has no effect, because there is no schedule.

    >>> list(find_annealing_problems(None, "exponential"))
    [(('annealing',), 'a learning rate without `schedule: {t0: time}` does not fall')]
    """
    if schedule is None and annealing != DEFAULT_ANNEALING:
        yield ("annealing",), "a learning rate without `schedule: {t0: time}` does not fall"
