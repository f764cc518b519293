r"""Protocols: orders of several tasks for a student.

At time t the next example belongs to task k with probability :math:`p_k(t)`, a piecewise constant function. Its
`Pieces` are the start times and the probabilities of the pieces.

**To add a protocol** write one class with `pieces` and add one line to `PROTOCOLS`. In a config it is written by its
name or, with a parameter, as a mapping: `blocked`, `{replay: 0.1}`. The fraction of replay may change with time,
and `optimal` is the fraction of the first task with the lowest final error (`statmech.controls`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from statmech.controls import Control, control_from, numbers_in, written_control
from statmech.errors import not_known, quoted
from statmech.numerics.gaussian import Array, namespace
from statmech.optima import OPTIMAL, Optimal
from statmech.parameters import shown

TWO = 2  # one switch separates two tasks


class Pieces(NamedTuple):
    """The pieces of a protocol: start times (n,), beginning with 0, and probabilities of the tasks (n, tasks)."""

    starts: Array
    shares: Array

    def at(self, t: Array) -> Array:
        """Return the probabilities of the tasks (..., tasks) at times t.

        >>> Blocked().pieces(2, 50.0).at(np.array([49.0, 50.0])).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        return self.shares[namespace(t).searchsorted(self.starts, t, side="right") - 1]


@dataclass(frozen=True)
class Protocol(ABC):
    """An order of the tasks during learning."""

    @abstractmethod
    def pieces(self, tasks: int, switch: float | None) -> Pieces:
        """Return the pieces of the protocol for a number of tasks and a value of the key `switch`."""

    def problem(self, tasks: int, switch: float | None, last: float) -> str:
        """Return the reason why the tasks cannot be learnt in this order up to an end time, or an empty string."""
        return ""

    def __str__(self) -> str:
        """Return the label of the protocol on the axis of a dataset."""
        values = [part for value in vars(self).values() for part in (value if isinstance(value, tuple) else (value,))]
        return " ".join([_name_of(self), *map(shown, values)])


@dataclass(frozen=True)
class Interleaved(Protocol):
    """All tasks at any time, with equal probabilities."""

    def pieces(self, tasks: int, switch: float | None) -> Pieces:
        return Pieces(np.zeros(1), np.full((1, tasks), 1 / tasks))


@dataclass(frozen=True)
class Replay(Protocol):
    """The first task until the switch, then the second, and the first again in a fraction of examples."""

    share: float | Control

    def pieces(self, tasks: int, switch: float | None) -> Pieces:
        assert switch is not None  # `problem` reports a missing switch
        if not isinstance(self.share, Control):
            return _of_first(np.array([0.0, switch]), np.array([1.0, self.share]))
        starts = np.array([0.0, switch, *(t for t in self.share.edges if t > switch)])
        return _of_first(starts, np.append(1.0, self.share.at(starts[1:])))

    def problem(self, tasks: int, switch: float | None, last: float) -> str:
        for fraction in numbers_in(self.share):
            if not 0 <= fraction <= 1:
                return f"the fraction of replay must lie between 0 and 1, not be {fraction:g}"
        if isinstance(self.share, Control) and self.share.edges[-1] >= last:
            return f"replay changes at {self.share.edges[-1]:g}, not before the last time, t = {last:g}"
        if tasks != TWO:
            return _only_two(self, tasks)
        if switch is None:
            return f"{_name_of(self)} needs the key `switch`, the time at which the second task begins"
        if not 0 < switch < last:
            return f"switch = {switch:g} must lie between 0 and the last time, t = {last:g}"
        return ""


@dataclass(frozen=True)
class Blocked(Replay):
    """The first task until the switch, then only the second. A single task does not need a switch."""

    share: float = 0.0

    def pieces(self, tasks: int, switch: float | None) -> Pieces:
        return Interleaved().pieces(tasks, switch) if tasks == 1 else super().pieces(tasks, switch)

    def problem(self, tasks: int, switch: float | None, last: float) -> str:
        return "" if tasks == 1 else super().problem(tasks, switch, last)

    def __str__(self) -> str:
        return _name_of(self)


@dataclass(frozen=True)
class Blocks(Protocol):
    """Blocks of one task each, with given start times. The order of the tasks is cyclic."""

    starts: tuple[float, ...]

    def pieces(self, tasks: int, switch: float | None) -> Pieces:
        return Pieces(np.array(self.starts), np.eye(tasks)[np.arange(len(self.starts)) % tasks])

    def problem(self, tasks: int, switch: float | None, last: float) -> str:
        if self.starts[0] != 0 or any(np.diff(self.starts) <= 0):
            return "blocks is a list of the times at which blocks begin: 0 and later ones in increasing order"
        if len(self.starts) < tasks:
            return f"blocks names the start of {len(self.starts)} blocks, but there are {tasks} tasks"
        if self.starts[-1] >= last:
            return f"the last block begins at {self.starts[-1]:g}, not before the last time, t = {last:g}"
        return ""


