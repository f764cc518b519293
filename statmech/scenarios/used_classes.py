"""The classes that a scenario uses: its own, and those that the words of its config name in the registries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from statmech.activations import ACTIVATIONS
from statmech.boundaries import BOUNDARIES
from statmech.classifiers import CLASSIFIERS
from statmech.convex.losses import LOSSES
from statmech.convex.teachers import TEACHERS
from statmech.convex.weights import WEIGHTS
from statmech.inputs import INPUTS
from statmech.learners import LEARNERS
from statmech.rules import RULES

REGISTRIES: tuple[Mapping[str, type], ...] = (
    *(RULES, LEARNERS, ACTIVATIONS, BOUNDARIES, CLASSIFIERS, INPUTS),
    *(LOSSES, TEACHERS, WEIGHTS),
)


def used_classes(scenario: Any) -> set[type]:
    """The class of a scenario, and every class that one of its words names.

    >>> from statmech import Scenario
    >>> sorted(kind.__name__ for kind in used_classes(Scenario(rule=["hebb", "adatron"], t=1)))
    ['AdaTron', 'Gaussian', 'Hebb', 'Scenario']
    """
    registries = (*REGISTRIES, scenario.KINDS)
    words = set(_words(vars(scenario)))
    return {type(scenario), *(registry[word] for registry in registries for word in words & registry.keys())}


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, BaseModel):
        yield from _words(vars(value))
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield str(name)
            yield from _words(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _words(inner)
