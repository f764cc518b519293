"""The base class of all scenarios, the registry of their kinds, and the search for all problems of a scenario.

A key given as a list is an axis of the sweep, and `cells()` visits every point of the grid once
(`statmech.keys.sweep_grid`). `statmech.keys.variables` lists the required members of a kind, and
`statmech.keys.config_keys` its optional members. The keys are also read and checked there.

Problems: pydantic checks each key separately, and checks combinations of keys only if all are valid, so that its first
errors hide further problems. `find_all_problems` also checks the valid keys in combination, without the invalid keys,
so that a user sees all problems at once.

**To add a kind** write a class in a file of `statmech/kinds/`, its simulation and theory in files of the same name in
`simulate/kinds/` and `theory/kinds/`, and one line in `SCENARIOS`. Outside this package, one file is enough: a class
with methods `simulate(cell, seed)` and `solve(cell)`, and a line ``SCENARIOS[Mine.CHOICE] = Mine`` (docs/howto).
"""

from __future__ import annotations

import re
from collections import UserDict
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import suppress
from functools import cache
from pkgutil import resolve_name
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, TypeAdapter, ValidationError

from statmech.convex.losses import LOSSES
from statmech.convex.teachers import TEACHERS
from statmech.convex.weight_distributions import WEIGHT_DISTRIBUTIONS
from statmech.errors import Problem, ScenarioError
from statmech.inputs.input_distributions import INPUTS
from statmech.keys.config_keys import ConfigKeys
from statmech.keys.config_schema import list_section_keys, make_kind_schema
from statmech.keys.error_messages import MAX_LISTED_PROBLEMS, MISSING_KEY_MESSAGE, explain_problems
from statmech.keys.figure_key import FIGURE_PART_KEYS
from statmech.keys.sweep_grid import GenericCell, hash_identity, is_axis
from statmech.parameters.schedules_and_controls import control_to_config
from statmech.runtime import user_code_and_provenance
from statmech.students.activations import ACTIVATIONS
from statmech.students.learners import LEARNERS
from statmech.students.rules import RULES

CLASS_REGISTRIES: tuple[Mapping[str, type], ...] = (
    *(RULES, LEARNERS, ACTIVATIONS, INPUTS),
    *(LOSSES, TEACHERS, WEIGHT_DISTRIBUTIONS),
)
RESULTS_ONLY_ATTRIBUTES = ("simulation", "theory")  # users often mistake a scenario for its results
VALIDATION_BLOCKING_KEYS = {"zip", "zipped", "parameters"}  # with an invalid value, pydantic checks no other key


class LazyKindRegistry(UserDict[Any, Any]):
    """A dict of kinds. A class given as "folder.module:Name" is imported at its first use."""

    def __getitem__(self, choice: Any) -> type[AbstractScenario]:
        if isinstance(self.data[choice], str):
            self.data[choice] = resolve_name(f"statmech.{self.data[choice]}")
        return self.data[choice]


SCENARIOS: MutableMapping[str, type[AbstractScenario]] = LazyKindRegistry(
    rule="kinds.online_perceptron:Scenario",
    learner="kinds.stored_examples:StoredExamples",
    boundary="classification.random_walks:Stopping",
    attention="classification.attentive_perceptron:Attention",
    booster="classification.boosting:Boosting",
    classifier="classification.cross_validation:Study",
    network="kinds.network:Network",
    loss="kinds.empirical_risk:Risk",
    descent="kinds.gradient_descent:Descent",
    clusters="kinds.risk_clusters:Clusters",
    population="kinds.risk_table:LabelledRows",
    prior="kinds.bayes_inference:Inference",
)
SCENARIOS_BY_KEY_PAIR: MutableMapping[tuple[str, str], type[AbstractScenario]] = LazyKindRegistry(
    {
        ("rule", "clusters"): "kinds.online_clusters:OnlineClusters",
        ("rule", "population"): "kinds.online_table:OnlineRows",
        ("rule", "tasks"): "kinds.online_tasks:OnlineTasks",
        ("rule", "moving_teacher"): "kinds.moving_teacher:MovingTeacher",
        ("network", "tasks"): "kinds.network_tasks:NetworkTasks",
        ("loss", "generations"): "kinds.risk_generations:Generations",
        ("network", "length"): "kinds.fixed_length_network:FixedLengthNetwork",
    }
)


def get_kinds() -> dict[str, type[AbstractScenario]]:
    """Return all kinds by name, which is a key (`rule`) or two joined keys (`rule_tasks`)."""
    return {**SCENARIOS, **{"_".join(keys): kind for keys, kind in SCENARIOS_BY_KEY_PAIR.items()}}


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
    def list_key_conditions(cls) -> dict[str, tuple[str, list[str]]]:
        """Return, for each conditional key, the key it depends on and the values that allow it."""
        return {}

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


def find_all_problems(
    kind: type[ConfigKeys], config: dict[str, Any], validation_error: ValidationError
) -> list[Problem]:
    """Find the problems of a scenario that pydantic reported, and problems among the remaining valid keys."""
    section_keys = list_section_keys(kind) | FIGURE_PART_KEYS
    key_problems = [
        (location, f"{sentence}{_list_required_choices(kind, location, sentence)}")
        for location, sentence in explain_problems(validation_error, kind.list_keys(), section_keys, _list_keys_by_kind)
    ]
    keys = {str(location[0]) for location, _ in key_problems if location}
    if keys & VALIDATION_BLOCKING_KEYS:
        return [*key_problems, *_find_problems_without_keys(kind, config, keys)]
    # no key is invalid: combinations were checked
    checked = all(not error["loc"] for error in validation_error.errors())
    return (
        key_problems
        if checked or validation_error.error_count() > MAX_LISTED_PROBLEMS
        else [*key_problems, *_find_valid_key_problems(kind, config, keys)]
    )


