"""How far the stores of a folder are: done, running, failed and missing runs, their rate, and the time left."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from statmech.errors import StoreError
from statmech.results.block_store import DONE, FAILED, MISSING, Growing
from statmech.results.locks import owner
from statmech.results.log import TIME, Event, logs, runs, unfinished


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
    except StoreError:
        raise
    except Exception as failure:  # whatever zarr raises
        raise StoreError(f"{path}: not a readable store ({type(failure).__name__}: {failure})") from None
    last = [every[-1] for every in map(runs, logs(path)) if every]
    who, rate = owner(path), sum(map(_rate, last))
    failures = [event for log in logs(path) for run in runs(log) for event in run if event["event"] == "failed"]
    left = counts[MISSING] / rate if rate and who else None
    return {
        "store": str(path),
        "runs": sum(counts.values()),
        "done": counts[DONE],
        "failed": counts[FAILED],
        "missing": counts[MISSING],
        "verifiable": store.fingerprint is not None,
        "writer": who,
        "running": sorted(set().union(*map(unfinished, last))) if who else [],
        "rate": rate,
        "seconds_left": left,
        "failures": failures if counts[FAILED] else [],
    }


def lines(told: dict[str, Any]) -> list[str]:
    """The same for people."""
    found = [
        told["store"],
        f"runs     {told['done']} of {told['runs']} done, {told['failed']} failed, {told['missing']} missing",
        f"writer   {told['writer'] or 'none'}",
        f"checked  which runs are done, not their numbers: {_checks(told)}",
    ]
    if told["running"]:
        found.append(f"running  blocks {', '.join(map(str, told['running'][:20]))}")
    if told["rate"]:
        left = told["seconds_left"]
        found.append(f"speed    {told['rate']:.3g} runs a second" + (f", {left:.0f} seconds left" if left else ""))
    found += [f"failed   cell {event['cell']}, seeds {event['seeds']}: {event['error']}" for event in told["failures"]]
    return found


def _checks(told: dict[str, Any]) -> str:
    if told["verifiable"]:
        return "`statmech verify` reads every one"
    return "this store was made before runs had fingerprints, and `statmech verify` knows its checksums only"


def _rate(events: list[Event]) -> float:
    """Runs a second of one run, as its log tells."""
    written = [event for event in events if event["event"] == "written"]
    if not written:
        return 0.0
    first, last = (time.mktime(time.strptime(event["time"], TIME)) for event in (events[0], written[-1]))
    return float(written[-1]["done"] - events[0]["done"]) / max(last - first, 1.0)
