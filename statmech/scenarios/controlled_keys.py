"""Keys that can change with time: a number, steps at given times, or the optimum (`statmech.controls`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, Discriminator, PlainSerializer, Tag, TypeAdapter, ValidationError

from statmech.controls import Control, control_from, is_over_time, written_control
from statmech.errors import Problem
from statmech.optima import OPTIMAL, Optimal, schema_of_optimum
from statmech.parameters import Key
from statmech.scenarios.axes import OVER_TIME, ReadAs, axis_of, points
from statmech.scenarios.messages import problems
from statmech.scenarios.variables import Variable

SEARCHES = 5  # starts of the optimisation of a control
SHARE = "task_share"  # control: fraction of examples from the first of two tasks
WRITTEN = {SHARE: "protocol"}  # config key of each control that has another name
OF_OPTIMUM = {
    "controlled": Key("controlled", "key that is optimal; task_share: the fraction of the first task", str),
    "search": Key("search", "search of the optimum, from a start of its own", int),
}
BEST = {  # theory variables of scenarios with optimal keys
    "control": Variable(
        ("controlled", "t"), "best value of a key that is `optimal`, at each time", "$u$", role="control"
    ),
    "best_constant": Variable(("controlled",), "best constant in its place", r"$\bar u$", role="detail"),
    "gain": Variable((), "objective of the best constants over that of the best controls", "gain", role="detail"),
    "projected_gradient": Variable(
        (),
        "norm of the projected gradient of the objective's logarithm at the best controls",
        r"$|\nabla|$",
        role="diagnostic",
    ),
    "objective": Variable(
        (),
        "the quantity that the best controls minimise: eps_g at the last time, unless the config says otherwise",
        r"$\epsilon_g$ (objective)",
        role="detail",
    ),
    "objective_of_search": Variable(
        ("search",), "objective that each search reached", r"$\epsilon_g$ (search)", role="diagnostic"
    ),
}


def _form(given: Any) -> str:
    """Return the tag of the form of a value: "value" for numbers, "given" for functions of time."""
    return "given" if isinstance(given, Mapping | Control | Optimal) or given == OPTIMAL else "value"


def is_section(given: Any) -> bool:
    """Return True if a value in a config is the section of a function of time."""
    return isinstance(given, Mapping) and bool({*given} & OVER_TIME)


def over_time(value: Any, schema: dict[str, Any], optimal: bool) -> ReadAs:
    """Return the type of a key that takes a number of this type, a function of time, or an axis of both.

    `schema` is the JSON Schema of a number. With `optimal`, the key can also be optimised.
    """
    adapter = TypeAdapter(value)

    def number(given: Any) -> float:
        """Validate a number, or raise `ValueError` with one sentence."""
        try:
            return float(adapter.validate_python(given))
        except ValidationError as failure:
            raise ValueError(problems(failure, [])[0][1]) from None

    def control(given: Any) -> Control | Optimal:
        """Read a function of time, or the options of an optimum."""
        control_or_optimum = control_from(given, number)
        if isinstance(control_or_optimum, Optimal) and not optimal:
            raise ValueError("has no optimum that is searched: it is a number or {at: [0, ...], is: [...]}")
        return control_or_optimum

    time_function = Annotated[Any, AfterValidator(control), PlainSerializer(written_control)]
    number_or_function = Annotated[
        Annotated[value, Tag("value")] | Annotated[time_function, Tag("given")], Discriminator(_form)
    ]
    return axis_of(number_or_function, {"anyOf": [schema, *schemas_over_time(schema, optimal)]}, is_value=is_section)


def schemas_over_time(number: dict[str, Any], optimal: bool) -> list[dict[str, Any]]:
    """Return the JSON Schemas of functions of time."""
    times, values = ({"type": "array", "items": items, "minItems": 1} for items in ({"type": "number"}, number))
    steps = {"type": "object", "properties": {"at": times, "is": values}, "required": ["at", "is"]}
    optimum = {"type": "object", "properties": {OPTIMAL: schema_of_optimum(number)}}
    closed = [{**form, "additionalProperties": False} for form in (steps, *([optimum] if optimal else []))]
    return [*closed, {"const": OPTIMAL}] if optimal else closed


def controls_in(values: Mapping[str, Any]) -> tuple[tuple[str, Control | Optimal], ...]:
    """Return the keys of a grid point that are functions of time, with their functions.

    >>> [(name, str(value)) for name, value in controls_in({"eta": Optimal(), "flip": 0.1})]
    [('eta', 'optimal')]
    """
    return tuple((name, value) for name, value in values.items() if is_over_time(value))


def control_problems(axes: Mapping[str, Any], last: float) -> Iterator[Problem]:
    """Find the first control that changes only after the last recorded time."""
    controls_by_key = {name: [value for value in points(axes[name]) if is_over_time(value)] for name in axes}
    for name, controls in controls_by_key.items():
        for control in controls:
            if isinstance(control, Control) and control.edges[-1] >= last:
                yield (name,), f"changes at {control.edges[-1]:g}, not before the last time, t = {last:g}"
                return


def objective_problems(wishes: Mapping[str, list[Optimal]], tasks: int = 1) -> Iterator[Problem]:
    """Find objectives without exactly one weight per task, and keys that cannot be optimised together."""
    for name, options_list in wishes.items():
        for options in options_list:
            weights = options.objective.weights
            if weights is not None and len(weights) != tasks:
                yield (
                    (WRITTEN.get(name, name),),
                    f"the objective has {len(weights)} weights for {tasks} task{'s' * (tasks > 1)}",
                )
                return
    if len(wishes) > 1:
        distinct_options = {
            (options.segments, options.points, options.objective)
            for options_list in wishes.values()
            for options in options_list
        }
        if len(distinct_options) > 1:
            names = " and ".join(WRITTEN.get(name, name) for name in wishes)
            yield (next(iter(wishes)),), f"{names} are optimal together for one objective and on the same segments only"


def two_rates_problems(controlled: Iterable[str], schedule: object) -> Iterator[Problem]:
    """Find a schedule of a learning rate that is already a function of time."""
    if schedule is not None and "eta" in controlled:
        yield ("schedule",), "the learning rate eta is already a function of time: remove eta or schedule"


def wishes_of(scenario: Any) -> dict[str, list[Optimal]]:
    """Find the keys of a scenario that are to be optimised, with their options."""
    values_by_key = {name: scenario.parameters.get(name, getattr(scenario, name, None)) for name in scenario.OPTIMAL}
    options_by_key = {
        name: [value for value in points(values) if isinstance(value, Optimal)]
        for name, values in values_by_key.items()
    }
    return {name: options for name, options in options_by_key.items() if options}


def recorded_of_optimum(wishes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the coordinates of the variables `BEST` for these keys, or an empty dict without keys."""
    return {"controlled": np.array([*wishes]), "search": np.arange(1, SEARCHES + 1)} if wishes else {}


def searches(scenario: Any) -> Iterator[str]:
    """Yield a sentence on the controls that are optimised before a simulation, if a scenario has such controls."""
    if not getattr(scenario, "wishes", None):
        return
    number = sum(bool(cell.wishes) for cell in scenario.cells())
    subject = "1 parameter combination has a key" if number == 1 else f"{number} parameter combinations have keys"
    yield f"{subject} at the optimum: each is searched before it is simulated, in seconds or minutes"
