"""The log of a store, the progress of its simulation, and the verification of stored results.

Log: a line of JSON per event, in a file next to the store.

Progress: finished, running, failed and missing runs, their rate, and the time left.

Verification: every number is compared with its checksum and fingerprint.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from statmech.errors import DamagedStoreError, StoreError
from statmech.runtime.files import check_replaceable, open_regular_text_file
from statmech.runtime.progress_bar import format_rate
from statmech.stores.checksums import check_regular_files, find_corrupted_files
from statmech.stores.locks import find_writing_process
from statmech.stores.sweep_chunks import (
    DONE_STATE,
    FAILED_STATE,
    MISSING_STATE,
    RUN_STATE_VARIABLE,
    Chunk,
    SweepStore,
    count_states,
    open_stores,
)
from statmech.stores.zarr_store import list_absent_shards, list_stores

Event = dict[str, Any]
REQUIRED_EVENT_KEYS: dict[str, dict[str, type]] = {  # keys that readers of each event require, with their types
    "begun": {"done": int},
    "playing": {"block": int},
    "written": {"block": int, "done": int},
    "failed": {"cell": list, "seeds": list, "error": str},
}
LOG_TIME_FORMAT = "%Y-%m-%dT%H:%M:%S"
EventListener = Callable[[Event], None]
MAX_LISTED_RUNNING_CHUNKS = MAX_LISTED_SHARDS = 20


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


class Verification(NamedTuple):
    """The outcome of a verification: stores, chunks and finished runs read, faults, and unverified stores."""

    stores: list[str]
    blocks: int  # number of chunks; `statmech verify --json` prints this name
    done: int
    faults: list[str]
    unverified: list[str]  # stores without fingerprints
    recomputed: int = 0  # number of runs computed again for comparison
    remarks: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        """True if every number of a finished run is intact and at its correct position."""
        return not (self.faults or self.unverified)

    def lines(self) -> list[str]:
        """Return the verification as lines of text: faults first, then a summary of the stores read."""
        old_store_message = (
            "was made before runs had fingerprints: checksums hold, but a chunk in the wrong place would not be found"
        )
        verified = "all sound" if self.is_sound else f"{len(self.faults)} fault{'' if len(self.faults) == 1 else 's'}"
        chunks = f"{self.blocks} chunk{'' if self.blocks == 1 else 's'}"
        recomputed = f", {self.recomputed} of them recomputed" if self.recomputed else ""
        summary = f"{', '.join(self.stores)}: {chunks} and {self.done} runs read{recomputed}, {verified}"
        return [*self.faults, *(f"{store}: {old_store_message}" for store in self.unverified), *self.remarks, summary]


def verify_results(result: Path) -> Verification:
    """Verify every chunk in a folder of results, or in one store.

    Missing and failed runs have no numbers, and are not faults.

    Parameters
    ----------
    result
        A folder of results, or a store.

    Returns
    -------
    Verification
        The faults, and the numbers of chunks and runs.

    Raises
    ------
    StoreError
        If there is no store.

    Examples
    --------
    >>> import tempfile
    >>> import theory
    >>> from statmech import Scenario
    >>> from statmech.stores.zarr_store import save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(theory.solve(Scenario(rule="hebb", t=10)), Path(folder) / "theory.zarr")
    ...     verify_results(Path(folder)).faults
    []
    """
    names = [result] if result.suffix == ".zarr" else [result / f"{part}.zarr" for part in ("simulation", "theory")]
    paths = [path for name in names for path in list_stores(name) if path.is_dir()]
    if not paths:
        raise StoreError(f"{result}: no such result. `statmech run CONFIG` computes one")
    faults, unverified, chunk_count, finished_runs = list[str](), list[str](), 0, 0
    for path in paths:
        check_regular_files(path)
        faults += [f"{path}: {name}: corrupted or missing" for name in find_corrupted_files(path)]
        store = _open_sweep_store(path)
        if store is None:
            continue
        chunk_count += len(store.list_chunks())
        finished_runs += store.count_states()[DONE_STATE]
        faults += [f"{path}: {fault}" for fault in _iterate_faults(store)]
        unverified += [str(path)] if store.fingerprint is None else []
    return Verification([str(path) for path in paths], chunk_count, finished_runs, faults, unverified)


def _open_sweep_store(path: Path) -> SweepStore | None:
    """Return the store of a sweep for its verification, or None for a store written in one piece.

    Checksums cover all files of a store that was written in one piece.
    """
    if not (path / RUN_STATE_VARIABLE).is_dir():
        return None
    try:
        return SweepStore(path, check=False)
    except DamagedStoreError:
        if not find_corrupted_files(path):
            raise
        return None


def _iterate_faults(store: SweepStore) -> Iterator[str]:
    for chunk in store.list_chunks():
        try:
            states = store.state[chunk.slices]
        except Exception:  # zarr and its codecs raise various errors
            chunk_text = describe_chunk(store, chunk)
            yield f"{chunk_text}: which of its runs are done cannot be read ({RUN_STATE_VARIABLE} is corrupted)"
            continue
        for fault in store.faults(chunk, states):
            yield f"{describe_chunk(store, chunk)}: {fault}"


def describe_chunk(store: SweepStore, chunk: Chunk) -> str:
    """Return a chunk's number, its values on the sweep's axes, and its seeds, as text."""
    dims: Any = store.state.metadata.dimension_names
    spans = [_format_span(store, dim, side) for dim, side in zip(dims, chunk.slices, strict=True)]
    return f"chunk {chunk.number} ({', '.join(spans)})"


def _format_span(store: SweepStore, dim: str, side: slice) -> str:
    try:
        values = store.group[dim][side]
    except Exception:  # zipped axes have no coordinate of their own, and coordinates may be corrupted
        values = range(side.start, side.stop)
    return f"{dim} {values[0]}" if len(values) == 1 else f"{dim} {values[0]} to {values[-1]}"
