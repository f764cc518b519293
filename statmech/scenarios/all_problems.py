"""The problems that remain in a scenario once those that pydantic found are corrected.

pydantic checks each key by itself, and only a scenario of valid keys as a whole. So that a user sees all problems at
once, the valid keys are checked together here, without the invalid ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError

from statmech.errors import Problem, ScenarioError
from statmech.scenarios.config_keys import ConfigKeys
from statmech.scenarios.messages import MOST, problems
from statmech.scenarios.schema import sections_of

SECTIONS = {"zip", "zipped", "parameters"}  # keys whose problems keep all others from being read


def all_problems(kind: type[ConfigKeys], given: dict[str, Any], failure: ValidationError) -> list[Problem]:
    """The problems that pydantic found, and those that the remaining keys would show once these are corrected."""
    key_problems = problems(failure, kind.known_keys(), sections_of(kind))
    keys = {str(location[0]) for location, _ in key_problems if location}
    if keys & SECTIONS:
        return [*key_problems, *_without_sections(kind, given, keys)]
    checked = all(not error["loc"] for error in failure.errors())  # keys are valid in themselves, and were compared
    return key_problems if checked or failure.error_count() > MOST else [*key_problems, *_remaining(kind, given, keys)]


def _without_sections(kind: type[ConfigKeys], given: dict[str, Any], keys: set[str]) -> Iterator[Problem]:
    """The problems of a scenario without the sections that cannot be read, apart from those of the keys in them."""
    groups = given.get("zip", [])
    groups = groups if isinstance(groups, list | tuple) else [groups]
    zipped = {name for group in groups if isinstance(group, dict) for name in group}
    try:
        kind(**{name: value for name, value in given.items() if name not in keys})
    except ScenarioError as failure:
        yield from (problem for problem in failure.problems if not _concerns(problem, zipped))


def _remaining(kind: type[ConfigKeys], given: dict[str, Any], invalid: set[str]) -> list[Problem]:
    """The problems that valid keys have with each other, whatever the invalid ones may become."""
    keys: dict[str, Any] = kind._gather(given)  # type: ignore[operator]
    keys["zipped"], incomplete = _intact(keys.get("zipped", ()), invalid)
    invalid = invalid | incomplete
    parameters = {name: value for name, value in keys["parameters"].items() if name not in invalid}
    keys["parameters"] = kind._typed(parameters)
    valid = {name: value for name, value in keys.items() if name not in invalid}
    choices = [{kind.CHOICE: name} for name in kind.KINDS] if kind.CHOICE in invalid else [{}]
    problem_lists = [list(_joint(_partial(kind, {**valid, **choice}), invalid)) for choice in choices]
    return [
        problem
        for problem in problem_lists[0]
        if all(problem in other_problems for other_problems in problem_lists[1:])
    ]


def _intact(groups: tuple[tuple[str, ...], ...], invalid: set[str]) -> tuple[tuple[tuple[str, ...], ...], set[str]]:
    """The zip groups without an invalid key, and the keys of the others."""
    intact = tuple(group for group in groups if not invalid & set(group))
    return intact, {name for group in groups if group not in intact for name in group}


def _partial(kind: type[ConfigKeys], valid: dict[str, Any]) -> ConfigKeys:
    """A scenario of valid keys, not validated as a whole; a required key that is missing is 1 where it can be."""
    partial = kind.model_construct()
    for name, field in kind.model_fields.items():
        if name in valid or field.is_required():
            with suppress(ValidationError):
                partial.__dict__[name] = _adapter(kind, name).validate_python(valid.get(name, 1))
    return partial


@cache
def _adapter(kind: type[ConfigKeys], name: str) -> TypeAdapter[Any]:
    """The validator of one key, which pydantic takes a millisecond to make."""
    field = kind.model_fields[name]
    form: Any = Annotated[field.annotation, *field.metadata, name]  # a name, for there may be no metadata
    return TypeAdapter(form)


def _joint(partial: ConfigKeys, invalid: set[str]) -> Iterator[Problem]:
    for check in (partial._axis_problems, partial._parameter_problems, partial._problems):
        with suppress(AttributeError):  # a required key is missing
            yield from (problem for problem in check() if not _concerns(problem, invalid))


def _concerns(problem: Problem, keys: set[str]) -> bool:
    """True if a problem is at one of these keys, or mentions one."""
    location, sentence = problem
    mentioned = re.findall(r"\w+", sentence.partition(" Known: ")[0])
    return (bool(location) and location[0] in keys) or not keys.isdisjoint(mentioned)
