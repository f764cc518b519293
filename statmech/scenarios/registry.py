"""The kinds of scenarios, by the key that names what learns.

**To add a kind** write one class in a file of this folder, how it is simulated and solved in files of the same name in
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
    """Kinds by key; one that is given as the name of its class in this folder is imported when it is first read."""

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
    """Every kind by its name, the keys that name it: `rule`, or `rule_tasks` of two keys together."""
    return {**SCENARIOS, **{"_".join(keys): kind for keys, kind in TOGETHER.items()}}


def kind_name(config: Mapping[str, Any]) -> str:
    """The name of the kind that a config's keys name, empty if they name none.

    >>> kind_name({"rule": "hebb", "tasks": 2, "t": 5}), kind_name({"t": 5})
    ('rule_tasks', '')
    """
    return "_".join(choices_in(_keys_in(config)))


def scenario_from(given: dict[str, Any]) -> Any:
    """The scenario that a config's keys describe; raises `ScenarioError`.

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
    return kind(**given)  # with none: of the kind that knows most of these keys, for its message


def kind_of(config: dict[str, Any]) -> type[AbstractScenario]:
    """Return the kind of a stored config, or the base class if it is the user's and not loaded."""
    return _named(choices_in(_keys_in(config))) or AbstractScenario


def _named(choices: list[str]) -> type[AbstractScenario] | None:
    """The kind that these keys name: two of them together, or the first."""
    if tuple(choices) in TOGETHER:
        return TOGETHER[choices[0], choices[1]]
    return SCENARIOS[choices[0]] if choices else None


def choices_in(keys: set[str]) -> list[str]:
    """The keys that name a kind, without the ordinary keys of another that is named.

    >>> choices_in({"descent", "loss", "alpha"})
    ['descent']
    """
    choices = [choice for choice in SCENARIOS if choice in keys]
    if len(choices) < 2:
        return choices + [second for first, second in TOGETHER if [first] == choices and second in keys]
    ordinary = {choice: {*SCENARIOS[choice].known_keys()} - {choice} for choice in choices}
    return [choice for choice in choices if not any(choice in keys_of_other for keys_of_other in ordinary.values())]


def with_population(config: dict[str, Any]) -> dict[str, Any]:
    """A config of a loss or a rule of rows with labels of their own, with their population, by default the table.

    >>> with_population({"loss": "logistic", "inputs": {"rows": "digits.csv", "target": "odd"}})["population"]
    'table'
    """
    if choices_in(_keys_in(config)) not in (["loss"], ["rule"]) or not _labelled(config.get("inputs")):
        return config
    return {"population": "table", **config}


def _labelled(inputs: Any) -> bool:
    """True for rows that have a target or are a data set, and for lists of them."""
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
    """The JSON Schema of a config file: any kind of scenario."""
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
