r"""Quantities that change during learning: controls, options of optimal controls, and learning-rate schedules.

**Controls** are config keys that are functions of time, given as steps or to be optimised. In a config such a key is a
number, `{at: [0, 50], is: [1, 0.1]}`, or `optimal`: the function of time with the lowest generalization error at the
last time, or another objective (`theory.control`).

On each segment :math:`[a, b]` between two edges a control is the polynomial through its p values at the Chebyshev
points

.. math:: t_j = a + (b-a)\sin^2\frac{\pi j}{2(p-1)}, \qquad j = 0, \dots, p-1,

or a constant for p = 1. Constants on many segments can jump, but they approach a smooth optimum as slowly as a
staircase. One segment with many points converges geometrically to a smooth optimum. Edges belong at the jumps of the
problem itself.

**Optimal controls** have options and an objective. In a config, options that differ from the defaults form a section:

    eta: {optimal: {segments: 1, points: 32, at_most: 5, objective: integral}}

The objective is eps_g at the last time (`last`) or its mean over time (`integral`). For several tasks it is averaged
over the tasks, with equal weights or, as in `{last: [1, 3]}`, with given weights.

**Schedules.** With a schedule the learning rate decays within a time :math:`t_0`, which is infinite for a constant
rate.

**To add a schedule** write one class with `rate` and add one line to `LEARNING_RATE_SCHEDULES`: its name in a config,
both engines, the equations and their corrections of order 1/N follow. Times are traced by JAX, so `rate` uses operators
and the functions of `get_array_module(t)`, and must stay above 0, where the logarithm of the rate has a slope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from statmech.errors import quote_value
from statmech.numerics.gaussian import Array, get_array_module

OPTIMAL_KEYWORD = "optimal"
DEFAULT_CONTROL_SEGMENTS, MAX_CONTROL_SEGMENTS = 20, 500
MAX_POINTS_PER_SEGMENT = 100
LAST_TIME_OBJECTIVE, INTEGRAL_OBJECTIVE = "last", "integral"
OBJECTIVE_NAMES = LAST_TIME_OBJECTIVE, INTEGRAL_OBJECTIVE
MAX_DECAY_EXPONENT = 700.0  # t/t0; the exponential rate would underflow at larger values


@dataclass(frozen=True)
class Objective:
    """The quantity to minimise: eps_g at the last time or its mean over time, with weights of the tasks.

    >>> str(Objective("integral")), Objective("last", (1.0, 3.0)).shares(2).tolist()
    ('integral', [0.25, 0.75])
    """

    over: str = LAST_TIME_OBJECTIVE
    weights: tuple[float, ...] | None = None

    def shares(self, tasks: int) -> np.ndarray:
        """Return the normalised weights of the tasks (tasks,)."""
        weights = np.ones(tasks) if self.weights is None else np.asarray(self.weights)
        return np.asarray(weights / weights.sum())

    def __str__(self) -> str:
        """Return the label of the objective on a dataset axis."""
        return self.over + ("" if self.weights is None else " ".join([" of tasks", *(f"{w:g}" for w in self.weights)]))


@dataclass(frozen=True)
class OptimalControlOptions:
    """Options of a control to be optimised: equal segments, values per segment, upper bound and objective."""

    segments: int = DEFAULT_CONTROL_SEGMENTS
    points: int = 1
    at_most: float | None = None
    objective: Objective = Objective()

    def __str__(self) -> str:
        """Return the label of the optimum on a dataset axis."""
        further = (
            [f"in {self.segments} segments"]
            if self.segments != (DEFAULT_CONTROL_SEGMENTS if self.points == 1 else 1)
            else []
        )
        further += [f"with {self.points} points"] if self.points > 1 else []
        further += [f"up to {self.at_most:g}"] if self.at_most is not None else []
        further += [f"for the {self.objective}"] if self.objective != Objective() else []
        return " ".join([OPTIMAL_KEYWORD, *further])


def optimum_options_from_config(section: Any, number: Callable[[Any], float] = float) -> OptimalControlOptions:
    """Read the options of an optimal control from a config section, parsing the bound with `number`.

    >>> str(optimum_options_from_config({"points": 8}))
    'optimal with 8 points'
    >>> str(optimum_options_from_config({"at_most": 3, "objective": {"last": [1, 3]}}))
    'optimal up to 3 for the last of tasks 1 3'
    """
    names = "segments", "points", "at_most", "objective"
    if not isinstance(section, dict) or section.keys() - set(names):
        raise ValueError(f"optimal takes the keys {', '.join(names[:-1])} and {names[-1]}, not {quote_value(section)}")
    points = _check_integer("points", section.get("points", 1), MAX_POINTS_PER_SEGMENT)
    segments = _check_integer(
        "segments", section.get("segments", DEFAULT_CONTROL_SEGMENTS if points == 1 else 1), MAX_CONTROL_SEGMENTS
    )
    at_most = section.get("at_most")
    objective = _objective_from_config(section["objective"]) if "objective" in section else Objective()
    return OptimalControlOptions(segments, points, None if at_most is None else number(at_most), objective)


def optimum_options_to_config(optimum: OptimalControlOptions) -> Any:
    """Convert the options of an optimal control to their config form.

    >>> optimum_options_to_config(OptimalControlOptions())
    'optimal'
    >>> optimum_options_to_config(OptimalControlOptions(objective=Objective("integral")))
    {'optimal': {'objective': 'integral'}}
    """
    further: dict[str, Any] = {}
    if optimum.segments != (DEFAULT_CONTROL_SEGMENTS if optimum.points == 1 else 1):
        further["segments"] = optimum.segments
    further |= {"points": optimum.points} if optimum.points > 1 else {}
    further |= {"at_most": optimum.at_most} if optimum.at_most is not None else {}
    if optimum.objective != Objective():
        over, weights = optimum.objective.over, optimum.objective.weights
        further["objective"] = over if weights is None else {over: [*weights]}
    return {OPTIMAL_KEYWORD: further} if further else OPTIMAL_KEYWORD


def make_optimum_schema(number: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of the section of an optimal control, with the schema `number` for its bound."""
    weights = {"type": "array", "items": {"type": "number", "minimum": 0}, "minItems": 1}
    weighted = {"type": "object", "properties": dict.fromkeys(OBJECTIVE_NAMES, weights), "additionalProperties": False}
    keys = {
        "segments": {"type": "integer", "minimum": 1, "maximum": MAX_CONTROL_SEGMENTS},
        "points": {"type": "integer", "minimum": 1, "maximum": MAX_POINTS_PER_SEGMENT},
        "at_most": number,
        "objective": {"anyOf": [{"enum": [*OBJECTIVE_NAMES]}, weighted | {"minProperties": 1, "maxProperties": 1}]},
    }
    return {"type": "object", "properties": keys, "additionalProperties": False}


