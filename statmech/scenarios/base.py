"""The base class of scenarios.

A key given as a list is an axis of the sweep (`statmech.scenarios.axes`); `cells()` visits every point of the grid
once (`statmech.scenarios.grid`). `statmech.scenarios.kind` lists what every kind states, `statmech.scenarios.defaults`
what it may state, and `statmech.scenarios.config_keys` reads and checks the keys.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import ValidationError

from statmech.controls import written_control
from statmech.errors import ScenarioError
from statmech.runtime import own_code
from statmech.scenarios.all_problems import all_problems
from statmech.scenarios.axes import is_axis
from statmech.scenarios.cells import GridPoint, words_of
from statmech.scenarios.config_keys import ConfigKeys
from statmech.scenarios.schema import schema_of
from statmech.scenarios.used_classes import used_classes

OF_RESULTS = ("simulation", "theory")  # of `statmech.results.results`, which scenarios are taken for


class AbstractScenario(ConfigKeys):
    """A scenario; any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    A kind states the members of `Kind`, and its keys as fields. Whatever else it may state has a default (`Defaults`).
    """

    def __init__(self, **given: Any):
        try:
            super().__init__(**given)
        except ValidationError as failure:
            raise ScenarioError(all_problems(type(self), given, failure)) from None
        except UnicodeEncodeError as failure:
            raise ScenarioError([((), f"{failure.object!r} is not valid Unicode")]) from None

    def __getattr__(self, name: str) -> Any:
        if name in OF_RESULTS:
            instead = "statmech.run(scenario) computes it, statmech.load_results(folder) reads it"
            raise AttributeError(f"a scenario has no {name}: {instead}")
        return super().__getattr__(name)  # type: ignore[misc]  # pydantic hides its own from type checkers

    @classmethod
    def module(cls) -> str:
        """The name of the file that holds this kind; those that simulate and solve it have the same."""
        return cls.__module__.rpartition(".")[2]

    def code_digests(self) -> dict[str, str]:
        """The SHA-256 of each of the user's files that defines a class that this scenario uses."""
        return own_code.digests(used_classes(self))

    def config(self) -> dict[str, Any]:
        """This scenario as a config file would hold it, from which the same scenario can be made again.

        Returns
        -------
        dict
            Keys and values, zipped keys under `zip`.
        """
        flat = {**self.model_dump(mode="json"), **{name: _jsonable(v) for name, v in self.parameters.items()}}
        if self.zipped:
            flat["zip"] = [{name: flat.pop(name) for name in group} for group in self.zipped]
        return {name: value for name, value in flat.items() if value is not None and self._stated(name)}

    def generator(self, cell: GridPoint, seed: int) -> np.random.Generator:
        """The random numbers of one run of a `GridPoint`: they depend on its own values, the key and the seed alone."""
        return np.random.default_rng(words_of({**cell.identity, "key": self.key, "seed": seed}))

    @classmethod
    def schema_of(cls) -> dict[str, Any]:
        """The JSON Schema of a config of this kind, so that editors complete and check it."""
        return schema_of(cls, list(ConfigKeys.model_fields))


def check_type(scenario: object) -> None:
    """Raise `TypeError` if this is not a scenario; likely it is the name of a config."""
    if not isinstance(scenario, AbstractScenario):
        actual = f"not {type(scenario).__name__}"
        raise TypeError(f"expected a scenario, such as statmech.load({scenario!r}), {actual}")


def _jsonable(value: Any) -> Any:
    return [*map(written_control, value)] if is_axis(value) else written_control(value)
