r"""Keys that can change with time: functions of time, schedules of the learning rate, and numbers of steps.

The value of such a key is a number, a function with steps at given times, or an optimal control
(`statmech.parameters.schedules_and_controls`). Grid points with such keys are `ControlledCell` objects.

A schedule :math:`\eta(t) = \eta/(1 + t/t_0)` is written `schedule: {t0: 5}` in a config. Only :math:`t_0` is stored. An
axis of the sweep is a list of schedules, or the shorter `schedule: {t0: [2, 5, 20]}`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
)

from statmech.errors import Problem, quote_value
from statmech.keys.error_messages import explain_problems
from statmech.keys.key_types import Number
from statmech.keys.sweep_grid import (
    SCHEDULE_SYNTAX_EXAMPLE,
    TIME_FUNCTION_KEYS,
    Cell,
    PydanticTypeOverride,
    axis_of,
    ensure_tuple,
    hash_identity,
    is_axis,
    make_axis_schema,
)
from statmech.keys.variables import Variable
from statmech.parameters.parameter_fields import ConfigKey, format_parameter_value
from statmech.parameters.schedules_and_controls import (
    OPTIMAL_KEYWORD,
    ControlFunction,
    OptimalControlOptions,
    PiecewisePolynomial,
    collect_segment_starts,
    control_from_config,
    control_to_config,
    get_initial_value,
    is_time_dependent,
    make_optimum_schema,
)

NUM_OPTIMUM_SEARCHES = 5  # starting points when a control is optimised
FIRST_TASK_FRACTION_CONTROL = "task_share"  # name of the control that sets the fraction of examples from the first task
# for controls with a name other than their config key
CONFIG_KEYS_BY_CONTROL = {FIRST_TASK_FRACTION_CONTROL: "protocol"}
OPTIMUM_COORDINATES = {
    "controlled": ConfigKey("controlled", "key that is optimal; task_share: the fraction of the first task", str),
    "search": ConfigKey("search", "search of the optimum, from a start of its own", int),
}
OPTIMUM_VARIABLES = {  # computed by theory if keys are `optimal`
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
T0_SCHEMA = {"type": "number", "exclusiveMinimum": 0}
SCHEDULE_SCHEMA = {
    "type": "object",
    "properties": {"t0": make_axis_schema(T0_SCHEMA, spaced=True)},
    "required": ["t0"],
    "additionalProperties": False,
}
MAX_STEPS = 2**62
DEFAULT_ANNEALING = "hyperbolic"  # has no effect without a schedule


def _get_number_or_function_tag(value: Any) -> str:
    """Return the union tag of a key's value: "value" for numbers, "given" for functions of time."""
    return (
        "given"
        if isinstance(value, Mapping | ControlFunction | OptimalControlOptions) or value == OPTIMAL_KEYWORD
        else "value"
    )


def is_time_function_section(value: Any) -> bool:
    """Return True if a value in a config is a section that defines a function of time."""
    return isinstance(value, Mapping) and bool({*value} & TIME_FUNCTION_KEYS)


def make_time_function_type(value_type: Any, schema: dict[str, Any], is_optimisable: bool) -> PydanticTypeOverride:
    """Return the type of a key that accepts a number, a function of time, or an axis of both.

    `schema` is the JSON Schema of a number. With `is_optimisable`, the key can also be optimised.
    """
    adapter = TypeAdapter(value_type)

    def number(raw: Any) -> float:
        """Validate a number, or raise `ValueError` with the reason in one sentence."""
        try:
            return float(adapter.validate_python(raw))
        except ValidationError as failure:
            raise ValueError(explain_problems(failure, [])[0][1]) from None

    def control(raw: Any) -> ControlFunction | OptimalControlOptions:
        """Read a function of time, or the options of an optimal control."""
        control_or_optimum = control_from_config(raw, number)
        if isinstance(control_or_optimum, OptimalControlOptions) and not is_optimisable:
            raise ValueError("cannot be optimised: it must be a number or {at: [0, ...], is: [...]}")
        return control_or_optimum

    time_function = Annotated[Any, AfterValidator(control), PlainSerializer(control_to_config)]
    number_or_function = Annotated[
        Annotated[value_type, Tag("value")] | Annotated[time_function, Tag("given")],
        Discriminator(_get_number_or_function_tag),
    ]
    return axis_of(
        number_or_function,
        {"anyOf": [schema, *make_time_function_schemas(schema, is_optimisable)]},
        is_single_value=is_time_function_section,
    )


