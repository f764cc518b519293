"""Types of config keys, and descriptions derived from the types."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, StrictBool, Tag, TypeAdapter, WithJsonSchema

from statmech.errors import format_unknown_name, quote_value
from statmech.keys.sweep_grid import (
    IntegerOrAxis,
    NumberOrAxis,
    PydanticTypeOverride,
    axis_of,
    expand_to_list,
    make_axis_schema,
)
from statmech.parameters.parameter_fields import BOUND_KINDS, JSON_SCHEMA_TYPES, ConfigKey
from statmech.parameters.parameter_fields import parameter as parameter  # re-exported with the other parts of keys

MAX_INPUT_DIMENSION = 10**15  # larger values must be typos
PARAMETERS = "parameters"  # stands for all remaining parameters in AXES
PYTHON_TYPES_BY_JSON_TYPE = {schema: kind for kind, schema in JSON_SCHEMA_TYPES.items()}


def _check_number(value: Any) -> Any:
    """Convert a NumPy scalar to a number, and reject booleans and strings."""
    if isinstance(value, bool | str):
        raise ValueError(f"must be a number, not {quote_value(value)}")
    return value.item() if isinstance(value, np.generic) else value


Number = Annotated[float, BeforeValidator(_check_number), Field(allow_inf_nan=False)]
Whole = Annotated[int, BeforeValidator(_check_number)]
Nonnegative = Annotated[Number, Field(ge=0)]
DimensionAxis = Annotated[
    IntegerOrAxis,
    axis_of(
        Annotated[Whole, Field(ge=2, le=MAX_INPUT_DIMENSION)],
        {"type": "integer", "minimum": 2, "maximum": MAX_INPUT_DIMENSION},
    ),
]
FlipAxis = Annotated[
    NumberOrAxis, axis_of(Annotated[Number, Field(ge=0, le=0.5)], {"type": "number", "minimum": 0, "maximum": 0.5})
]
NonnegativeAxis = Annotated[NumberOrAxis, axis_of(Nonnegative, {"type": "number", "minimum": 0})]
PARAMETER_ADAPTERS: dict[type, TypeAdapter[Any]] = {  # keyed by the declared type; integers are validated as floats
    type_: TypeAdapter(Annotated[Any, axis_of(value, {}, spaced=value is Number)])
    for type_, value in ((float, Number), (int, Number), (bool, StrictBool), (str, str))
}


def config_key(default: Any = ..., *, description: str, symbol: str = "", unit: str = "1", **more: Any) -> Any:
    """Return a pydantic `Field` with a symbol and a unit. Without a default, the key is required."""
    return Field(default, description=description, json_schema_extra={"symbol": symbol, "unit": unit}, **more)


def one_of(
    choices: Mapping[str, object], noun: str, hints_by_name: Mapping[str, str] | None = None
) -> PydanticTypeOverride:
    """Return the type of a key whose values are names from `choices`, or an axis of names.

    Errors suggest a similar name. `hints_by_name` maps names that only other kinds of scenarios support to an
    explanation.
    """
    name = Annotated[str, AfterValidator(make_name_validator(choices, noun, hints_by_name))]
    return axis_of(name, {"enum": list(choices)}, spaced=False)


def make_keyword_or_section_type(
    keywords: Collection[str], section: type, noun: str, hints_by_name: Mapping[str, str] | None = None
) -> PydanticTypeOverride:
    """Return the type of a key that accepts a keyword or a section.

    `hints_by_name` maps keywords that belong in the section to an explanation of the correct syntax.
    """
    keyword = Annotated[
        str,
        AfterValidator(make_name_validator(keywords, noun, hints_by_name)),
        WithJsonSchema({"enum": list(keywords)}),
    ]
    discriminator = Discriminator(lambda given: "word" if isinstance(given, str) else "given")
    return PydanticTypeOverride(
        Annotated[Annotated[keyword, Tag("word")] | Annotated[section, Tag("given")], discriminator]
    )


def make_increasing_validator(noun: str) -> AfterValidator:
    """Return a validator for keys with increasing values, called `noun` in messages."""

    def check(values: tuple[float, ...]) -> tuple[float, ...]:
        """Raise `ValueError` unless the values are strictly increasing."""
        if any(later <= earlier for earlier, later in itertools.pairwise(values)):
            raise ValueError(f"{noun} must increase")
        return values

    return AfterValidator(check)


def make_name_validator(choices: Collection[str], noun: str, hints_by_name: Mapping[str, str] | None = None) -> Any:
    """Return a validator for keys that accept only the names in `choices`.

    For other names, the error gives the explanation in `hints_by_name`, or suggests the most similar name.
    """

    def check(name: str) -> str:
        """Raise `ValueError` if the name is unknown."""
        if name not in choices:
            raise ValueError((hints_by_name or {}).get(name) or format_unknown_name(name, noun, choices))
        return name

    return check


def make_recorded_axis_type(
    noun: str, read: Callable[[Any], Any] = expand_to_list, value_type: Any = Nonnegative
) -> PydanticTypeOverride:
    """Return the type of a key with increasing values, such as times, called `noun` in messages."""
    values = tuple[value_type, ...]
    json_schema = WithJsonSchema(make_axis_schema(TypeAdapter(value_type).json_schema(), spaced=True))
    return PydanticTypeOverride(
        Annotated[values, BeforeValidator(read), Field(min_length=1), make_increasing_validator(noun), json_schema]
    )


Times = Annotated[Any, make_recorded_axis_type("times")]


def describe_field(name: str, schema: dict[str, Any]) -> ConfigKey:
    """Return the description of a key, derived from the JSON Schema of its type."""
    value_schema = next(iter(schema.get("anyOf", [schema])))
    value_schema = value_schema["items"] if value_schema.get("type") == "array" else value_schema
    value_schema = (
        next(iter(value_schema["properties"].values()))
        if len(value_schema.get("properties", ())) == 1
        else value_schema
    )  # for a section with one key, such as {t0: 5}: take its value
    value_schema = next(iter(value_schema.get("anyOf", [value_schema])))  # for a number or a keyword: take the number
    bound_text = (
        (name, schema_key) for name, bound in BOUND_KINDS.items() for schema_key in (bound.schema, bound.pydantic)
    )
    bounds = {name: value_schema[schema_key] for name, schema_key in bound_text if schema_key in value_schema}
    extras = {schema_key: schema[schema_key] for schema_key in ("default", "symbol", "unit") if schema_key in schema}
    kind, choices = PYTHON_TYPES_BY_JSON_TYPE.get(value_schema.get("type"), str), tuple(value_schema.get("enum", ()))
    return ConfigKey(name, schema.get("description", ""), kind, choices=choices, **bounds, **extras)
