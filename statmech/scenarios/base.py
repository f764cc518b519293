"""The base class of all scenarios.

A key given as a list is an axis of the sweep (`statmech.scenarios.axes`); `cells()` visits every point of the grid
once (`statmech.scenarios.grid`). `statmech.scenarios.kind` lists the required members of a kind,
`statmech.scenarios.defaults` its optional members, and `statmech.scenarios.config_keys` reads and checks the keys.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import ValidationError

from statmech.controls import control_to_config
from statmech.errors import ScenarioError
from statmech.runtime import own_code
from statmech.scenarios.all_problems import find_all_problems
from statmech.scenarios.axes import is_axis
from statmech.scenarios.cells import GenericCell, hash_identity
from statmech.scenarios.config_keys import ConfigKeys
from statmech.scenarios.schema import make_kind_schema
from statmech.scenarios.used_classes import find_used_classes

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
        """Return the name of the module that defines this kind, shared by its simulation and theory."""
        return cls.__module__.rpartition(".")[2]

    def user_code_digests(self) -> dict[str, str]:
        """Return the SHA-256 of each user file with a class that this scenario uses."""
        return own_code.digest_user_code(find_used_classes(self))

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
