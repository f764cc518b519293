"""The keys of a config: conversion to their types, checks in combination, and descriptions.

Defaults: a kind of scenario has optional members with default values.

Help: the docstring and signature of a kind list its keys, for `help` and editors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import InitVar
from functools import cache
from inspect import Parameter, Signature, cleandoc
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, field_validator, model_validator
from pydantic.fields import FieldInfo

from statmech.errors import Problem, ScenarioError, format_unknown_name
from statmech.keys.error_messages import explain_problems
from statmech.keys.figure_key import Composition
from statmech.keys.key_types import PARAMETER_ADAPTERS, PARAMETERS, Whole, describe_field
from statmech.keys.sweep_grid import (
    MAX_AXIS_VALUES,
    MAX_CELLS_PER_STORE,
    Grid,
    IntegerOrAxis,
    NameOrAxis,
    NumberOrAxis,
    PydanticTypeOverride,
    ensure_tuple,
    expand_zip_groups,
    is_axis,
)
from statmech.keys.time_dependent_keys import TIME_FUNCTION_ADAPTER
from statmech.keys.variables import Variable
from statmech.parameters.parameter_fields import (
    ConfigKey,
    collect_parameters,
    find_parameter_definitions,
    find_parameter_problem,
    get_parameters,
)

DEFAULT_SECONDS_PER_RUN = 1e-2  # for kinds that do not estimate their run time
TYPE_DESCRIPTIONS = ((NameOrAxis, "str or a list"), (IntegerOrAxis, "int or a list"), (NumberOrAxis, "float or a list"))
DOCTEST_PROMPT = ">>> "
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


class ScenarioDefaults(Grid):
    """Optional members of a kind of scenario, with their defaults. `ScenarioKind` lists the required members."""

    seeds_per_batch: ClassVar[int] = 1  # seeds per batch; fixed, as the last bits of results depend on it
    on_data: ClassVar[bool] = False  # True if learners train on real data, so that there is no theory
    equations: ClassVar[tuple[str, ...]] = ()  # LaTeX, for the explorer and reports
    OMITTED_DEFAULTS: ClassVar[dict[str, Any]] = {}  # configs and datasets omit a key with this value
    TITLE: ClassVar[str] = ""  # heading of pages
    CITES: ClassVar[tuple[str, ...]] = ()  # bibliography keys of the papers behind the theory
    UNEQUAL_VARIANCE_CITES: ClassVar[tuple[str, ...]] = ()  # further bibliography keys for inputs of unequal variance
    NON_KEY_COORDINATES: ClassVar[dict[str, ConfigKey]] = {}  # dataset coordinates other than config keys
    KEYS_IMPLIED_BY_OTHERS: ClassVar[tuple[str, ...]] = ()  # required keys that other keys of a config can imply
    LABELLED_CLASSES: ClassVar[dict[str, Mapping[str, Any]]] = {}  # labelled classes by key and name, not in `choices`
    UNSUPPORTED_KEYS: ClassVar[dict[str, str]] = {}  # other kinds' keys, each with a reason; {} stands for the keys
    SIMULATION_ONLY_KEYS: ClassVar[tuple[str, ...]] = ()  # theory ignores these keys, like `seeds` and `key`
    USUAL_X_KEY: ClassVar[str] = ""  # default key of the x axis; empty for kinds without one
    SHOWS_SINGLE_RUNS: ClassVar[bool] = False  # charts draw single runs if means over runs are not informative
    workers: ClassVar[int | None] = None  # parallel threads; None for one per core

    @staticmethod
    def make_data_tables(simulation: Any) -> Iterator[Any]:
        """Yield the tables of a simulation on real data, which has no theory to compare with."""
        raise NotImplementedError

    @classmethod
    def find_unsupported_key_problems(cls, config: dict[str, Any]) -> Iterator[Problem]:
        """Find the keys of a config that this kind does not support, and list keys with the same reason together."""
        for reason in dict.fromkeys(cls.UNSUPPORTED_KEYS.values()):
            if keys := [key for key, why in cls.UNSUPPORTED_KEYS.items() if why == reason and key in config]:
                yield (keys[0],), reason.format(", ".join(keys))

    def _find_problems(self) -> Iterator[Problem]:
        """Yield the problems specific to this kind of scenario."""
        return iter(())

    def find_input_file_problems(self) -> Iterator[Problem]:
        """Find reasons why the scenario's data sets or files cannot be used in a simulation."""
        return iter(())

    def data_digests(self) -> dict[str, str]:
        """Return the current SHA-256 of each data set or file in the scenario."""
        return {}

    @property
    def theory_only_variables(self) -> dict[str, Variable]:
        """Variables computed by theory only."""
        return {}

    def estimate_seconds_per_seed(self) -> float:
        """Estimate the seconds per seed for all cells on one core."""
        return DEFAULT_SECONDS_PER_RUN * math.prod(self.shape.values())

    def list_compiled_programs(self) -> set[Any]:
        """Return one key per compiled program of simulation and theory, or an empty set if not counted."""
        return set()

    @property
    def recorded_coordinates(self) -> dict[str, np.ndarray]:
        """Coordinates of the dataset dimensions other than the sweep axes."""
        return {}

    @property
    def derived_coordinates(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        """Coordinates computed from other keys, each with its sweep dimensions and its values."""
        return {}

    @property
    def unsolved(self) -> str:
        """Reason why theory has no equations for this scenario, or an empty string."""
        return ""

    @property
    def expected_deviation_reason(self) -> str:
        """Reason why deviations from theory are expected and not tested, or an empty string."""
        return ""

    @property
    def has_fast_theory(self) -> bool:
        """True if theory solves a curve of several hundred points within seconds."""
        return self.has_equal_starts  # a vote of unequal students takes a second per point

    @property
    def keys_ignored_by_theory(self) -> dict[str, Any]:
        """Keys that theory does not depend on, each with the value used for theory curves.

        None leaves the value of the scenario.

        N can be listed although alpha N is rounded to P examples, which changes P / N slightly.
        """
        return {}

    @property
    def has_equal_starts(self) -> bool:
        """True if all students of an ensemble start with the same order parameters."""
        return True

    @property
    def displayed_equations(self) -> tuple[str, ...]:
        """LaTeX equations of this scenario, by default the equations of its kind."""
        return self.equations

    @classmethod
    def classes(cls) -> Mapping[str, type]:
        """Return all classes whose parameters are keys of a config, by name.

        If two keys share the name of a class, the name under the second key gets this key as a suffix.
        """
        further = [
            (key, name, kind) for key, kinds in cls.FURTHER_CLASS_CHOICES.items() for name, kind in kinds.items()
        ]
        return {**cls.KINDS, **{f"{name} ({key})" if name in cls.KINDS else name: kind for key, name, kind in further}}

    @classmethod
    def get_equation(cls, name: str) -> str:
        """Return the LaTeX equation of a class of this name, or an empty string."""
        return getattr(cls.classes()[name], "equation", "")


def add_keys_to_docstring(docstring: str, fields: dict[str, FieldInfo], parameters: dict[str, ConfigKey]) -> str:
    """Add a section on the config keys of a kind of scenario to its docstring, before the examples.

    Parameters
    ----------
    docstring
        The docstring in the source.
    fields
        The fields of the class.
    parameters
        Further keys, the parameters of the learning algorithms.
    """
    keys = [
        (name, _describe_type_and_default(field), field.description or "", _get_schema_extra(field))
        for name, field in fields.items()
    ]
    for name, key in parameters.items():
        keys.append((name, f"{key.type.__name__} or a list, default {key.default!r}", key.meaning, vars(key)))
    section = ["Parameters", "----------"]
    for name, form, meaning, options in keys:
        unit = options.get("unit", "1")
        unit_suffix = "" if unit == "1" else f", in {unit}"
        section += [f"{name} : {form}", f"    {meaning[:1].upper()}{meaning[1:]}{unit_suffix}."]
    before, examples, after = cleandoc(docstring).partition(DOCTEST_PROMPT)
    example_section = ["Examples", "--------", examples + after] if examples else []
    return "\n".join([before.rstrip(), "", *section, "", *example_section])


def make_class_signature(fields: dict[str, FieldInfo], parameters: dict[str, ConfigKey]) -> Signature:
    """Return the signature of a kind of scenario, with its config keys and defaults, but without types.

    Parameters
    ----------
    fields
        The fields of the class.
    parameters
        Further keys, the parameters of the learning algorithms.
    """
    defaults = {name: _get_default(field) for name, field in fields.items()}
    defaults |= {name: key.default for name, key in parameters.items()}
    required_first = sorted(defaults, key=lambda name: defaults[name] is not Parameter.empty)
    return Signature([Parameter(name, Parameter.KEYWORD_ONLY, default=defaults[name]) for name in required_first])


def _get_default(field: FieldInfo) -> Any:
    """Return the default of a field as it is written in a config."""
    return Parameter.empty if field.is_required() else _get_schema_extra(field).get("default", field.default)


def _get_schema_extra(field: FieldInfo) -> dict[str, Any]:
    """Return the additional JSON Schema entries of a field, or an empty dict."""
    return field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}


