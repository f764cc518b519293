"""The progress of a computation: a bar on a terminal, a line in a notebook, lines in a log file."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from html import escape
from typing import Any

NOTEBOOK_UPDATE_SECONDS = 0.3
LOG_UPDATE_SECONDS = 60.0


ProgressCallback = Callable[[int, int], None]


class SilentProgressBar:
    """The progress of a computation and its running part. This base class shows nothing."""

    def __init__(self, title: str):
        self.title, self.part, self.done, self.total = title, "", 0, 0
        self._first: tuple[float, int] | None = None  # time and completed units at the first report
        self._last = (0.0, 0)

    def progress(self, done: int, total: int) -> None:
        """Record and show the number of completed units."""
        self.done, self.total, self._last = done, total, (time.monotonic(), done)
        self._first = self._first or self._last
        self.show()

    @property
    def rate(self) -> float:
        """The mean number of units per second between the first and the last report, or 0 before two reports."""
        first, last = self._first or self._last, self._last
        return (last[1] - first[1]) / (last[0] - first[0]) if last[0] > first[0] else 0.0

    @property
    def pace(self) -> str:
        """The rate and the remaining time as text, empty until the rate is known."""
        if not self.rate:
            return ""
        left = max(0.0, (self.total - self.done) / self.rate - (time.monotonic() - self._last[0]))
        return f"{format_rate(self.rate)} {timedelta(seconds=round(left))}"

    def show_part(self, part: str) -> None:
        """Show which part is running."""
        self.part = part
        self.show()

    def show(self) -> None:
        """Show the current progress."""

    @property
    def description(self) -> str:
        """The title of the computation, followed by the name of its running part."""
        return f"{self.title}, {self.part}" if self.part else self.title


def format_rate(rate: float) -> str:
    """Format a rate of progress per second or, if the rate is low, per minute or hour.

    >>> format_rate(1912.3), format_rate(0.51), format_rate(0.03), format_rate(1e-4)
    ('1,912/s', '0.51/s', '1.8/min', '0.36/h')
    """
    for unit, seconds in (("s", 1), ("min", 60), ("h", 3600)):
        if rate * seconds >= 0.1 or unit == "h":
            break
    number = rate * seconds
    return f"{number:,.0f}/{unit}" if number >= 10 else f"{float(f'{number:.2g}'):g}/{unit}"


class TerminalBar(SilentProgressBar):
    """A progress bar in a terminal, drawn by the library rich."""

    def __init__(self, title: str, bar: Any):
        super().__init__(title)
        self._bar, self._task = bar, bar.add_task(title, total=None, bar=self)

    def show(self) -> None:
        """Show the current progress."""
        self._bar.update(self._task, completed=self.done, total=self.total or None, description=self.description)


class NotebookBar(SilentProgressBar):
    """A line of text below a notebook cell that is running."""

    def __init__(self, title: str):
        from IPython.display import display

        super().__init__(title)
        self._handle, self._due = display(self._make_mime_bundle(title), raw=True, display_id=True), 0.0

    def show(self) -> None:
        """Show the current progress, at most every 0.3 s."""
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + NOTEBOOK_UPDATE_SECONDS
            self._write(f"{self.description}: {self.done} of {self.total}" if self.total else self.description)

    def close(self) -> None:
        """Remove the line."""
        self._write("")

    def _write(self, text: str) -> None:
        self._handle.update(self._make_mime_bundle(text), raw=True)

    @staticmethod
    def _make_mime_bundle(text: str) -> dict[str, str]:
        return {"text/plain": text, "text/html": escape(text)}


class LogLines(SilentProgressBar):
    """Lines of a log file, at most one per minute."""

    def __init__(self, title: str):
        super().__init__(title)
        self._due = time.monotonic() + LOG_UPDATE_SECONDS

    def show(self) -> None:
        """Write a line with the current progress if the last line is a minute old."""
        if self.total and time.monotonic() >= self._due:
            self._due = time.monotonic() + LOG_UPDATE_SECONDS
            pace = f", {self.pace} left" if self.pace else ""
            print(f"{self.title}: {self.done:,} of {self.total:,}{pace}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def show_progress_bar(
    title: str, visible: bool | None = None, *, writes_log: bool = False
) -> Iterator[SilentProgressBar]:
    """Open a context with a progress bar, shown by default in terminals and notebooks.

    With `writes_log`, other outputs get a line every minute.
    """
    if visible is not False and is_notebook():
        line = NotebookBar(title)
        try:
            yield line
        finally:
            line.close()
    elif visible or (visible is None and sys.stderr.isatty()):
        with _make_rich_progress() as bar:
            yield TerminalBar(title, bar)
    else:
        yield LogLines(title) if writes_log else SilentProgressBar(title)


def is_notebook() -> bool:
    """Return True if the code runs in a Jupyter notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return type(shell).__name__ == "ZMQInteractiveShell"


def _make_rich_progress() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[bar].pace}", markup=False),
    )
    return Progress(*columns, console=Console(stderr=True))


def make_progress_callback(bar: SilentProgressBar) -> Callable[[int, int], None]:
    """Return a callback that advances a progress bar.

    Until the first call, the bar reports that programs are compiled or loaded.
    """
    bar.show_part("compiling or loading programs")

    def progress(completed: int, total: int) -> None:
        bar.part = ""
        bar.progress(completed, total)

    return progress


def report_progress(items: Iterable[Any], total: int, progress: ProgressCallback | None) -> Iterable[Any]:
    """Yield the items, and call `progress(done, total)` after each item."""
    for count, item in enumerate(items, 1):
        yield item
        if progress:
            progress(count, total)
