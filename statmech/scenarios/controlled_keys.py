"""Keys that may change with time: a number, steps at some times, or the optimum (`statmech.controls`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Discriminator, PlainSerializer, Tag, TypeAdapter, ValidationError

from statmech.controls import MOST_SEGMENTS, OPTIMAL, Control, Optimal, control_from, is_over_time, written_control
from statmech.errors import Problem
from statmech.parameters import Key
from statmech.scenarios.axes import OVER_TIME, ReadAs, axis_of, points
from statmech.scenarios.messages import problems
from statmech.scenarios.variables import Variable

SEARCHES = 5  # of an optimum
SEARCH = {"search": Key("search", "search of the optimum, from a start of its own", int)}
BEST = {  # variables of theory where a key is wanted at its optimum
    "control": Variable(("t",), "best value of the key that is `optimal`, at each time", "$u$", role="detail"),
    "best_constant": Variable((), "best constant in its place", r"$\bar u$", role="detail"),
    "gain": Variable(
        (), "eps_g at the last time with the best constant, over that with the best control", "gain", role="detail"
    ),
    "projected_gradient": Variable(
        (), "norm of the projected gradient of log eps_g at the best control", r"$|\nabla|$", role="diagnostic"
    ),
    "eps_g_of_search": Variable(
        ("search",), "eps_g at the last time that each search reached", r"$\epsilon_g$ (search)", role="diagnostic"
    ),
}


def _form(given: Any) -> str:
    return "given" if isinstance(given, Mapping | Control | Optimal) or given == OPTIMAL else "value"


def _is_section(given: Any) -> bool:
    return isinstance(given, Mapping) and bool({*given} & OVER_TIME)


def over_time(value: Any, schema: dict[str, Any], optimal: bool) -> ReadAs:
    """A reader of a key that takes a number of this type, a function of time, or an axis of these.

    `schema` is the JSON Schema of a number, and `optimal` says whether the key may be wanted at its optimum.
    """
    adapter = TypeAdapter(value)

    def number(given: Any) -> float:
        try:
            return float(adapter.validate_python(given))
        except ValidationError as failure:
            raise ValueError(problems(failure, [])[0][1]) from None

    def control(given: Any) -> Control | Optimal:
        found = control_from(given, number)
        if isinstance(found, Optimal) and not optimal:
            raise ValueError("has no optimum that is searched: it is a number or {at: [0, ...], is: [...]}")
        return found

    of_time = Annotated[Any, AfterValidator(control), PlainSerializer(written_control)]
    one = Annotated[Annotated[value, Tag("value")] | Annotated[of_time, Tag("given")], Discriminator(_form)]
    return axis_of(one, {"anyOf": [schema, *schemas_over_time(schema, optimal)]}, is_value=_is_section)


def schemas_over_time(number: dict[str, Any], optimal: bool) -> list[dict[str, Any]]:
    """The JSON Schemas of functions of time."""
    times, values = ({"type": "array", "items": items, "minItems": 1} for items in ({"type": "number"}, number))
    steps = {"type": "object", "properties": {"at": times, "is": values}, "required": ["at", "is"]}
    segments = {"type": "integer", "minimum": 1, "maximum": MOST_SEGMENTS}
    section = {"type": "object", "properties": {"segments": segments, "at_most": number}}
    best = {"type": "object", "properties": {OPTIMAL: section | {"additionalProperties": False}}}
    closed = [{**each, "additionalProperties": False} for each in (steps, *([best] if optimal else []))]
    return [*closed, {"const": OPTIMAL}] if optimal else closed


def controls_in(values: Mapping[str, Any]) -> tuple[tuple[str, Control | Optimal], ...]:
    """The keys of a grid point that are functions of time, with these.

    >>> controls_in({"eta": Optimal(), "flip": 0.1})
    (('eta', Optimal(segments=20, at_most=None)),)
    """
    return tuple((name, value) for name, value in values.items() if is_over_time(value))


def control_problems(axes: Mapping[str, Any], last: float) -> Iterator[Problem]:
    """The first control that changes after the last time, and a second key that is wanted at its optimum."""
    given = {name: [value for value in points(axes[name]) if is_over_time(value)] for name in axes}
    for name, controls in given.items():
        for control in controls:
            if isinstance(control, Control) and control.edges[-1] >= last:
                yield (name,), f"changes at {control.edges[-1]:g}, not before the last time, t = {last:g}"
                return
    wanted = [name for name, controls in given.items() if any(isinstance(control, Optimal) for control in controls)]
    if len(wanted) > 1:
        yield (wanted[1],), f"one key at a time can be optimal, here {' and '.join(wanted)}"


def wants_optimum(axes: Mapping[str, Any]) -> bool:
    """True if any of these keys is wanted at its optimum."""
    return any(isinstance(value, Optimal) for given in axes.values() for value in points(given))
