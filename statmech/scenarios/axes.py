"""Axes of a sweep: a list where a value could stand.

A list, a tuple, an array, `{linspace: [a, b, n]}`, `{logspace: [a, b, n]}` (exponents, as in NumPy) or
`{geomspace: [a, b, n]}` (end points, as in NumPy) makes an axis; anything else is one value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Discriminator, Field, GetCoreSchemaHandler, Tag, TypeAdapter, WithJsonSchema
from pydantic_core import CoreSchema

from statmech.errors import quoted
from statmech.optima import OPTIMAL

# what a key may be given as, for editors and type checkers
Spaced = Mapping[str, Sequence[float]]
Numbers = float | Sequence[float] | np.ndarray | Spaced
OverTime = Numbers | str | Mapping[str, Any] | Sequence[Any]  # of keys that may be functions of time
Wholes = int | Sequence[int] | np.ndarray | Spaced
Names = str | Sequence[str]

SPACES: dict[str, Callable[..., np.ndarray]] = {
    "linspace": np.linspace,
    "logspace": np.logspace,
    "geomspace": np.geomspace,
}


MAX_AXIS = 1_000_000
CHUNK_COMBINATIONS = 4096  # of a chunk of a store, at most: so many take a second, however small they are
MAX_COMBINATIONS = 10_000_000 * CHUNK_COMBINATIONS  # 10^7 chunks, what a store holds
MAX_CHECKED = 10_000_000  # combinations of values that keys can have only together
FALLING = "schedule: {t0: 5}, for a learning rate of eta / (1 + t/t0)"  # how it is written
OVER_TIME = {"at", "is", OPTIMAL}  # keys of a section that is a function of time


def expand(given: Any) -> Any:
    """A spaced axis written out; anything else unchanged.

    >>> expand({"geomspace": [1, 100, 3]})
    [1.0, 10.0, 100.0]
    """
    if isinstance(given, Iterator) or (isinstance(given, range) and given[MAX_AXIS:]):
        raise ValueError(f"must be a list of at most {MAX_AXIS} values, not {quoted(given)}")
    if isinstance(given, np.ndarray):
        return given.tolist()
    if not isinstance(given, dict):
        return given
    if "schedule" in given or "t0" in given:
        raise ValueError(f"a rate that falls with time is written {FALLING}")
    if {*given} & OVER_TIME:
        raise ValueError("cannot change with time here: it is a number, or a list of them")
    if len(given) != 1 or next(iter(given)) not in SPACES:
        raise ValueError(f"an axis is a list or one of {', '.join(SPACES)} with [start, stop, number]")
    [(name, arguments)] = given.items()
    try:
        start, stop, number = arguments
        start, stop, number = float(start), float(stop), int(number)
        with np.errstate(all="raise"):
            values = SPACES[name](start, stop, number) if 1 <= number <= MAX_AXIS else None
    except (TypeError, ValueError, ArithmeticError) as problem:
        raise ValueError(f"{name} takes [start, stop, number], not {quoted(arguments)}") from problem
    if values is None:
        raise ValueError(f"an axis has 1 to {MAX_AXIS} values, not {quoted(number)}")
    return values.tolist()


def listed(given: Any) -> Any:
    """Recorded times, written out: a list, a spaced axis, or one value."""
    return (given,) if np.isscalar(given) else expand(given)


def is_axis(value: Any) -> bool:
    """True if a validated value is an axis of the sweep.

    >>> is_axis((1, 2)), is_axis(3)
    (True, False)
    """
    return isinstance(value, tuple)


def once(values: list[Any]) -> list[Any]:
    """Each of these values once, as they first occur: those of an axis that is parallel to others may repeat.

    >>> once([{"t0": 5}, {"t0": 7}, {"t0": 5}])
    [{'t0': 5}, {'t0': 7}]
    """
    return [value for index, value in enumerate(values) if value not in values[:index]]


def points(value: Any) -> tuple[Any, ...]:
    """The values of an axis, or the one value as a tuple."""
    return value if is_axis(value) else (value,)


_SPACE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "minProperties": 1,
    "maxProperties": 1,
    "properties": {
        name: {"type": "array", "minItems": 3, "maxItems": 3, "description": "[start, stop, number]"} for name in SPACES
    },
}


def axis_schema(value: dict[str, Any], spaced: bool) -> dict[str, Any]:
    """The JSON Schema of one or several values of this schema."""
    forms = [value, {"type": "array", "items": value, "minItems": 1}]
    return {"anyOf": forms + ([_SPACE_SCHEMA] if spaced else [])}


def one_or_many(one: Any, many: Any) -> Any:
    """The type of a key that takes one value or a list; its form decides which, so that an error is reported once."""
    kind = Discriminator(lambda given: "axis" if isinstance(given, list | tuple) else "value")
    return Annotated[Annotated[one, Tag("value")] | Annotated[many, Tag("axis")], kind]


class ReadAs:
    """The type that pydantic reads in place of an annotated one, which editors and type checkers see.

    >>> TypeAdapter(Annotated[Names, ReadAs(int)]).validate_python("3")
    3
    """

    def __init__(self, kind: Any):
        self.kind = kind

    def __get_pydantic_core_schema__(self, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(self.kind)


def axis_of(
    value_type: Any,
    schema: dict[str, Any] | None = None,
    spaced: bool = True,
    is_value: Callable[[Any], bool] = lambda _: False,
) -> ReadAs:
    """A reader of a config key that takes a value of `value_type` or an axis of such values.

    `schema` is the JSON Schema of one value, by default what pydantic makes of the type; `spaced` says whether
    `{linspace: ...}` and the like may stand for the values, and `is_value` which sections are one value instead.

    >>> from statmech.scenarios.keys import Number
    >>> axis = Annotated[Numbers, axis_of(Annotated[Number, Field(ge=0)])]
    >>> TypeAdapter(axis).validate_python({"linspace": [0, 1, 3]})
    (0.0, 0.5, 1.0)
    """
    schema = TypeAdapter(value_type).json_schema() if schema is None else schema
    list_type = Annotated[tuple[value_type, ...], Field(min_length=1)]
    reader = BeforeValidator(lambda given: expand(given) if spaced and not is_value(given) else given)
    return ReadAs(Annotated[one_or_many(value_type, list_type), reader, WithJsonSchema(axis_schema(schema, spaced))])
