r"""Protocols: the order of the tasks that a student learns.

At time t the next example belongs to task k with probability :math:`p_k(t)`, a piecewise constant function. Its
`ProtocolPieces` are the start times and the probabilities of the pieces.

**To add a protocol** write one class with `pieces` and add one line to `TASK_PROTOCOLS`. In a config it is written by
its name or, with a parameter, as a mapping: `blocked`, `{replay: 0.1}`. The fraction of replay may change with time,
and `optimal` is the fraction of the first task with the lowest final error
(`statmech.parameters.schedules_and_controls`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from statmech.errors import format_unknown_name, quote_value
from statmech.numerics.gaussian import Array, get_array_module
from statmech.parameters.parameter_fields import format_parameter_value
from statmech.parameters.schedules_and_controls import (
    OPTIMAL_KEYWORD,
    ControlFunction,
    OptimalControlOptions,
    control_from_config,
    control_to_config,
    get_control_values,
)

NUM_SWITCHED_TASKS = 2  # one switch separates two tasks
PARAMETERLESS_PROTOCOLS = ("blocked", "interleaved", OPTIMAL_KEYWORD)
PROTOCOL_FORMS_TEXT = "blocked, interleaved, {replay: fraction}, {blocks: [0, ...]} or optimal"


class ProtocolPieces(NamedTuple):
    """A protocol in pieces: start times (n,) beginning with 0, and task probabilities (n, tasks)."""

    starts: Array
    shares: Array

    def at(self, t: Array) -> Array:
        """Return the probabilities (..., tasks) of the tasks at times t.

        >>> BlockedProtocol().pieces(2, 50.0).at(np.array([49.0, 50.0])).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        return self.shares[get_array_module(t).searchsorted(self.starts, t, side="right") - 1]


@dataclass(frozen=True)
class TaskProtocol(ABC):
    """The order of the tasks during learning."""

    @abstractmethod
    def pieces(self, tasks: int, switch: float | None) -> ProtocolPieces:
        """Return the pieces of the protocol for this number of tasks and switch time."""

    def problem(self, tasks: int, switch: float | None, end_time: float) -> str:
        """Return the reason why the protocol does not suit the tasks and times, or an empty string."""
        return ""

    def __str__(self) -> str:
        """Return the label of the protocol on a dataset axis."""
        values = [part for value in vars(self).values() for part in (value if isinstance(value, tuple) else (value,))]
        return " ".join([_get_protocol_name(self), *map(format_parameter_value, values)])


@dataclass(frozen=True)
class InterleavedProtocol(TaskProtocol):
    """All tasks at all times, with equal probabilities."""

    def pieces(self, tasks: int, switch: float | None) -> ProtocolPieces:
        return ProtocolPieces(np.zeros(1), np.full((1, tasks), 1 / tasks))


@dataclass(frozen=True)
class ReplayProtocol(TaskProtocol):
    """The first task until the switch, then the second with a fraction of replayed first-task examples."""

    share: float | ControlFunction

    def pieces(self, tasks: int, switch: float | None) -> ProtocolPieces:
        assert switch is not None  # `problem` reports a missing switch
        if not isinstance(self.share, ControlFunction):
            return _pieces_from_fractions(np.array([0.0, switch]), np.array([1.0, self.share]))
        starts = np.array([0.0, switch, *(t for t in self.share.edges if t > switch)])
        return _pieces_from_fractions(starts, np.append(1.0, self.share.value_at(starts[1:])))

    def problem(self, tasks: int, switch: float | None, end_time: float) -> str:
        for fraction in get_control_values(self.share):
            if not 0 <= fraction <= 1:
                return f"the fraction of replay must lie between 0 and 1, not be {fraction:g}"
        if isinstance(self.share, ControlFunction) and self.share.edges[-1] >= end_time:
            return f"replay changes at {self.share.edges[-1]:g}, not before the last time, t = {end_time:g}"
        if tasks != NUM_SWITCHED_TASKS:
            return _format_task_count_problem(self, tasks)
        if switch is None:
            return f"{_get_protocol_name(self)} needs the key `switch`, the time at which the second task begins"
        if not 0 < switch < end_time:
            return f"switch = {switch:g} must lie between 0 and the last time, t = {end_time:g}"
        return ""


@dataclass(frozen=True)
class BlockedProtocol(ReplayProtocol):
    """The first task until the switch, then only the second. A single task does not need a switch."""

    share: float = 0.0

    def pieces(self, tasks: int, switch: float | None) -> ProtocolPieces:
        return InterleavedProtocol().pieces(tasks, switch) if tasks == 1 else super().pieces(tasks, switch)

    def problem(self, tasks: int, switch: float | None, end_time: float) -> str:
        return "" if tasks == 1 else super().problem(tasks, switch, end_time)

    def __str__(self) -> str:
        return _get_protocol_name(self)


@dataclass(frozen=True)
class CyclicBlocksProtocol(TaskProtocol):
    """Blocks of a single task each, with given start times and the tasks in cyclic order."""

    starts: tuple[float, ...]

    def pieces(self, tasks: int, switch: float | None) -> ProtocolPieces:
        return ProtocolPieces(np.array(self.starts), np.eye(tasks)[np.arange(len(self.starts)) % tasks])

    def problem(self, tasks: int, switch: float | None, end_time: float) -> str:
        if self.starts[0] != 0 or any(np.diff(self.starts) <= 0):
            return "blocks is a list of the times at which blocks begin: 0 and later ones in increasing order"
        if len(self.starts) < tasks:
            return f"blocks names the start of {len(self.starts)} blocks, but there are {tasks} tasks"
        if self.starts[-1] >= end_time:
            return f"the last block begins at {self.starts[-1]:g}, not before the last time, t = {end_time:g}"
        return ""


