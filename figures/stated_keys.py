"""The keys of a scenario in captions and titles, with their symbols or in words."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from figures import labels
from statmech.boundaries import BOUNDARIES
from statmech.convex.weights import WEIGHT_DISTRIBUTIONS
from statmech.parameters import collect_parameters, get_parameters
from statmech.scenarios.axes import drop_duplicates
from statmech.scenarios.base import AbstractScenario
from statmech.table_populations import TABLE_POPULATIONS

MAX_LISTED_VALUES = 8  # a longer list is shown as its range
CAPTION_OMITTED_KEYS = (
    *("key", "seeds", "dtype", "engine", "solver"),  # settings of the computation
    *("gram", "corrections", "strengths", "plane", "positions", "bayes"),  # requests for additional results
    *("figure", "zip"),
)
KIND_KEYS = ("rule", "network", "loss", "prior", "learner", "penalty", "teacher", "weights", "boundary", "classifier")
COUNT_KEYS = (
    "epochs",
    "updates",
    "steps",
    "tasks",
    "passes",
    "stages",
    "sweeps",
    "neighbours",
    "examples",
    "heads",
    "folds",
)
KEYS_SHOWN_BY_NAME = ("inputs", "start", "protocol", "sampling", "model", "data", "intercept")
KEY_PHRASES = {  # for keys without a symbol
    **{name: f"{{}} {name}" for name in (*KIND_KEYS, *COUNT_KEYS)},
    **{name: f"{name}: {{}}" for name in KEYS_SHOWN_BY_NAME},
    **dict.fromkeys(("clusters", "booster", "descent", "population"), "{}"),
    **dict.fromkeys(("attention", "level"), "{} boundary"),
    "annealing": "{} annealing",
    "mean": r"$m/\sigma$ = {}",
    "chunk": "features between looks: {}",
    "walks": "{} walks per seed",
    "probes": "fraction {} of probes",
    "memory": "memory of {} probes",
    "cap": "at most {} stages",
    "tests": "{} examples for tests",
    "stop": "stop rule: {}",
    "chosen": "order of features: {}",
    "order": "order of examples: {}",
    "budget": "budget of {} features",
    "share": "fraction {} of weights pruned at a time",
    "l1_ratio": "part {} of the l1 norm",
    "switch": "switch at $t$ = {}",
}
TITLE_OMITTED_KEYS = (
    "N",
    "folds",
    "cap",
    "tests",
    "walks",
    "chunk",
    "within",
    "tolerance",
)  # N and folds are given with the number of runs
ZERO_VALUE_PHRASES = {"stages": "stages by cross-validation", "budget": "no budget of features"}
LABELLED_KINDS_BY_KEY: dict[str, Mapping[str, Any]] = {
    "weights": WEIGHT_DISTRIBUTIONS,
    "level": BOUNDARIES,
    "population": TABLE_POPULATIONS,
}


def get_caption_keys(scenario: AbstractScenario) -> dict[str, Any]:
    """Return all keys that determine the results, except the learner, rule, loss, ...

    >>> from statmech import Scenario
    >>> get_caption_keys(Scenario(rule="hebb", N=50, t=[1, 2], flip=0.1))
    {'K': 1, 'N': 50, 'inputs': 'gaussian', 'flip': 0.1, 't': [1.0, 2.0], 'start': 'drawn', 'eta': 1.0}
    """
    config = expand_config(scenario)
    used = {
        name for kinds in _get_configured_classes(scenario, config) for kind in kinds for name in get_parameters(kind)
    }
    unused = collect_parameters(scenario.classes()).keys() - used - type(scenario).model_fields.keys()
    return {
        name: value for name, value in config.items() if name not in {*CAPTION_OMITTED_KEYS, scenario.CHOICE, *unused}
    }


def describe_title_values(scenario: AbstractScenario) -> list[str]:
    """Return the parts of a title: the learner or rule, and every key with a single value, except N.

    A key at its default is only included if it has a symbol, is not 0, and applies to all learners or rules.

    >>> from statmech import Scenario
    >>> describe_title_values(Scenario(rule="hebb", N=50, t=[1, 2], flip=0.1))
    ['Hebbian rule', '$K$ = 1', '$p_f$ = 0.1', '$\\\\eta$ = 1']
    """
    config, fields = expand_config(scenario), type(scenario).model_fields.keys()
    defaults, kinds = _get_key_defaults(scenario, config), [*_get_configured_classes(scenario, config)]
    choice = [scenario.CHOICE] if isinstance(config[scenario.CHOICE], str) else []
    names = []
    for name, value in get_caption_keys(scenario).items():
        shared = name in fields or any(all(name in get_parameters(kind) for kind in group) for group in kinds)
        is_main = value and shared and labels.get_symbol(scenario, name).startswith("$")
        is_single = not isinstance(value, list) and (name == "inputs" or not isinstance(value, dict))
        if is_single and name not in TITLE_OMITTED_KEYS and (is_main or value != defaults.get(name)):
            names.append(name)
    return [format_key_and_value(scenario, name, config[name]) for name in (*choice, *names)]


def expand_config(scenario: AbstractScenario) -> dict[str, Any]:
    """Return the config of a scenario, with unzipped axes and the defaults of its learner or rule."""
    config = scenario.config()
    for group in config.get("zip", []):
        config |= {name: drop_duplicates(values) for name, values in group.items()}
    return config | {
        name: default for name, default in _get_parameter_defaults(scenario, config).items() if name not in config
    }


def _get_configured_classes(scenario: AbstractScenario, config: dict[str, Any]) -> Iterator[list[type]]:
    """Yield the classes of the rules, the losses, ... that a config names."""
    for choice, kinds in scenario.choices().items():
        value = config.get(choice)
        names: list[Any] = value if isinstance(value, list) else [value]
        yield [kinds[name] for name in names if name in kinds]


def _get_parameter_defaults(scenario: AbstractScenario, config: dict[str, Any]) -> dict[str, Any]:
    """Return the default parameters of the named rules, losses, ..., as a list if they differ."""
    defaults: dict[str, dict[Any, None]] = {}
    for kind in itertools.chain.from_iterable(_get_configured_classes(scenario, config)):
        for name, key in get_parameters(kind).items():
            defaults.setdefault(name, {})[key.default] = None
    lists = {name: [value for value in values if value is not None] for name, values in defaults.items()}
    return {name: values[0] if len(values) == 1 else values for name, values in lists.items() if values}


def _get_key_defaults(scenario: AbstractScenario, config: dict[str, Any]) -> dict[str, Any]:
    """Return the default of every key, in the form of a config."""
    fields = {name: field.default for name, field in type(scenario).model_fields.items()}
    sections = {
        name: default.model_dump(mode="json") for name, default in fields.items() if isinstance(default, BaseModel)
    }
    return {**fields, **sections, **_get_parameter_defaults(scenario, config), "inputs": "gaussian"}


def format_key_and_value(scenario: AbstractScenario, name: str, value: Any) -> str:
    """Format a key and its value as text.

    >>> from statmech import Scenario
    >>> (
    ...     format_key_and_value(Scenario(rule="hebb", t=1), "flip", 0.1),
    ...     format_key_and_value(Scenario(rule="hebb", t=1), "rule", "hebb")
    ... )
    ('$p_f$ = 0.1', 'Hebbian rule')
    """
    key, text = labels.get_symbol(scenario, name), format_values(scenario, name, value)
    if key.startswith("$"):
        return labels.format_key_value(key, text)
    if name in ZERO_VALUE_PHRASES and value == 0:
        return ZERO_VALUE_PHRASES[name]
    phrase = f"{name}: {{}}" if isinstance(value, dict) else KEY_PHRASES.get(name, f"{name} {{}}".replace("_", " "))
    return phrase.format(text)


def format_values(scenario: AbstractScenario, name: str, value: Any) -> str:
    """Format one value, a short list of values, or the range of a long list."""
    items = list(value) if isinstance(value, tuple | list) else [value]
    if len(items) > MAX_LISTED_VALUES and all(isinstance(item, int | float) for item in items):
        items = sorted(items)  # the values of parallel axes need not be ordered
    texts = [_format_single_value(scenario, name, item) for item in items]
    return ", ".join(texts) if len(texts) <= MAX_LISTED_VALUES else f"{texts[0]} to {texts[-1]} ({len(texts)} values)"


def _format_single_value(scenario: AbstractScenario, name: str, value: Any) -> str:
    if isinstance(value, str):
        return labels.kind_label(scenario.choices().get(name) or LABELLED_KINDS_BY_KEY.get(name, {}), value).replace(
            "_", " "
        )
    if isinstance(value, int):
        return f"{value:,}" if not isinstance(value, bool) else "yes" if value else "no"
    text = labels.format_power_of_ten(labels.format_config_value(value))
    entries = [inner for inner in value.items() if inner[1] is not None] if isinstance(value, dict) else []
    if (
        len(entries) == 1
        and not isinstance(entries[0][1], dict)
        and not labels.get_symbol(scenario, name).startswith("$")
    ):
        return f"{entries[0][0]} {text}".replace("_", " ")
    return text