def make_time_function_schemas(number_schema: dict[str, Any], is_optimisable: bool) -> list[dict[str, Any]]:
    """Return the JSON Schema of each form of a key that is a function of time."""
    times, values = ({"type": "array", "items": items, "minItems": 1} for items in ({"type": "number"}, number_schema))
    steps = {"type": "object", "properties": {"at": times, "is": values}, "required": ["at", "is"]}
    optimum = {"type": "object", "properties": {OPTIMAL_KEYWORD: make_optimum_schema(number_schema)}}
    closed = [{**form, "additionalProperties": False} for form in (steps, *([optimum] if is_optimisable else []))]
    return [*closed, {"const": OPTIMAL_KEYWORD}] if is_optimisable else closed


TIME_FUNCTION_ADAPTER: TypeAdapter[Any] = TypeAdapter(
    Annotated[Any, make_time_function_type(Number, {}, is_optimisable=True)]
)


def find_controls(values: Mapping[str, Any]) -> tuple[tuple[str, ControlFunction | OptimalControlOptions], ...]:
    """Return the keys of a grid point that depend on time, with their functions.

    >>> [(name, str(value)) for name, value in find_controls({"eta": OptimalControlOptions(), "flip": 0.1})]
    [('eta', 'optimal')]
    """
    return tuple((name, value) for name, value in values.items() if is_time_dependent(value))


def find_late_control_changes(axes: Mapping[str, Any], last_time: float) -> Iterator[Problem]:
    """Find the first key whose function of time still changes at or after the last recorded time."""
    controls_by_key = {name: [value for value in ensure_tuple(axes[name]) if is_time_dependent(value)] for name in axes}
    for name, controls in controls_by_key.items():
        for control in controls:
            if isinstance(control, ControlFunction) and control.edges[-1] >= last_time:
                yield (name,), f"changes at {control.edges[-1]:g}, not before the last time, t = {last_time:g}"
                return


def find_objective_problems(
    optimal_keys: Mapping[str, list[OptimalControlOptions]], num_tasks: int = 1
) -> Iterator[Problem]:
    """Find objectives of optimal keys with the wrong number of weights, and keys that cannot be optimised together."""
    for name, options_list in optimal_keys.items():
        for options in options_list:
            weights = options.objective.weights
            if weights is not None and len(weights) != num_tasks:
                yield (
                    (CONFIG_KEYS_BY_CONTROL.get(name, name),),
                    f"the objective has {len(weights)} weights for {num_tasks} task{'s' * (num_tasks > 1)}",
                )
                return
    if len(optimal_keys) > 1:
        distinct_options = {
            (options.segments, options.points, options.objective)
            for options_list in optimal_keys.values()
            for options in options_list
        }
        if len(distinct_options) > 1:
            names = " and ".join(CONFIG_KEYS_BY_CONTROL.get(name, name) for name in optimal_keys)
            yield (
                (next(iter(optimal_keys)),),
                f"{names} are optimal together for one objective and on the same segments only",
            )


def find_schedule_conflicts(time_dependent_keys: Iterable[str], schedule: object) -> Iterator[Problem]:
    """Find a conflict between a schedule and a learning rate that is a function of time."""
    if schedule is not None and "eta" in time_dependent_keys:
        yield ("schedule",), "the learning rate eta is already a function of time: remove eta or schedule"


def find_optimal_keys(scenario: Any) -> dict[str, list[OptimalControlOptions]]:
    """Find the keys of a scenario whose function of time is optimised, each with its options."""
    values_by_key = {
        name: scenario.parameters.get(name, getattr(scenario, name, None)) for name in scenario.OPTIMISABLE_KEYS
    }
    options_by_key = {
        name: [value for value in ensure_tuple(values) if isinstance(value, OptimalControlOptions)]
        for name, values in values_by_key.items()
    }
    return {name: options for name, options in options_by_key.items() if options}


