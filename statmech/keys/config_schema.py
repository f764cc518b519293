"""JSON Schemas of the kinds of scenarios, and a search for all problems of an invalid scenario.

Schemas: a JSON Schema lets editors complete and check configs.

Problems: pydantic checks each key separately, and checks combinations of keys only if all are valid, so that its first
errors hide further problems. `find_all_problems` also checks the valid keys in combination, without the invalid keys,
so that a user sees all problems at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError

from statmech.errors import Problem, ScenarioError
from statmech.keys.config_keys import ConfigKeys
from statmech.keys.controlled_keys import make_time_function_schemas
from statmech.keys.error_messages import MAX_LISTED_PROBLEMS, explain_problems
from statmech.keys.sweep_grid import make_axis_schema
from statmech.parameters.parameter_fields import collect_parameters, find_parameter_definitions


def make_kind_schema(kind: type[ConfigKeys], shared_keys: list[str]) -> dict[str, Any]:
    """Return the JSON Schema of configs of this kind, with keys shared by all kinds at the end."""
    schema = kind.model_json_schema()
    fields = {name: _drop_symbol_and_unit(schema["properties"][name]) for name in kind.list_fields()}
    own_fields = {name: field for name, field in fields.items() if name not in shared_keys}
    for choice, kinds in kind.choices().items():
        own_fields[choice] |= make_axis_schema(
            {"enum": list(kinds)}, spaced=False
        )  # includes classes registered in user files
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
    """Return the possible keys inside each section of a config."""
    schema = kind.model_json_schema()
    fields = {name: [part, *part.get("oneOf", [])] for name, part in schema["properties"].items()}
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


VALIDATION_BLOCKING_KEYS = {
    "zip",
    "zipped",
    "parameters",
}  # an invalid value prevents pydantic from checking any other key


def find_all_problems(
    kind: type[ConfigKeys], config: dict[str, Any], validation_error: ValidationError
) -> list[Problem]:
    """Find the problems that pydantic reported, and problems among the remaining valid keys."""
    key_problems = explain_problems(validation_error, kind.list_keys(), list_section_keys(kind))
    keys = {str(location[0]) for location, _ in key_problems if location}
    if keys & VALIDATION_BLOCKING_KEYS:
        return [*key_problems, *_find_problems_without_keys(kind, config, keys)]
    checked = all(
        not error["loc"] for error in validation_error.errors()
    )  # no key is invalid: combinations were checked
    return (
        key_problems
        if checked or validation_error.error_count() > MAX_LISTED_PROBLEMS
        else [*key_problems, *_find_valid_key_problems(kind, config, keys)]
    )


def _find_problems_without_keys(
    kind: type[ConfigKeys], config: dict[str, Any], invalid_keys: set[str]
) -> Iterator[Problem]:
    """Find the problems that a scenario has without its unreadable sections.

    Problems that mention keys inside these sections are omitted.
    """
    groups = config.get("zip", [])
    groups = groups if isinstance(groups, list | tuple) else [groups]
    zipped = {name for group in groups if isinstance(group, dict) for name in group}
    try:
        kind(**{name: value for name, value in config.items() if name not in invalid_keys})
    except ScenarioError as failure:
        yield from (problem for problem in failure.problems if not _mentions_keys(problem, zipped))


def _find_valid_key_problems(kind: type[ConfigKeys], config: dict[str, Any], invalid_keys: set[str]) -> list[Problem]:
    """Find problems of the valid keys that remain however the invalid keys are corrected."""
    keys: dict[str, Any] = kind._convert_config_to_fields(config)  # type: ignore[operator]
    keys["zipped"], incomplete = _split_zip_groups(keys.get("zipped", ()), invalid_keys)
    invalid_keys = invalid_keys | incomplete
    parameters = {name: value for name, value in keys["parameters"].items() if name not in invalid_keys}
    keys["parameters"] = kind._convert_parameters(parameters)
    valid = {name: value for name, value in keys.items() if name not in invalid_keys}
    choices = [{kind.CHOICE: name} for name in kind.KINDS] if kind.CHOICE in invalid_keys else [{}]
    problem_lists = [
        list(_find_combination_problems(_make_partial_scenario(kind, {**valid, **choice}), invalid_keys))
        for choice in choices
    ]
    return [
        problem
        for problem in problem_lists[0]
        if all(problem in other_problems for other_problems in problem_lists[1:])
    ]


def _split_zip_groups(
    groups: tuple[tuple[str, ...], ...], invalid_keys: set[str]
) -> tuple[tuple[tuple[str, ...], ...], set[str]]:
    """Return the zip groups without invalid keys, and the set of keys in all other groups."""
    intact = tuple(group for group in groups if not invalid_keys & set(group))
    return intact, {name for group in groups if group not in intact for name in group}


def _make_partial_scenario(kind: type[ConfigKeys], valid: dict[str, Any]) -> ConfigKeys:
    """Build a scenario from the valid keys without checking them in combination.

    A required key that is missing gets the value 1 if its type allows it.
    """
    partial = kind.model_construct()
    for name, field in kind.model_fields.items():
        if name in valid or field.is_required():
            with suppress(ValidationError):
                partial.__dict__[name] = _get_key_validator(kind, name).validate_python(valid.get(name, 1))
    return partial


@cache
def _get_key_validator(kind: type[ConfigKeys], name: str) -> TypeAdapter[Any]:
    """Return the validator of one key, cached because pydantic takes a millisecond to build it."""
    field = kind.model_fields[name]
    form: Any = Annotated[field.annotation, *field.metadata, name]  # Annotated requires metadata, hence the name
    return TypeAdapter(form)


def _find_combination_problems(partial: ConfigKeys, invalid_keys: set[str]) -> Iterator[Problem]:
    """Find problems of the valid keys in combination."""
    for check in (partial._find_axis_problems, partial._find_parameter_problems, partial._find_problems):
        with suppress(AttributeError):  # raised if a required key is missing
            yield from (problem for problem in check() if not _mentions_keys(problem, invalid_keys))


def _mentions_keys(problem: Problem, keys: set[str]) -> bool:
    """Return True if a problem is located at one of these keys, or its sentence mentions one."""
    location, sentence = problem
    mentioned = re.findall(r"\w+", sentence.partition(" Known: ")[0])
    return (bool(location) and location[0] in keys) or not keys.isdisjoint(mentioned)