def _list_required_choices(kind: type[ConfigKeys], location: tuple[str | int, ...], sentence: str) -> str:
    """Return the possible names of a missing loss, rule, ..., for the end of a message, else an empty string."""
    names = kind.choices().get(str(location[0]), {}) if location and sentence == MISSING_KEY_MESSAGE else {}
    return f": one of {', '.join(names)}" if names else ""


def _find_problems_without_keys(
    kind: type[ConfigKeys], config: dict[str, Any], invalid_keys: set[str]
) -> Iterator[Problem]:
    """Find the problems that a scenario has without its unreadable sections.

    Problems that mention keys inside these sections are omitted.
    """
    groups = config.get("zip", [])
    groups = groups if isinstance(groups, list | tuple) else [groups]
    zipped = {name for group in groups if isinstance(group, dict) for name in group}
    try:
        kind(**{name: value for name, value in config.items() if name not in invalid_keys})
    except ScenarioError as failure:
        yield from (problem for problem in failure.problems if not _mentions_keys(problem, zipped))


def _find_valid_key_problems(kind: type[ConfigKeys], config: dict[str, Any], invalid_keys: set[str]) -> list[Problem]:
    """Find problems of a scenario's valid keys that remain however the invalid keys are corrected."""
    keys: dict[str, Any] = kind._convert_config_to_fields(config)  # type: ignore[operator]
    keys["zipped"], incomplete = _split_zip_groups(keys.get("zipped", ()), invalid_keys)
    invalid_keys = invalid_keys | incomplete
    parameters = {name: value for name, value in keys["parameters"].items() if name not in invalid_keys}
    keys["parameters"] = kind._convert_parameters(parameters)
    valid = {name: value for name, value in keys.items() if name not in invalid_keys}
    choices = [{kind.CHOICE: name} for name in kind.KINDS] if kind.CHOICE in invalid_keys else [{}]
    problem_lists = [
        list(_find_combination_problems(_make_partial_scenario(kind, {**valid, **choice}), invalid_keys))
        for choice in choices
    ]
    return [
        problem
        for problem in problem_lists[0]
        if all(problem in other_problems for other_problems in problem_lists[1:])
    ]


def _split_zip_groups(
    groups: tuple[tuple[str, ...], ...], invalid_keys: set[str]
) -> tuple[tuple[tuple[str, ...], ...], set[str]]:
    """Return the zip groups without invalid keys, and the set of keys in all other groups."""
    intact = tuple(group for group in groups if not invalid_keys & set(group))
    return intact, {name for group in groups if group not in intact for name in group}


def _make_partial_scenario(kind: type[ConfigKeys], valid: dict[str, Any]) -> ConfigKeys:
    """Build a scenario from the valid keys without checking them in combination.

    A required key that is missing gets the value 1 if its type allows it.
    """
    partial = kind.model_construct()
    for name, field in kind.model_fields.items():
        if name in valid or field.is_required():
            with suppress(ValidationError):
                partial.__dict__[name] = _get_key_validator(kind, name).validate_python(valid.get(name, 1))
    return partial


@cache
def _get_key_validator(kind: type[ConfigKeys], name: str) -> TypeAdapter[Any]:
    """Return the validator of one key, cached because pydantic takes a millisecond to build it."""
    field = kind.model_fields[name]
    form: Any = Annotated[field.annotation, *field.metadata, name]  # Annotated requires metadata, hence the name
    return TypeAdapter(form)


def _find_combination_problems(partial: ConfigKeys, invalid_keys: set[str]) -> Iterator[Problem]:
    """Find problems of the valid keys in combination."""
    for check in (partial._find_axis_problems, partial._find_parameter_problems, partial._find_problems):
        with suppress(AttributeError):  # raised if a required key is missing
            yield from (problem for problem in check() if not _mentions_keys(problem, invalid_keys))


def _mentions_keys(problem: Problem, keys: set[str]) -> bool:
    """Return True if a problem is located at one of these keys, or its sentence mentions one."""
    location, sentence = problem
    mentioned = re.findall(r"\w+", sentence.partition(" Known: ")[0])
    return (bool(location) and location[0] in keys) or not keys.isdisjoint(mentioned)


def _list_keys_by_kind() -> dict[str, list[str]]:
    """Return the possible keys of every kind of scenario, by the name of the kind."""
    return {name: kind.list_keys() for name, kind in get_kinds().items()}


def find_used_classes(scenario: AbstractScenario) -> set[type]:
    """Return the classes of a scenario and its values, and registered classes selected by name.

    >>> from statmech import Scenario
    >>> used = find_used_classes(Scenario(rule=["hebb", "perceptron"], t=1))
    >>> {RULES["hebb"], RULES["perceptron"], INPUTS["gaussian"], Scenario} <= used, RULES["adatron"] in used
    (True, False)
    """
    leaves = list(_iterate_leaves(vars(scenario)))
    strings = {leaf for leaf in leaves if isinstance(leaf, str)}
    registries = (*CLASS_REGISTRIES, *scenario.choices().values())
    registered = (registry[string] for registry in registries for string in strings & registry.keys())
    return {type(scenario), *map(type, leaves), *registered}


def _iterate_leaves(value: Any) -> Iterator[Any]:
    """Yield all keys and values in the nested mappings and lists of a scenario."""
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