def _describe_type_and_default(field: FieldInfo) -> str:
    """Describe the type and default of a config key in a few words."""
    form = next((description for kind, description in TYPE_DESCRIPTIONS if field.annotation == kind), "")
    if field.is_required():
        return form or "list"
    default = f"default {_get_default(field)!r}"
    return f"{form}, {default}" if form else default


class ConfigKeys(ScenarioDefaults, BaseModel):
    """The config keys of a scenario, each with a value or an axis.

    The parameters of the selected learning algorithms are further keys.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    seeds: Annotated[Whole, Field(ge=1, le=MAX_SEEDS_PER_GRID_POINT)] = Field(
        default=20, description="independent runs of each grid point"
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
        """Convert the parameters in a config to the types declared in their classes."""
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
        """Convert one parameter of a config, given as a value or an axis.

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
        """Check all config keys in combination, and raise `ScenarioError` if there are problems."""
        self.check_combination_count(self.dimensions.values(), MAX_CELLS_PER_STORE, "a store can hold")
        scenario_problems = [*self._find_axis_problems(), *self._find_parameter_problems(), *self._find_problems()] or [
            *self._find_name_clashes()
        ]
        if scenario_problems:
            raise ScenarioError(scenario_problems)
        return self

    def _find_axis_problems(self) -> Iterator[Problem]:
        """Find config keys whose axes have too many values or duplicates."""
        for name, value in self.axis_values().items():
            if is_axis(value) and len(value) > MAX_AXIS_VALUES:
                yield (name,), f"an axis must have at most {MAX_AXIS_VALUES} values, not {len(value)}"

        for coordinates in self.dimensions.values():
            positions = list(zip(*coordinates.values(), strict=True))
            if len(set(positions)) < len(positions):
                yield (next(iter(coordinates)),), "the axis has duplicate values"

    def _find_parameter_problems(self) -> Iterator[Problem]:
        """Find parameter values in a config that are invalid for the selected classes.

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
                        remedy = (
                            f' Sweep {parameter} without "{name}", or give one value.'
                            if concerned and name not in classes
                            else ""
                        )
                        yield (parameter,), problem + remedy
                        break

    def _find_name_clashes(self) -> Iterator[Problem]:
        """Find config keys, coordinates and variables whose names clash within one dataset.

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
        """Return the descriptions of all config keys and coordinates, keyed by name.

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
        """Return the names of all config keys but the parameters: common keys, possible axes, then the other keys."""
        positions = {name: position for position, name in enumerate(getattr(cls, "AXES", ()))}
        names = [name for name in cls.model_fields if name not in INTERNAL_FIELDS]
        common = ConfigKeys.model_fields
        return sorted(names, key=lambda name: -1 if name in common else positions.get(name, len(positions)))

    @classmethod
    def list_keys(cls) -> list[str]:
        """Return the names of all keys allowed in a config of this kind."""
        return [*cls.list_fields(), *collect_parameters(cls.classes()), "zip"]

    def axis_values(self) -> dict[str, Any]:
        """Return the values of all config keys that can be axes, in the order of the dataset dimensions."""
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