def make_optimum_coordinates(optimal_keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return the dataset coordinates of keys with optimal functions of time, or an empty dict without such keys."""
    return (
        {"controlled": np.array([*optimal_keys]), "search": np.arange(1, NUM_OPTIMUM_SEARCHES + 1)}
        if optimal_keys
        else {}
    )


def _extract_t0(schedule: Any) -> Any:
    """Return the t0 of a learning-rate schedule in a config, or a list for an axis of schedules.

    >>> _extract_t0({"t0": 5}), _extract_t0([{"t0": 2}, {"t0": 5}])
    (5, [2, 5])
    """
    if schedule is None:
        return None
    if isinstance(schedule, list | tuple):
        return [_extract_t0(single) for single in schedule]
    if not isinstance(schedule, dict) or [*schedule] != ["t0"]:
        raise ValueError(f"must be written {SCHEDULE_SYNTAX_EXAMPLE}, not {quote_value(schedule)}")
    return schedule["t0"]


def _format_t0(t0: Any) -> Any:
    """Write t0, or an axis of t0, as schedules of a config."""
    if is_axis(t0):
        return [{"t0": value} for value in t0]
    return None if t0 is None else {"t0": t0}


ScheduleTime = Annotated[Number, Field(gt=0)]
ScheduleTimeAxis = Annotated[Any, axis_of(ScheduleTime, T0_SCHEMA)]
OptionalSchedule = Annotated[
    ScheduleTimeAxis | None,
    BeforeValidator(_extract_t0),
    PlainSerializer(_format_t0, when_used="json"),
    WithJsonSchema(
        {"anyOf": [SCHEDULE_SCHEMA, {"type": "array", "items": SCHEDULE_SCHEMA, "minItems": 1}, {"type": "null"}]}
    ),
]


def count_steps(times: Sequence[float] | np.ndarray, N: int) -> np.ndarray:
    """Return the number of steps N t, rounded to an integer, for each recorded time.

    >>> count_steps([0.01, 0.5, 1], N=20)
    array([ 0, 10, 20])
    """
    return np.rint(np.asarray(times) * N).astype(np.int64)


def find_step_count_problems(t: float, N: float) -> Iterator[Problem]:
    """Find a time t whose number of steps t N overflows a 64-bit integer.

    >>> list(find_step_count_problems(10, 100)), list(find_step_count_problems(1e10, 1e9))
    ([], [(('t',), 't N = 1e+10 N exceeds 2^62 steps')])
    """
    if t * N >= MAX_STEPS:
        yield ("t",), f"t N = {t:g} N exceeds 2^62 steps"


@dataclass(frozen=True, kw_only=True)
class ControlledCell(Cell):
    """A grid point with keys that can be functions of time."""

    controls: tuple[tuple[str, ControlFunction | OptimalControlOptions], ...] = ()

    @abstractmethod
    def replace_values(self, **numbers: Any) -> Self:
        """Return the cell with these numbers for keys that can be functions of time."""

    @property
    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Values that identify this cell, keyed by the names used in random seeds."""

    def identity_hash(self) -> tuple[int, ...]:
        """Return eight integers that hash the cell's identity (`statmech.keys.sweep_grid.hash_identity`)."""
        return hash_identity(self.identity)

    @property
    def known_controls(self) -> dict[str, ControlFunction]:
        """Known functions of time, keyed by config key, without optimal keys."""
        return {name: control for name, control in self.controls if isinstance(control, ControlFunction)}

    @property
    def optimal_keys(self) -> dict[str, OptimalControlOptions]:
        """Options for each key to be optimised."""
        return {name: options for name, options in self.controls if isinstance(options, OptimalControlOptions)}

    @property
    def control_polynomials(self) -> dict[str, PiecewisePolynomial]:
        """Known functions of time as piecewise polynomials, which JAX can trace."""
        return {name: control.polynomials for name, control in self.known_controls.items()}

    @property
    def edges(self) -> tuple[float, ...]:
        """Start times of all segments, or an empty tuple without functions of time."""
        return collect_segment_starts(control for _, control in self.controls)

    @property
    def control_segment_layout(self) -> tuple[Any, ...]:
        """Segment edges, and number of values per segment of each function of time.

        Cells with equal layouts are integrated together.
        """
        return self.edges, tuple((name, control.segments.points) for name, control in self.known_controls.items())

    def after(self, t: float) -> Self:
        """Return the cell whose functions of time start at edge t, with time measured from t."""
        controls = {name: control.segment_from(t) for name, control in self.known_controls.items()}
        optimal_items = tuple(self.optimal_keys.items())
        cell = self.replace_values(**{name: get_initial_value(value) for name, value in controls.items()})
        return replace(cell, controls=(*find_controls(controls), *optimal_items))


def format_cell_description(name: str, values: dict[str, Any]) -> str:
    """Return the name of a learning algorithm followed by its values, for messages.

    >>> format_cell_description("hebb", {"eta": 0.5, "flip": 0.1})
    'hebb (eta = 0.5, flip = 0.1)'
    """
    return f"{name} ({', '.join(f'{key} = {format_parameter_value(value)}' for key, value in values.items())})"