def _check_integer(name: str, value: Any, max_value: int) -> int:
    """Return an integer between 1 and a maximum unchanged, else raise `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= max_value:
        raise ValueError(f"{name} must be an integer from 1 to {max_value}, not {quote_value(value)}")
    return value


def _objective_from_config(form: Any) -> Objective:
    """Make the objective of an optimal control from its config form."""
    if isinstance(form, str) and form in OBJECTIVE_NAMES:
        return Objective(form)
    if isinstance(form, dict) and len(form) == 1 and next(iter(form)) in OBJECTIVE_NAMES:
        [(over, weights)] = form.items()
        if isinstance(weights, list | tuple) and all(map(_is_task_weight, weights)) and sum(weights) > 0:
            return Objective(over, tuple(map(float, weights)))
        raise ValueError(
            f"the objective's weights must be a list of numbers, one for each task, not {quote_value(weights)}"
        )
    raise ValueError(f"an objective must be last or integral, alone or as {{last: [...]}}, not {quote_value(form)}")


def _is_task_weight(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < np.inf


class PiecewisePolynomial(NamedTuple):
    """A control as JAX traces it: starts and widths (n,) of the segments, and the values (n, p) on them.

    A control is also a schedule of the learning rate, like the classes in `LEARNING_RATE_SCHEDULES`.
    """

    starts: Array
    widths: Array
    values: Array

    def value_at(self, t: Array) -> Array:
        """Return the control at times t (...), on the later segment if t is an edge."""
        xp = get_array_module(t)
        segment = xp.clip(xp.searchsorted(self.starts, t, side="right") - 1, 0, len(self.starts) - 1)
        if self.values.shape[1] == 1:
            return self.values[segment, 0]
        return (
            interpolation_weights((t - self.starts[segment]) / self.widths[segment], self.values.shape[1])
            * self.values[segment]
        ).sum(-1)

    def rate(self, eta: Array, t: Array) -> Array:
        """Return the learning rate at time t, ignoring the constant rate eta."""
        return self.value_at(t)


@dataclass(frozen=True)
class TimeSegments:
    """Adjacent segments of time: their increasing edges, and the number of values on each segment.

    >>> TimeSegments((0.0, 10.0, 20.0)).value_times
    array([ 5., 15.])
    """

    edges: tuple[float, ...]
    points: int = 1

    @property
    def num_segments(self) -> int:
        """The number of segments."""
        return len(self.edges) - 1

    @property
    def num_values(self) -> int:
        """The number of values on all segments."""
        return self.num_segments * self.points

    @property
    def value_times(self) -> np.ndarray:
        """The times (size,) of the values: Chebyshev points, or the midpoint of each segment for constants."""
        start, width = np.asarray(self.edges[:-1]), np.diff(self.edges)
        return (start[:, None] + width[:, None] * chebyshev_nodes(self.points)).reshape(-1)


@dataclass(frozen=True)
class ControlFunction:
    """A function of time, given by its values on successive segments, with optional optimisation settings.

    >>> control = ControlFunction(TimeSegments((0.0, 50.0, np.inf)), (1.0, 0.1))
    >>> str(control), control.value_at(np.array([0.0, 49.0, 50.0])).tolist()
    ('1, from t = 50 on 0.1', [1.0, 1.0, 0.1])
    """

    segments: TimeSegments
    values: tuple[float, ...]
    optimum_options: OptimalControlOptions | None = None

    def __str__(self) -> str:
        """Return the label of the control on a dataset axis."""
        if self.optimum_options:
            return str(self.optimum_options)
        later = zip(self.edges[1:], self.values[1:], strict=False)
        return ", ".join([f"{self.values[0]:g}", *(f"from t = {t:g} on {value:g}" for t, value in later)])

    @property
    def edges(self) -> tuple[float, ...]:
        """The start times of the segments."""
        return self.segments.edges[:-1]

    @property
    def polynomials(self) -> PiecewisePolynomial:
        """The control as arrays that JAX can trace."""
        edges = np.asarray(self.segments.edges)
        values = np.asarray(self.values, float).reshape(self.segments.num_segments, self.segments.points)
        return PiecewisePolynomial(edges[:-1], np.diff(edges), values)

    def value_at(self, t: np.ndarray) -> np.ndarray:
        """Return the control at times t (...)."""
        return np.asarray(self.polynomials.value_at(np.asarray(t, float)))

    def segment_from(self, t: float) -> float | ControlFunction:
        """Return the control on the segment that contains t, with time counted from t.

        A constant is returned as a number.
        """
        starts, widths, values = self.polynomials
        segment = int(np.searchsorted(starts, t, side="right")) - 1
        if self.segments.points == 1:
            return float(values[segment, 0])
        assert t == starts[segment]  # smooth segments are only integrated from their start
        return ControlFunction(
            TimeSegments((0.0, float(widths[segment])), self.segments.points), tuple(values[segment].tolist())
        )


def chebyshev_nodes(points: int) -> np.ndarray:
    """Return the Chebyshev points (points,) of the segment [0, 1]."""
    return np.sin(np.pi * np.arange(points) / (2 * (points - 1))) ** 2 if points > 1 else np.array([0.5])


def interpolation_weights(x: Array, points: int) -> Array:
    """Return weights (..., points) that interpolate a control's values on a segment to times x (...) in [0, 1].

    The barycentric formula at Chebyshev points has weights of alternating sign, halved at both ends.

    >>> interpolation_weights(np.array([0.0, 0.25]), 3).round(3).tolist()
    [[1.0, 0.0, 0.0], [0.375, 0.75, -0.125]]
    """
    xp, sign = get_array_module(x), (-1.0) ** np.arange(points)
    if points > 1:
        sign[[0, -1]] /= 2
    distance = x[..., None] - chebyshev_nodes(points)
    hit = distance == 0
    weight = xp.where(hit.any(-1, keepdims=True), hit, sign / xp.where(hit, 1.0, distance))
    return weight / weight.sum(-1, keepdims=True)


def is_time_dependent(value: Any) -> bool:
    """Return True if a key's value varies in time, as a given function or an optimum."""
    return isinstance(value, ControlFunction | OptimalControlOptions)


