"""The kinds of scenarios, by the key that selects the learning algorithm.

**To add a kind** write a class in a file of this folder, its simulation and theory in files of the same name in
`simulate/scenarios/` and `theory/scenarios/`, and one line here. Outside this package, one file is enough: a class with
methods `simulate(cell, seed)` and `solve(cell)`, and a line ``SCENARIOS[Mine.CHOICE] = Mine`` (docs/howto).
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Mapping, MutableMapping
from pkgutil import resolve_name
from typing import Any

from statmech.errors import ScenarioError
from statmech.scenarios.base import AbstractScenario


class Kinds(UserDict[Any, Any]):
    """Kinds by key. A class given as "module:Name" is imported when it is first read."""

    def __getitem__(self, choice: Any) -> type[AbstractScenario]:
        if isinstance(self.data[choice], str):
            self.data[choice] = resolve_name(f"{__package__}.{self.data[choice]}")
        kind: type[AbstractScenario] = self.data[choice]
        return kind


SCENARIOS: MutableMapping[str, type[AbstractScenario]] = Kinds(
    rule="online:Scenario",
    learner="stored_examples:StoredExamples",
    boundary="stopping:Stopping",
    attention="attention:Attention",
    booster="boosting:Boosting",
    classifier="cross_validation:Study",
    network="network:Network",
    loss="risk:Risk",
    descent="descent:Descent",
    clusters="gaussian_clusters:Clusters",
    population="labelled_rows:LabelledRows",
    prior="inference:Inference",
)
TOGETHER: MutableMapping[tuple[str, str], type[AbstractScenario]] = Kinds(
    {
        ("rule", "clusters"): "online_clusters:OnlineClusters",
        ("rule", "population"): "online_rows:OnlineRows",
        ("rule", "tasks"): "online_tasks:OnlineTasks",
        ("network", "tasks"): "network_tasks:NetworkTasks",
    }
)


def kinds() -> dict[str, type[AbstractScenario]]:
    """Return every kind by its name: its key (`rule`), or its two keys joined (`rule_tasks`)."""
    return {**SCENARIOS, **{"_".join(keys): kind for keys, kind in TOGETHER.items()}}


def kind_name(config: Mapping[str, Any]) -> str:
    """Return the name of the kind that a config selects, or an empty string if it selects no kind.

    >>> kind_name({"rule": "hebb", "tasks": 2, "t": 5}), kind_name({"t": 5})
    ('rule_tasks', '')
    """
    return "_".join(choices_in(_keys_in(config)))


def scenario_from(given: dict[str, Any]) -> Any:
    """Return the scenario that the keys of a config describe, or raise `ScenarioError`.

    >>> type(scenario_from({"learner": "hebb", "alpha": 2})).__name__
    'StoredExamples'
    """
    given = with_population(given)
    keys = _keys_in(given)
    choices = choices_in(keys)
    if len(choices) > 1 and tuple(choices) not in TOGETHER:
        possible = ", ".join(f"`{choice}`" for choice in SCENARIOS)
        raise ScenarioError([((choices[-1],), f"a config has one of {possible}, not {' and '.join(choices)}")])
    kind = _named(choices) or max(SCENARIOS.values(), key=lambda kind: len(keys & set(kind.known_keys())))
    return kind(**given)  # without a kind: try the most similar kind, for its error message


def kind_of(config: dict[str, Any]) -> type[AbstractScenario]:
    """Return the kind of a stored config, or the base class if the user's kind is not loaded."""
    return _named(choices_in(_keys_in(config))) or AbstractScenario


def _named(choices: list[str]) -> type[AbstractScenario] | None:
    """Return the kind that these keys select, None without keys."""
    if tuple(choices) in TOGETHER:
        return TOGETHER[choices[0], choices[1]]
    return SCENARIOS[choices[0]] if choices else None


def choices_in(keys: set[str]) -> list[str]:
    """Return the keys that select a kind, without keys that are ordinary keys of another selected kind.

    >>> choices_in({"descent", "loss", "alpha"})
    ['descent']
    """
    choices = [choice for choice in SCENARIOS if choice in keys]
    if len(choices) < 2:
        return choices + [second for first, second in TOGETHER if [first] == choices and second in keys]
    ordinary = {choice: {*SCENARIOS[choice].known_keys()} - {choice} for choice in choices}
    return [choice for choice in choices if not any(choice in keys_of_other for keys_of_other in ordinary.values())]


def with_population(config: dict[str, Any]) -> dict[str, Any]:
    """Add the default population, `table`, to a config of rows with labels of their own.

    >>> with_population({"loss": "logistic", "inputs": {"rows": "digits.csv", "target": "odd"}})["population"]
    'table'
    """
    if choices_in(_keys_in(config)) not in (["loss"], ["rule"]) or not _labelled(config.get("inputs")):
        return config
    return {"population": "table", **config}


def _labelled(inputs: Any) -> bool:
    """Return True for rows with a target, for data sets, and for lists that contain such rows."""
    if isinstance(inputs, list | tuple):
        return any(map(_labelled, inputs))
    if not isinstance(inputs, dict) or "rows" not in inputs:
        return getattr(inputs, "target", None) is not None
    from statmech.real_table import is_data_set

    rows = inputs["rows"]
    keys = {**inputs, **(rows if isinstance(rows, dict) else {"path": rows})}
    return "target" in keys or (isinstance(keys.get("path"), str) and is_data_set(keys["path"]))


def _keys_in(config: Mapping[str, Any]) -> set[str]:
    """Return the keys of a config, also those in its groups of parallel axes."""
    groups = config.get("zip", ())
    groups = groups if isinstance(groups, list | tuple) else [groups]
    return {*config, *(name for group in groups if isinstance(group, dict) for name in group)}


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a config file: any kind of scenario."""
    schemas = {kind.__name__: kind.schema_of() for kind in kinds().values()}
    definitions = {
        name: part for kind_schema in schemas.values() for name, part in kind_schema.pop("$defs", {}).items()
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "statmech config",
        "anyOf": list(schemas.values()),
        "$defs": definitions,
    }
