"""Base class of scenarios: keys that may be axes, the grid they span, and how it is written down.

A key given as a list is an axis of the sweep (`statmech.scenarios.axes`); `cells()` visits every point of the grid
once. What learns is named by one key (`CHOICE`), and the parameters of all it may name (`KINDS`) are keys like the
others.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache
from types import SimpleNamespace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from statmech.errors import Problem, ScenarioError, not_known
from statmech.parameters import BOUNDS, SCHEMAS, Key, described, known_parameters, parameter_problem, parameters_of
from statmech.scenarios.all_problems import all_problems
from statmech.scenarios.axes import MAX_AXIS, axis_of, axis_schema, expand, is_axis, listed, points
from statmech.scenarios.messages import problems
from statmech.scenarios.page import Page
from statmech.scenarios.variables import Variable

MAX_N, MAX_SEEDS = 10**15, 10**9  # beyond lie typing errors, not sweeps
PARAMETERS = "parameters"  # where, among a scenario's axes, those of the parameters stand
COORDINATES = {"seed": Key("seed", "independent run", int)}  # of every kind
TYPES = {schema: kind for kind, schema in SCHEMAS.items()}
PLAIN = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}  # pydantic's words
SECONDS_PER_RUN = 1e-2  # of a kind that gives no estimate


def _plain_number(given: Any) -> Any:
    """Numbers only: YAML's true and "3" are not numbers, NumPy's scalars are."""
    if isinstance(given, bool | str):
        raise ValueError(f"must be a number, not {json.dumps(given)}")
    return given.item() if isinstance(given, np.generic) else given


Number = Annotated[float, BeforeValidator(_plain_number), Field(allow_inf_nan=False)]
Whole = Annotated[int, BeforeValidator(_plain_number)]
DimensionAxis = axis_of(Annotated[Whole, Field(ge=2, le=MAX_N)], {"type": "integer", "minimum": 2, "maximum": MAX_N})
FlipAxis = axis_of(Annotated[Number, Field(ge=0, le=0.5)], {"type": "number", "minimum": 0, "maximum": 0.5})
PARAMETER_AXES: dict[type, TypeAdapter[Any]] = {  # by the type of a parameter; whole numbers stand as floats here
    type_: TypeAdapter(axis_of(value, {}, spaced=value is Number))
    for type_, value in ((float, Number), (int, Number), (bool, StrictBool), (str, str))
}


def config_key(default: Any = ..., *, description: str, symbol: str = "", unit: str = "1", **more: Any) -> Any:
    """A pydantic `Field` that knows the symbol and the unit of the key, too; without a default it is needed."""
    return Field(default, description=description, json_schema_extra={"symbol": symbol, "unit": unit}, **more)


def one_of(known: Mapping[str, object], noun: str) -> Any:
    """The type of a key whose values are names among the `known` ones; any other gets a message with the likely one."""
    return axis_of(Annotated[str, AfterValidator(name_among(known, noun))], {"enum": list(known)}, spaced=False)


def increasing(noun: str) -> AfterValidator:
    """A validator of values in increasing order, which the message calls by `noun`."""

    def check(values: tuple[float, ...]) -> tuple[float, ...]:
        if any(later <= earlier for earlier, later in itertools.pairwise(values)):
            raise ValueError(f"{noun} must increase")
        return values

    return AfterValidator(check)


def name_among(known: Mapping[str, object], noun: str) -> Any:
    """A validator of names: those of `known`, or a message with the likely one."""

    def check(given: str) -> str:
        if given not in known:
            raise ValueError(not_known(given, noun, known))
        return given

    return check


Times = Annotated[
    tuple[Annotated[Number, Field(ge=0)], ...],
    BeforeValidator(listed),
    Field(min_length=1),
    increasing("times"),
]


class Sweep(BaseModel):
    """A scenario; any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    CHOICE: ClassVar[str]  # the key that names what learns, and the noun of messages
    KINDS: ClassVar[dict[str, type]]  # all it may name
    together: ClassVar[int] = 1  # seeds that are simulated together, so that another number would move the last bits
    on_data: ClassVar[bool] = False  # on given data, which no theory describes
    equations: ClassVar[tuple[str, ...]] = ()  # that all of this kind obey, in LaTeX, for pages that show them
    AXES: ClassVar[tuple[str, ...]]  # keys that may be axes, in the order of the dataset's dimensions: a parameter
    # that is named here has its own place among them, and is always stated, if only with its default
    TITLE: ClassVar[str] = ""  # of pages that show this kind
    CITES: ClassVar[tuple[str, ...]] = ()  # the papers behind its theory, by their keys in the bibliography
    COORDINATES: ClassVar[dict[str, Key]] = {}  # coordinates of its datasets that are not keys of its configs
    PAGE: ClassVar[Page | None] = None  # what the explorer starts with; None: it has no page for this kind
    workers: ClassVar[int | None] = None  # threads that simulate at once; None: one per core

    seeds: Annotated[Whole, Field(ge=1, le=MAX_SEEDS)] = Field(10, description="independent runs of each grid point")
    key: Annotated[Whole, Field(ge=0, lt=2**32)] = Field(0, description="key of the experiment's random numbers")
    figure: str | None = Field(None, description="published figure to draw; the config's own name by default")
    parameters: dict[str, Any] = Field(default_factory=dict, exclude=True)
    zipped: tuple[tuple[str, ...], ...] = Field(default=(), exclude=True)

    def __init__(self, **given: Any):
        try:
            super().__init__(**given)
        except ValidationError as failure:
            raise ScenarioError(all_problems(type(self), given, failure)) from None
        except UnicodeEncodeError as failure:
            raise ScenarioError([((), f"{failure.object!r} is not valid Unicode")]) from None

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Turn flat keys into fields: zip groups expanded, parameters gathered."""
        given = dict(given)
        if inner := {"zipped", PARAMETERS} & given.keys():  # our own names of what is gathered here
            raise ScenarioError([((name,), not_known(name, "a key of a config", cls.known_keys())) for name in inner])
        if "zip" in given:
            given["zipped"] = _unzip(given, cls.axis_names())
        known = known_parameters(cls.KINDS)
        for name in known.keys() & cls.model_fields.keys():
            of = ", ".join(described(cls.KINDS, name))
            raise ScenarioError([((name,), f"is a key of a config, so the parameter of {of} needs another name")])
        stated = {name: known[name].default for name in cls.AXES if name in known}
        given[PARAMETERS] = stated | {name: given.pop(name) for name in known if name in given}
        return given

    @field_validator(PARAMETERS, mode="before")
    @classmethod
    def _typed(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Parameters in the types that the classes state."""
        values, found = {}, list[Problem]()
        for name, value in given.items():
            try:
                values[name] = cls._typed_parameter(name, value)
            except ValidationError as failure:
                found += [((name, *where), sentence) for where, sentence in problems(failure, [])]
            except ScenarioError as failure:
                found += failure.problems
        if found:
            raise ScenarioError(found)
        return values

    @classmethod
    def _typed_parameter(cls, name: str, given: Any) -> Any:
        """One value, or an axis; words are among those that some class knows."""
        having = described(cls.KINDS, name)
        if len({key.type if not key.numeric else float for key in having.values()}) > 1:
            sentence = f"is not of one type among {', '.join(having)}: one of them needs another name"
            raise ScenarioError([((name,), sentence)])
        keys = list(having.values())
        values = PARAMETER_AXES[keys[0].type].validate_python(given)
        for index, value in enumerate(points(values) if keys[0].choices else ()):
            if all(key.type_problem(value) for key in keys):
                raise ScenarioError(
                    [((name, index) if is_axis(values) else (name,), keys[0].type_problem(value) or "")]
                )
        return values

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
                yield (next(iter(along)),), "the axis has duplicate values"

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
        """Kind-specific validation."""
        return iter(())

    def data_problems(self) -> Iterator[Problem]:
        """Why the data that the scenario names cannot be used here; only a simulation needs them."""
        return iter(())

    def data_digests(self) -> dict[str, str]:
        """The SHA-256 that each data set or file named by the scenario has now."""
        return {}

    @property
    def variables(self) -> dict[str, Variable]:
        """The variables of this scenario's datasets."""
        raise NotImplementedError

    @property
    def theory_only(self) -> dict[str, Variable]:
        """Further variables of its theory, which a simulation does not have."""
        return {}

    def seconds(self) -> float:
        """A rough estimate of the seconds that one seed of all cells takes on one core."""
        return SECONDS_PER_RUN * math.prod(self.shape.values())

    @property
    def recorded(self) -> dict[str, np.ndarray]:
        """The coordinates of the dataset's dimensions that are not axes of the sweep."""
        return {}

    @property
    def derived(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        """Coordinates that follow from others: the sweep's dimensions that they vary along, and their values."""
        return {}

    @property
    def unsolved(self) -> str:
        """The reason why theory has no equations for this scenario; empty if it has."""
        return ""

    @property
    def exchangeable(self) -> bool:
        """True if the students of every ensemble start alike."""
        return True

    @classmethod
    def module(cls) -> str:
        """The name of the file that holds this kind; those that simulate and solve it have the same."""
        return cls.__module__.rpartition(".")[2]

    @classmethod
    def describe(cls, name: str) -> Key:
        """All that is known of a key, or of another coordinate of this kind's datasets.

        >>> from statmech import Scenario
        >>> key = Scenario.describe("N")
        >>> key.meaning, key.symbol, key.at_least
        ('input dimension', '$N$', 2)
        """
        return _described(cls)[name]

    @classmethod
    def equation_of(cls, name: str) -> str:
        """The equation of one of the kinds that learn, in LaTeX; empty if it states none."""
        told: str = getattr(cls.KINDS[name], "equation", "")
        return told

    @classmethod
    def axis_names(cls) -> list[str]:
        """Every key that may be an axis, in the order of the sweep's dimensions."""
        others = [name for name in known_parameters(cls.KINDS) if name not in cls.AXES]
        return [name for axis in cls.AXES for name in (others if axis == PARAMETERS else [axis])]

    @classmethod
    def known_keys(cls) -> list[str]:
        """Every key a config may have."""
        fields = [name for name in cls.model_fields if name not in (PARAMETERS, "zipped")]
        return [*fields, *known_parameters(cls.KINDS), "zip"]

    def axis_values(self) -> dict[str, Any]:
        """The given values of the keys that may be axes, in the order of the sweep's dimensions."""
        own = {name: getattr(self, name) for name in self.AXES if name not in (PARAMETERS, *self.parameters)}
        given = {**own, **self.parameters}
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
        for values, index in self.grid():
            yield GridPoint(index=index, **{**values, self.CHOICE: self.kind_at(values)})

    def generator(self, cell: Any, seed: int) -> np.random.Generator:
        """The random numbers of one run of a `GridPoint`: they depend on its own values, the key and the seed alone."""
        return np.random.default_rng(words_of({**cell.identity, "key": self.key, "seed": seed}))

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
        """The rule, learner, ... of a grid point, with its parameters."""
        kind = self.KINDS[values[self.CHOICE]]
        # in their own type, as defaults are: random numbers are named by parameters, and 2.0 must not differ from 2
        return kind(**{name: key.read(values[name]) for name, key in parameters_of(kind).items() if name in values})

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
        for said in made["properties"].values():
            said.pop("symbol", None), said.pop("unit", None)
        shared = Sweep.model_fields
        properties = {name: made["properties"][name] for name in cls.model_fields if name not in shared}
        properties[cls.CHOICE] |= axis_schema({"enum": list(cls.KINDS)}, spaced=False)  # with those of the user's files
        for name, key in known_parameters(cls.KINDS).items():
            forms = [it.schema for it in described(cls.KINDS, name).values()]
            value = key.schema if all(form == key.schema for form in forms) else {"anyOf": forms}
            properties[name] = {
                **axis_schema(value, spaced=key.numeric),
                "default": key.default,
                "description": key.meaning,
            }
        properties |= {name: made["properties"][name] for name in shared if name not in (PARAMETERS, "zipped")}
        group = {"type": "object", "properties": {n: {} for n in cls.axis_names()}, "additionalProperties": False}
        properties["zip"] = {
            "description": "axes that run side by side instead of each with each",
            "anyOf": [group, {"type": "array", "items": group}],
        }
        return {**made, "properties": properties}


def _described(kind: type[Sweep]) -> dict[str, Key]:
    """Every key and coordinate of a kind; parameters are looked up again each time, for a user may add a rule."""
    return {**COORDINATES, **kind.COORDINATES, **known_parameters(kind.KINDS), **_fields(kind)}


@cache
def _fields(kind: type[Sweep]) -> dict[str, Key]:
    schemas = kind.model_json_schema()["properties"]
    return {name: _key(name, schemas[name]) for name in kind.model_fields if name not in (PARAMETERS, "zipped")}


def _key(name: str, schema: dict[str, Any]) -> Key:
    """A field as a key: what its JSON Schema says of one value."""
    one = next(iter(schema.get("anyOf", [schema])))
    one = one["items"] if one.get("type") == "array" else one
    stated = {PLAIN.get(word, word): limit for word, limit in one.items()}
    bounds = {bound: stated[it.schema] for bound, it in BOUNDS.items() if it.schema in stated}
    said = {word: schema[word] for word in ("default", "symbol", "unit") if word in schema}
    kind, choices = TYPES.get(one.get("type"), str), tuple(one.get("enum", ()))
    return Key(name, schema.get("description", ""), kind, choices=choices, **bounds, **said)


class GridPoint(SimpleNamespace):
    """One point of the grid: a value for each key that may be an axis, and what learns with its parameters."""

    index: tuple[int, ...]

    @property
    def identity(self) -> dict[str, Any]:
        """The values that name this point, whatever its place in a grid."""
        plain = {name: value for name, value in vars(self).items() if name != "index"}
        kinds = {name: {"name": type(it).__name__, **vars(it)} for name, it in plain.items() if is_dataclass(it)}
        return plain | kinds


def words_of(identity: dict[str, Any]) -> tuple[int, ...]:
    """Eight 32-bit words that name a run by its own parameters, never by its place in a grid.

    Random keys are made of them: adding values to an axis changes no other cell's numbers.
    """
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).digest()
    return tuple(int.from_bytes(digest[i : i + 4], "big") for i in range(0, 32, 4))


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
