"""Docstrings and signatures with the keys of a kind of scenario, for `help` and editors."""

from __future__ import annotations

from inspect import Parameter, Signature, cleandoc
from typing import Any

from pydantic.fields import FieldInfo

from statmech.parameters import ConfigKey
from statmech.scenarios.axes import IntegerOrAxis, NameOrAxis, NumberOrAxis

TYPE_DESCRIPTIONS = ((NameOrAxis, "str or a list"), (IntegerOrAxis, "int or a list"), (NumberOrAxis, "float or a list"))
DOCTEST_PROMPT = ">>> "


def add_keys_to_docstring(docstring: str, fields: dict[str, FieldInfo], parameters: dict[str, ConfigKey]) -> str:
    """Add a section on the keys of a class to its docstring, before the examples.

    Parameters
    ----------
    docstring
        The docstring in the source.
    fields
        The fields of the class.
    parameters
        Further keys, the parameters of the learning algorithms.
    """
    keys = [
        (name, _describe_type_and_default(field), field.description or "", _get_schema_extra(field))
        for name, field in fields.items()
    ]
    for name, key in parameters.items():
        keys.append((name, f"{key.type.__name__} or a list, default {key.default!r}", key.meaning, vars(key)))
    section = ["Parameters", "----------"]
    for name, form, meaning, options in keys:
        unit = options.get("unit", "1")
        unit_suffix = "" if unit == "1" else f", in {unit}"
        section += [f"{name} : {form}", f"    {meaning[:1].upper()}{meaning[1:]}{unit_suffix}."]
    before, examples, after = cleandoc(docstring).partition(DOCTEST_PROMPT)
    example_section = ["Examples", "--------", examples + after] if examples else []
    return "\n".join([before.rstrip(), "", *section, "", *example_section])


def make_class_signature(fields: dict[str, FieldInfo], parameters: dict[str, ConfigKey]) -> Signature:
    """Return the signature of a class with its keys and defaults, but without types.

    Parameters
    ----------
    fields
        The fields of the class.
    parameters
        Further keys, the parameters of the learning algorithms.
    """
    defaults = {name: _get_default(field) for name, field in fields.items()}
    defaults |= {name: key.default for name, key in parameters.items()}
    required_first = sorted(defaults, key=lambda name: defaults[name] is not Parameter.empty)
    return Signature([Parameter(name, Parameter.KEYWORD_ONLY, default=defaults[name]) for name in required_first])


def _get_default(field: FieldInfo) -> Any:
    """Return the default of a field as it is written in a config."""
    return Parameter.empty if field.is_required() else _get_schema_extra(field).get("default", field.default)


def _get_schema_extra(field: FieldInfo) -> dict[str, Any]:
    """Return the additional JSON Schema entries of a field, or an empty dict."""
    return field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}


def _describe_type_and_default(field: FieldInfo) -> str:
    """Describe the type and default of a key in a few words."""
    form = next((description for kind, description in TYPE_DESCRIPTIONS if field.annotation == kind), "")
    if field.is_required():
        return form or "list"
    default = f"default {_get_default(field)!r}"
    return f"{form}, {default}" if form else default
