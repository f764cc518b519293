r"""Schedules of the learning rate: :math:`\eta(t) = \eta/(1 + t/t_0)`, written `schedule: {t0: 5}` in a config.

Only :math:`t_0` is stored. An axis of the sweep is a list of schedules, or the shorter `schedule: {t0: [2, 5, 20]}`.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from statmech.errors import quote_value
from statmech.scenarios.axes import SCHEDULE_SYNTAX_EXAMPLE, axis_of, is_axis, make_axis_schema
from statmech.scenarios.keys import Number

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