@dataclass(frozen=True)
class OptimalProtocol(TaskProtocol):
    """Two tasks, mixed for the lowest final error, but only the first task before a switch."""

    optimum_options: OptimalControlOptions = field(default_factory=OptimalControlOptions)
    share: ControlFunction | None = None  # fraction of the first task, None before the optimisation

    def pieces(self, tasks: int, switch: float | None) -> ProtocolPieces:
        if self.share is not None:
            return _pieces_from_fractions(np.array(self.share.edges), np.array(self.share.values))
        return (
            InterleavedProtocol().pieces(tasks, switch) if switch is None else BlockedProtocol().pieces(tasks, switch)
        )

    def problem(self, tasks: int, switch: float | None, end_time: float) -> str:
        if tasks != NUM_SWITCHED_TASKS:
            return _format_task_count_problem(self, tasks)
        if self.optimum_options.points > 1:
            return "the fraction of a task is constant on each segment: remove `points`"
        if self.optimum_options.at_most is not None and not 0 < self.optimum_options.at_most <= 1:
            at_most = f"{self.optimum_options.at_most:g}"
            return f"the fraction of a task is at most 1, not {at_most}: at_most must lie between 0 and 1"
        if switch is not None and not 0 < switch < end_time:
            return f"switch = {switch:g} must lie between 0 and the last time, t = {end_time:g}"
        return ""

    def __str__(self) -> str:
        return str(self.optimum_options)


def _pieces_from_fractions(starts: np.ndarray, first_fractions: np.ndarray) -> ProtocolPieces:
    """Make the pieces of a two-task protocol from the fractions (n,) of the first task."""
    return ProtocolPieces(starts, np.column_stack([first_fractions, 1.0 - first_fractions]))


def _format_task_count_problem(protocol: TaskProtocol, tasks: int) -> str:
    """Return the message for a protocol that requires exactly two tasks."""
    return f"{_get_protocol_name(protocol)} requires two tasks, not {tasks}: use blocks or interleaved"


TASK_PROTOCOLS: dict[str, type[Any]] = {
    "blocked": BlockedProtocol,
    "interleaved": InterleavedProtocol,
    "replay": ReplayProtocol,
    "blocks": CyclicBlocksProtocol,
    OPTIMAL_KEYWORD: OptimalProtocol,
}


def protocol_from_config(form: Any) -> TaskProtocol:
    """Make a protocol of several tasks from its config form: a name, or a name with its parameter.

    >>> str(protocol_from_config("blocked")), str(protocol_from_config({"blocks": [0, 50, 75]}))
    ('blocked', 'blocks 0 50 75')
    """
    if isinstance(form, TaskProtocol):
        return form
    if isinstance(form, str) and form in PARAMETERLESS_PROTOCOLS:
        return TASK_PROTOCOLS[form]()
    if isinstance(form, dict) and len(form) == 1:
        [(name, value)] = form.items()
        if name == "replay" and _is_finite_number(value):
            return ReplayProtocol(float(value))
        if name == "replay" and isinstance(value, dict) and "at" in value:
            return ReplayProtocol(_require_control(control_from_config(value)))
        if name == OPTIMAL_KEYWORD and isinstance(control := control_from_config(form), OptimalControlOptions):
            return OptimalProtocol(control)
        if name == "blocks" and isinstance(value, list | tuple) and value and all(map(_is_finite_number, value)):
            return CyclicBlocksProtocol(tuple(map(float, value)))
    if isinstance(form, str) and form not in TASK_PROTOCOLS:
        raise ValueError(format_unknown_name(form, "a protocol", TASK_PROTOCOLS))
    raise ValueError(f"a protocol must be {PROTOCOL_FORMS_TEXT}, not {quote_value(form)}")


def _require_control(control: ControlFunction | OptimalControlOptions) -> ControlFunction:
    """Return a control unchanged, or fail for an optimum that is still unknown."""
    assert isinstance(control, ControlFunction)
    return control


def protocol_to_config(protocol: TaskProtocol) -> Any:
    """Convert a protocol of several tasks to its config form.

    >>> protocol_to_config(ReplayProtocol(0.1)), protocol_to_config(InterleavedProtocol())
    ({'replay': 0.1}, 'interleaved')
    """
    name = _get_protocol_name(protocol)
    if isinstance(protocol, OptimalProtocol):
        return control_to_config(protocol.optimum_options)
    if name in PARAMETERLESS_PROTOCOLS:
        return name
    [value] = vars(protocol).values()
    return {name: list(value) if isinstance(value, tuple) else control_to_config(value)}


def _get_protocol_name(protocol: TaskProtocol) -> str:
    """Return the config name of a protocol."""
    return next(name for name, kind in TASK_PROTOCOLS.items() if type(protocol) is kind)


def _is_finite_number(value: Any) -> bool:
    """Return True for a finite number."""
    return isinstance(value, Real) and not isinstance(value, bool) and bool(np.isfinite(float(value)))