@dataclass(frozen=True)
class BestShare(Protocol):
    """Two tasks, mixed for the lowest final error. If there is a switch, only the first task is learnt before it."""

    wish: Optimal = field(default_factory=Optimal)
    share: Control | None = None  # fraction of the first task; None: unknown

    def pieces(self, tasks: int, switch: float | None) -> Pieces:
        if self.share is not None:
            return _of_first(np.array(self.share.edges), np.array(self.share.values))
        return Interleaved().pieces(tasks, switch) if switch is None else Blocked().pieces(tasks, switch)

    def problem(self, tasks: int, switch: float | None, last: float) -> str:
        if tasks != TWO:
            return _only_two(self, tasks)
        if self.wish.points > 1:
            return "the fraction of a task is constant on each segment: remove `points`"
        if self.wish.at_most is not None and not 0 < self.wish.at_most <= 1:
            return f"the fraction of a task is at most 1, not {self.wish.at_most:g}: at_most must lie between 0 and 1"
        if switch is not None and not 0 < switch < last:
            return f"switch = {switch:g} must lie between 0 and the last time, t = {last:g}"
        return ""

    def __str__(self) -> str:
        return str(self.wish)


def _of_first(starts: np.ndarray, shares: np.ndarray) -> Pieces:
    """Return the pieces of two tasks from the fractions (n,) of the first task."""
    return Pieces(starts, np.column_stack([shares, 1.0 - shares]))


def _only_two(protocol: Protocol, tasks: int) -> str:
    """Return the message for a protocol that needs two tasks."""
    return f"{_name_of(protocol)} has two tasks, here {tasks}: use blocks or interleaved"


PROTOCOLS: dict[str, type[Any]] = {
    "blocked": Blocked,
    "interleaved": Interleaved,
    "replay": Replay,
    "blocks": Blocks,
    OPTIMAL: BestShare,
}
WORDS = ("blocked", "interleaved", OPTIMAL)
FORMS = "blocked, interleaved, {replay: fraction}, {blocks: [0, ...]} or optimal"


def protocol_from(given: Any) -> Protocol:
    """Return a protocol from its form in a config: a name, or a name with its parameter.

    >>> str(protocol_from("blocked")), str(protocol_from({"blocks": [0, 50, 75]}))
    ('blocked', 'blocks 0 50 75')
    """
    if isinstance(given, Protocol):
        return given
    if isinstance(given, str) and given in WORDS:
        protocol: Protocol = PROTOCOLS[given]()
        return protocol
    if isinstance(given, dict) and len(given) == 1:
        [(name, value)] = given.items()
        if name == "replay" and _number(value):
            return Replay(float(value))
        if name == "replay" and isinstance(value, dict) and "at" in value:
            return Replay(_given(control_from(value)))
        if name == OPTIMAL and isinstance(control := control_from(given), Optimal):
            return BestShare(control)
        if name == "blocks" and isinstance(value, list | tuple) and value and all(map(_number, value)):
            return Blocks(tuple(map(float, value)))
    if isinstance(given, str) and given not in PROTOCOLS:
        raise ValueError(not_known(given, "a protocol", PROTOCOLS))
    raise ValueError(f"a protocol is {FORMS}, not {quoted(given)}")


def _given(control: Control | Optimal) -> Control:
    """Return a control whose form in a config has the key `at`."""
    assert isinstance(control, Control)
    return control


def written_protocol(protocol: Protocol) -> Any:
    """Return a protocol in the form of a config.

    >>> written_protocol(Replay(0.1)), written_protocol(Interleaved())
    ({'replay': 0.1}, 'interleaved')
    """
    name = _name_of(protocol)
    if isinstance(protocol, BestShare):
        return written_control(protocol.wish)
    if name in WORDS:
        return name
    [value] = vars(protocol).values()
    return {name: list(value) if isinstance(value, tuple) else written_control(value)}


def _name_of(protocol: Protocol) -> str:
    """Return the name of a protocol in configs."""
    return next(name for name, kind in PROTOCOLS.items() if type(protocol) is kind)


def _number(value: Any) -> bool:
    """Return True for a finite number."""
    return isinstance(value, Real) and not isinstance(value, bool) and bool(np.isfinite(float(value)))
