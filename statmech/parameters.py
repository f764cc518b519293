"""Parameters of what learns (rules, learners): dataclass fields that know what they mean and which values they take."""

from __future__ import annotations

from dataclasses import Field, field, fields
from functools import cache
from typing import Any

import numpy as np

from statmech.errors import ScenarioError


def parameter(default: float, doc: str, *, above: float = -np.inf, below: float = np.inf, whole: bool = False) -> Any:
    """A parameter: its default, what it means, the open bounds of its values, and whether they are whole numbers."""
    return field(default=default, metadata={"doc": doc, "above": above, "below": below, "whole": whole})


def parameters_of(kind: Any) -> dict[str, Any]:
    """The dataclass fields of a kind's parameters, by name.

    >>> from statmech.rules import Perceptron
    >>> list(parameters_of(Perceptron))
    ['eta', 'margin']
    """
    return dict(_parameters_of(kind if isinstance(kind, type) else type(kind)))


@cache  # a sweep of a million values asks for each
def _parameters_of(cls: type) -> dict[str, Any]:
    if any(isinstance(value, Field) for value in vars(cls).values()):
        raise ScenarioError(
            [((), f"the class {cls.__name__} has parameters: it needs @dataclass(frozen=True) above it")]
        )
    return {f.name: f for f in fields(cls)}


def known_parameters(kinds: dict[str, type]) -> dict[str, Any]:
    """The parameters of all registered kinds, by name, with the field of the first kind that has it."""
    return {name: field for kind in reversed(kinds.values()) for name, field in parameters_of(kind).items()}


def parameter_problem(noun: str, kinds: dict[str, type], kind: str, name: str, value: float) -> str | None:
    """Why a kind cannot take a parameter's value, a sentence; None if it can, or if it only repeats the default."""
    field = parameters_of(kinds[kind]).get(name)
    if field is None:
        default = known_parameters(kinds)[name].default
        having = ", ".join(other for other, it in kinds.items() if name in parameters_of(it))
        return (
            None
            if value == default
            else f'the {noun} "{kind}" has no {name}. {noun.capitalize()}s that have: {having}.'
        )
    above, below = field.metadata["above"], field.metadata["below"]
    if not value > above:
        return f"must be greater than {above:g}, not {value:g}"
    if not value < below:
        return f"must be less than {below:g}, not {value:g}"
    if field.metadata["whole"] and value != round(value):
        return f"must be a whole number, not {value:g}"
    return None