def get_control_values(value: Any) -> tuple[Any, ...]:
    """Return the numbers that a key's value contains, none for an unknown optimum.

    >>> (
    ...     get_control_values(2.0), get_control_values(OptimalControlOptions()),
    ...     get_control_values(control_from_config({"at": [0, 5], "is": [1, 2]}))
    ... )
    ((2.0,), (), (1.0, 2.0))
    """
    if isinstance(value, ControlFunction):
        return value.values
    return () if isinstance(value, OptimalControlOptions) else (value,)


def get_initial_value(value: Any, default: Any = 1.0) -> Any:
    """Return the value of a key at t = 0, or `default` if it is an optimum that is not yet known."""
    return next(iter(get_control_values(value)), default)


def collect_segment_starts(controls: Iterable[ControlFunction | OptimalControlOptions]) -> tuple[float, ...]:
    """Return the sorted start times of the segments of all controls, except unknown optima."""
    return tuple(
        sorted({edge for control in controls if isinstance(control, ControlFunction) for edge in control.edges})
    )


def control_from_config(form: Any, number: Callable[[Any], float] = float) -> ControlFunction | OptimalControlOptions:
    """Make a control from its config form, parsing each value with `number`.

    >>> str(control_from_config({"optimal": {"segments": 40}}))
    'optimal in 40 segments'
    """
    if isinstance(form, ControlFunction | OptimalControlOptions):
        return form
    if form == OPTIMAL_KEYWORD:
        return OptimalControlOptions()
    if isinstance(form, dict) and set(form) == {"at", "is"}:
        return _make_step_control(form["at"], form["is"], number)
    if isinstance(form, dict) and [*form] == [OPTIMAL_KEYWORD]:
        return optimum_options_from_config(form[OPTIMAL_KEYWORD], number)
    raise ValueError(
        "a function of time must be {at: [0, ...], is: [...]}, optimal or "
        f"{{optimal: {{segments: {DEFAULT_CONTROL_SEGMENTS}}}}}, not {quote_value(form)}"
    )


