"""The types of config keys, and the descriptions of keys derived from these types."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, StrictBool, Tag, TypeAdapter, WithJsonSchema

from statmech.errors import not_known, quoted
from statmech.parameters import BOUNDS, SCHEMAS, Key
from statmech.parameters import parameter as parameter  # re-exported: all building blocks of keys in one module
from statmech.scenarios.axes import Numbers, ReadAs, Wholes, axis_of, axis_schema, listed
from statmech.scenarios.controlled_keys import over_time

MAX_N = 10**15  # larger values are typing errors
PARAMETERS = "parameters"  # represents all parameters in AXES
TYPES = {schema: kind for kind, schema in SCHEMAS.items()}


def _plain_number(given: Any) -> Any:
    """Check that a value is a number: NumPy scalars are, but YAML's true and "3" are not."""
    if isinstance(given, bool | str):
        raise ValueError(f"must be a number, not {quoted(given)}")
    return given.item() if isinstance(given, np.generic) else given


Number = Annotated[float, BeforeValidator(_plain_number), Field(allow_inf_nan=False)]
Whole = Annotated[int, BeforeValidator(_plain_number)]
Nonnegative = Annotated[Number, Field(ge=0)]
DimensionAxis = Annotated[
    Wholes, axis_of(Annotated[Whole, Field(ge=2, le=MAX_N)], {"type": "integer", "minimum": 2, "maximum": MAX_N})
]
FlipAxis = Annotated[
    Numbers, axis_of(Annotated[Number, Field(ge=0, le=0.5)], {"type": "number", "minimum": 0, "maximum": 0.5})
]
NonnegativeAxis = Annotated[Numbers, axis_of(Nonnegative, {"type": "number", "minimum": 0})]
CONTROLLED: TypeAdapter[Any] = TypeAdapter(Annotated[Any, over_time(Number, {}, optimal=True)])
PARAMETER_AXES: dict[type, TypeAdapter[Any]] = {  # by the parameter's type; integers are validated as floats
    type_: TypeAdapter(Annotated[Any, axis_of(value, {}, spaced=value is Number)])
    for type_, value in ((float, Number), (int, Number), (bool, StrictBool), (str, str))
}


def config_key(default: Any = ..., *, description: str, symbol: str = "", unit: str = "1", **more: Any) -> Any:
    """Return a pydantic `Field` with the symbol and unit of a key. Without a default the key is required."""
    return Field(default, description=description, json_schema_extra={"symbol": symbol, "unit": unit}, **more)


def one_of(known: Mapping[str, object], noun: str, elsewhere: Mapping[str, str] | None = None) -> ReadAs:
    """Return the type of a key whose values are names, with a suggestion for misspelt names.

    `elsewhere` maps names that only another kind of scenario supports to the reason.
    """
    name = Annotated[str, AfterValidator(name_among(known, noun, elsewhere))]
    return axis_of(name, {"enum": list(known)}, spaced=False)


def word_or_section(
    words: Collection[str], section: type, noun: str, elsewhere: Mapping[str, str] | None = None
) -> ReadAs:
    """Return the type of a key that takes a keyword or a section. Its form decides which is validated.

    `elsewhere` maps keywords that belong in the section to the way to write them there.
    """
    keyword = Annotated[str, AfterValidator(name_among(words, noun, elsewhere)), WithJsonSchema({"enum": list(words)})]
    discriminator = Discriminator(lambda given: "word" if isinstance(given, str) else "given")
    return ReadAs(Annotated[Annotated[keyword, Tag("word")] | Annotated[section, Tag("given")], discriminator])


def increasing(noun: str) -> AfterValidator:
    """Return a validator of increasing values, called `noun` in messages."""

    def check(values: tuple[float, ...]) -> tuple[float, ...]:
        """Raise `ValueError` if the values do not increase."""
        if any(later <= earlier for earlier, later in itertools.pairwise(values)):
            raise ValueError(f"{noun} must increase")
        return values

    return AfterValidator(check)


def name_among(known: Collection[str], noun: str, elsewhere: Mapping[str, str] | None = None) -> Any:
    """Return a validator that accepts only names in `known`.

    The error gives the reason in `elsewhere`, or suggests the most similar name.
    """

    def check(given: str) -> str:
        """Raise `ValueError` if the name is not known."""
        if given not in known:
            raise ValueError((elsewhere or {}).get(given) or not_known(given, noun, known))
        return given

    return check


def recorded(noun: str, read: Callable[[Any], Any] = listed, value_type: Any = Nonnegative) -> ReadAs:
    """Return the type of increasing recorded values, such as times, called `noun` in messages."""
    values = tuple[value_type, ...]
    json_schema = WithJsonSchema(axis_schema(TypeAdapter(value_type).json_schema(), spaced=True))
    return ReadAs(Annotated[values, BeforeValidator(read), Field(min_length=1), increasing(noun), json_schema])


Times = Annotated[Any, recorded("times")]


def key_of(name: str, schema: dict[str, Any]) -> Key:
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
        (name, schema_key) for name, bound in BOUNDS.items() for schema_key in (bound.schema, bound.pydantic)
    )
    bounds = {name: value_schema[schema_key] for name, schema_key in bound_words if schema_key in value_schema}
    extras = {schema_key: schema[schema_key] for schema_key in ("default", "symbol", "unit") if schema_key in schema}
    kind, choices = TYPES.get(value_schema.get("type"), str), tuple(value_schema.get("enum", ()))
    return Key(name, schema.get("description", ""), kind, choices=choices, **bounds, **extras)
