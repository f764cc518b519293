"""pydantic's errors in the words of a config: the key and the place, what was given, what is possible."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import TypeAdapter, ValidationError

from statmech.errors import Problem, ScenarioError, not_known
from statmech.scenarios.ranges import spaced

if TYPE_CHECKING:
    from statmech.scenarios.base import Sweep

FORMS = {"value", "axis", "drawn", "given"}  # the form in which a key was read: of no interest to the reader
SECTIONS = {"zip", "zipped", "parameters"}  # keys whose problems keep all others from being read
MOST = 20  # that are shown at once
BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "greater than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}


def all_problems(kind: type[Sweep], given: dict[str, Any], failure: ValidationError) -> list[Problem]:
    """The problems that pydantic found, and those that the remaining keys would show once these are corrected."""
    found = problems(failure, kind.known_keys())
    keys = {str(location[0]) for location, _ in found if location}
    if keys & SECTIONS:
        return [*found, *_without_sections(kind, given, keys)]
    checked = all(not error["loc"] for error in failure.errors())  # keys are valid in themselves, and were compared
    return found if checked or failure.error_count() > MOST else [*found, *_remaining(kind, given, keys)]


def problems(failure: ValidationError, keys: list[str]) -> list[Problem]:
    """Locations and sentences; `keys` are those a config may have."""
    found: list[Problem] = []
    every = failure.errors()
    for error in every[:MOST]:
        cause = error.get("ctx", {}).get("error")
        if isinstance(cause, ScenarioError):
            found += cause.problems
            continue
        location = tuple(part for part in error["loc"] if part not in FORMS)
        location = location[1:] if location[:1] == ("parameters",) else location
        found.append((location, _sentence(error, location, keys)))
    left = len(every) - MOST
    return [*found, ((), f"and {left:,} more problems")] if left > 0 else found


def _without_sections(kind: type[Sweep], given: dict[str, Any], keys: set[str]) -> Iterator[Problem]:
    """The problems of a scenario without the sections that cannot be read, apart from those of the keys in them."""
    groups = given.get("zip", [])
    groups = groups if isinstance(groups, list | tuple) else [groups]
    zipped = {name for group in groups if isinstance(group, dict) for name in group}
    try:
        kind(**{name: value for name, value in given.items() if name not in keys})
    except ScenarioError as failure:
        yield from (problem for problem in failure.problems if not _concerns(problem, zipped))


def _remaining(kind: type[Sweep], given: dict[str, Any], invalid: set[str]) -> list[Problem]:
    """The problems that valid keys have with each other, whatever the invalid ones may become."""
    keys: dict[str, Any] = kind._gather(given)  # type: ignore[operator]
    keys["zipped"], broken = _intact(keys.get("zipped", ()), invalid)
    invalid = invalid | broken
    keys["parameters"] = {name: value for name, value in keys["parameters"].items() if name not in invalid}
    valid = {name: value for name, value in keys.items() if name not in invalid}
    choices = [{kind.CHOICE: name} for name in kind.KINDS] if kind.CHOICE in invalid else [{}]
    found = [list(_joint(_partial(kind, {**valid, **choice}), invalid)) for choice in choices]
    return [problem for problem in found[0] if all(problem in others for others in found[1:])]


def _intact(groups: tuple[tuple[str, ...], ...], invalid: set[str]) -> tuple[tuple[tuple[str, ...], ...], set[str]]:
    """The zip groups without an invalid key, and the keys of the others."""
    intact = tuple(group for group in groups if not invalid & set(group))
    return intact, {name for group in groups if group not in intact for name in group}


def _partial(kind: type[Sweep], valid: dict[str, Any]) -> Sweep:
    """A scenario of valid keys, not validated as a whole; a required key that is missing is 1 where it can be."""
    partial = kind.model_construct()
    for name, field in kind.model_fields.items():
        if name in valid or field.is_required():
            form: Any = Annotated[field.annotation, *field.metadata, name]  # a name, for there may be no metadata
            with suppress(ValidationError):
                partial.__dict__[name] = TypeAdapter(form).validate_python(valid.get(name, 1))
    return partial


def _joint(partial: Sweep, invalid: set[str]) -> Iterator[Problem]:
    for check in (partial._axis_problems, partial._parameter_problems, partial._problems):
        with suppress(AttributeError):  # a required key is missing
            yield from (problem for problem in check() if not _concerns(problem, invalid))


def _concerns(problem: Problem, keys: set[str]) -> bool:
    """True if a problem is at one of these keys, or mentions one."""
    location, sentence = problem
    words = re.findall(r"\w+", sentence.partition(" Known: ")[0])
    return (bool(location) and location[0] in keys) or not keys.isdisjoint(words)


def _sentence(error: Any, location: tuple[str | int, ...], keys: list[str]) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown(location, keys)
    if kind == "missing":
        return "is missing, and has no default"
    if kind == "too_short":
        return "a list needs at least one value"
    if kind == "value_error":
        return f"{context['error']}{_instead(error['input'])}"
    if kind in ("int_from_float", "int_type"):
        return f"must be a whole number, not {_shown(error['input'])}"
    if kind in BOUNDS:
        bound, words = BOUNDS[kind]
        return f"must be {words} {context[bound]:g}, not {_shown(error['input'])}"
    return f"{error['msg'][:1].lower()}{error['msg'][1:]}, not {_shown(error['input'])}"


def _unknown(location: tuple[str | int, ...], keys: list[str]) -> str:
    name, inner = str(location[-1]), len(location) > 1
    if re.fullmatch(r"\w+:\S+", name):
        return "a space is missing after the colon: " + name.replace(":", ": ", 1)
    return not_known(
        name, f"a key of {location[0]}" if inner else "a key of a config", ["length", "R", "q"] if inner else keys
    )


def _instead(given: Any) -> str:
    """How a range or a list is written, for a text that looks like one."""
    if not isinstance(given, str):
        return ""
    if axis := spaced(given):
        return f". A range is written {axis}"
    inner = given.strip("()[] ")
    return f". A list is written [{inner}]" if "," in inner and len(inner) < 60 else ""


def _shown(given: Any) -> str:
    try:
        text = json.dumps(given, default=str)
    except (TypeError, ValueError, RecursionError):  # keys that are lists, lists that contain themselves
        text = " ".join(repr(given).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
