"""What every scenario shares: keys that may be axes, the grid they span, and how it is written down.

A key given as a list is an axis of the sweep (`statmech.scenarios.axes`); `cells()` visits every point of the grid
once. What learns is named by one key (`CHOICE`), and the parameters of all it may name (`KINDS`) are keys like the
others.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from statmech.errors import Problem, ScenarioError, not_known
from statmech.parameters import known_parameters, parameter_problem, parameters_of
from statmech.scenarios.all_problems import all_problems
from statmech.scenarios.axes import MAX_AXIS, axis_of, expand, is_axis, points
from statmech.scenarios.variables import Variable

MAX_N, MAX_SEEDS = 10**15, 10**9  # beyond lie typing errors, not sweeps
PARAMETERS = "parameters"  # where, among a scenario's axes, those of the parameters stand


def _plain_number(given: Any) -> Any:
    """Numbers only: YAML's true and "3" are no numbers, NumPy's scalars are."""
    if isinstance(given, bool | str):
        raise ValueError(f"must be a number, not {json.dumps(given)}")
    return given.item() if isinstance(given, np.generic) else given


Number = Annotated[float, BeforeValidator(_plain_number), Field(allow_inf_nan=False)]
Whole = Annotated[int, BeforeValidator(_plain_number)]
DimensionAxis = axis_of(Annotated[Whole, Field(ge=2, le=MAX_N)], {"type": "integer", "minimum": 2, "maximum": MAX_N})
FlipAxis = axis_of(Annotated[Number, Field(ge=0, le=0.5)], {"type": "number", "minimum": 0, "maximum": 0.5})
ParameterAxis = axis_of(Number, {"type": "number"})


class Sweep(BaseModel):
    """A scenario; any list is an axis of a sweep. Raises `ScenarioError` with one sentence a problem."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    CHOICE: ClassVar[str]  # the key that names what learns, and the noun of messages
    KINDS: ClassVar[dict[str, type]]  # all it may name
    together: ClassVar[int] = 1  # seeds that are played together, so that another number would move the last bits
    on_data: ClassVar[bool] = False  # on given data, which no theory describes
    equations: ClassVar[tuple[str, ...]] = ()  # that all of this kind obey, in LaTeX, for pages that show them
    AXES: ClassVar[tuple[str, ...]]  # keys that may be axes, in the order of the dataset's dimensions

    seeds: Annotated[Whole, Field(ge=1, le=MAX_SEEDS)] = Field(10, description="independent runs of each grid point")
    key: Annotated[Whole, Field(ge=0, lt=2**32)] = Field(0, description="key of the experiment's random numbers")
    figure: str | None = Field(None, description="published figure to draw; the config's own name by default")
    parameters: dict[str, ParameterAxis] = Field(default_factory=dict, exclude=True)  # type: ignore[valid-type]
    zipped: tuple[tuple[str, ...], ...] = Field(default=(), exclude=True)

    def __init__(self, **given: Any):
        try:
            super().__init__(**given)
        except ValidationError as failure:
            raise ScenarioError(all_problems(type(self), given, failure)) from None
        except UnicodeEncodeError as failure:
            raise ScenarioError([((), f"{failure.object!r} holds what is no Unicode text")]) from None

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Flat keys to fields: zip groups spread out, parameters gathered."""
        given = dict(given)
        if inner := {"zipped", PARAMETERS} & given.keys():  # our own names of what is gathered here
            raise ScenarioError([((name,), not_known(name, "a key of a config", cls.known_keys())) for name in inner])
        if "zip" in given:
            given["zipped"] = _unzip(given, cls.axis_names())
        given[PARAMETERS] = {name: given.pop(name) for name in known_parameters(cls.KINDS) if name in given}
        return given

    @model_validator(mode="after")
    def _check(self) -> Self:
        found = [*self._axis_problems(), *self._parameter_problems(), *self._problems()]
        if found:
            raise ScenarioError(found)
        return self

    def _axis_problems(self) -> Iterator[Problem]:
        for name, value in self.axis_values().items():
            if is_axis(value) and len(value) > MAX_AXIS:
                yield (name,), f"an axis of {len(value)} values is more than {MAX_AXIS}"

        for along in self.dimensions.values():
            places = list(zip(*along.values(), strict=True))
            if len(set(places)) < len(places):
                yield (next(iter(along)),), "an axis names a value twice"

    def _parameter_problems(self) -> Iterator[Problem]:
        """A value given once concerns those that have the parameter, if any has; an axis concerns all."""
        for parameter, given in self.parameters.items():
            pairs = self.pairs(self.CHOICE, parameter)
            concerned = [pair for pair in pairs if parameter in parameters_of(self.KINDS[pair[0]])]
            for name, value in pairs if is_axis(given) or not concerned else concerned:
                if problem := parameter_problem(self.CHOICE, self.KINDS, name, parameter, value):
                    yield (parameter,), problem
                    break

    def _problems(self) -> Iterator[Problem]:
        """Whatever else a kind of scenario cannot be."""
        return iter(())

    def data_problems(self) -> Iterator[Problem]:
        """Why the data that the scenario names cannot be simulated with here; results are read without them."""
        return iter(())

    def data_digests(self) -> dict[str, str]:
        """The SHA-256 of each data set or file that the scenario names, as it is now."""
        return {}

    @property
    def variables(self) -> dict[str, Variable]:
        """The variables of this scenario's datasets."""
        raise NotImplementedError

    @property
    def recorded(self) -> dict[str, np.ndarray]:
        """The coordinates of the dataset's dimensions that are no axes of the sweep."""
        return {}

    @property
    def derived(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        """Coordinates that follow from others: the sweep's dimensions that they vary along, and their values."""
        return {}

    @property
    def unsolved(self) -> str:
        """Why theory has no equations for this scenario; empty if it has."""
        return ""

    @property
    def exchangeable(self) -> bool:
        """Whether the students of every ensemble start alike."""
        return True

    @classmethod
    def equation_of(cls, name: str) -> str:
        """The equation of one of the kinds that learn, in LaTeX; empty if it states none."""
        told: str = getattr(cls.KINDS[name], "equation", "")
        return told

    @classmethod
    def axis_names(cls) -> list[str]:
        """Every key that may be an axis, in the order of the sweep's dimensions."""
        spread = [known_parameters(cls.KINDS) if name == PARAMETERS else [name] for name in cls.AXES]
        return [name for names in spread for name in names]

    @classmethod
    def known_keys(cls) -> list[str]:
        """Every key a config may have."""
        fields = [name for name in cls.model_fields if name not in (PARAMETERS, "zipped")]
        return [*fields, *known_parameters(cls.KINDS), "zip"]

    def axis_values(self) -> dict[str, Any]:
        """What is given for the keys that may be axes, in the order of the sweep's dimensions."""
        given = {**{name: getattr(self, name) for name in self.AXES if name != PARAMETERS}, **self.parameters}
        return {name: given[name] for name in self.axis_names() if name in given}

    def pairs(self, one: str, other: str) -> list[tuple[Any, Any]]:
        """The values that two keys take together: side by side if zipped, else each with each."""
        values = self.axis_values()
        first, second = points(values[one]), points(values[other])
        together = any(one in group and other in group for group in self.zipped)
        return list(zip(first, second, strict=True) if together else itertools.product(first, second))

    @property
    def dimensions(self) -> dict[str, dict[str, tuple[Any, ...]]]:
        """The sweep's dimensions: for each, the coordinates that run along it (several if zipped)."""
        found: dict[str, dict[str, tuple[Any, ...]]] = {}
        for name, value in self.axis_values().items():
            if is_axis(value):
                group = next((group for group in self.zipped if name in group), (name,))
                found.setdefault("_".join(group), {})[name] = value
        return found

    @property
    def shape(self) -> dict[str, int]:
        """Length of each dimension of the sweep."""
        return {name: len(next(iter(along.values()))) for name, along in self.dimensions.items()}

    def cells(self) -> Iterator[Any]:
        """Every point of the grid, the last dimension fastest."""
        raise NotImplementedError

    def grid(self) -> Iterator[tuple[dict[str, Any], tuple[int, ...]]]:
        """Every point of the grid, the last dimension fastest: its values by key, and its indices."""
        dimensions, fixed = self.dimensions, {k: v for k, v in self.axis_values().items() if not is_axis(v)}
        for index in itertools.product(*(range(n) for n in self.shape.values())):
            here = {
                name: values[i]
                for i, along in zip(index, dimensions.values(), strict=True)
                for name, values in along.items()
            }
            yield {**fixed, **here}, index

    def kind_at(self, values: dict[str, Any]) -> Any:
        """What learns at a grid point, with its parameters."""
        kind = self.KINDS[values[self.CHOICE]]
        # as defaults are written: random numbers are named by parameters, and 2.0 must not be another than 2
        written = {name: int if field.metadata["whole"] else float for name, field in parameters_of(kind).items()}
        return kind(**{name: form(values[name]) for name, form in written.items() if name in values})

    def config(self) -> dict[str, Any]:
        """This scenario as a config file would hold it, from which the same scenario can be made again."""
        flat = {**self.model_dump(mode="json"), **{name: _jsonable(v) for name, v in self.parameters.items()}}
        if self.zipped:
            flat["zip"] = [{name: flat.pop(name) for name in group} for group in self.zipped]
        return {name: value for name, value in flat.items() if value is not None}

    @classmethod
    def schema_of(cls) -> dict[str, Any]:
        """The JSON Schema of a config of this kind, so that editors complete and check it."""
        made = cls.model_json_schema()
        shared = Sweep.model_fields
        properties = {name: made["properties"][name] for name in cls.model_fields if name not in shared}
        parameter = made["properties"][PARAMETERS]["additionalProperties"]
        for name, field in known_parameters(cls.KINDS).items():
            properties[name] = {**parameter, "default": field.default, "description": field.metadata["doc"]}
        properties |= {name: made["properties"][name] for name in shared if name not in (PARAMETERS, "zipped")}
        group = {"type": "object", "properties": {n: {} for n in cls.axis_names()}, "additionalProperties": False}
        properties["zip"] = {
            "description": "axes that run side by side instead of each with each",
            "anyOf": [group, {"type": "array", "items": group}],
        }
        return {**made, "properties": properties}


def words_of(identity: dict[str, Any]) -> tuple[int, ...]:
    """Eight 32-bit words that name a run by its own parameters, never by its place in a grid.

    Random keys are made of them: adding values to an axis changes no other cell's numbers.
    """
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).digest()
    return tuple(int.from_bytes(digest[i : i + 4], "big") for i in range(0, 32, 4))


