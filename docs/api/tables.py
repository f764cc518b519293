"""Tables of the reference, generated from the registries and the schema when the site is built."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np
from IPython.display import Markdown

from statmech.keys.scenario import SCENARIOS
from statmech.kinds.selection_and_vocabulary import NAMES_WITH_TWO_MEANINGS, VocabularyEntry, list_vocabulary_entries
from statmech.parameters.parameter_fields import (
    BOUND_KINDS,
    ConfigKey,
    collect_parameters,
    find_parameter_definitions,
    get_parameters,
)

SIGNS = {word: bound.sign for bound in BOUND_KINDS.values() for word in (bound.schema, bound.pydantic)}
RELATIONS = {"≥": r"\ge ", "≤": r"\le ", ">": ">", "<": "<"}
NOUNS = {"integer": "whole number", "number": "number", "boolean": "true or false", "string": "text"}


def table(headings: str, rows: Iterable[Iterable[Any]]) -> Markdown:
    names = headings.split(", ")
    lines = [names, ["---"] * len(names), *rows]
    return Markdown("\n".join("| " + " | ".join(str(cell).replace("|", r"\|") for cell in row) + " |" for row in lines))


def keys(kind: Any) -> Markdown:
    """Every key of a config of this kind of scenario."""
    schema, known = kind.make_schema(), collect_parameters(kind.classes())
    rows = []
    for name in (name for name in schema["properties"] if name != "zip"):
        part = schema["properties"][name]
        columns = _of_a_parameter(kind, known[name]) if name in known else _of_a_key(part)
        rows.append((f"`{name}`", *columns, "yes" if name in kind.axis_names() else ""))
    return table("key, values, default, meaning, axis", rows)


def _of_a_key(part: dict[str, Any]) -> tuple[str, str, str]:
    given = part.get("default")
    word = str(given).lower() if isinstance(given, bool) else given
    shown = "" if given is None or isinstance(given, dict) else f"`{word}`"
    return _values(part), shown if "default" in part else "*needed*", part["description"]


def _of_a_parameter(kind: Any, key: ConfigKey) -> tuple[str, str, str]:
    having = find_parameter_definitions(kind.classes(), key.name)
    defaults = {other: _shown(it.default) for other, it in having.items()}
    common = max(defaults.values(), key=list(defaults.values()).count)
    others = [f"{value} ({other})" for other, value in defaults.items() if value != common]
    of = "" if len(having) == len(kind.classes()) else f"; of {', '.join(f'`{other}`' for other in having)}"
    return _values(key.schema), ", ".join([common, *others]), key.meaning + of


def _values(part: dict[str, Any]) -> str:
    """The possible values of a key: names, or a type with its bounds."""
    if part.get("type") == "object":
        return f"a section of {', '.join(f'`{name}`' for name in part['properties'])}"
    if "$ref" in part:
        return "a section, see below"
    if "enum" in part or "const" in part:
        return ", ".join(f"`{value}`" for value in part.get("enum", [part.get("const")]))
    if forms := part.get("anyOf") or part.get("oneOf"):
        words = "".join(f" or `{form['const']}`" for form in forms[1:] if "const" in form)
        return _values(forms[0]) + words + (" or a section" if _mapping(forms) else "")
    if part["type"] == "array":
        return f"list of: {_values(part['items'])}"
    bounds = [f"${RELATIONS[sign]}{_number(part[word])}$" for word, sign in SIGNS.items() if word in part]
    return " ".join([NOUNS[part["type"]], ", ".join(bounds)]).strip()


def _number(value: float) -> str:
    """A limit in LaTeX, and a large one as a power of ten or two."""
    for base in (10, 2):
        power = round(np.log(value) / np.log(base)) if value > 10**5 else 0
        if power and base**power == value:
            return f"{base}^{{{power}}}"
    return f"{value:,g}".replace(",", "{,}")


def _mapping(forms: list[dict[str, Any]]) -> bool:
    """True if a key may also be a section, or a distribution with parameters; a spaced axis does not count."""
    others = [
        form for form in forms[1:] if form.get("type") == "object" and "linspace" not in form.get("properties", {})
    ]
    return bool(others) or any("$ref" in form for form in forms[1:])


def kinds(registry: dict[str, type]) -> Markdown:
    """The members of a registry: name, label in figures, parameters with defaults, meaning."""
    rows = [(f"`{name}`", it.label, _parameters(it), _sentence(it)) for name, it in registry.items()]
    return table("name, label in figures, parameters, meaning", rows)


def _parameters(kind: type) -> str:
    return ", ".join(f"`{name}` = {_shown(key.default)}" for name, key in get_parameters(kind).items())


def _shown(default: Any) -> str:
    """A default: a number, or a word."""
    return f"`{default}`" if isinstance(default, str | bool) else f"`{default:g}`"


def _sentence(thing: Any) -> str:
    """The first sentence of a docstring, its formulas in Markdown."""
    text = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    while ":math:`" in text:
        before, _, rest = text.partition(":math:`")
        formula, _, after = rest.partition("`")
        text = f"{before}${formula}${after}"
    return text


def named(meanings: dict[str, str]) -> Markdown:
    return table("name, meaning", ((f"`{name}`", meaning) for name, meaning in meanings.items()))


def variables(kind: Any, **keys: Any) -> Markdown:
    """The variables in the datasets of a scenario of this kind."""
    scenario = kind(**keys)
    rows = [
        (f"`{name}`", ", ".join(it.dims) or "once per run", it.long_name, "" if kind.on_data else _theory(it))
        for name, it in scenario.variables.items()
    ]
    return table("variable, recorded along, meaning (units: 1), theory", rows)


def _theory(variable: Any) -> str:
    return {"above": "upper bound", "below": "lower bound"}.get(variable.bound, "yes" if variable.in_theory else "")


def figures() -> Markdown:
    from figures import list_figures_by_kind

    rows = [
        (f"`{choice}`", f"`{name}`", title)
        for choice, of in list_figures_by_kind().items()
        for name, title in of.items()
    ]
    return table("config with, figure, content", rows)


def commands() -> Iterator[Markdown]:
    """Every command of `statmech`, with its help text, arguments and options."""
    import typer

    from statmech.cli.command_group import app

    for name, command in typer.main.get_command(app).commands.items():
        yield Markdown(f"**`statmech {name}`**\n\n" + inspect.cleandoc(command.help or ""))
        rows = [_option(one) for one in command.params if one.name != "help"]
        if rows:
            yield table("argument or option, meaning", rows)


def _option(one: Any) -> tuple[str, str]:
    form = one.metavar or one.name if one.param_type_name == "argument" else " ".join([one.opts[0], one.metavar or ""])
    default = f" Default: {one.show_default}." if isinstance(one.show_default, str) else ""
    return f"`{form.strip()}`", (one.help or "").replace("[", r"\[") + default


def vocabulary() -> Markdown:
    """Every name in configs and datasets once: its label on axes, its meanings, and the kinds that have it."""
    by_name: dict[str, list[VocabularyEntry]] = {}
    for entry in list_vocabulary_entries():
        if entry.kind in SCENARIOS:
            by_name.setdefault(entry.name, []).append(entry)
    rows = ((f"`{name}`", *_of_a_name(found)) for name, found in sorted(by_name.items(), key=lambda it: it[0].lower()))
    return table("name, symbol, meaning, unit, kinds", rows)


def exceptions() -> Markdown:
    return named(NAMES_WITH_TWO_MEANINGS)


def _of_a_name(found: list[VocabularyEntry]) -> Iterator[str]:
    """Symbols, the term with what each kind adds to it, units and kinds."""
    yield ", ".join(dict.fromkeys(entry.symbol for entry in found if entry.symbol))
    yield "; ".join(dict.fromkeys(entry.meaning.replace("; ", ", ") for entry in found))
    yield ", ".join(dict.fromkeys(entry.unit for entry in found))
    yield ", ".join(dict.fromkeys(f"`{entry.kind}`" for entry in found))


def keys_of_section(section: Any) -> Markdown:
    """The keys of a section of a config."""
    fields = section.model_fields.items()
    rows = ((f"`{name}`", _default_of_field(field), _meaning_of_field(field)) for name, field in fields)
    return table("key, default, meaning", rows)


def _meaning_of_field(field: Any) -> str:
    """Return the description of a key of a section, with the names that are its possible values."""
    kind = field.annotation
    parts = (kind, *get_args(kind)) if get_origin(kind) in (Union, UnionType) else (kind,)
    names = [name for part in parts if get_origin(part) is Literal for name in get_args(part) if name]
    return f"{field.description}: {', '.join(f'`{name}`' for name in names)}" if names else field.description


def _default_of_field(field: Any) -> str:
    """Return the default of a key of a section, or "" if the key is absent by default."""
    if field.is_required():
        return "*needed*"
    default = field.get_default(call_default_factory=True)
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return "" if default in (None, "", (), {}) else _shown(default)


def distributions(registry: dict[str, type]) -> Markdown:
    """The input distributions: name, parameters, meaning."""
    from dataclasses import fields

    rows = [(f"`{name}`", ", ".join(f"`{f.name}`" for f in fields(it)), _sentence(it)) for name, it in registry.items()]
    return table("name, parameters, meaning", rows)
