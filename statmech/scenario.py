"""The scenario: what is learnt, by whom, from what start, and which axes a sweep runs along.

A `Scenario` is what a config file holds and what `simulate.run` and `theory.solve` take. A key given as a list
is an axis of the sweep (`statmech.axes`); `cells()` visits every point of the grid once. The parameters of the
rules (`eta`, `margin`, and those of a user's own rule) are keys like the others, known from `statmech.rules`.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
    ValidationError,
    model_validator,
)

from statmech.axes import MAX_AXIS, axis_of, expand, is_axis, points
from statmech.errors import Problem, ScenarioError, not_known
from statmech.inputs import INPUTS, Gaussian, Inputs, inputs_from, written
from statmech.order_parameters import coordinates
from statmech.problems import problems
from statmech.rules import RULES, Rule, parameters_of
from statmech.start import DRAWN, OrderParameters, Start

MAX_N, MAX_K, MAX_SEEDS = 10**15, 100_000, 10**9  # beyond lie typing errors, not sweeps
MAX_STEPS = 2**62


def _plain_number(given: Any) -> Any:
    """Numbers only: YAML's true and "3" are no numbers, NumPy's scalars are."""
    if isinstance(given, bool | str):
        raise ValueError(f"must be a number, not {json.dumps(given)}")
    return given.item() if isinstance(given, np.generic) else given


Number = Annotated[float, BeforeValidator(_plain_number), Field(allow_inf_nan=False)]
Whole = Annotated[int, BeforeValidator(_plain_number)]


def _rule_name(given: str) -> str:
    if given not in RULES:
        raise ValueError(not_known(given, "a learning rule", RULES))
    return given


RuleAxis = axis_of(Annotated[str, AfterValidator(_rule_name)], {"enum": list(RULES)}, spaced=False)
LawAxis = axis_of(
    Annotated[Any, AfterValidator(inputs_from), PlainSerializer(written)],
    {"anyOf": [{"enum": list(INPUTS)}, {"type": "object", "minProperties": 1, "maxProperties": 1}]},
    spaced=False,
)
StudentsAxis = axis_of(Annotated[Whole, Field(ge=1, le=MAX_K)], {"type": "integer", "minimum": 1, "maximum": MAX_K})
DimensionAxis = axis_of(Annotated[Whole, Field(ge=2, le=MAX_N)], {"type": "integer", "minimum": 2, "maximum": MAX_N})
FlipAxis = axis_of(Annotated[Number, Field(ge=0, le=0.5)], {"type": "number", "minimum": 0, "maximum": 0.5})
ParameterAxis = axis_of(Number, {"type": "number"})
StartOrDrawn = Annotated[
    Annotated[Literal["drawn"], Tag("drawn")] | Annotated[Start, Tag("given")],
    Discriminator(lambda given: "drawn" if isinstance(given, str) else "given"),
]
Times = Annotated[
    tuple[Annotated[Number, Field(ge=0)], ...],
    BeforeValidator(lambda given: (given,) if np.isscalar(given) else expand(given)),
    Field(min_length=1),
]


class Scenario(BaseModel):
    """Students of one rule learning on line from one teacher; any list is an axis of a sweep.

    Raises `ScenarioError` with one sentence a problem.

    >>> scenario = Scenario(rule=["hebb", "adatron"], K=3, N=100, t=[0.5, 1.0], eta=[0.5, 1.0], seeds=4)
    >>> scenario.shape
    {'rule': 2, 'eta': 2}
    >>> [cell.rule.eta for cell in scenario.cells()]
    [0.5, 1.0, 0.5, 1.0]
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    rule: RuleAxis = Field(description="learning rule")  # type: ignore[valid-type]
    K: StudentsAxis = Field(1, description="number of students in the ensemble")  # type: ignore[valid-type]
    N: DimensionAxis = Field(10_000, description="input dimension")  # type: ignore[valid-type]
    inputs: LawAxis = Field(Gaussian(), description="law of the inputs", validate_default=True)  # type: ignore[valid-type]
    flip: FlipAxis = Field(0.0, description="probability that the teacher's label is flipped")  # type: ignore[valid-type]
    t: Times = Field(description="times (steps / N) at which order parameters are recorded, increasing")
    seeds: Annotated[Whole, Field(ge=1, le=MAX_SEEDS)] = Field(10, description="independent runs of each grid point")
    start: StartOrDrawn = Field(
        "drawn", description="'drawn' (entries from N(0,1), as in the paper) or {length, R, q} at t = 0"
    )
    key: Annotated[Whole, Field(ge=0, lt=2**32)] = Field(0, description="key of the experiment's random numbers")
    dtype: Literal["float64", "float32"] = Field("float64", description="precision of the simulation")
    engine: Literal["gram", "vectors"] = Field(
        "gram",
        description="what is simulated: order parameters alone, in their exact law, or the weight vectors",
    )
    gram: bool = Field(False, description="record the whole Gram matrix of teacher and students, too")
    figure: str | None = Field(None, description="published figure to draw; the config's own name by default")
    parameters: dict[str, ParameterAxis] = Field(default_factory=dict, exclude=True)  # type: ignore[valid-type]
    zipped: tuple[tuple[str, ...], ...] = Field(default=(), exclude=True)

    def __init__(self, **given: Any):
        try:
            super().__init__(**given)
        except ValidationError as failure:
            raise ScenarioError(problems(failure, known_keys())) from None

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Flat keys to fields: zip groups spread out, rule parameters gathered."""
        given = dict(given)
        if "zip" in given:
            given["zipped"] = _unzip(given)
        known = known_parameters()
        given["parameters"] = {name: given.pop(name) for name in known if name in given}
        return given

    @model_validator(mode="after")
    def _check(self) -> Scenario:
        found = [*self._axis_problems(), *self._rule_problems(), *self._time_problems()]
        found = found or [*self._size_problems(), *self._start_problems()]
        if found:
            raise ScenarioError(found)
        return self

    def _axis_problems(self) -> Iterator[Problem]:
        for name, value in self.axis_values().items():
            if is_axis(value) and len(value) > MAX_AXIS:
                yield (name,), f"an axis of {len(value)} values is more than {MAX_AXIS}"
            if is_axis(value) and len(set(value)) < len(value):
                yield (name,), "an axis names a value twice"

    def _rule_problems(self) -> Iterator[Problem]:
        for parameter in self.parameters:
            for name, value in self.pairs("rule", parameter):
                if problem := _parameter_problem(name, parameter, value):
                    yield (parameter,), problem
                    break

    def _time_problems(self) -> Iterator[Problem]:
        if any(later <= earlier for earlier, later in itertools.pairwise(self.t)):
            yield ("t",), "times must increase"

    def _size_problems(self) -> Iterator[Problem]:
        for K, N in self.pairs("K", "N"):
            if N < K + 1:
                yield (
                    ("N",),
                    f"N = {N} is too small for a teacher and K = {K} students: N must be at least K + 1",
                )
                return
        if self.t[-1] * max(points(self.N)) >= MAX_STEPS:
            yield ("t",), f"{self.t[-1]:g} N steps are more than can be counted in 63 bits"
            return
        for law, N in self.pairs("inputs", "N"):
            if problem := law.problem(N):
                yield problem
                return

    def _start_problems(self) -> Iterator[Problem]:
        if isinstance(self.start, Start):
            for K in points(self.K):
                for sentence in self.start.problems(K):
                    yield ("start",), sentence
                    return

    def axis_values(self) -> dict[str, Any]:
        """Every key that may be an axis, in the order of the sweep's dimensions."""
        return {
            "rule": self.rule,
            "K": self.K,
            "N": self.N,
            "inputs": self.inputs,
            **self.parameters,
            "flip": self.flip,
        }

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
    def isotropic(self) -> bool:
        """Whether all inputs are isotropic, so that theory has equations for every cell."""
        return all(law.isotropic for law in points(self.inputs))

    @property
    def shape(self) -> dict[str, int]:
        """Length of each dimension of the sweep."""
        return {name: len(next(iter(along.values()))) for name, along in self.dimensions.items()}

    def cells(self) -> Iterator[Cell]:
        """Every point of the grid, the last dimension fastest."""
        dimensions, fixed = self.dimensions, {k: v for k, v in self.axis_values().items() if not is_axis(v)}
        for index in itertools.product(*(range(n) for n in self.shape.values())):
            here = {
                name: values[i]
                for i, along in zip(index, dimensions.values(), strict=True)
                for name, values in along.items()
            }
            yield self._cell({**fixed, **here}, index)

    def _cell(self, values: dict[str, Any], index: tuple[int, ...]) -> Cell:
        rule = RULES[values["rule"]]
        parameters = {name: float(values[name]) for name in parameters_of(rule) if name in values}
        return Cell(
            name=values["rule"],
            rule=rule(**parameters),
            K=values["K"],
            N=values["N"],
            inputs=values["inputs"],
            flip=values["flip"],
            start=self.start if isinstance(self.start, Start) else None,
            index=index,
        )

    def config(self) -> dict[str, Any]:
        """This scenario as a config file would hold it: `Scenario(**scenario.config())` is the same scenario."""
        flat = {**self.model_dump(mode="json"), **{name: _jsonable(v) for name, v in self.parameters.items()}}
        if self.zipped:
            flat["zip"] = [{name: flat.pop(name) for name in group} for group in self.zipped]
        return {name: value for name, value in flat.items() if value is not None}


