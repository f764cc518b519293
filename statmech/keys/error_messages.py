"""Explanations of pydantic's errors in terms of the config: key, position, given and possible values."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from pydantic import ValidationError

from statmech.errors import Problem, ScenarioError, format_unknown_name, list_synonyms, quote_value
from statmech.keys.sweep_grid import SCHEDULE_SYNTAX_EXAMPLE
from statmech.parameters.parameter_fields import BOUND_KINDS

UNION_TAGS = {"value", "axis", "word", "given"}  # union tags that pydantic adds to the location of an error
MAX_LISTED_PROBLEMS = 20  # further problems are only counted
NUMBER_PATTERN = r"[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
RANGE_PATTERN = re.compile(
    rf"\s*({NUMBER_PATTERN})\s*(?:\.\.\.?|:|-|to)\s*({NUMBER_PATTERN})(?:\s*(?:\.\.\.?|:)\s*({NUMBER_PATTERN}))?\s*"
)
MISSING_KEY_MESSAGE = "is missing, and has no default"
EXPECTED_VALUES = {"tuple": "a list", "bool": "true or false", "int": "a whole number"}  # by pydantic's type of error
MAX_RANGE_VALUES = 10_000  # text for a longer range is not converted


def explain_problems(
    failure: ValidationError,
    keys: list[str],
    keys_by_section: dict[str, list[str]] | None = None,
    list_keys_by_kind: Callable[[], dict[str, list[str]]] = dict,
) -> list[Problem]:
    """Convert pydantic's errors in a config to problems, each with a location and a sentence for the message.

    `keys` are the possible keys of a config, and `keys_by_section` the possible keys inside its sections and their
    parts, such as "figure.guides".
    `list_keys_by_kind` returns the possible keys of all kinds of configs, called only for an unknown key.
    """
    explained: list[Problem] = []
    errors = failure.errors()
    for error in errors[:MAX_LISTED_PROBLEMS]:
        cause = error.get("ctx", {}).get("error")
        if isinstance(cause, ScenarioError):
            explained += cause.problems
            continue
        if error["type"] == "too_short" and len(
            error["input"]
        ):  # all values of the list are invalid, and have their own errors
            continue
        location = tuple(part for part in error["loc"] if part not in UNION_TAGS)
        location = location[1:] if location[:1] == ("parameters",) else location
        section, section_keys = _find_section(location, keys_by_section or {})
        sentence = _explain_error(error, section, location, section_keys if section else keys)
        if error["type"] == "extra_forbidden" and len(location) == 1:
            sentence = _explain_key_of_other_kinds(str(location[0]), keys, list_keys_by_kind) or sentence
        elif error["type"] == "extra_forbidden" and location[-1] in keys and "Did you mean" not in sentence:
            sentence += f" Write {location[-1]} at the top level, not inside {location[0]}."
        explained.append((location, sentence))
    left = len(errors) - MAX_LISTED_PROBLEMS
    return [*explained, ((), f"and {left:,} more problems")] if left > 0 else explained


def _explain_error(error: Any, section: str, location: tuple[str | int, ...], keys: list[str]) -> str:
    """Return a sentence that explains one of pydantic's errors, in a section or with "" at the top level."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return _explain_unknown_key(str(location[-1]), section or str(location[0]) * (len(location) > 1), keys)
    if kind == "model_type":
        return f"must be a section with keys among {', '.join(keys)}, not {quote_value(error['input'])}"
    if kind == "missing":
        return MISSING_KEY_MESSAGE
    if kind == "too_short":
        return "a list needs at least one value"
    if expected := EXPECTED_VALUES.get(kind.partition("_")[0]):
        return f"must be {expected}, not {quote_value(error['input'])}"
    if kind == "value_error":
        sentence = str(context["error"])
        return sentence if SCHEDULE_SYNTAX_EXAMPLE in sentence else f"{sentence}{_suggest_syntax(error['input'])}"
    for bound in BOUND_KINDS.values():
        if bound.pydantic in context:
            return f"must be {bound.words} {context[bound.pydantic]:g}, not {quote_value(error['input'])}"
    sentence = error["msg"].replace("Input should", "must").replace("a valid ", "a ")
    return f"{sentence[:1].lower()}{sentence[1:]}, not {quote_value(error['input'])}"


