"""Vocabulary of configs and datasets: the meaning, symbol and unit of every name, in all kinds of scenarios.

A meaning begins with a *term*. The text after its first comma, colon, semicolon or bracket adds details, such as its
role in one kind. Across all kinds, a name has a unique term and a unique symbol. `NAMES_WITH_TWO_MEANINGS`
lists the names that two subfields use differently.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from statmech.convex.teachers import TEACHERS
from statmech.convex.weights import WEIGHT_DISTRIBUTIONS
from statmech.parameters import collect_parameters, find_parameter_definitions
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.kind_registry import get_kinds

NAMES_WITH_TWO_MEANINGS = {
    "R": "a cosine for students of one layer (Gardner, Biehl); for networks the overlap of two units (Saad & Solla)",
    "q": "the cosine of two students in ensembles (Miyoshi et al.); in inference |w|^2/N (Barbier et al.)",
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
    """Return an entry for each key, parameter, coordinate and variable of each kind."""
    kind_entries = [
        entry for kind in get_kinds().values() for entry in (*_list_key_entries(kind), *_list_variable_entries(kind))
    ]
    return [
        *kind_entries,
        *_list_parameter_entries("teacher", TEACHERS),
        *_list_parameter_entries("weights", WEIGHT_DISTRIBUTIONS),
    ]


def _list_key_entries(kind: type[AbstractScenario]) -> Iterator[VocabularyEntry]:
    """Yield entries for the keys and parameters of a kind."""
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
    """Yield entries for all variables of a kind, including optional ones.

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
