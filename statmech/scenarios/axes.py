"""Axes of a sweep: keys given as a list instead of one value.

A list, a tuple, an array, `{linspace: [a, b, n]}`, `{logspace: [a, b, n]}` (exponents, as in NumPy) or
`{geomspace: [a, b, n]}` (end points, as in NumPy) makes an axis. Anything else is a single value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Discriminator, Field, GetCoreSchemaHandler, Tag, TypeAdapter, WithJsonSchema
from pydantic_core import CoreSchema

from statmech.errors import quoted
from statmech.optima import OPTIMAL

# accepted forms of a key, for editors and type checkers
Spaced = Mapping[str, Sequence[float]]
Numbers = float | Sequence[float] | np.ndarray | Spaced
OverTime = Numbers | str | Mapping[str, Any] | Sequence[Any]  # for keys that can be functions of time
Wholes = int | Sequence[int] | np.ndarray | Spaced
Names = str | Sequence[str]

SPACES: dict[str, Callable[..., np.ndarray]] = {
    "linspace": np.linspace,
    "logspace": np.logspace,
    "geomspace": np.geomspace,
}


MAX_AXIS = 1_000_000
CHUNK_COMBINATIONS = 4096  # per chunk of a store: reading more takes over a second
MAX_COMBINATIONS = 10_000_000 * CHUNK_COMBINATIONS  # 10^7 chunks, the capacity of a store
MAX_CHECKED = 10_000_000  # for checks of several keys in combination
FALLING = "schedule: {t0: 5}, for a learning rate of eta / (1 + t/t0)"  # quoted in messages
OVER_TIME = {"at", "is", OPTIMAL}  # keys of a section that is a function of time


def expand(given: Any) -> Any:
    """Return a spaced axis as a list of values, and anything else unchanged.

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
        raise ValueError("cannot change with time here: give a number or a list of numbers")
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
    """Return recorded times as a list, given a list, a spaced axis or one value."""
    return (given,) if np.isscalar(given) else expand(given)


def is_axis(value: Any) -> bool:
    """Return True if a validated value is an axis of the sweep.

    >>> is_axis((1, 2)), is_axis(3)
    (True, False)
    """
    return isinstance(value, tuple)


def once(values: list[Any]) -> list[Any]:
    """Return the distinct values in the order of their first occurrence.

    An axis that is zipped with others may repeat values.

    >>> once([{"t0": 5}, {"t0": 7}, {"t0": 5}])
    [{'t0': 5}, {'t0': 7}]
    """
    return [value for index, value in enumerate(values) if value not in values[:index]]


def points(value: Any) -> tuple[Any, ...]:
    """Return the values of an axis, or a single value as a tuple of length 1."""
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
    """Return the JSON Schema of one value or a list of values of this schema."""
    forms = [value, {"type": "array", "items": value, "minItems": 1}]
    return {"anyOf": forms + ([_SPACE_SCHEMA] if spaced else [])}


def one_or_many(one: Any, many: Any) -> Any:
    """Return the type of a key that takes one value or a list.

    Only the type that matches the form is validated, so that an error is reported once.
    """
    kind = Discriminator(lambda given: "axis" if isinstance(given, list | tuple) else "value")
    return Annotated[Annotated[one, Tag("value")] | Annotated[many, Tag("axis")], kind]


class ReadAs:
    """The type that pydantic validates instead of the annotated type that editors see.

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
    """Return the type of a config key that takes a value of `value_type` or an axis of such values.

    `schema` is the JSON Schema of one value, by default the schema that pydantic derives from the type. `spaced` allows
    `{linspace: ...}` and the like, and `is_value` returns True for sections that are a single value.

    >>> from statmech.scenarios.keys import Number
    >>> axis = Annotated[Numbers, axis_of(Annotated[Number, Field(ge=0)])]
    >>> TypeAdapter(axis).validate_python({"linspace": [0, 1, 3]})
    (0.0, 0.5, 1.0)
    """
    schema = TypeAdapter(value_type).json_schema() if schema is None else schema
    list_type = Annotated[tuple[value_type, ...], Field(min_length=1)]
    reader = BeforeValidator(lambda given: expand(given) if spaced and not is_value(given) else given)
    return ReadAs(Annotated[one_or_many(value_type, list_type), reader, WithJsonSchema(axis_schema(schema, spaced))])
