"""pydantic's errors in our own words: the key and the place, what was given, what is possible."""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError

from statmech.errors import Problem, ScenarioError, not_known

TAGS = {"value", "axis", "drawn", "given"}  # which form a key was read in: of no interest to the reader
MOST = 20  # that are shown at once
BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "greater than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}


def problems(failure: ValidationError, keys: list[str]) -> list[Problem]:
    """Locations and sentences; `keys` are those a config may have."""
    found: list[Problem] = []
    every = failure.errors()
    for error in every[:MOST]:
        cause = error.get("ctx", {}).get("error")
        if isinstance(cause, ScenarioError):
            found += cause.problems
            continue
        location = tuple(part for part in error["loc"] if part not in TAGS)
        location = location[1:] if location[:1] == ("parameters",) else location
        found.append((location, _sentence(error, location, keys)))
    left = len(every) - MOST
    return [*found, ((), f"and {left:,} more of what cannot be")] if left > 0 else found


def _sentence(error: Any, location: tuple[str | int, ...], keys: list[str]) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        inner = len(location) > 1
        return not_known(
            location[-1],
            f"a key of {location[0]}" if inner else "a key of a config",
            ["length", "R", "q"] if inner else keys,
        )
    if kind == "missing":
        return "is missing, and has no default"
    if kind == "too_short":
        return "a list needs at least one value"
    if kind == "value_error":
        return str(context["error"])
    if kind in ("int_from_float", "int_type"):
        return f"must be a whole number, not {_shown(error['input'])}"
    if kind in BOUNDS:
        bound, words = BOUNDS[kind]
        return f"must be {words} {context[bound]:g}, not {_shown(error['input'])}"
    return f"{error['msg'][:1].lower()}{error['msg'][1:]}, not {_shown(error['input'])}"


def _shown(given: Any) -> str:
    try:
        text = json.dumps(given, default=str)
    except (TypeError, ValueError, RecursionError):  # keys that are lists, lists that hold themselves
        text = " ".join(repr(given).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