def _find_section(location: tuple[str | int, ...], sections: dict[str, list[str]]) -> tuple[str, list[str]]:
    """Return the innermost section, or part of a section, around a location, with its possible keys."""
    names = [part for part in location[: max(1, len(location) - 1)] if isinstance(part, str)]
    paths = [".".join(names[:end]) for end in range(len(names), 0, -1)]
    return next(((path.rpartition(".")[2], sections[path]) for path in paths if path in sections), ("", []))


def _explain_unknown_key(name: str, section: str, keys: list[str]) -> str:
    """Explain that a key is unknown, and suggest a similar key."""
    if re.fullmatch(r"\w+:\S+", name):
        return "a space is missing after the colon: " + name.replace(":", ": ", 1)
    return format_unknown_name(name, f"a key of {section or 'a config'}", keys)


def _explain_key_of_other_kinds(
    name: str, keys: list[str], list_keys_by_kind: Callable[[], dict[str, list[str]]]
) -> str:
    """Explain in a message that a key or its synonym belongs to other kinds of configs, or return ""."""
    candidates = list_synonyms(name)
    is_misspelt = bool({*candidates} & {*keys}) or name.casefold() in map(str.casefold, keys)
    keys_by_kind = {} if is_misspelt else list_keys_by_kind()
    for candidate in candidates:
        if kinds_with_key := [kind for kind, names in keys_by_kind.items() if candidate in names]:
            alone = [f"`{kind}`" for kind in kinds_with_key if "_" not in kind]
            together = [" and ".join(f"`{key}`" for key in kind.split("_")) for kind in kinds_with_key]
            configs = f"configs with {', '.join(alone or together)}"
            subject = "it" if candidate == name else f"it is written {candidate}, which"
            return f'"{name}" is not a key of this config: {subject} belongs to {configs}.'
    return ""


def _suggest_syntax(value: Any) -> str:
    """Suggest the correct syntax for text that looks like a range or a list, at the end of a message."""
    if not isinstance(value, str):
        return ""
    if re.fullmatch(r"[\w.]*/\s*\(?.*\bt\b.*", value):
        return f". A rate that falls with time is written {SCHEDULE_SYNTAX_EXAMPLE}"
    if axis := convert_range_to_linspace(value):
        return f". A range is written {axis}"
    inner = value.strip("()[] ")
    return f". A list is written [{inner}]" if "," in inner and len(inner) < 60 else ""


def convert_range_to_linspace(text: str) -> str:
    """Convert the range start..stop or start:stop:step to the `linspace` that a message suggests, or return "".

    Without a step, the values have the same number of decimals as the end points. The last value is at most `stop`.

    >>> convert_range_to_linspace("1..5"), convert_range_to_linspace("0.1:1:0.1"), convert_range_to_linspace("many")
    ('{linspace: [1, 5, 5]}', '{linspace: [0.1, 1, 10]}', '')
    """
    match = RANGE_PATTERN.fullmatch(text) if len(text) < 60 else None
    if match is None:
        return ""
    start, stop = _parse_decimal(match[1]), _parse_decimal(match[2])
    finest = min(_get_decimal_exponent(start), _get_decimal_exponent(stop), 0)
    step = _parse_decimal(match[3]) if match[3] else Decimal(1).scaleb(finest).copy_sign(stop - start)
    number = int((stop - start) / step) + 1 if step else 0
    if not 2 <= number <= MAX_RANGE_VALUES:
        return ""
    return f"{{linspace: [{_format_decimal(start)}, {_format_decimal(start + (number - 1) * step)}, {number}]}}"


def _parse_decimal(text: str) -> Decimal:
    """Parse a number as an exact decimal."""
    return Decimal(text.replace("_", ""))


def _get_decimal_exponent(number: Decimal) -> int:
    """Return the power of ten of the last digit."""
    return int(number.as_tuple().exponent)


def _format_decimal(number: Decimal) -> str:
    """Format a decimal without an exponent or trailing zeros.

    >>> _format_decimal(Decimal("1.0")), _format_decimal(Decimal("1E+3"))
    ('1', '1000')
    """
    return f"{number.normalize():f}"
