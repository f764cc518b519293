"""Choice of the kind of scenario that a config describes, and the vocabulary of all kinds.

The vocabulary has the meaning, symbol and unit of every name in configs and datasets. A meaning begins with a *term*.
The text after its first comma, colon, semicolon or bracket adds details, such as its role in one kind. Across all
kinds, a name has a unique term and a unique symbol. `NAMES_WITH_TWO_MEANINGS` lists the names that two subfields use
differently.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from statmech.convex.teachers import TEACHERS
from statmech.convex.weight_distributions import WEIGHT_DISTRIBUTIONS
from statmech.errors import ScenarioError
from statmech.keys.scenario import SCENARIOS, SCENARIOS_BY_KEY_PAIR, AbstractScenario, get_kinds
from statmech.parameters.parameter_fields import collect_parameters, find_parameter_definitions

NAMES_WITH_TWO_MEANINGS = {
    "K": "the students of an ensemble; for networks the hidden units of one student",
    "R": "a cosine for students of one layer (Gardner, Biehl); for networks the overlap of two units (Saad & Solla)",
    "q": "the cosine of two students in ensembles (Miyoshi et al.); in inference |w|^2/N (Barbier et al.)",
}


def get_kind_name(config: Mapping[str, Any]) -> str:
    """Return the name of the kind that a config selects, or an empty string without a kind.

    >>> get_kind_name({"rule": "hebb", "tasks": 2, "t": 5}), get_kind_name({"t": 5})
    ('rule_tasks', '')
    """
    return "_".join(find_selecting_keys(_list_config_keys(config)))


def scenario_from(config: dict[str, Any]) -> Any:
    """Return the scenario described by a config, or raise `ScenarioError`.

    >>> type(scenario_from({"learner": "hebb", "alpha": 2})).__name__
    'StoredExamples'
    """
    config = add_default_population(config)
    keys = _list_config_keys(config)
    choices = find_selecting_keys(keys)
    if len(choices) > 1 and tuple(choices) not in SCENARIOS_BY_KEY_PAIR:
        possible = ", ".join(f"`{choice}`" for choice in SCENARIOS)
        raise ScenarioError([((choices[-1],), f"a config requires one of {possible}, not {' and '.join(choices)}")])
    kind = _find_kind(choices) or max(SCENARIOS.values(), key=lambda kind: len(keys & set(kind.list_keys())))
    return kind(**config)  # without a kind, the most similar kind gives an error message


def get_kind(config: dict[str, Any]) -> type[AbstractScenario]:
    """Return the kind of a stored config, or the base class if a user's kind is not loaded."""
    return _find_kind(find_selecting_keys(_list_config_keys(config))) or AbstractScenario


def _find_kind(selecting_keys: list[str]) -> type[AbstractScenario] | None:
    """Return the kind that these keys select, or None without keys."""
    if tuple(selecting_keys) in SCENARIOS_BY_KEY_PAIR:
        return SCENARIOS_BY_KEY_PAIR[selecting_keys[0], selecting_keys[1]]
    return SCENARIOS[selecting_keys[0]] if selecting_keys else None


def find_selecting_keys(keys: set[str]) -> list[str]:
    """Return the keys that select a kind, without ordinary keys of another selected kind.

    >>> find_selecting_keys({"descent", "loss", "alpha"})
    ['descent']
    """
    choices = [choice for choice in SCENARIOS if choice in keys]
    if len(choices) < 2:
        return choices + [second for first, second in SCENARIOS_BY_KEY_PAIR if [first] == choices and second in keys]
    ordinary = {choice: {*SCENARIOS[choice].list_keys()} - {choice} for choice in choices}
    return [choice for choice in choices if not any(choice in keys_of_other for keys_of_other in ordinary.values())]


def add_default_population(config: dict[str, Any]) -> dict[str, Any]:
    """Add the default `population: table` to a config of rows with their own labels.

    >>> add_default_population({"loss": "logistic", "inputs": {"rows": "digits.csv", "target": "odd"}})["population"]
    'table'
    """
    if find_selecting_keys(_list_config_keys(config)) not in (["loss"], ["rule"]) or not _has_labels(
        config.get("inputs")
    ):
        return config
    return {"population": "table", **config}


