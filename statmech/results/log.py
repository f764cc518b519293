"""The log of a store: a line of JSON per event, in a file next to the store."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from statmech.runtime.files import check_replaceable, open_regular_text_file

Event = dict[str, Any]
REQUIRED_EVENT_KEYS: dict[str, dict[str, type]] = {  # keys that readers of each event require, with their types
    "begun": {"done": int},
    "playing": {"block": int},
    "written": {"block": int, "done": int},
    "failed": {"cell": list, "seeds": list, "error": str},
}
LOG_TIME_FORMAT = "%Y-%m-%dT%H:%M:%S"
EventListener = Callable[[Event], None]


class StoreLog:
    """The log file of a store, which also passes events to a listener.

    Raises `StoreError` if the file is a symbolic link. A log that cannot be written, as on a full disk, is omitted.
    """

    def __init__(self, store: Path, listener: EventListener | None = None):
        self.path, self.listener = store.with_suffix(".log"), listener
        if self.path.is_symlink():  # later failures to write the log are ignored
            check_replaceable(self.path)

    def __call__(self, **event: Any) -> None:
        event = {"time": time.strftime(LOG_TIME_FORMAT), **event}
        with (
            contextlib.suppress(OSError),
            open_regular_text_file(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as file,
        ):
            file.write(json.dumps(event) + "\n")
        if self.listener:
            self.listener(event)

    def find_repeated_crash_chunks(self) -> set[int]:
        """Return the chunks that were being simulated each time the last two runs died."""
        recent_runs = read_logged_runs(self.path)[-2:]
        if len(recent_runs) < 2 or any(run[-1]["event"] == "ended" for run in recent_runs):
            return set()
        return find_unfinished_chunks(recent_runs[0]) & find_unfinished_chunks(recent_runs[1])


def read_logged_runs(log: Path) -> list[list[Event]]:
    """Return the events of each run in a log, without incomplete and corrupted lines."""
    events_by_run: list[list[Event]] = []
    for line in _read_lines(log):
        event = _parse_event(line)
        if event is None:
            continue
        if event["event"] == "begun":
            events_by_run.append([])
        if events_by_run:
            events_by_run[-1].append(event)
    return events_by_run


def find_unfinished_chunks(run: list[Event]) -> set[int]:
    """Return the chunks that a run has started but not written."""
    started = {event["block"] for event in run if event["event"] == "playing"}
    return started - {event["block"] for event in run if event["event"] == "written"}


def _read_lines(log: Path) -> list[str]:
    try:
        with open_regular_text_file(log, os.O_RDONLY) as file:
            return file.read().splitlines()
    except OSError:
        return []


def _parse_event(line: str) -> Event | None:
    """Return the event in a line of the log, or None if required keys are missing."""
    try:
        event = json.loads(line)
        time.strptime(event["time"], LOG_TIME_FORMAT)
        needed = REQUIRED_EVENT_KEYS.get(event["event"], {})
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return event if all(isinstance(event.get(name), kind) for name, kind in needed.items()) else None
