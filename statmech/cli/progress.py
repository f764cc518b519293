"""A progress bar on a terminal, silence elsewhere: done, rate, time left, and what is running."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

err = Console(stderr=True)


class Rate(ProgressColumn):
    """How many a second."""

    def render(self, task: Any) -> Text:
        return Text(f"{task.speed:.3g}/s" if task.speed else "")


class Bar:
    """What a bar is told: how much is done, and what is running."""

    def __init__(self, bar: Progress, what: str):
        self._bar, self._what = bar, what
        self._task = bar.add_task(what, total=None)

    def progress(self, done: int, total: int) -> None:
        self._bar.update(self._task, completed=done, total=total)

    def running(self, what: str) -> None:
        self._bar.update(self._task, description=f"{self._what}, {what}")


@contextlib.contextmanager
def shown(what: str) -> Iterator[Bar]:
    """A bar while something lasts."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, disable=not err.is_terminal) as bar:
        yield Bar(bar, what)
