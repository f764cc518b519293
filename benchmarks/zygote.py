"""Runs to be killed, without delay: a process that has imported everything and computed nothing forks one per request.

A request is a line of JSON: {"store", "config", "seconds" (of a block), "shard", "limit" (of a file's bytes)} begins a
run, answered by its process; {"wait": process} is answered by its exit code. The events of a run go to STORE.events.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

IMPORTED = (
    "jax",
    "simulate.execution.store_runs",
    "simulate.kinds.stored_examples",
    "simulate.learners.hebb",
    "simulate.learners.max_stability",
    "xarray",
    "zarr",
)
PATIENCE = 60.0  # seconds after which a run or an answer is abandoned


class Zygote:
    """The process, as seen by its parent."""

    def __init__(self) -> None:
        command = [sys.executable, __file__]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Zygote:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(PATIENCE)

    def begin(self, store: Path, config: dict[str, Any], **request: Any) -> int:
        """Begin a run and return its process."""
        return self._request({"store": str(store), "config": config, **request})

    def wait(self, process: int, seconds: float = PATIENCE) -> int:
        """The exit code of a run, or minus its signal. A run that has not ended by then is killed."""
        timer = threading.Timer(seconds, os.kill, (process, signal.SIGKILL))
        timer.start()
        try:
            return self._request({"wait": process})
        finally:
            timer.cancel()

    def _request(self, request: dict[str, Any]) -> int:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        print(json.dumps(request), file=stdin, flush=True)
        return int(stdout.readline())


def events(store: Path) -> list[dict[str, Any]]:
    """The events of runs into a store, without a line cut short by a kill."""
    result = []
    file = store.with_suffix(".events")
    for line in file.read_text().splitlines() if file.exists() else []:
        try:
            result.append(json.loads(line))
        except ValueError:
            continue
    return result


def serve() -> None:
    for name in IMPORTED:
        import_module(name)
    import_module("xarray").Dataset({"x": ("x", [0.0])})  # the first one imports dask where it is installed
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            code = os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1])
            print(code, flush=True)
        elif process := os.fork():
            print(process, flush=True)
        else:
            os._exit(run(request))


def run(request: dict[str, Any]) -> int:
    import statmech.stores.sweep_size
    from simulate.execution.store_runs import run_into
    from statmech.errors import StatmechError
    from statmech.kinds.registry import scenario_from

    store = Path(request["store"])
    statmech.stores.sweep_size.TARGET_CHUNK_SECONDS = request.get(
        "seconds", statmech.stores.sweep_size.TARGET_CHUNK_SECONDS
    )
    out = os.open(store.with_suffix(".events"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    if "limit" in request:  # applies to this process's files, not to its pipes
        out = limited(request["limit"], out)

    def report(event: dict[str, Any]) -> None:
        os.write(out, (json.dumps(event) + "\n").encode())

    try:
        run_into(store, scenario_from(request["config"]), shard=tuple(request.get("shard", (1, 1))), tell=report)
    except StatmechError as problem:
        report({"event": "refused", "message": str(problem)})
        return 2
    except BaseException as problem:
        report({"event": "traceback", "message": repr(problem)})
        return 1
    return 0


def limited(size: int, out: int) -> int:
    """Let no file of this process grow beyond a size; return a pipe to a process that writes `out` for it."""
    pipe = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=out).stdin
    assert pipe is not None
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return pipe.fileno()


if __name__ == "__main__":
    serve()
