"""Units of work: what a scenario's cells and seeds are cut into, played on all cores.

A player is a module of `simulate` with `units` and `play` (see `Player`) and, if need be, `check`, `context`, `attrs`,
`remarks` and `WORKERS`. What a unit finds depends on its cells and seeds alone, never on what else is played.
"""

from __future__ import annotations

import resource
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol

import numpy as np

from simulate.execution.threads import cores, threads
from statmech.errors import ScenarioError
from statmech.scenarios.cost import estimate

AHEAD = 2  # units for each core that are begun before the first is taken


class Found(NamedTuple):
    """What a unit found of one cell: its index in the grid, which seeds, and their values (seeds, ...)."""

    where: tuple[int, ...]
    seeds: slice
    values: dict[str, np.ndarray]


class Player(Protocol):
    """How scenarios of one kind are played."""

    SOURCE: str  # of the numbers, for a dataset's attributes

    def units(self, scenario: Any, cells: Sequence[Any], seeds: range) -> Iterable[Any]:
        """The units that play these seeds of these cells; the first seed is a multiple of the kind's `together`."""

    def play(self, scenario: Any, unit: Any) -> list[Found]:
        """What a unit finds."""


PROGRAMS, RESULTS = 2**26, 2**29  # bytes that compiled programs take, and blocks while they are played and written


def check(player: Any, scenario: Any) -> None:
    """Refuse what this machine cannot play, before anything runs; raises `ScenarioError`."""
    if problems := list(scenario.data_problems()):
        raise ScenarioError(problems)
    getattr(player, "check", lambda scenario: None)(scenario)


def affordable(player: Any, scenario: Any, workers: int | None, memory: float | None) -> int | None:
    """How many units may be under way in so many bytes; raises `ScenarioError` if not even one."""
    if memory is None:
        return workers
    unit = (1 + AHEAD) * getattr(player, "memory", lambda scenario: 0.0)(scenario)
    results = PROGRAMS + min(RESULTS, 8.0 * estimate(scenario).bytes_)
    left = memory - resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - results
    if left < unit:
        told = f"{memory / 2**30:.3g} GiB are too little: libraries and results take {(memory - left) / 2**30:.2g} GiB"
        raise ScenarioError([(("memory",), f"{told}, and one unit of work {unit / 2**30:.2g} GiB")])
    return max(1, min(workers or cores(), int(left / max(unit, 1.0))))


def attrs(player: Any, scenario: Any) -> dict[str, Any]:
    """Attributes of a scenario's dataset: its source, the digests of its data, and what its player has to say."""
    digests = scenario.data_digests()
    data = {"data": digests} if digests else {}
    return {"source": player.SOURCE, **data, **getattr(player, "attrs", lambda scenario: {})(scenario)}


def played(
    player: Any, scenario: Any, units: Iterable[Any], workers: int | None = None
) -> Iterator[tuple[Any, list[Found] | Exception]]:
    """Each unit in turn with what it found, or the exception that it raised; few are begun ahead, to spare memory."""
    workers = workers or getattr(player, "WORKERS", None) or cores()
    context: AbstractContextManager[Any] = getattr(player, "context", nullcontext)()
    with context, threads(workers) as pool:
        begun: deque[tuple[Any, Any]] = deque()
        for unit in units:
            begun.append((unit, pool.submit(player.play, scenario, unit)))
            if len(begun) > AHEAD * workers:
                yield _ended(*begun.popleft())
        while begun:
            yield _ended(*begun.popleft())


def _ended(unit: Any, future: Any) -> tuple[Any, list[Found] | Exception]:
    problem = future.exception()
    if problem is None:
        return unit, future.result()
    if not isinstance(problem, Exception):  # an interrupt ends everything
        raise problem
    return unit, problem
