"""Progress of a stored simulation: finished, running, failed and missing runs, their rate, and the time left."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from statmech.results.locks import find_writing_process
from statmech.results.log import LOG_TIME_FORMAT, Event, find_unfinished_chunks, read_logged_runs
from statmech.results.shards import list_absent_shards
from statmech.results.sweep_store import DONE_STATE, FAILED_STATE, MISSING_STATE, count_states, open_stores
from statmech.runtime.progress import format_rate

MAX_LISTED_RUNNING_CHUNKS = MAX_LISTED_SHARDS = 20


def read_status(folder: Path) -> dict[str, Any]:
    """Return the progress of a stored simulation, in all its shards.

    `absent` names the shards without a store if runs are missing. `running` lists the chunks that have started and are
    not written. `rate` is in runs per second since the run began.

    Raises `StoreError` if there is no store.
    """
    path = folder if folder.suffix == ".zarr" else folder / "simulation.zarr"
    stores = open_stores(path)
    paths, counts = [store.path for store in stores], count_states(stores, stores[0].list_chunks())
    logged_runs = [read_logged_runs(store_path.with_suffix(".log")) for store_path in paths]
    writers = [find_writing_process(store_path) for store_path in paths]
    # the log of a shard that has ended says nothing about the time that the others need
    current_runs = [
        runs[-1] for runs, writer in zip(logged_runs, writers, strict=True) if runs and (writer or not any(writers))
    ]
    writer, rate = "; ".join(filter(None, writers)), sum(map(_compute_run_rate, current_runs))
    failures = [event for runs in logged_runs for run in runs for event in run if event["event"] == "failed"]
    seconds_left = counts[MISSING_STATE] / rate if rate and writer else None
    return {
        "store": ", ".join(map(str, paths)),
        "runs": sum(counts.values()),
        "done": counts[DONE_STATE],
        "failed": counts[FAILED_STATE],
        "missing": counts[MISSING_STATE],
        "absent": list_absent_shards(paths) if counts[MISSING_STATE] else [],
        "verifiable": all(store.fingerprint is not None for store in stores),
        "writer": writer,
        "running": sorted(set().union(*map(find_unfinished_chunks, current_runs))) if writer else [],
        "rate": rate,
        "seconds_left": seconds_left,
        "failures": failures if counts[FAILED_STATE] else [],
    }


def format_status(status: dict[str, Any]) -> list[str]:
    """Format the progress of a stored simulation as lines of text."""
    text = [
        status["store"],
        f"runs     {status['done']} of {status['runs']} done, {status['failed']} failed, {status['missing']} missing",
        *([f"absent   shards {', '.join(status['absent'][:MAX_LISTED_SHARDS])}"] if status["absent"] else []),
        f"writer   {status['writer'] or 'none'}",
        f"checked  which runs are done, not their numbers: {_describe_verifiability(status)}",
    ]
    if status["running"]:
        text.append(f"running  chunks {', '.join(map(str, status['running'][:MAX_LISTED_RUNNING_CHUNKS]))}")
    if status["rate"]:
        seconds_left = status["seconds_left"]
        text.append(
            f"speed    {format_rate(status['rate'])}" + (f", {seconds_left:.0f} seconds left" if seconds_left else "")
        )
    text += [f"failed   cell {event['cell']}, seeds {event['seeds']}: {event['error']}" for event in status["failures"]]
    return text


def _describe_verifiability(status: dict[str, Any]) -> str:
    if status["verifiable"]:
        return "`statmech verify` reads every one"
    return "this store was made before runs had fingerprints, and `statmech verify` can check checksums only"


def _compute_run_rate(events: list[Event]) -> float:
    """Compute the number of simulated runs per second from the events of one log."""
    written_events = [event for event in events if event["event"] == "written"]
    if not written_events:
        return 0.0
    first, last = (
        time.mktime(time.strptime(event["time"], LOG_TIME_FORMAT)) for event in (events[0], written_events[-1])
    )
    return float(written_events[-1]["done"] - events[0]["done"]) / max(last - first, 1.0)