@dataclass(frozen=True)
class Cell:
    """One point of the grid: one rule with its parameters, one size, one start."""

    name: str
    rule: Rule
    K: int
    N: int
    inputs: Inputs
    flip: float
    start: Start | None  # None: drawn
    index: tuple[int, ...]

    @property
    def parameters(self) -> dict[str, float]:
        """The rule's parameters by name."""
        return {name: getattr(self.rule, name) for name in parameters_of(self.rule)}

    def traced(self, dtype: str) -> dict[str, np.ndarray]:
        """The parameters as arrays, so that one compiled program serves all their values."""
        return {name: np.asarray(value, dtype) for name, value in self.parameters.items()}

    @property
    def order_parameters(self) -> OrderParameters:
        """The start in the limit of large N."""
        return (self.start or DRAWN).of(self.K)

    @property
    def coordinates(self) -> np.ndarray | None:
        """Where the students start in a basis that begins with the teacher, shape (K, K+1); None if they are drawn."""
        return coordinates(*self.order_parameters) if self.start else None

    @property
    def alike(self) -> bool:
        """Whether all students start alike, so that one of them stands for all."""
        return (self.start or DRAWN).alike

    def words(self) -> tuple[int, ...]:
        """Eight 32-bit words that name this cell by its own parameters, never by its place in the grid.

        Random keys are made of them: adding values to an axis changes no other cell's numbers.
        """
        identity = {
            "rule": self.name,
            **self.parameters,
            "K": self.K,
            "N": self.N,
            "flip": self.flip,
            "start": self.start.model_dump() if self.start else "drawn",
        }
        if not isinstance(self.inputs, Gaussian):
            identity["inputs"] = written(self.inputs)
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).digest()
        return tuple(int.from_bytes(digest[i : i + 4], "big") for i in range(0, 32, 4))


