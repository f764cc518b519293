"""JSON Schemas of the kinds of scenarios, which let editors complete and check configs."""

from __future__ import annotations

from functools import cache
from typing import Any

from statmech.keys.config_keys import ConfigKeys
from statmech.keys.sweep_grid import make_axis_schema
from statmech.keys.time_dependent_keys import make_time_function_schemas
from statmech.parameters.parameter_fields import collect_parameters, find_parameter_definitions


def make_kind_schema(kind: type[ConfigKeys], shared_keys: list[str]) -> dict[str, Any]:
    """Return the JSON Schema of configs of this kind, with keys shared by all kinds at the end."""
    schema = kind.model_json_schema()
    fields = {name: _drop_symbol_and_unit(schema["properties"][name]) for name in kind.list_fields()}
    own_fields = {name: field for name, field in fields.items() if name not in shared_keys}
    for choice, kinds in kind.choices().items():
        # includes classes registered in user files
        own_fields[choice] |= make_axis_schema({"enum": list(kinds)}, spaced=False)
    parameters = {name: _make_parameter_schema(kind, name) for name in collect_parameters(kind.classes())}
    last = {name: fields[name] for name in shared_keys if name in fields}
    needed = {
        "allOf": [
            _make_required_key_schema(name)
            for name in schema.pop("required", [])
            if name not in kind.KEYS_IMPLIED_BY_OTHERS
        ]
    }
    return {**schema, **needed, "properties": {**own_fields, **parameters, **last, "zip": _make_zip_schema(kind)}}


@cache
def list_section_keys(kind: type[ConfigKeys]) -> dict[str, list[str]]:
    """Return the possible keys inside each section of a config, from its JSON Schema."""
    schema = kind.model_json_schema()
    fields = {key: [part, *part.get("oneOf", part.get("anyOf", []))] for key, part in schema["properties"].items()}
    references = {name: str(form["$ref"]) for name, forms in fields.items() for form in forms if "$ref" in form}
    return {name: [*schema["$defs"][ref.rpartition("/")[2]]["properties"]] for name, ref in references.items()}


def _drop_symbol_and_unit(field: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a field without its symbol and unit."""
    return {keyword: value for keyword, value in field.items() if keyword not in ("symbol", "unit")}


def _make_parameter_schema(kind: type[ConfigKeys], name: str) -> dict[str, Any]:
    """Return the JSON Schema of a parameter, which can be a value or an axis."""
    key = collect_parameters(kind.classes())[name]
    forms = [key_of_class.schema for key_of_class in find_parameter_definitions(kind.classes(), name).values()]
    value = key.schema if all(form == key.schema for form in forms) else {"anyOf": forms}
    value = (
        {"anyOf": [value, *make_time_function_schemas(value, is_optimisable=True)]}
        if name in kind.OPTIMISABLE_KEYS
        else value
    )
    return {**make_axis_schema(value, spaced=key.numeric), "default": key.default, "description": key.meaning}


def _make_required_key_schema(name: str) -> dict[str, Any]:
    """Return a JSON Schema that requires a key in a config or in one of its `zip` groups."""
    group = {"type": "object", "required": [name]}
    groups = {"anyOf": [group, {"type": "array", "contains": group}]}
    return {"anyOf": [{"required": [name]}, {"required": ["zip"], "properties": {"zip": groups}}]}


def _make_zip_schema(kind: type[ConfigKeys]) -> dict[str, Any]:
    """Return the JSON Schema of the key `zip`."""
    names: dict[str, Any] = {name: {} for name in kind.axis_names()}
    group = {"type": "object", "properties": names, "additionalProperties": False}
    return {
        "description": "axes that run side by side instead of each with each",
        "anyOf": [group, {"type": "array", "items": group}],
    }
