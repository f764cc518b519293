"""Search for the classes that a scenario uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from statmech.activations import ACTIVATIONS
from statmech.convex.losses import LOSSES
from statmech.convex.teachers import TEACHERS
from statmech.convex.weights import WEIGHT_DISTRIBUTIONS
from statmech.inputs import INPUTS
from statmech.learners import LEARNERS
from statmech.rules import RULES
from statmech.scenarios.kind import ScenarioKind

CLASS_REGISTRIES: tuple[Mapping[str, type], ...] = (
    *(RULES, LEARNERS, ACTIVATIONS, INPUTS),
    *(LOSSES, TEACHERS, WEIGHT_DISTRIBUTIONS),
)


def find_used_classes(scenario: ScenarioKind) -> set[type]:
    """Return the classes of a scenario and its values, and registered classes selected by name.

    >>> from statmech import Scenario
    >>> used = find_used_classes(Scenario(rule=["hebb", "perceptron"], t=1))
    >>> {RULES["hebb"], RULES["perceptron"], INPUTS["gaussian"], Scenario} <= used, RULES["adatron"] in used
    (True, False)
    """
    leaves = list(_iterate_leaves(vars(scenario)))
    strings, registries = (
        {leaf for leaf in leaves if isinstance(leaf, str)},
        (*CLASS_REGISTRIES, *scenario.choices().values()),
    )
    registered = (registry[string] for registry in registries for string in strings & registry.keys())
    return {type(scenario), *map(type, leaves), *registered}


def _iterate_leaves(value: Any) -> Iterator[Any]:
    """Yield all keys and values in nested mappings and lists."""
    if isinstance(value, BaseModel):
        yield from _iterate_leaves(vars(value))
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield name
            yield from _iterate_leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _iterate_leaves(inner)
    else:
        yield value