def known_parameters() -> dict[str, Any]:
    """The parameters of all registered rules, by name, with the field of the first rule that has it.

    >>> list(known_parameters())
    ['eta', 'margin']
    """
    return {name: field for rule in reversed(RULES.values()) for name, field in parameters_of(rule).items()}


def known_keys() -> list[str]:
    """Every key a config may have."""
    fields = [name for name in Scenario.model_fields if name not in ("parameters", "zipped")]
    return [*fields, *known_parameters(), "zip"]


def schema() -> dict[str, Any]:
    """The JSON Schema of a config file, so that editors complete and check it."""
    made = Scenario.model_json_schema()
    properties = made["properties"]
    parameter = properties.pop("parameters")["additionalProperties"]
    properties.pop("zipped")
    for name, field in known_parameters().items():
        properties[name] = {**parameter, "default": field.default, "description": field.metadata["doc"]}
    axes = ["rule", "K", "N", "inputs", "flip", *known_parameters()]
    group = {"type": "object", "properties": {name: {} for name in axes}, "additionalProperties": False}
    properties["zip"] = {
        "description": "axes that run side by side instead of each with each",
        "anyOf": [group, {"type": "array", "items": group}],
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made, "title": "statmech config"}


def _unzip(given: dict[str, Any]) -> tuple[tuple[str, ...], ...]:
    """Spread the `zip` groups over their keys in `given`; return the groups' names."""
    groups = given.pop("zip")
    groups = groups if isinstance(groups, list | tuple) else [groups]
    names = ["rule", "K", "N", "inputs", *known_parameters(), "flip"]
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


def _parameter_problem(rule: str, parameter: str, value: float) -> str | None:
    field = parameters_of(RULES[rule]).get(parameter)
    if field is None:
        default = known_parameters()[parameter].default
        having = ", ".join(name for name, kind in RULES.items() if parameter in parameters_of(kind))
        return None if value == default else f'the rule "{rule}" has no {parameter}. Rules that have: {having}.'
    if not value > field.metadata["above"]:
        return f"must be greater than {field.metadata['above']:g}, not {value:g}"
    return None


def _jsonable(value: Any) -> Any:
    return list(value) if is_axis(value) else value