def _has_labels(inputs: Any) -> bool:
    """Return True if the inputs that a config selects, or any inputs of a list, are rows with a target or data sets."""
    if isinstance(inputs, list | tuple):
        return any(map(_has_labels, inputs))
    if not isinstance(inputs, dict) or "rows" not in inputs:
        return getattr(inputs, "target", None) is not None
    from statmech.inputs.real_tables import is_data_set_name

    rows = inputs["rows"]
    keys = {**inputs, **(rows if isinstance(rows, dict) else {"path": rows})}
    return "target" in keys or (isinstance(keys.get("path"), str) and is_data_set_name(keys["path"]))


def _list_config_keys(config: Mapping[str, Any]) -> set[str]:
    """Return all keys of a config, including keys in its `zip` groups."""
    groups = config.get("zip", ())
    groups = groups if isinstance(groups, list | tuple) else [groups]
    return {*config, *(name for group in groups if isinstance(group, dict) for name in group)}


def make_config_schema() -> dict[str, Any]:
    """Return the JSON Schema of config files that select any kind of scenario."""
    schemas = {kind.__name__: kind.make_schema() for kind in get_kinds().values()}
    definitions = {
        name: part for kind_schema in schemas.values() for name, part in kind_schema.pop("$defs", {}).items()
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "statmech config",
        "anyOf": list(schemas.values()),
        "$defs": definitions,
    }


class VocabularyEntry(NamedTuple):
    """A name in configs or datasets, as defined by one kind of scenario or one selectable class."""

    name: str
    meaning: str
    symbol: str
    unit: str
    kind: str
    switch: bool = False  # True for a key that switches on the variable of the same name

    @property
    def term(self) -> str:
        """First part of the meaning, which is the same in all kinds.

        >>> VocabularyEntry("K", "number of students, in the ensemble", "$K$", "1", "rule").term
        'number of students'
        """
        return re.split(r"[,;:(]", self.meaning)[0].strip()

    @property
    def label(self) -> str:
        """Label for axes and legends, which is the symbol if there is one."""
        return self.symbol or self.name


def list_vocabulary_entries() -> list[VocabularyEntry]:
    """Return a vocabulary entry for each key, parameter, coordinate and variable of each kind."""
    kind_entries = [
        entry for kind in get_kinds().values() for entry in (*_list_key_entries(kind), *_list_variable_entries(kind))
    ]
    return [
        *kind_entries,
        *_list_parameter_entries("teacher", TEACHERS),
        *_list_parameter_entries("weights", WEIGHT_DISTRIBUTIONS),
    ]


def _list_key_entries(kind: type[AbstractScenario]) -> Iterator[VocabularyEntry]:
    """Yield vocabulary entries for the keys and parameters of a kind."""
    parameters = collect_parameters(kind.classes())
    for key in kind.describe_all_keys().values():
        if key.name not in parameters:
            yield VocabularyEntry(key.name, key.meaning, key.symbol, key.unit, kind.CHOICE, key.type is bool)
    for choice, classes in kind.choices().items():
        yield from _list_parameter_entries(choice, classes)


def _list_parameter_entries(kind: str, classes: Mapping[str, type]) -> Iterator[VocabularyEntry]:
    """Yield entries for the parameters of these classes."""
    for name in collect_parameters(classes):
        for key in find_parameter_definitions(classes, name).values():
            yield VocabularyEntry(name, key.meaning, key.symbol, key.unit, kind)


def _list_variable_entries(kind: type[AbstractScenario]) -> Iterator[VocabularyEntry]:
    """Yield vocabulary entries for all variables of a kind, including optional ones.

    Corrections and limits of other variables are not included.
    """
    switches: dict[str, Any] = {key.name: True for key in kind.describe_all_keys().values() if key.type is bool}
    scenario = kind.model_construct(**switches)
    own_variables = scenario.variables
    theory_variables = {
        name: variable
        for name, variable in scenario.theory_only_variables.items()
        if not name.startswith(tuple(f"{v}_" for v in own_variables))
    }
    for name, variable in (own_variables | theory_variables).items():
        yield VocabularyEntry(name, variable.long_name, variable.symbol, "1", kind.CHOICE)
