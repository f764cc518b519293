r"""Controls: keys of a config as functions of time, given as steps or to be optimised.

On each segment :math:`[a, b]` between two edges a control is the polynomial through its p values at the Chebyshev
points

.. math:: t_j = a + (b-a)\sin^2\frac{\pi j}{2(p-1)}, \qquad j = 0, \dots, p-1,

or a constant for p = 1. Constants on many segments can jump, but they approach a smooth optimum as slowly as a
staircase. One segment with many points converges geometrically to a smooth optimum. Edges belong at the jumps of the
problem itself.

In a config a key that may change with time is a number, `{at: [0, 50], is: [1, 0.1]}`, or `optimal`: the function of
time with the lowest generalization error at the last time, or another objective (`statmech.optima`,
`theory.control`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from statmech.errors import quoted
from statmech.numerics.gaussian import Array, namespace
from statmech.optima import OPTIMAL, SEGMENTS, Optimal, optimal_from, written_optimal


class Polynomials(NamedTuple):
    """A control in the form that JAX traces: starts and widths (n,) of segments, and values (n, p) on each segment.

    A control is also a schedule of the learning rate (`statmech.schedules`).
    """

    starts: Array
    widths: Array
    values: Array

    def at(self, t: Array) -> Array:
        """Return the control at times t (...). At an edge, the later segment counts."""
        xp = namespace(t)
        segment = xp.clip(xp.searchsorted(self.starts, t, side="right") - 1, 0, len(self.starts) - 1)
        if self.values.shape[1] == 1:
            return self.values[segment, 0]
        return (
            basis((t - self.starts[segment]) / self.widths[segment], self.values.shape[1]) * self.values[segment]
        ).sum(-1)

    def rate(self, eta: Array, t: Array) -> Array:
        """Return the learning rate at time t. The constant rate eta is ignored."""
        return self.at(t)


@dataclass(frozen=True)
class Segments:
    """The increasing edges of segments of time, and the number of values on each segment.

    >>> Segments((0.0, 10.0, 20.0)).times
    array([ 5., 15.])
    """

    edges: tuple[float, ...]
    points: int = 1

    @property
    def number(self) -> int:
        """The number of segments."""
        return len(self.edges) - 1

    @property
    def size(self) -> int:
        """The number of values."""
        return self.number * self.points

    @property
    def times(self) -> np.ndarray:
        """The times (size,) of the values, for constants the middle of each segment."""
        start, width = np.asarray(self.edges[:-1]), np.diff(self.edges)
        return (start[:, None] + width[:, None] * nodes(self.points)).reshape(-1)


@dataclass(frozen=True)
class Control:
    """A function of time by its values on segments, segment by segment, and the options of its optimisation.

    >>> control = Control(Segments((0.0, 50.0, np.inf)), (1.0, 0.1))
    >>> str(control), control.at(np.array([0.0, 49.0, 50.0])).tolist()
    ('1, from t = 50 on 0.1', [1.0, 1.0, 0.1])
    """

    segments: Segments
    values: tuple[float, ...]
    wish: Optimal | None = None

    def __str__(self) -> str:
        """Return the label of the control on the axis of a dataset."""
        if self.wish:
            return str(self.wish)
        later = zip(self.edges[1:], self.values[1:], strict=False)
        return ", ".join([f"{self.values[0]:g}", *(f"from t = {t:g} on {value:g}" for t, value in later)])

    @property
    def edges(self) -> tuple[float, ...]:
        """The start times of the segments."""
        return self.segments.edges[:-1]

    @property
    def polynomials(self) -> Polynomials:
        """The control in the form that JAX traces."""
        edges = np.asarray(self.segments.edges)
        values = np.asarray(self.values, float).reshape(self.segments.number, self.segments.points)
        return Polynomials(edges[:-1], np.diff(edges), values)

    def at(self, t: np.ndarray) -> np.ndarray:
        """Return the control at times t (...)."""
        return np.asarray(self.polynomials.at(np.asarray(t, float)))

    def after(self, t: float) -> float | Control:
        """Return the control on the segment that contains t, as a function of the time after t.

        A constant is returned as a number.
        """
        starts, widths, values = self.polynomials
        segment = int(np.searchsorted(starts, t, side="right")) - 1
        if self.segments.points == 1:
            return float(values[segment, 0])
        assert t == starts[segment]  # smooth segments are integrated from their start
        return Control(Segments((0.0, float(widths[segment])), self.segments.points), tuple(values[segment].tolist()))


def nodes(points: int) -> np.ndarray:
    """Return the times (points,) of the values of a segment [0, 1]: Chebyshev points."""
    return np.sin(np.pi * np.arange(points) / (2 * (points - 1))) ** 2 if points > 1 else np.array([0.5])


def basis(x: Array, points: int) -> Array:
    """Return the weights (..., points) that interpolate a segment's values at times x (...) in [0, 1].

    The barycentric formula at Chebyshev points has weights of alternating sign, halved at both ends.

    >>> basis(np.array([0.0, 0.25]), 3).round(3).tolist()
    [[1.0, 0.0, 0.0], [0.375, 0.75, -0.125]]
    """
    xp, sign = namespace(x), (-1.0) ** np.arange(points)
    if points > 1:
        sign[[0, -1]] /= 2
    distance = x[..., None] - nodes(points)
    hit = distance == 0
    weight = xp.where(hit.any(-1, keepdims=True), hit, sign / xp.where(hit, 1.0, distance))
    return weight / weight.sum(-1, keepdims=True)


def is_over_time(value: Any) -> bool:
    """Return True if a key's value is a function of time, either given or to be optimised."""
    return isinstance(value, Control | Optimal)


