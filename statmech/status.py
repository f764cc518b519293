"""How far the stores of a folder are: done, running, failed and missing runs, their rate, and the time left."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from statmech.errors import StoreError
from statmech.growing import DONE, FAILED, MISSING, Growing
from statmech.held import holder


def read(folder: Path) -> dict[str, Any]:
    """What is known of a simulation's store. Raises `StoreError` where there is none.

    `running` lists blocks that have begun and are not written; `rate` is runs a second since the run began.
    """
    path = folder if folder.suffix == ".zarr" else folder / "simulation.zarr"
    if not path.is_dir():
        raise StoreError(f"{path}: no such result. `statmech run CONFIG` makes one")
    try:
        store = Growing(path)
        counts = store.counts()
    except Exception as failure:  # whatever zarr raises
        raise StoreError(f"{path}: not a readable store ({type(failure).__name__}: {failure})") from None
    events, who = _last_run(path.with_suffix(".log")), holder(path)
    rate = _rate(events)
    left = counts[MISSING] / rate if rate and who else None
    return {
        "store": str(path),
        "runs": sum(counts.values()),
        "done": counts[DONE],
        "failed": counts[FAILED],
        "missing": counts[MISSING],
        "writer": who,
        "running": sorted(_running(events)) if who else [],
        "rate": rate,
        "seconds_left": left,
        "failures": [event for event in events if event["event"] == "failed"],
    }


def lines(told: dict[str, Any]) -> list[str]:
    """The same for people."""
    found = [
        told["store"],
        f"runs     {told['done']} of {told['runs']} done, {told['failed']} failed, {told['missing']} missing",
        f"writer   {told['writer'] or 'none'}",
    ]
    if told["running"]:
        found.append(f"running  blocks {', '.join(map(str, told['running'][:20]))}")
    if told["rate"]:
        left = told["seconds_left"]
        found.append(f"speed    {told['rate']:.3g} runs a second" + (f", {left:.0f} seconds left" if left else ""))
    found += [f"failed   cell {event['cell']}, seeds {event['seeds']}: {event['error']}" for event in told["failures"]]
    return found


def _last_run(log: Path) -> list[dict[str, Any]]:
    """The events of the last run, or of the last of each shard's; lines cut short by a kill are left out."""
    events: list[dict[str, Any]] = []
    for line in log.read_text().splitlines() if log.exists() else []:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        events = [event] if event.get("event") == "begun" else [*events, event]
    return events


def _running(events: list[dict[str, Any]]) -> set[int]:
    begun = {event["block"] for event in events if event["event"] == "playing"}
    return begun - {event["block"] for event in events if event["event"] == "written"}


def _rate(events: list[dict[str, Any]]) -> float | None:
    written = [event for event in events if event["event"] == "written"]
    if not written or events[0]["event"] != "begun":
        return None
    first, last = (time.mktime(time.strptime(event["time"], "%Y-%m-%dT%H:%M:%S")) for event in (events[0], written[-1]))
    return (written[-1]["done"] - events[0]["done"]) / max(last - first, 1.0)
