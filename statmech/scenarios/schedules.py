r"""Schedules of the learning rate: :math:`\eta(t) = \eta/(1 + t/t_0)`, written `schedule: {t0: 5}` in a config.

A schedule is stored as its :math:`t_0`. An axis of the sweep is a list of schedules, or `schedule: {t0: [2, 5, 20]}`
for short.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from statmech.errors import quoted
from statmech.scenarios.axes import FALLING, axis_of, axis_schema, is_axis
from statmech.scenarios.keys import Number

TIME = {"type": "number", "exclusiveMinimum": 0}
SCHEDULE = {
    "type": "object",
    "properties": {"t0": axis_schema(TIME, spaced=True)},
    "required": ["t0"],
    "additionalProperties": False,
}


def _times_of(given: Any) -> Any:
    """Return the t0 of a schedule as written in a config, or a list for an axis of schedules.

    >>> _times_of({"t0": 5}), _times_of([{"t0": 2}, {"t0": 5}])
    (5, [2, 5])
    """
    if given is None:
        return None
    if isinstance(given, list | tuple):
        return [_times_of(single) for single in given]
    if not isinstance(given, dict) or [*given] != ["t0"]:
        raise ValueError(f"must be written {FALLING}, not {quoted(given)}")
    return given["t0"]


def _written(t0: Any) -> Any:
    """Return a t0, or an axis of values, as a schedule in a config."""
    if is_axis(t0):
        return [{"t0": value} for value in t0]
    return None if t0 is None else {"t0": t0}


Schedule = Annotated[Number, Field(gt=0)]
ScheduleAxis = Annotated[Any, axis_of(Schedule, TIME)]
OptionalSchedule = Annotated[
    ScheduleAxis | None,
    BeforeValidator(_times_of),
    PlainSerializer(_written, when_used="json"),
    WithJsonSchema({"anyOf": [SCHEDULE, {"type": "array", "items": SCHEDULE, "minItems": 1}, {"type": "null"}]}),
]