def _make_step_control(start_times: Any, values: Any, number: Callable[[Any], float]) -> ControlFunction:
    """Make a piecewise constant control from start times and values."""
    if not (
        isinstance(start_times, list | tuple)
        and isinstance(values, list | tuple)
        and len(start_times) == len(values) > 0
    ):
        raise ValueError("`at` and `is` must be two lists of equal length: times, and the value after each time")
    times = [*map(_parse_time, start_times)]
    if times[0] != 0 or any(np.diff(times) <= 0):
        raise ValueError("`at` must be a list of increasing times that begins with 0")
    return ControlFunction(TimeSegments((*times, np.inf)), tuple(map(number, values)))


def _parse_time(value: Any) -> float:
    """Return a time as a float, or raise `ValueError` if the value is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise ValueError(f"`at` must be a list of times, not {quote_value(value)}")
    return float(value)


def control_to_config(value: Any) -> Any:
    """Convert a key's value, a control or a number, to its config form.

    >>> (
    ...     control_to_config(control_from_config({"at": [0, 5], "is": [1, 2]})),
    ...     control_to_config(OptimalControlOptions()), control_to_config(2.0)
    ... )
    ({'at': [0.0, 5.0], 'is': [1.0, 2.0]}, 'optimal', 2.0)
    """
    if isinstance(value, ControlFunction):
        return (
            control_to_config(value.optimum_options)
            if value.optimum_options
            else {"at": [*value.edges], "is": [*value.values]}
        )
    return optimum_options_to_config(value) if isinstance(value, OptimalControlOptions) else value


class HyperbolicSchedule(NamedTuple):
    r"""The schedule :math:`\eta/(1 + t/t_0)`, which averages out label noise at late times."""

    t0: Array

    def rate(self, eta: Array, t: Array) -> Array:
        """Return the learning rate at time t for the initial rate eta."""
        return eta / (1 + t / self.t0)


class ExponentialSchedule(NamedTuple):
    r"""The schedule :math:`\eta\,e^{-t/t_0}`, which ends learning after a few :math:`t_0`."""

    t0: Array

    def rate(self, eta: Array, t: Array) -> Array:
        """Return the learning rate at time t for the initial rate eta."""
        xp = get_array_module(t)
        return eta * xp.exp(-xp.minimum(t / self.t0, MAX_DECAY_EXPONENT))


# also used if only other quantities change, to share the compiled program
CONSTANT_SCHEDULE = HyperbolicSchedule(np.float64(np.inf))
LEARNING_RATE_SCHEDULES: dict[str, type[Any]] = {
    "hyperbolic": HyperbolicSchedule,
    "exponential": ExponentialSchedule,
}


class TimeDependence(NamedTuple):
    """Quantities that change during learning, with numbers that JAX can trace.

    They are the teacher's drift, the weight decay, the schedule of the learning rate, for several tasks their
    probabilities (`statmech.parameters.task_protocols.ProtocolPieces`), and the noise and the dropout of networks
    (`PiecewisePolynomial`) if they change. Noise is a flip rate for perceptrons and a standard deviation for networks.
    """

    drift: Array
    decay: Array
    schedule: Any
    tasks: Any = None
    noise: Any = None
    dropout: Any = None