def numbers_in(value: Any) -> tuple[Any, ...]:
    """Return the numbers in a key's value: one for a number, one per step for a control, no number for an optimum.

    >>> numbers_in(2.0), numbers_in(Optimal()), numbers_in(control_from({"at": [0, 5], "is": [1, 2]}))
    ((2.0,), (), (1.0, 2.0))
    """
    if isinstance(value, Control):
        return value.values
    return () if isinstance(value, Optimal) else (value,)


def at_start(value: Any, otherwise: Any = 1.0) -> Any:
    """Return a key's value at t = 0, or `otherwise` for an unknown optimum."""
    return next(iter(numbers_in(value)), otherwise)


def edges_of(controls: Iterable[Control | Optimal]) -> tuple[float, ...]:
    """Return the start times of all segments of all controls. Unknown optima do not contribute."""
    return tuple(sorted({edge for control in controls if isinstance(control, Control) for edge in control.edges}))


def control_from(given: Any, number: Callable[[Any], float] = float) -> Control | Optimal:
    """Return a control from its form in a config. The function `number` parses each value.

    >>> str(control_from({"optimal": {"segments": 40}}))
    'optimal in 40 segments'
    """
    if isinstance(given, Control | Optimal):
        return given
    if given == OPTIMAL:
        return Optimal()
    if isinstance(given, dict) and set(given) == {"at", "is"}:
        return _steps(given["at"], given["is"], number)
    if isinstance(given, dict) and [*given] == [OPTIMAL]:
        return optimal_from(given[OPTIMAL], number)
    raise ValueError(
        f"a function of time is {{at: [0, ...], is: [...]}}, optimal or {{optimal: {{segments: {SEGMENTS}}}}}, "
        f"not {quoted(given)}"
    )


def _steps(at: Any, values: Any, number: Callable[[Any], float]) -> Control:
    """Return a control of steps that start at given times."""
    if not (isinstance(at, list | tuple) and isinstance(values, list | tuple) and len(at) == len(values) > 0):
        raise ValueError("`at` and `is` must be two lists of equal length: times, and the value after each time")
    times = [*map(_time, at)]
    if times[0] != 0 or any(np.diff(times) <= 0):
        raise ValueError("`at` is a list of times: 0 and later ones in increasing order")
    return Control(Segments((*times, np.inf)), tuple(map(number, values)))


def _time(given: Any) -> float:
    """Return a time as a float, or raise `ValueError` if the value is not a finite number."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not np.isfinite(given):
        raise ValueError(f"`at` is a list of times, not {quoted(given)}")
    return float(given)


def written_control(value: Any) -> Any:
    """Return a key's value, a control or a number, in the form of a config.

    >>> written_control(control_from({"at": [0, 5], "is": [1, 2]})), written_control(Optimal()), written_control(2.0)
    ({'at': [0.0, 5.0], 'is': [1.0, 2.0]}, 'optimal', 2.0)
    """
    if isinstance(value, Control):
        return written_control(value.wish) if value.wish else {"at": [*value.edges], "is": [*value.values]}
    return written_optimal(value) if isinstance(value, Optimal) else value
