"""The log of a store: a line of JSON for each event, in files beside it, one for each shard."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Event = dict[str, Any]
Tell = Callable[[Event], None]


class Log:
    """Writes events to a shard's file, and tells them to whoever listens."""

    def __init__(self, store: Path, tell: Tell | None = None, shard: tuple[int, int] = (1, 1)):
        part = "" if shard[1] == 1 else f"-{shard[0]}-of-{shard[1]}"
        self.path, self.tell = store.with_name(f"{store.stem}{part}.log"), tell

    def __call__(self, **event: Any) -> None:
        event = {"time": time.strftime("%FT%T"), **event}
        with contextlib.suppress(OSError), self.path.open("a") as file:  # a full disk is told by whoever needs it
            file.write(json.dumps(event) + "\n")
        if self.tell:
            self.tell(event)

    def suspects(self) -> set[int]:
        """The blocks that were being played when each of the last two runs ended without a word."""
        last = runs(self.path)[-2:]
        if len(last) < 2 or any(run[-1]["event"] == "ended" for run in last):
            return set()
        return unfinished(last[0]) & unfinished(last[1])


def logs(store: Path) -> list[Path]:
    """The log files of a store."""
    return sorted([store.with_suffix(".log"), *store.parent.glob(f"{store.stem}-*-of-*.log")])


def runs(log: Path) -> list[list[Event]]:
    """The events of each run that a log tells of; lines cut short by a kill are left out."""
    found: list[list[Event]] = []
    for line in log.read_text().splitlines() if log.exists() else []:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if event["event"] == "begun":
            found.append([])
        if found:
            found[-1].append(event)
    return found


def unfinished(run: list[Event]) -> set[int]:
    """The blocks that a run has begun to play, and has not written."""
    begun = {event["block"] for event in run if event["event"] == "playing"}
    return begun - {event["block"] for event in run if event["event"] == "written"}
