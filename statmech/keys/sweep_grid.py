"""The grid of parameter combinations spanned by the axes of a sweep, and its cells.

Axes are config keys that list several values. A list, a tuple, an array, `{linspace: [a, b, n]}`,
`{logspace: [a, b, n]}` (exponents, as in NumPy) or `{geomspace: [a, b, n]}` (end points, as in NumPy) makes an axis.
Anything else is a single value.

Cells are the points of a scenario's grid. Hashes identify their runs.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import struct
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Discriminator, Field, GetCoreSchemaHandler, Tag, TypeAdapter, WithJsonSchema
from pydantic_core import CoreSchema

from statmech.errors import ScenarioError, format_unknown_name, quote_value
from statmech.keys.variables import ScenarioKind
from statmech.parameters.parameter_fields import get_parameters
from statmech.parameters.schedules_and_controls import OPTIMAL_KEYWORD, get_initial_value

# types of the values that a key accepts, for editors and type checkers
SpacedAxisSection = Mapping[str, Sequence[float]]
NumberOrAxis = float | Sequence[float] | np.ndarray | SpacedAxisSection
NumbersOverTime = NumberOrAxis | str | Mapping[str, Any] | Sequence[Any]  # numbers, or functions of time
IntegerOrAxis = int | Sequence[int] | np.ndarray | SpacedAxisSection
NameOrAxis = str | Sequence[str]

SPACING_FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "linspace": np.linspace,
    "logspace": np.logspace,
    "geomspace": np.geomspace,
}


MAX_AXIS_VALUES = 1_000_000
MAX_CELLS_PER_STORE_CHUNK = 4096  # in one chunk of a store; reading a larger chunk takes over a second
MAX_CELLS_PER_STORE = 10_000_000 * MAX_CELLS_PER_STORE_CHUNK  # a store holds at most 10^7 chunks
MAX_CHECKED_COMBINATIONS = 10_000_000  # limit for checks of several keys in combination
SCHEDULE_SYNTAX_EXAMPLE = (
    "schedule: {t0: 5}, for a learning rate of eta / (1 + t/t0)"  # error messages quote this example
)
TIME_FUNCTION_KEYS = {"at", "is", OPTIMAL_KEYWORD}  # keys inside a section such as {at: [0, 5], is: [1, 2]}
_SPACING_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "minProperties": 1,
    "maxProperties": 1,
    "properties": {
        name: {"type": "array", "minItems": 3, "maxItems": 3, "description": "[start, stop, number]"}
        for name in SPACING_FUNCTIONS
    },
}
IDENTITY_JSON_ENCODER = json.JSONEncoder(sort_keys=True)  # shared, as `json.dumps` would create an encoder at each call


def expand_spacing(value: Any) -> Any:
    """Expand a spaced axis to a list of values, and return anything else unchanged.

    >>> expand_spacing({"geomspace": [1, 100, 3]})
    [1.0, 10.0, 100.0]
    """
    if isinstance(value, Iterator) or (isinstance(value, range) and value[MAX_AXIS_VALUES:]):
        raise ValueError(f"must be a list of at most {MAX_AXIS_VALUES} values, not {quote_value(value)}")
    if isinstance(value, np.ndarray):
        return value.tolist()
    if not isinstance(value, dict):
        return value
    if "schedule" in value or "t0" in value:
        raise ValueError(f"a rate that falls with time is written {SCHEDULE_SYNTAX_EXAMPLE}")
    if {*value} & TIME_FUNCTION_KEYS:
        raise ValueError("cannot change with time here: give a number or a list of numbers")
    if len(value) != 1 or next(iter(value)) not in SPACING_FUNCTIONS:
        raise ValueError(f"an axis must be a list or one of {', '.join(SPACING_FUNCTIONS)} with [start, stop, number]")
    [(name, arguments)] = value.items()
    try:
        start, stop, number = arguments
        start, stop, number = float(start), float(stop), int(number)
        with np.errstate(all="raise"):
            values = SPACING_FUNCTIONS[name](start, stop, number) if 1 <= number <= MAX_AXIS_VALUES else None
    except (TypeError, ValueError, ArithmeticError) as problem:
        raise ValueError(f"{name} requires [start, stop, number], not {quote_value(arguments)}") from problem
    if values is None:
        raise ValueError(f"an axis must have between 1 and {MAX_AXIS_VALUES} values, not {quote_value(number)}")
    return values.tolist()


def expand_to_list(value: Any) -> Any:
    """Return the values of a list, a spaced axis or a single number, such as recorded times."""
    return (value,) if np.isscalar(value) else expand_spacing(value)


def is_axis(value: Any) -> bool:
    """Return True if a validated value is an axis of the sweep.

    >>> is_axis((1, 2)), is_axis(3)
    (True, False)
    """
    return isinstance(value, tuple)


def drop_duplicates(values: list[Any]) -> list[Any]:
    """Return the distinct values in order of first occurrence.

    Values can repeat on an axis that is zipped with others.

    >>> drop_duplicates([{"t0": 5}, {"t0": 7}, {"t0": 5}])
    [{'t0': 5}, {'t0': 7}]
    """
    return [value for index, value in enumerate(values) if value not in values[:index]]


def ensure_tuple(value: Any) -> tuple[Any, ...]:
    """Return the values of an axis, or a single value as a tuple of length 1."""
    return value if is_axis(value) else (value,)


def make_axis_schema(value_schema: dict[str, Any], spaced: bool) -> dict[str, Any]:
    """Return the JSON Schema of a single value or a list, given the schema of a value."""
    forms = [value_schema, {"type": "array", "items": value_schema, "minItems": 1}]
    return {"anyOf": forms + ([_SPACING_SCHEMA] if spaced else [])}


def make_value_or_list_type(value_type: Any, list_type: Any) -> Any:
    """Return the type of a key that accepts a single value or a list.

    The form of the value selects the type to validate, so that an error is reported only once.
    """
    kind = Discriminator(lambda given: "axis" if isinstance(given, list | tuple) else "value")
    return Annotated[Annotated[value_type, Tag("value")] | Annotated[list_type, Tag("axis")], kind]


class PydanticTypeOverride:
    """Annotation with the type that pydantic validates, while editors show the annotated type.

    >>> TypeAdapter(Annotated[NameOrAxis, PydanticTypeOverride(int)]).validate_python("3")
    3
    """

    def __init__(self, kind: Any):
        self.kind = kind

    def __get_pydantic_core_schema__(self, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(self.kind)


def axis_of(
    value_type: Any,
    schema: dict[str, Any] | None = None,
    spaced: bool = True,
    is_single_value: Callable[[Any], bool] = lambda _: False,
) -> PydanticTypeOverride:
    """Return the type of a config key that accepts one value of `value_type` or several values to sweep over.

    `schema` is the JSON Schema of one value, by default the schema that pydantic derives from the type. `spaced` allows
    `{linspace: ...}` and similar axes. `is_single_value` returns True for sections that are a single value.

    >>> from statmech.keys.key_types import Number
    >>> axis = Annotated[NumberOrAxis, axis_of(Annotated[Number, Field(ge=0)])]
    >>> TypeAdapter(axis).validate_python({"linspace": [0, 1, 3]})
    (0.0, 0.5, 1.0)
    """
    schema = TypeAdapter(value_type).json_schema() if schema is None else schema
    list_type = Annotated[tuple[value_type, ...], Field(min_length=1)]
    reader = BeforeValidator(lambda given: expand_spacing(given) if spaced and not is_single_value(given) else given)
    return PydanticTypeOverride(
        Annotated[
            make_value_or_list_type(value_type, list_type), reader, WithJsonSchema(make_axis_schema(schema, spaced))
        ]
    )


class Cell:
    """A point of the grid: a learning algorithm with its parameters, and one value of each other key."""

    index: tuple[int, ...]  # position along each dimension of the sweep


class GenericCell(Cell, SimpleNamespace):
    """A generic cell, for kinds without their own cell class, with the values of the keys as attributes."""

    @property
    def identity(self) -> dict[str, Any]:
        """Values that identify this point, wherever it lies in a grid."""
        plain = {name: value for name, value in vars(self).items() if name != "index"}
        kinds = {
            name: {"name": type(value).__name__, **vars(value)} for name, value in plain.items() if is_dataclass(value)
        }
        return plain | kinds


def rename_keys_for_seeds(values: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """Rename values to the original key names, which enter random seeds.

    If a config key is renamed, seeds keep its original name, so that no random number changes.

    >>> rename_keys_for_seeds({"noise": 0.1, "eta": 1.0}, {"noise": "sigma"})
    {'sigma': 0.1, 'eta': 1.0}
    """
    return {names.get(name, name): value for name, value in values.items()}


def hash_identity(identity: dict[str, Any]) -> tuple[int, ...]:
    """Hash the identity of a run to eight 32-bit integers, wherever the run lies in a grid.

    The hash seeds the run: values added to an axis do not change the random numbers of other cells.
    """
    return struct.unpack(">8I", hashlib.sha256(IDENTITY_JSON_ENCODER.encode(identity).encode()).digest())


class Grid(ScenarioKind):
    """The grid spanned by the axes of a sweep. Axes that vary in parallel are listed in `zipped`."""

    if TYPE_CHECKING:  # defined as fields of `ConfigKeys`
        zipped: tuple[tuple[str, ...], ...]
        parameters: dict[str, Any]

    @abstractmethod
    def axis_values(self) -> dict[str, Any]:
        """Return the values of all possible axes, in the order of the dataset dimensions."""

    def list_value_pairs(self, first_key: str, second_key: str) -> list[tuple[Any, Any]]:
        """Return all pairs of values of two keys in a sweep, which vary in parallel if zipped."""
        values = self.axis_values()
        first, second = ensure_tuple(values[first_key]), ensure_tuple(values[second_key])
        zipped = any(first_key in group and second_key in group for group in self.zipped)
        self.check_combination_count([{first_key: first}] if zipped else [{first_key: first}, {second_key: second}])
        return list(zip(first, second, strict=True) if zipped else itertools.product(first, second))

    def iterate_combinations(self, *names: str) -> Iterator[dict[str, Any]]:
        """Yield all combinations of the values of these keys, with the single values of other keys.

        The full grid is never visited, so its size does not matter.
        """
        concerned = [coordinates for coordinates in self.dimensions.values() if {*coordinates} & {*names}]
        self.check_combination_count(concerned)
        return (values for values, _ in self._iterate_points(concerned))

    def iterate_representative_cells(self, *names: str) -> Iterator[Any]:
        """Yield a cell for each combination of these keys, with the first value of every other axis."""
        first = {name: ensure_tuple(value)[0] for name, value in self.axis_values().items()}
        return (self.cell(first | values, ()) for values in self.iterate_combinations(*names))

    @property
    def dimensions(self) -> dict[str, dict[str, tuple[Any, ...]]]:
        """Dimensions of the sweep, each with its coordinates by name (zipped axes share a dimension)."""
        coordinates_by_dim: dict[str, dict[str, tuple[Any, ...]]] = {}
        for name, value in self.axis_values().items():
            if is_axis(value):
                group = next((group for group in self.zipped if name in group), (name,))
                coordinates_by_dim.setdefault("_".join(group), {})[name] = value
        return coordinates_by_dim

    @property
    def shape(self) -> dict[str, int]:
        """Number of points along each dimension of the sweep."""
        return {name: len(next(iter(coordinates.values()))) for name, coordinates in self.dimensions.items()}

    def check_combination_count(
        self,
        axes: Iterable[dict[str, tuple[Any, ...]]],
        max_combinations: int = MAX_CHECKED_COMBINATIONS,
        limit_description: str = "can be checked",
    ) -> None:
        """Raise `ScenarioError` if these axes of a sweep span too many points to be visited."""
        sizes = {next(iter(coordinates)): len(next(iter(coordinates.values()))) for coordinates in axes}
        if (number := math.prod(sizes.values())) > max_combinations:
            product = " x ".join(f"{size:,} {name}" for name, size in sizes.items() if size > 1)
            longest = max(sizes, key=sizes.__getitem__)
            problem = (
                f"{product} = {number:,} combinations are more than the {max_combinations:,} that {limit_description}"
            )
            raise ScenarioError([((longest,), f"{problem}: use fewer values on these axes")])

    def cells(self) -> Iterator[Any]:
        """Yield the cells of all grid points, in row-major order.

        Returns
        -------
        iterator
            Cells: the scenario with one value of each axis.
        """
        return (self.cell(values, index) for values, index in self.iterate_points())

    def cell(self, values: dict[str, Any], index: tuple[int, ...]) -> Cell:
        """Return the cell with these key values, at an index along each dimension."""
        return GenericCell(index=index, **{**values, self.CHOICE: self.make_component(values)})

    def iterate_points(self) -> Iterator[tuple[dict[str, Any], tuple[int, ...]]]:
        """Yield the key values and the index of each grid point, in row-major order."""
        return self._iterate_points(list(self.dimensions.values()))

    def _iterate_points(
        self, dimensions: list[dict[str, tuple[Any, ...]]]
    ) -> Iterator[tuple[dict[str, Any], tuple[int, ...]]]:
        """Yield the points of the grid spanned by these dimensions, with the single values of all other keys."""
        fixed = {k: v for k, v in self.axis_values().items() if not is_axis(v)}
        for index in itertools.product(*(range(len(next(iter(coordinates.values())))) for coordinates in dimensions)):
            point_values = {
                name: values[i]
                for i, coordinates in zip(index, dimensions, strict=True)
                for name, values in coordinates.items()
            }
            yield {**fixed, **point_values}, index

    def list_chosen_class_names(self) -> list[str]:
        """Return the distinct names of the rules, learners, losses, ... selected by this scenario."""
        return list(dict.fromkeys(name for choice in self.choices() for name in ensure_tuple(getattr(self, choice))))

    def make_component(self, values: dict[str, Any], choice: str = "") -> Any:
        """Return the rule, learner, loss, ... of a grid point, with its parameters.

        `choice` is the key that selects its class, by default the kind's `CHOICE`.
        """
        choice = choice or self.CHOICE
        kind = self.choices()[choice][values[choice]]
        # convert to the declared type: parameters enter random seeds, and 2.0 must give the same seed as 2
        keys = {name: key for name, key in get_parameters(kind).items() if name in values}
        return kind(**{name: key.read(get_initial_value(values[name], key.default)) for name, key in keys.items()})


def expand_zip_groups(config: dict[str, Any], names: list[str]) -> tuple[tuple[str, ...], ...]:
    """Move the sweep axes in the `zip` groups to the top level of a config, and return the names per group."""
    groups = config.pop("zip")
    groups = groups if isinstance(groups, list | tuple) else [groups]
    for group in groups:
        if not isinstance(group, dict) or len(group) < 2:
            raise ScenarioError([(("zip",), "a zip group must contain two or more axes, each with a list of values")])
        for name in group:
            if name not in names:
                raise ScenarioError([(("zip", name), format_unknown_name(name, "an axis", names))])
            if name in config:
                raise ScenarioError([(("zip", name), f"`{name}` is given both inside and outside `zip`")])
            config[name] = expand_spacing(group[name])
        lengths = {name: len(config[name]) if isinstance(config[name], list | tuple) else 1 for name in group}
        if len(set(lengths.values())) > 1:
            lengths_given = ", ".join(f"{name} has {n}" for name, n in lengths.items())
            raise ScenarioError([(("zip",), f"zipped axes must have equal lengths, but {lengths_given}")])
    return tuple(tuple(name for name in names if name in group) for group in groups)
