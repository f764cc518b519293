"""The keys of a scenario that a caption or a title states: those that do not have their default, with their symbols."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from figures import labels
from statmech.parameters import known_parameters
from statmech.scenarios.axes import once
from statmech.scenarios.base import AbstractScenario

FEW = 8  # values of an axis that are listed
NOUNS = (  # that follow the name of a kind: "linear teacher"
    "rule",
    "network",
    "loss",
    "prior",
    "learner",
    "penalty",
    "teacher",
    "weights",
)
UNSTATED = (
    "key",
    "figure",
    "seeds",
    "dtype",
    "engine",
    "gram",
    "start",
    "zip",
    "corrections",
    "strengths",
    "plane",
    "cap",
    "tests",
)


def of(scenario: AbstractScenario) -> dict[str, Any]:
    """Return the values of N and of the keys that do not have their default, except what learns.

    >>> from statmech import Scenario
    >>> of(Scenario(rule="hebb", N=50, t=[1, 2], flip=0.1))
    {'N': 50, 'flip': 0.1, 't': [1.0, 2.0]}
    """
    every, defaults = written(scenario), _defaults(scenario)
    names = [name for name in every if name not in (*UNSTATED, scenario.CHOICE)]
    return {name: every[name] for name in names if name == "N" or every[name] != defaults.get(name)}


def single(scenario: AbstractScenario) -> list[str]:
    """Return what learns and those of a single value, with their symbols, except N.

    >>> from statmech import Scenario
    >>> single(Scenario(rule="hebb", N=50, t=[1, 2], flip=0.1))
    ['Hebbian rule', '$p_f$ = 0.1']
    """
    learns = written(scenario)[scenario.CHOICE]
    kind = {scenario.CHOICE: learns} if isinstance(learns, str) and scenario.CHOICE in NOUNS else {}
    keys = {name: value for name, value in of(scenario).items() if name != "N" and not isinstance(value, list | dict)}
    return [with_symbol(scenario, name, value) for name, value in (kind | keys).items()]


def written(scenario: AbstractScenario) -> dict[str, Any]:
    """Return the keys as a config writes them, and the values of parallel axes, each once."""
    found = scenario.config()
    for group in found.get("zip", []):
        found |= {name: once(values) for name, values in group.items()}
    return found


def _defaults(scenario: AbstractScenario) -> dict[str, Any]:
    """Return the default of every key, as a config would hold it."""
    fields = {name: field.default for name, field in type(scenario).model_fields.items()}
    given = {name: key.default for name, key in known_parameters(scenario.classes()).items()}
    sections = {name: it.model_dump(mode="json") for name, it in fields.items() if isinstance(it, BaseModel)}
    return {**fields, **sections, **given, "inputs": "gaussian"}


def with_symbol(scenario: AbstractScenario, name: str, value: Any) -> str:
    """Return a key with its value in words.

    >>> from statmech import Scenario
    >>> with_symbol(Scenario(rule="hebb", t=1), "flip", 0.1), with_symbol(Scenario(rule="hebb", t=1), "rule", "hebb")
    ('$p_f$ = 0.1', 'Hebbian rule')
    """
    key, words = labels.symbol(scenario, name), in_words(scenario, name, value)
    if key.startswith("$"):
        return labels.valued(key, words)
    kind = isinstance(value, str) and name in NOUNS
    return f"{words} {key}" if kind else f"{key} = {words}"


def in_words(scenario: AbstractScenario, name: str, value: Any) -> str:
    """Return one value, a short list, or the range of a long one."""
    kinds = scenario.choices().get(name, {})
    many = list(value) if isinstance(value, tuple | list) else [value]
    if len(many) > FEW and all(isinstance(it, int | float) for it in many):
        many = sorted(many)  # its range; parallel axes are in any order
    words = [
        labels.kind_label(kinds, it)
        if isinstance(it, str)
        else f"{it:,}"
        if isinstance(it, int)
        else labels.power(labels.value_in_words(it))
        for it in many
    ]
    return ", ".join(words) if len(words) <= FEW else f"{words[0]} to {words[-1]} ({len(words)} values)"
