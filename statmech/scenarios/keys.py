"""The types of config keys, and the descriptions of keys derived from these types."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, StrictBool, Tag, TypeAdapter, WithJsonSchema

from statmech.errors import format_unknown_name, quote_value
from statmech.parameters import BOUND_KINDS, TYPE_SCHEMAS, ConfigKey
from statmech.parameters import parameter as parameter  # re-exported: all building blocks of keys in one module
from statmech.scenarios.axes import Integers, Numbers, PydanticType, axis_of, list_values, make_axis_schema
from statmech.scenarios.controlled_keys import make_time_function_type

MAX_DIMENSION = 10**15  # larger values are typing errors
PARAMETERS = "parameters"  # represents all parameters in AXES
TYPES_BY_SCHEMA = {schema: kind for kind, schema in TYPE_SCHEMAS.items()}


def _read_number(value: Any) -> Any:
    """Check that a value is a number: NumPy scalars are, but YAML's true and "3" are not."""
    if isinstance(value, bool | str):
        raise ValueError(f"must be a number, not {quote_value(value)}")
    return value.item() if isinstance(value, np.generic) else value


Number = Annotated[float, BeforeValidator(_read_number), Field(allow_inf_nan=False)]
Whole = Annotated[int, BeforeValidator(_read_number)]
Nonnegative = Annotated[Number, Field(ge=0)]
DimensionAxis = Annotated[
    Integers,
    axis_of(
        Annotated[Whole, Field(ge=2, le=MAX_DIMENSION)], {"type": "integer", "minimum": 2, "maximum": MAX_DIMENSION}
    ),
]
FlipAxis = Annotated[
    Numbers, axis_of(Annotated[Number, Field(ge=0, le=0.5)], {"type": "number", "minimum": 0, "maximum": 0.5})
]
NonnegativeAxis = Annotated[Numbers, axis_of(Nonnegative, {"type": "number", "minimum": 0})]
TIME_FUNCTION_ADAPTER: TypeAdapter[Any] = TypeAdapter(Annotated[Any, make_time_function_type(Number, {}, optimal=True)])
PARAMETER_ADAPTERS: dict[type, TypeAdapter[Any]] = {  # by the parameter's type; integers are validated as floats
    type_: TypeAdapter(Annotated[Any, axis_of(value, {}, spaced=value is Number)])
    for type_, value in ((float, Number), (int, Number), (bool, StrictBool), (str, str))
}


def config_key(default: Any = ..., *, description: str, symbol: str = "", unit: str = "1", **more: Any) -> Any:
    """Return a pydantic `Field` with the symbol and unit of a key. Without a default the key is required."""
    return Field(default, description=description, json_schema_extra={"symbol": symbol, "unit": unit}, **more)


def one_of(choices: Mapping[str, object], noun: str, elsewhere: Mapping[str, str] | None = None) -> PydanticType:
    """Return the type of a key whose values are names, with a suggestion for misspelt names.

    `elsewhere` maps names that only another kind of scenario supports to the reason.
    """
    name = Annotated[str, AfterValidator(make_name_validator(choices, noun, elsewhere))]
    return axis_of(name, {"enum": list(choices)}, spaced=False)


def keyword_or_section(
    keywords: Collection[str], section: type, noun: str, elsewhere: Mapping[str, str] | None = None
) -> PydanticType:
    """Return the type of a key that takes a keyword or a section. Its form decides which is validated.

    `elsewhere` maps keywords that belong in the section to the way to write them there.
    """
    keyword = Annotated[
        str, AfterValidator(make_name_validator(keywords, noun, elsewhere)), WithJsonSchema({"enum": list(keywords)})
    ]
    discriminator = Discriminator(lambda given: "word" if isinstance(given, str) else "given")
    return PydanticType(Annotated[Annotated[keyword, Tag("word")] | Annotated[section, Tag("given")], discriminator])


def require_increasing(noun: str) -> AfterValidator:
    """Return a validator of increasing values, called `noun` in messages."""

    def check(values: tuple[float, ...]) -> tuple[float, ...]:
        """Raise `ValueError` if the values do not increase."""
        if any(later <= earlier for earlier, later in itertools.pairwise(values)):
            raise ValueError(f"{noun} must increase")
        return values

    return AfterValidator(check)


def make_name_validator(choices: Collection[str], noun: str, elsewhere: Mapping[str, str] | None = None) -> Any:
    """Return a validator that accepts only names in `choices`.

    The error gives the reason in `elsewhere`, or suggests the most similar name.
    """

    def check(name: str) -> str:
        """Raise `ValueError` if the name is not known."""
        if name not in choices:
            raise ValueError((elsewhere or {}).get(name) or format_unknown_name(name, noun, choices))
        return name

    return check


def recorded_axis(noun: str, read: Callable[[Any], Any] = list_values, value_type: Any = Nonnegative) -> PydanticType:
    """Return the type of increasing recorded values, such as times, called `noun` in messages."""
    values = tuple[value_type, ...]
    json_schema = WithJsonSchema(make_axis_schema(TypeAdapter(value_type).json_schema(), spaced=True))
    return PydanticType(
        Annotated[values, BeforeValidator(read), Field(min_length=1), require_increasing(noun), json_schema]
    )


Times = Annotated[Any, recorded_axis("times")]


def describe_field(name: str, schema: dict[str, Any]) -> ConfigKey:
    """Describe a field, from its JSON Schema."""
    value_schema = next(iter(schema.get("anyOf", [schema])))
    value_schema = value_schema["items"] if value_schema.get("type") == "array" else value_schema
    value_schema = (
        next(iter(value_schema["properties"].values()))
        if len(value_schema.get("properties", ())) == 1
        else value_schema
    )  # such as {t0: 5}
    value_schema = next(iter(value_schema.get("anyOf", [value_schema])))  # a number or a keyword: take the number
    bound_words = (
        (name, schema_key) for name, bound in BOUND_KINDS.items() for schema_key in (bound.schema, bound.pydantic)
    )
    bounds = {name: value_schema[schema_key] for name, schema_key in bound_words if schema_key in value_schema}
    extras = {schema_key: schema[schema_key] for schema_key in ("default", "symbol", "unit") if schema_key in schema}
    kind, choices = TYPES_BY_SCHEMA.get(value_schema.get("type"), str), tuple(value_schema.get("enum", ()))
    return ConfigKey(name, schema.get("description", ""), kind, choices=choices, **bounds, **extras)
