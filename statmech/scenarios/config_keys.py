"""The keys of a config: conversion to their types, checks in combination, and descriptions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import InitVar
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, field_validator, model_validator

from statmech.errors import Problem, ScenarioError, format_unknown_name
from statmech.parameters import (
    ConfigKey,
    collect_parameters,
    find_parameter_definitions,
    find_parameter_problem,
    get_parameters,
)
from statmech.scenarios.axes import MAX_AXIS_VALUES, MAX_CELLS_PER_STORE, PydanticTypeOverride, ensure_tuple, is_axis
from statmech.scenarios.composition import Composition
from statmech.scenarios.defaults import ScenarioDefaults
from statmech.scenarios.grid import expand_zip_groups
from statmech.scenarios.key_help import add_keys_to_docstring, make_class_signature
from statmech.scenarios.keys import PARAMETER_ADAPTERS, PARAMETERS, TIME_FUNCTION_ADAPTER, Whole, describe_field
from statmech.scenarios.messages import explain_problems

MAX_SEEDS_PER_GRID_POINT = 10**9  # larger values must be typos
COMMON_COORDINATES = {"seed": ConfigKey("seed", "independent run", int)}
RESERVED_STORE_NAMES = ("state", "fingerprint", "made_by", "done")  # used in every dataset or store
INTERNAL_FIELDS = (PARAMETERS, "zipped")  # fields of the class that no config contains
FigureNameOrSection = Annotated[  # a string names a published figure, a section composes one
    Any,
    PydanticTypeOverride(
        Annotated[
            Annotated[str, Tag("word")] | Annotated[Composition, Tag("given")],
            Discriminator(lambda given: "given" if isinstance(given, dict | Composition) else "word"),
        ]
    ),
]


class ConfigKeys(ScenarioDefaults, BaseModel):
    """The config keys of a scenario, each with a value or an axis.

    The parameters of the selected learning algorithms are further keys.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    seeds: Annotated[Whole, Field(ge=1, le=MAX_SEEDS_PER_GRID_POINT)] = Field(
        default=10, description="independent runs of each grid point"
    )
    key: Annotated[Whole, Field(ge=0, lt=2**32)] = Field(
        default=0, description="key of the experiment's random numbers"
    )
    figure: FigureNameOrSection = Field(
        default=None,
        description="published figure, or a section that says what is drawn; the config's own name by default",
    )
    parameters: dict[str, Any] = Field(default_factory=dict, exclude=True)
    zipped: tuple[tuple[str, ...], ...] = Field(default=(), exclude=True)

    if TYPE_CHECKING:
        zip: InitVar[Any] = None

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        own_first = sorted(cls.list_fields(), key=ConfigKeys.model_fields.__contains__)
        fields = {name: cls.model_fields[name] for name in own_first}
        parameters = collect_parameters(cls.classes()) if hasattr(cls, "KINDS") else {}
        cls.__doc__ = add_keys_to_docstring(cls.__doc__ or "", fields, parameters)
        cls.__signature__ = make_class_signature(fields, parameters)

    @model_validator(mode="before")
    @classmethod
    def _convert_config_to_fields(cls, config: dict[str, Any]) -> dict[str, Any]:
        """Convert a flat config to fields: expand zip groups and collect the parameters."""
        config = dict(config)
        if inner := {"zipped", PARAMETERS} & config.keys():  # internal fields that users must not set
            raise ScenarioError(
                [((name,), format_unknown_name(name, "a key of a config", cls.list_keys())) for name in inner]
            )
        if key_problems := list(cls.find_unsupported_key_problems(config)):
            raise ScenarioError(key_problems)
        if "zip" in config:
            config["zipped"] = expand_zip_groups(config, cls.axis_names())
        parameters = collect_parameters(cls.classes())
        for name in parameters.keys() & cls.model_fields.keys():
            owners = ", ".join(find_parameter_definitions(cls.classes(), name))
            raise ScenarioError([((name,), f"is already a config key: rename the parameter of {owners}")])
        defaults = {name: parameters[name].default for name in cls.AXES if name in parameters}
        config[PARAMETERS] = defaults | {name: config.pop(name) for name in parameters if name in config}
        return config

    @field_validator(PARAMETERS, mode="before")
    @classmethod
    def _convert_parameters(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """Convert the parameters to the types declared in their classes."""
        values, conversion_problems = {}, list[Problem]()
        for name, value in parameters.items():
            try:
                values[name] = cls._convert_parameter(name, value)
            except ValidationError as failure:
                conversion_problems += [((name, *where), sentence) for where, sentence in explain_problems(failure, [])]
            except ScenarioError as failure:
                conversion_problems += failure.problems
        if conversion_problems:
            raise ScenarioError(conversion_problems)
        return values

    @classmethod
    def _convert_parameter(cls, name: str, raw_value: Any) -> Any:
        """Convert one parameter, given as a value or an axis.

        At least one class must allow the value of a parameter that is a string.
        """
        key_by_class = find_parameter_definitions(cls.classes(), name)
        if len({key.type if not key.numeric else float for key in key_by_class.values()}) > 1:
            sentence = f"is not of one type among {', '.join(key_by_class)}: rename the parameter in one class"
            raise ScenarioError([((name,), sentence)])
        keys = list(key_by_class.values())
        adapter = TIME_FUNCTION_ADAPTER if name in cls.OPTIMISABLE_KEYS else PARAMETER_ADAPTERS[keys[0].type]
        values = adapter.validate_python(raw_value)
        for index, value in enumerate(ensure_tuple(values) if keys[0].choices else ()):
            if all(key.find_type_problem(value) for key in keys):
                raise ScenarioError(
                    [((name, index) if is_axis(values) else (name,), keys[0].find_type_problem(value) or "")]
                )
        return values

    @model_validator(mode="after")
    def _check_scenario(self) -> Self:
        """Check all keys in combination, and raise `ScenarioError` if there are problems."""
        self.check_combination_count(self.dimensions.values(), MAX_CELLS_PER_STORE, "a store can hold")
        scenario_problems = [*self._find_axis_problems(), *self._find_parameter_problems(), *self._find_problems()] or [
            *self._find_name_clashes()
        ]
        if scenario_problems:
            raise ScenarioError(scenario_problems)
        return self

    def _find_axis_problems(self) -> Iterator[Problem]:
        """Find axes with too many values or with duplicates."""
        for name, value in self.axis_values().items():
            if is_axis(value) and len(value) > MAX_AXIS_VALUES:
                yield (name,), f"an axis must have at most {MAX_AXIS_VALUES} values, not {len(value)}"

        for coordinates in self.dimensions.values():
            positions = list(zip(*coordinates.values(), strict=True))
            if len(set(positions)) < len(positions):
                yield (next(iter(coordinates)),), "the axis has duplicate values"

    def _find_parameter_problems(self) -> Iterator[Problem]:
        """Find parameter values that are invalid for the selected classes.

        A single value is checked only for the selected classes with this parameter, if there are any. An axis is
        checked for all selected classes.
        """
        for choice, kinds in self.choices().items():
            for parameter in collect_parameters(kinds).keys() & self.parameters.keys():
                pairs = self.list_value_pairs(choice, parameter)
                classes = {name for name, kind in kinds.items() if parameter in get_parameters(kind)}
                concerned = [pair for pair in pairs if pair[0] in classes]
                for name, value in pairs if is_axis(self.parameters[parameter]) or not concerned else concerned:
                    if problem := find_parameter_problem(choice, kinds, name, parameter, value):
                        yield (parameter,), problem
                        break

    def _find_name_clashes(self) -> Iterator[Problem]:
        """Find names that clash within one dataset.

        Names must also differ in more than case, because many file systems ignore case.
        """
        parameters = collect_parameters(self.classes())
        result_names = (
            *self.variables,
            *self.theory_only_variables,
            *COMMON_COORDINATES,
            *self.NON_KEY_COORDINATES,
            *RESERVED_STORE_NAMES,
        )
        names_by_lowercase: dict[str, str] = {}
        for name in dict.fromkeys((*_describe_fields(type(self)), *result_names, *self.describe_all_keys())):
            first_name = names_by_lowercase.setdefault(name.lower(), name)
            if first_name != name:
                yield self._make_clash_problem(name, f"differs from {first_name} by case only, which many disks ignore")
            elif name in result_names and name in parameters:
                yield self._make_clash_problem(name, "is a name in the results")

    def _make_clash_problem(self, name: str, reason: str) -> Problem:
        """Return the problem of a name that clashes with another name."""
        owners = ", ".join(find_parameter_definitions(self.classes(), name))
        return (name,), f"{reason}, so {f'the parameter of {owners}' if owners else 'one of them'} needs another name"

    @classmethod
    def describe(cls, name: str) -> ConfigKey:
        """Return the description of a key or of another coordinate in datasets of this kind.

        >>> from statmech import Scenario
        >>> key = Scenario.describe("N")
        >>> key.meaning, key.symbol, key.at_least
        ('input dimension', '$N$', 2)
        """
        return cls.describe_all_keys()[name]

    @classmethod
    def has_integer_values(cls, name: str) -> bool:
        """Return True if interpolated values of this key must be integers."""
        return cls.describe(name).whole

    @classmethod
    def describe_all_keys(cls) -> dict[str, ConfigKey]:
        """Return the descriptions of all keys and coordinates, keyed by name.

        The result is not cached, because a user may register a rule with new parameters at any time.
        """
        return {
            **COMMON_COORDINATES,
            **cls.NON_KEY_COORDINATES,
            **collect_parameters(cls.classes()),
            **_describe_fields(cls),
        }

    @classmethod
    def axis_names(cls) -> list[str]:
        """Return the names of all possible axes, in the order of the dataset dimensions."""
        remaining = [name for name in collect_parameters(cls.classes()) if name not in cls.AXES]
        return [name for axis in cls.AXES for name in (remaining if axis == PARAMETERS else [axis])]

    @classmethod
    def list_fields(cls) -> list[str]:
        """Return the names of all keys except the parameters: common keys, possible axes, then the other keys."""
        positions = {name: position for position, name in enumerate(getattr(cls, "AXES", ()))}
        names = [name for name in cls.model_fields if name not in INTERNAL_FIELDS]
        common = ConfigKeys.model_fields
        return sorted(names, key=lambda name: -1 if name in common else positions.get(name, len(positions)))

    @classmethod
    def list_keys(cls) -> list[str]:
        """Return the names of all keys allowed in a config of this kind."""
        return [*cls.list_fields(), *collect_parameters(cls.classes()), "zip"]

    def axis_values(self) -> dict[str, Any]:
        """Return the values of all possible axes, in the order of the dataset dimensions."""
        names = [
            name for name in self.AXES if name not in (PARAMETERS, *self.parameters) and self._is_key_included(name)
        ]
        field_values = {name: getattr(self, name) for name in names}
        values = {**field_values, **self.parameters}
        return {name: values[name] for name in self.axis_names() if name in values}

    def _is_key_included(self, name: str) -> bool:
        """Return True unless configs and datasets omit this key at its current value."""
        return name not in self.OMITTED_DEFAULTS or getattr(self, name) != self.OMITTED_DEFAULTS[name]


@cache
def _describe_fields(kind: type[ConfigKeys]) -> dict[str, ConfigKey]:
    """Describe the keys of a kind, except the parameters of its learning algorithms."""
    schemas = kind.model_json_schema()["properties"]
    return {name: describe_field(name, schemas[name]) for name in kind.list_fields()}