def name_among(kinds: Mapping[str, object], noun: str) -> Any:
    """A validator of names: those of `kinds`, or a message with the likely one."""

    def check(given: str) -> str:
        if given not in kinds:
            raise ValueError(not_known(given, noun, kinds))
        return given

    return check


def _unzip(given: dict[str, Any], names: list[str]) -> tuple[tuple[str, ...], ...]:
    """Spread the `zip` groups over their keys in `given`; return the groups' names."""
    groups = given.pop("zip")
    groups = groups if isinstance(groups, list | tuple) else [groups]
    for group in groups:
        if not isinstance(group, dict) or len(group) < 2:
            raise ScenarioError([(("zip",), "a zip group names two or more axes, each with its list")])
        for name in group:
            if name not in names:
                raise ScenarioError([(("zip", name), not_known(name, "an axis", names))])
            if name in given:
                raise ScenarioError([(("zip", name), f"{name} is given outside zip, too")])
            given[name] = expand(group[name])
        lengths = {name: len(given[name]) if isinstance(given[name], list | tuple) else 1 for name in group}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name} has {n}" for name, n in lengths.items())
            raise ScenarioError([(("zip",), f"zipped axes must be of one length, but {told}")])
    return tuple(tuple(name for name in names if name in group) for group in groups)


def _jsonable(value: Any) -> Any:
    return list(value) if is_axis(value) else value
