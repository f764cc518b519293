"""The base class of all scenarios, and the search for the classes that a scenario uses.

A key given as a list is an axis of the sweep, and `cells()` visits every point of the grid once
(`statmech.keys.sweep_grid`). `statmech.keys.variables` lists the required members of a kind, and
`statmech.keys.config_keys` its optional members. The keys are also read and checked there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError

from statmech.convex.losses import LOSSES
from statmech.convex.teachers import TEACHERS
from statmech.convex.weight_distributions import WEIGHT_DISTRIBUTIONS
from statmech.errors import ScenarioError
from statmech.inputs.input_distributions import INPUTS
from statmech.keys.config_keys import ConfigKeys
from statmech.keys.config_schema import find_all_problems, make_kind_schema
from statmech.keys.sweep_grid import GenericCell, hash_identity, is_axis
from statmech.keys.variables import ScenarioKind
from statmech.parameters.schedules_and_controls import control_to_config
from statmech.runtime import user_code_and_provenance
from statmech.students.activations import ACTIVATIONS
from statmech.students.learners import LEARNERS
from statmech.students.rules import RULES

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


RESULTS_ONLY_ATTRIBUTES = ("simulation", "theory")  # users often mistake a scenario for its results


class AbstractScenario(ConfigKeys):
    """A learning problem with values for all its config keys.

    Any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    A subclass defines the members of `ScenarioKind`, and its keys as fields. All other members have defaults
    (`ScenarioDefaults`).
    """

    def __init__(self, **given: Any):
        try:
            super().__init__(**given)
        except ValidationError as failure:
            raise ScenarioError(find_all_problems(type(self), given, failure)) from None
        except UnicodeEncodeError as failure:
            raise ScenarioError([((), f"{failure.object!r} is not valid Unicode")]) from None

    def __getattr__(self, name: str) -> Any:
        if name in RESULTS_ONLY_ATTRIBUTES:
            instead = "statmech.run(scenario) computes it, statmech.load_results(folder) reads it"
            raise AttributeError(f"a scenario has no {name}: {instead}")
        return super().__getattr__(name)  # type: ignore[misc]  # pydantic defines __getattr__ only at run time

    @classmethod
    def get_module_name(cls) -> str:
        """Return the path below `statmech` of the module of this kind, shared by its simulation and theory."""
        return cls.__module__.partition(".")[2]

    def user_code_digests(self) -> dict[str, str]:
        """Return the SHA-256 of each user file with a class that this scenario uses."""
        return user_code_and_provenance.digest_user_code(find_used_classes(self))

    def config(self) -> dict[str, Any]:
        """Return a config that defines this scenario.

        Returns
        -------
        dict
            Keys and values, zipped keys under `zip`.
        """
        fields = self.model_dump(mode="json")
        flat = {name: fields[name] for name in self.list_fields()}
        flat |= {name: _to_jsonable(value) for name, value in self.parameters.items()}
        if self.zipped:
            flat["zip"] = [{name: flat.pop(name) for name in group} for group in self.zipped]
        return {name: value for name, value in flat.items() if value is not None and self._is_key_included(name)}

    def make_generator(self, cell: GenericCell, seed: int) -> np.random.Generator:
        """Return the random number generator of one run.

        Its stream depends only on the cell's values, the config's `key` and the seed.
        """
        return np.random.default_rng(hash_identity({**cell.identity, "key": self.key, "seed": seed}))

    @classmethod
    def make_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema that lets editors complete and check configs of this kind."""
        return make_kind_schema(cls, list(ConfigKeys.model_fields))


def check_is_scenario(scenario: object) -> None:
    """Raise `TypeError` if the argument is not a scenario, for instance if it is the name of a config."""
    if not isinstance(scenario, AbstractScenario):
        actual = f"not {type(scenario).__name__}"
        raise TypeError(f"expected a scenario, such as statmech.load({scenario!r}), {actual}")


def _to_jsonable(value: Any) -> Any:
    """Convert a value, or each value of an axis, to a form that JSON can store."""
    return [*map(control_to_config, value)] if is_axis(value) else control_to_config(value)
