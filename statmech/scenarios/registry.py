"""The kinds of scenarios, told apart by the key that names what learns."""

from __future__ import annotations

from typing import Any

from statmech.errors import ScenarioError
from statmech.scenarios.attention import Attention
from statmech.scenarios.base import Sweep
from statmech.scenarios.boosting import Boosting
from statmech.scenarios.cross_validation import Study
from statmech.scenarios.online import Scenario
from statmech.scenarios.stopping import Stopping
from statmech.scenarios.stored_examples import StoredExamples

KINDS: dict[str, type[Sweep]] = {
    kind.CHOICE: kind for kind in (Scenario, StoredExamples, Stopping, Attention, Boosting, Study)
}


def scenario_from(given: dict[str, Any]) -> Any:
    """The scenario of a config's keys; raises `ScenarioError`.

    >>> type(scenario_from({"learner": "hebb", "alpha": 2})).__name__
    'StoredExamples'
    """
    keys = {*given, *_zipped(given)}
    named = [choice for choice in KINDS if choice in keys]
    if len(named) > 1:
        told = f"a config has one of {', '.join(f'`{choice}`' for choice in KINDS)}, not {' and '.join(named)}"
        raise ScenarioError([((named[-1],), told)])
    kind = KINDS[named[0]] if named else max(KINDS.values(), key=lambda kind: len(keys & set(kind.known_keys())))
    return kind(**given)  # with none: of the kind that knows most of these keys, for its message


def _zipped(given: dict[str, Any]) -> list[str]:
    groups = given.get("zip", [])
    groups = groups if isinstance(groups, list) else [groups]
    return [name for group in groups if isinstance(group, dict) for name in group]


def schema() -> dict[str, Any]:
    """The JSON Schema of a config file: any kind of scenario."""
    kinds = {kind.__name__: kind.schema_of() for kind in KINDS.values()}
    definitions = {name: part for made in kinds.values() for name, part in made.pop("$defs", {}).items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "statmech config",
        "anyOf": list(kinds.values()),
        "$defs": definitions,
    }
