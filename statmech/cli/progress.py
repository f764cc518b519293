"""The progress of a computation: a bar on a terminal, and a sentence for each event that a user should know of."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

if TYPE_CHECKING:
    from statmech.scenarios.base import Sweep

err = Console(stderr=True)


class Rate(ProgressColumn):
    """Runs per second."""

    def render(self, task: Any) -> Text:
        return Text(f"{task.speed:.3g}/s" if task.speed else "")


class Bar:
    """A progress bar: how much is done, and which part is running."""

    def __init__(self, bar: Progress, title: str):
        self._bar, self._title = bar, title
        self._task = bar.add_task(title, total=None)

    def progress(self, done: int, total: int) -> None:
        """Show how much is done."""
        self._bar.update(self._task, completed=done, total=total)

    def running(self, part: str) -> None:
        """Show which part is running."""
        self._bar.update(self._task, description=f"{self._title}, {part}")


@contextlib.contextmanager
def shown(title: str) -> Iterator[Bar]:
    """A progress bar while a computation lasts; nothing where stderr is not a terminal."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, disable=not err.is_terminal) as bar:
        yield Bar(bar, title)


def message(event: dict[str, Any], scenario: Sweep) -> str:
    """The sentence for an event of a run's log; empty for an event that only programs need."""
    match event["event"]:
        case "failed":
            runs = f"{_combination(scenario, event['cell'])}seeds {_span(event['seeds'])}"
            return f"{runs}: attempt {event['attempt']} failed: {event['error']}"
        case "damaged":
            return f"chunk {event['block']} is corrupted and is recomputed ({'; '.join(event['faults'][:3])})"
        case "restored":
            return f"{event['file']} is corrupted and is rewritten"
        case "waiting":
            return f"waiting: {event['owner']} creates the store"
        case "grown":
            return "\n".join(["the sweep has grown, and its stored runs are kept:", *event["differences"]])
    return ""


def _combination(scenario: Sweep, index: list[int]) -> str:
    """The parameters at a point of the grid: "rule hebb, K 3, "."""
    axes = zip(index, scenario.dimensions.values(), strict=True)
    values = {name: values[i] for i, along in axes for name, values in along.items()}
    return "".join(f"{name} {value if isinstance(value, str) else f'{value:g}'}, " for name, value in values.items())


def _span(seeds: list[int]) -> str:
    """Seeds as a range where they have no gap: "0 to 63"."""
    first, last = seeds[0], seeds[-1]
    if len(seeds) > 1 and last - first + 1 == len(seeds):
        return f"{first} to {last}"
    return ", ".join(map(str, seeds))
