"""Axes of a sweep: config keys that list several values.

A list, a tuple, an array, `{linspace: [a, b, n]}`, `{logspace: [a, b, n]}` (exponents, as in NumPy) or
`{geomspace: [a, b, n]}` (end points, as in NumPy) makes an axis. Anything else is a single value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Discriminator, Field, GetCoreSchemaHandler, Tag, TypeAdapter, WithJsonSchema
from pydantic_core import CoreSchema

from statmech.errors import quote_value
from statmech.optima import OPTIMAL_KEYWORD

# types of the values that a key accepts, for editors and type checkers
SpacedAxisSection = Mapping[str, Sequence[float]]
NumberOrAxis = float | Sequence[float] | np.ndarray | SpacedAxisSection
NumbersOverTime = NumberOrAxis | str | Mapping[str, Any] | Sequence[Any]  # numbers, or functions of time
IntegerOrAxis = int | Sequence[int] | np.ndarray | SpacedAxisSection
NameOrAxis = str | Sequence[str]

SPACING_FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "linspace": np.linspace,
    "logspace": np.logspace,
    "geomspace": np.geomspace,
}


MAX_AXIS_VALUES = 1_000_000
MAX_CELLS_PER_STORE_CHUNK = 4096  # in one chunk of a store; reading a larger chunk takes over a second
MAX_CELLS_PER_STORE = 10_000_000 * MAX_CELLS_PER_STORE_CHUNK  # a store holds at most 10^7 chunks
MAX_CHECKED_COMBINATIONS = 10_000_000  # limit for checks of several keys in combination
SCHEDULE_SYNTAX_EXAMPLE = (
    "schedule: {t0: 5}, for a learning rate of eta / (1 + t/t0)"  # error messages quote this example
)
TIME_FUNCTION_KEYS = {"at", "is", OPTIMAL_KEYWORD}  # keys inside a section such as {at: [0, 5], is: [1, 2]}


def expand_spacing(value: Any) -> Any:
    """Expand a spaced axis to a list of values, and return anything else unchanged.

    >>> expand_spacing({"geomspace": [1, 100, 3]})
    [1.0, 10.0, 100.0]
    """
    if isinstance(value, Iterator) or (isinstance(value, range) and value[MAX_AXIS_VALUES:]):
        raise ValueError(f"must be a list of at most {MAX_AXIS_VALUES} values, not {quote_value(value)}")
    if isinstance(value, np.ndarray):
        return value.tolist()
    if not isinstance(value, dict):
        return value
    if "schedule" in value or "t0" in value:
        raise ValueError(f"a rate that falls with time is written {SCHEDULE_SYNTAX_EXAMPLE}")
    if {*value} & TIME_FUNCTION_KEYS:
        raise ValueError("cannot change with time here: give a number or a list of numbers")
    if len(value) != 1 or next(iter(value)) not in SPACING_FUNCTIONS:
        raise ValueError(f"an axis must be a list or one of {', '.join(SPACING_FUNCTIONS)} with [start, stop, number]")
    [(name, arguments)] = value.items()
    try:
        start, stop, number = arguments
        start, stop, number = float(start), float(stop), int(number)
        with np.errstate(all="raise"):
            values = SPACING_FUNCTIONS[name](start, stop, number) if 1 <= number <= MAX_AXIS_VALUES else None
    except (TypeError, ValueError, ArithmeticError) as problem:
        raise ValueError(f"{name} requires [start, stop, number], not {quote_value(arguments)}") from problem
    if values is None:
        raise ValueError(f"an axis must have between 1 and {MAX_AXIS_VALUES} values, not {quote_value(number)}")
    return values.tolist()


def expand_to_list(value: Any) -> Any:
    """Return the values of a list, a spaced axis or a single number, such as recorded times."""
    return (value,) if np.isscalar(value) else expand_spacing(value)


def is_axis(value: Any) -> bool:
    """Return True if a validated value is an axis of the sweep.

    >>> is_axis((1, 2)), is_axis(3)
    (True, False)
    """
    return isinstance(value, tuple)


def drop_duplicates(values: list[Any]) -> list[Any]:
    """Return the distinct values in order of first occurrence.

    Values can repeat on an axis that is zipped with others.

    >>> drop_duplicates([{"t0": 5}, {"t0": 7}, {"t0": 5}])
    [{'t0': 5}, {'t0': 7}]
    """
    return [value for index, value in enumerate(values) if value not in values[:index]]


def ensure_tuple(value: Any) -> tuple[Any, ...]:
    """Return the values of an axis, or a single value as a tuple of length 1."""
    return value if is_axis(value) else (value,)


_SPACING_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "minProperties": 1,
    "maxProperties": 1,
    "properties": {
        name: {"type": "array", "minItems": 3, "maxItems": 3, "description": "[start, stop, number]"}
        for name in SPACING_FUNCTIONS
    },
}


def make_axis_schema(value_schema: dict[str, Any], spaced: bool) -> dict[str, Any]:
    """Return the JSON Schema of a single value or a list, given the schema of a value."""
    forms = [value_schema, {"type": "array", "items": value_schema, "minItems": 1}]
    return {"anyOf": forms + ([_SPACING_SCHEMA] if spaced else [])}


def make_value_or_list_type(value_type: Any, list_type: Any) -> Any:
    """Return the type of a key that accepts a single value or a list.

    The form of the value selects the type to validate, so that an error is reported only once.
    """
    kind = Discriminator(lambda given: "axis" if isinstance(given, list | tuple) else "value")
    return Annotated[Annotated[value_type, Tag("value")] | Annotated[list_type, Tag("axis")], kind]


class PydanticTypeOverride:
    """Annotation with the type that pydantic validates, while editors show the annotated type.

    >>> TypeAdapter(Annotated[NameOrAxis, PydanticTypeOverride(int)]).validate_python("3")
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
    is_single_value: Callable[[Any], bool] = lambda _: False,
) -> PydanticTypeOverride:
    """Return the type of a config key that accepts one value of `value_type` or an axis of values.

    `schema` is the JSON Schema of one value, by default the schema that pydantic derives from the type. `spaced` allows
    `{linspace: ...}` and similar axes. `is_single_value` returns True for sections that are a single value.

    >>> from statmech.scenarios.keys import Number
    >>> axis = Annotated[NumberOrAxis, axis_of(Annotated[Number, Field(ge=0)])]
    >>> TypeAdapter(axis).validate_python({"linspace": [0, 1, 3]})
    (0.0, 0.5, 1.0)
    """
    schema = TypeAdapter(value_type).json_schema() if schema is None else schema
    list_type = Annotated[tuple[value_type, ...], Field(min_length=1)]
    reader = BeforeValidator(lambda given: expand_spacing(given) if spaced and not is_single_value(given) else given)
    return PydanticTypeOverride(
        Annotated[
            make_value_or_list_type(value_type, list_type), reader, WithJsonSchema(make_axis_schema(schema, spaced))
        ]
    )
