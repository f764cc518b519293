"""Faults of sweeps, repeatedly: runs killed, disks full, files corrupted, two writers, readers, interrupts.

    python benchmarks/faults.py                # two to four minutes on two cores
    python benchmarks/faults.py throughput     # 10,000 small parameter combinations: store and memory; two minutes
    python benchmarks/faults.py --tiny         # at toy size, without the faults of commands that tests cause, too

"Lost" are runs (parameter combinations times seeds) that were reported as written and are not done after the fault;
"wrong" are runs that are done with values that are not, bit for bit, those of an undisturbed sweep, and attempts that
ended with neither a clear message nor those values. Everything happens in a scratch folder of this machine, and every
wait has a limit. Kills are SIGKILL, at random times between the start of a run and its usual duration.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import timing
import xarray as xr
from zygote import PATIENCE, Zygote, events

ROOT = Path(__file__).parent.parent
TINY_BLOCKS, LARGE_BLOCKS = 1e-6, 2e-2  # seconds per block: during writes only, or a few blocks
RULES = ["hebb", "max_stability"]
SWEEP: dict[str, Any] = {"learner": RULES, "N": 12, "flip": [0.0, 0.2], "alpha": [0.5, 1.0, 2.0, 3.0], "seeds": 3}
GROWN = {**SWEEP, "alpha": [0.5, 1.0, 1.5, 2.0, 3.0, 4.0], "seeds": 5}
SLOW = {**SWEEP, "N": 60, "alpha": [3.0, 4.0]}  # its seeds: `Size.slow`
WIDE = {**SWEEP, "learner": ["hebb"], "alpha": {"linspace": [0.5, 3, 24]}, "seeds": 64}
WIDE_BLOCKS = 0.2
ROWS: list[list[object]] = []


class Size(NamedTuple):
    kills: int  # for each of three kinds of runs, and a third as many for a fourth
    commands: int  # kills of the command
    harms: int
    writers: int
    reads: float  # seconds
    clusters: int  # kills of each of three parts of a cluster
    combinations: int  # for the throughput
    repeats: int
    slow: int  # seeds of the slow sweep
    alphas: int  # of the sweep and, half as many again, of its extension


FULL = Size(30, 5, 20, 3, 12.0, 5, 10_000, 5, 40, 4)
TINY = Size(1, 1, 1, 1, 0.5, 1, 40, 1, 8, 2)


class Count:
    """Attempts of a fault, and the runs that they cost."""

    def __init__(self, fault: str):
        self.fault, self.tries, self.lost, self.wrong, self._start = fault, 0, 0, 0, time.perf_counter()

    def __enter__(self) -> Count:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            ROWS.append([self.fault, self.tries, self.lost, self.wrong, time.perf_counter() - self._start])

    def tried(self, right: bool, lost: int = 0, wrong: int = 0) -> None:
        self.tries += 1
        self.lost += lost
        self.wrong += wrong + (not right)


def reference(config: dict[str, Any]) -> xr.Dataset:
    """The results of an undisturbed sweep, which is run once."""
    return _undisturbed(json.dumps(config))


@cache
def _undisturbed(config: str) -> xr.Dataset:
    import simulate
    from statmech.kinds.registry import scenario_from

    return simulate.run(scenario_from(json.loads(config)))


def overridden(name: str, overrides: list[str]) -> xr.Dataset:
    """The results of an undisturbed command."""
    import simulate
    from statmech import load

    return simulate.run(load(name, overrides))


def done(store: Path) -> int:
    """The number of done runs in the store that the same command would resume."""
    from statmech.stores.store_creation import recover_interrupted_replacement
    from statmech.stores.sweep_store import DONE_STATE, SweepStore

    recover_interrupted_replacement(store)
    return SweepStore(store).count_states()[DONE_STATE] if store.exists() else 0


def wrong(result: xr.Dataset, right: xr.Dataset) -> int:
    """The number of done runs with wrong values; the right ones may be of a larger sweep."""
    state = result["state"].values == 1
    right = right.sel(flip=result.flip, alpha=result.alpha, learner=result.learner).isel(seed=slice(result.seed.size))
    bad = np.zeros(state.shape, bool)
    for name in right.data_vars:
        one, other = result[name].values, right[name].values
        same = (one == other) | ((one != one) & (other != other))
        bad |= ~same.all(axis=tuple(range(state.ndim, same.ndim)))
    return int(np.count_nonzero(bad & state))


def opened(store: Path) -> xr.Dataset:
    """A store as seen by a reader without statmech: the states are read first."""
    with xr.open_zarr(store, consolidated=False) as dataset:
        state = dataset["state"].load()
        return dataset.load().assign(state=state)


def finished(store: Path, right: xr.Dataset) -> bool:
    """True if a store is complete and equals the right one bit for bit."""
    from statmech.stores import zarr_store as stores

    result = stores.load(store)
    same = set(result.variables) == set(right.variables)
    return same and all(np.array_equal(result[v], right[v], equal_nan=right[v].dtype.kind == "f") for v in right)


def kills(size: Size, scratch: Path, rng: random.Random, zygote: Zygote) -> None:
    small, large = reference(SWEEP), reference(GROWN)
    for fault, config, seconds, right in (
        ("kill -9, during writes only", SWEEP, TINY_BLOCKS, small),
        ("kill -9, a few blocks", SLOW, LARGE_BLOCKS, reference(SLOW)),
    )[: None if size is FULL else 1]:
        with Count(fault) as count:
            killed(count, zygote, scratch, rng, size.kills, config, seconds, right, None)
    before = scratch / "before" / "simulation.zarr"
    before.parent.mkdir()
    zygote.wait(zygote.begin(before, SWEEP, seconds=TINY_BLOCKS))
    with Count("kill -9 while a sweep is extended") as count:
        killed(count, zygote, scratch, rng, size.kills, GROWN, TINY_BLOCKS, large, before)
    with Count("kill -9 of one of two shards") as count:
        sharded(count, zygote, scratch, rng, -(-size.kills // 3), small)


def killed(
    count: Count,
    zygote: Zygote,
    scratch: Path,
    rng: random.Random,
    kills: int,
    config: dict[str, Any],
    seconds: float,
    right: xr.Dataset,
    before: Path | None,
) -> None:
    """Kill runs of one command repeatedly until one completes; then a new store, until there were enough kills."""
    store = scratch / "killed" / "simulation.zarr"
    takes = 0.0
    while count.tries < kills or not takes:
        shutil.rmtree(store.parent, ignore_errors=True)
        store.parent.mkdir()
        if before is not None:
            shutil.copytree(before, store)
        least = done(store)
        while True:
            start = time.perf_counter()
            process = zygote.begin(store, config, seconds=seconds)
            if takes and count.tries < kills:
                time.sleep(takes * rng.random() ** 2)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            code = zygote.wait(process)
            if code == 0:
                takes = takes or time.perf_counter() - start
                count.wrong += not finished(store, right)
                break
            assert code == -signal.SIGKILL, events(store)[-1]
            reported = sum(event["new"] for event in written(store))
            now = done(store)
            bad = wrong(opened(store), right) if store.exists() else 0
            count.tried(True, lost=max(0, max(least, reported) - now), wrong=bad)


def written(store: Path) -> list[dict[str, Any]]:
    """The blocks reported as written, each with the number of runs that it added."""
    blocks, last = [], 0
    for event in events(store):
        if event["event"] == "begun":
            last = event["done"]
        elif event["event"] == "written":
            blocks.append({**event, "new": event["done"] - last})
            last = event["done"]
    return blocks


def sharded(count: Count, zygote: Zygote, scratch: Path, rng: random.Random, kills: int, right: xr.Dataset) -> None:
    """Two shards at once, one of them killed and restarted while the other continues."""
    while count.tries < kills:
        store = scratch / f"shards{count.tries}" / "simulation.zarr"
        store.parent.mkdir()
        one, other = (zygote.begin(store, SWEEP, seconds=TINY_BLOCKS, shard=[k, 2]) for k in (1, 2))
        time.sleep(0.5 * rng.random())
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
        codes = zygote.wait(one), zygote.wait(other)
        again = zygote.wait(zygote.begin(store, SWEEP, seconds=TINY_BLOCKS, shard=[1, 2]))
        count.tried(codes[1] == again == 0 and finished(store, right))


COMMAND = ["learner=hebb,max_stability", "N=40", "alpha=1,2,3,4", "seeds=100"]


# Python itself answers an interrupt while it starts: commands begin with interrupts ignored
START = """
import signal
from statmech import cli
signal.signal(signal.SIGINT, signal.default_int_handler)
cli.main()
"""
IGNORING = ["env", "--ignore-signal=INT"]


def command(*words: str, folder: Path, **how: Any) -> subprocess.Popen[str]:
    """A process of the command line."""
    arguments = ["-c", how.pop("before", "") + START, *words, "--out", str(folder)]
    return subprocess.Popen(
        [*how.pop("prefix", []), *IGNORING, sys.executable, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        **how,
    )


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}


def ended(running: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code of a command and its standard error, within `PATIENCE`."""
    try:
        errors = running.communicate(timeout=PATIENCE)[1]
    finally:
        running.kill()
    return running.returncode, errors


def command_kills(size: Size, scratch: Path, rng: random.Random) -> None:
    """`statmech simulate`, killed while it runs and resumed until it completes."""
    folder = scratch / "command"
    with Count("kill -9 of `statmech simulate`") as count:
        for _ in range(size.commands):
            running = command("simulate", "capacity", *COMMAND, folder=folder)
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.wait(1.5 + 2 * rng.random())
            before = done(folder / "simulation.zarr")
            running.kill()
            ended(running)
            count.tried(True, lost=max(0, before - done(folder / "simulation.zarr")))
        assert ended(command("simulate", "capacity", *COMMAND, folder=folder))[0] == 0
        count.wrong += not finished(folder / "simulation.zarr", overridden("capacity", COMMAND))


def disks(size: Size, scratch: Path, zygote: Zygote) -> None:
    """A limit on the size of files, and a small disk that is full."""
    right = reference(WIDE)
    with Count("a limit on the size of files") as count:
        for limit in (0, 100, 1000, 3000, 9000)[: None if size is FULL else 1]:
            store = scratch / f"limit{limit}" / "simulation.zarr"
            store.parent.mkdir()
            if limit >= 3000:  # some of the runs are done
                process = zygote.begin(store, WIDE, seconds=WIDE_BLOCKS)
                until(lambda store=store: bool(written(store)))
                os.kill(process, signal.SIGKILL)
                zygote.wait(process)
            code = zygote.wait(zygote.begin(store, WIDE, seconds=WIDE_BLOCKS, limit=limit))
            until(lambda store=store: bool(events(store)) and "message" in events(store)[-1])
            last = events(store)[-1]["message"]
            clear = code == 2 and "cannot be written" in last and "\n" not in last
            reported = sum(event["new"] for event in written(store))
            assert (reported > 0) == (limit >= 3000)
            readable = not store.exists() or wrong(opened(store), right) == 0
            lost = max(0, reported - done(store))
            again = zygote.wait(zygote.begin(store, WIDE, seconds=WIDE_BLOCKS))
            count.tried(clear and readable and again == 0 and finished(store, right), lost=lost)
    if size is not FULL:
        return
    with Count("a full disk (tmpfs, in a separate namespace)") as count:
        if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
            count.fault += ": omitted, mounting is not allowed"
            return
        for kilobytes in (40, 160):
            count.tried(full(scratch / f"disk{kilobytes}", kilobytes))


def full(folder: Path, kilobytes: int) -> bool:
    """True if a full disk of this size is reported, and its results are resumed elsewhere."""
    disk, kept = folder / "disk", folder / "kept"
    disk.mkdir(parents=True)
    script = f'mount -t tmpfs -o size={kilobytes}k none {disk}; "$@"; code=$?; cp -r {disk} {kept}; exit $code'
    given = ["learner=hebb", "N=10", "alpha={linspace: [0.5, 4, 24]}", "seeds=128"]
    running = command("simulate", "capacity", *given, folder=disk, prefix=["unshare", "-m", "sh", "-c", script, "sh"])
    code, errors = ended(running)
    clear = code == 2 and "No space left on device" in errors and "Traceback" not in errors
    before = done(kept / "simulation.zarr")
    again, _ = ended(command("simulate", "capacity", *given, folder=kept))
    right = overridden("capacity", given)
    return clear and before < right.R.size and again == 0 and finished(kept / "simulation.zarr", right)


def read_only(size: Size, scratch: Path) -> None:
    """A folder that is not writable is reported before anything is computed."""
    with Count("a folder that is not writable") as count:
        folder = scratch / "locked"
        folder.mkdir(mode=0o555)
        for given in (folder / "inner", folder)[: None if size is FULL else 1]:
            start = time.perf_counter()
            code, errors = ended(command("run", "ensemble", folder=given, before=AS_OTHERS))
            clear = code == 2 and errors.count("cannot be written") == 1 and len(errors.splitlines()) == 1
            count.tried(clear and time.perf_counter() - start < 20 and not list(folder.iterdir()))


# drops root's right to write everywhere, in the process itself: an exec would restore it
AS_OTHERS = """
import ctypes
class Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))
ctypes.CDLL(None).capset(ctypes.byref(Header(0x20080522, 0)), (ctypes.c_uint32 * 6)())
"""


def damage(size: Size, scratch: Path, rng: random.Random, zygote: Zygote) -> None:
    """Chunks flipped, truncated and deleted, each detected by the next run; metadata, detected by every reader."""
    right = reference(SWEEP)
    store = scratch / "damaged" / "simulation.zarr"
    store.parent.mkdir()
    zygote.wait(zygote.begin(store, SWEEP, seconds=TINY_BLOCKS))
    for harm in HARMS:
        with Count(f"chunks {harm}") as count:
            chunks = sorted(file for file in store.rglob("*") if file.is_file() and "/c/" in str(file))
            for file in rng.sample(chunks, size.harms):
                count.tried(mended(store, file, harm, right, rng))
    with Count("chunks exchanged, or taken from the same sweep with another key") as count:
        other = scratch / "other" / "simulation.zarr"
        other.parent.mkdir()
        zygote.wait(zygote.begin(other, {**SWEEP, "key": 1}, seconds=TINY_BLOCKS))
        while count.tries < size.harms:
            chunks = sorted(file for file in store.rglob("*") if file.is_file() and "/c/" in str(file))
            file, source = rng.choice(chunks), rng.choice(chunks)
            if rng.random() < 0.5:
                source = other / file.relative_to(store)
            if file.read_bytes() != source.read_bytes():  # the chunks of `state` are all equal
                count.tried(mended(store, file, source, right, rng))
    metadata = sorted(store.rglob("zarr.json"))
    for harm in HARMS:
        with Count(f"zarr.json {harm}") as count:
            for file in metadata[: None if size is FULL else 1]:
                content = (store / "zarr.json").read_bytes()
                count.tried(mended(store, file, harm, right, rng))
                (store / "zarr.json").write_bytes(content)  # which nothing else can restore: a run refuses the store


HARMS = ("flipped", "truncated", "deleted")


def mended(store: Path, file: Path, harm: str | Path, right: xr.Dataset, rng: random.Random) -> bool:
    """True if a reader reports a damaged file, and the next run restores every bit or refuses the store."""
    from simulate.execution.store_runs import run_into
    from statmech import StoreError
    from statmech.kinds.registry import scenario_from
    from statmech.stores import zarr_store as stores

    harmed(file, harm, rng)
    reported: list[dict[str, Any]] = []
    with contextlib.suppress(StoreError):
        stores.load(store)
        if file.parts[-2] != "state" and "/state/" not in str(file):
            return False
    try:
        run_into(store, scenario_from(SWEEP), tell=reported.append)
    except StoreError as refused:
        return file == store / "zarr.json" and "--fresh" in str(refused) and "\n" not in str(refused)
    repairs = {event["event"] for event in reported} & {"damaged", "restored", "written"}
    return bool(repairs) and finished(store, right)


def harmed(file: Path, harm: str | Path, rng: random.Random) -> None:
    """Damage a file, or (given a path) replace it by that one."""
    content = bytearray(file.read_bytes())
    if isinstance(harm, Path):
        file.write_bytes(harm.read_bytes())
    elif harm == "deleted":
        file.unlink()
    elif harm == "truncated":
        file.write_bytes(content[: rng.randrange(len(content))])
    else:
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        file.write_bytes(content)


def writers(size: Size, scratch: Path, zygote: Zygote) -> None:
    """A second run fails at once and names the process that holds the lock; a killed process releases its lock."""
    right = reference(SLOW)
    with Count("two writers, one of them dead") as count:
        for attempt in range(size.writers):
            store = scratch / f"writers{attempt}" / "simulation.zarr"
            store.parent.mkdir()
            first = zygote.begin(store, SLOW, seconds=TINY_BLOCKS)
            until(lambda store=store: any(event["event"] == "playing" for event in events(store)))
            os.kill(first, signal.SIGSTOP)  # else it may finish before the second run asks for the lock
            start = time.perf_counter()
            refused = zygote.wait(zygote.begin(store, SLOW))
            waited = time.perf_counter() - start
            last = [event for event in events(store) if event["event"] == "refused"]
            named = bool(last) and f"process {first} on " in last[-1]["message"]
            os.kill(first, signal.SIGKILL)
            zygote.wait(first)
            resumed = zygote.wait(zygote.begin(store, SLOW))
            count.tried(refused == 2 and named and waited < 5 and resumed == 0 and finished(store, right))


def until(true: Callable[[], bool]) -> None:
    end = time.perf_counter() + PATIENCE
    while not true() and time.perf_counter() < end:
        time.sleep(0.005)


def readers(size: Size, scratch: Path, zygote: Zygote) -> None:
    """A reader opens a store repeatedly while it is written."""
    right = reference(SLOW)
    with Count("read during the simulation") as count:
        end = time.perf_counter() + size.reads

        def unfinished() -> bool:
            return count.tries == 0 or time.perf_counter() < end

        while unfinished():
            store = Path(tempfile.mkdtemp(dir=scratch)) / "simulation.zarr"
            process = zygote.begin(store, SLOW, seconds=LARGE_BLOCKS)
            until(store.exists)
            while not any(event["event"] == "ended" for event in events(store)) and unfinished():
                count.tried(True, wrong=wrong(opened(store), right))
            assert zygote.wait(process) == 0


def interrupts(size: Size, scratch: Path) -> None:
    """Ctrl-C and SIGTERM end the command at once, and the store stays valid."""
    longest = 0.0
    with Count("SIGINT and SIGTERM") as count:
        for sent, expected in ((signal.SIGINT, 130), (signal.SIGTERM, 143)) * (2 if size is FULL else 1):
            folder = scratch / f"stopped{count.tries}"
            given = ["rule=hebb", "K=3", "N=100_000", "t=50", "seeds=4096"]
            running = command("simulate", "ensemble", *given, folder=folder, start_new_session=True)
            log = folder / "simulation.log"
            until(lambda log=log: log.exists() and "playing" in log.read_text())
            start = time.perf_counter()
            os.killpg(running.pid, sent)
            code, errors = ended(running)
            longest = max(longest, time.perf_counter() - start)
            valid = done(folder / "simulation.zarr") >= 0
            count.tried(
                code == expected and "rerun the command to resume" in errors and "Traceback" not in errors and valid
            )
        count.wrong += longest > 5
        count.fault += f" (the slowest ended after {longest:.2g} s)"


ON_WORKERS = ["learner=hebb,max_stability", "N=40", "alpha={linspace: [0.5, 4, 40]}", "seeds=64"]
SMALL_BLOCKS = "import statmech.stores.sweep_size\nstatmech.results.chunks.TARGET_CHUNK_SECONDS = 2e-2\n"


@contextlib.contextmanager
def dask(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The address of a scheduler on the loopback interface, its process, and those of two workers."""
    file = folder / "scheduler.json"
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment()}
    begin = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    processes = [subprocess.Popen([*begin, "--no-dashboard", "--scheduler-file", str(file)], **quiet)]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--host", "127.0.0.1", "--nthreads", "1"]
    processes += [
        subprocess.Popen([*worker, "--no-dashboard", "--no-nanny", "--scheduler-file", str(file)], **quiet)
        for _ in range(2)
    ]
    try:
        until(lambda: file.exists() and file.stat().st_size > 0)
        yield json.loads(file.read_text())["address"], processes
    finally:
        for process in processes:
            process.kill()
            process.wait(PATIENCE)


def clusters(size: Size, scratch: Path, rng: random.Random) -> None:
    """A Dask worker, the scheduler, or the command itself killed while a sweep is computed on two workers."""
    right = overridden("capacity", ON_WORKERS)
    for victim, expected in (("a Dask worker", {0}), ("the Dask scheduler", {0, 1}), ("the command", {0, -9})):
        with Count(f"kill -9 of {victim}, two workers") as count:
            while count.tries < size.clusters:
                folder = scratch / f"dask {victim} {count.tries}"
                folder.mkdir()
                count.tried(*struck(folder, victim, expected, rng, right))


def struck(folder: Path, victim: str, expected: set[int], rng: random.Random, right: xr.Dataset) -> tuple[bool, int]:
    """True if a run with a killed part ends as expected and resumes to the right bits; and the lost runs."""
    store, log = folder / "simulation.zarr", folder / "simulation.log"
    with dask(folder) as (address, (scheduler, *workers)):
        given = [*ON_WORKERS, "--dask", address, "--patience", "40"]
        running = command("simulate", "capacity", *given, folder=folder, before=SMALL_BLOCKS)
        until(lambda: log.exists() and "written" in log.read_text())
        time.sleep(1.5 * rng.random())
        {"a Dask worker": workers[0], "the Dask scheduler": scheduler, "the command": running}[victim].kill()
        code, errors = ended(running)
        before = max((event.get("done", 0) for event in logged(log)), default=0)
        lost = max(0, before - done(store))
        again, _ = ended(command("simulate", "capacity", *ON_WORKERS, folder=folder, before=SMALL_BLOCKS))
    right_end = code in expected and again == 0
    if not right_end:
        print(f"{victim}: exit codes {code} and then {again}\n{errors}", file=sys.stderr)
    return right_end and finished(store, right), lost


def logged(log: Path) -> list[dict[str, Any]]:
    from statmech.stores.store_status import read_logged_runs

    return [event for run in read_logged_runs(log) for event in run]


def signals(size: Size, scratch: Path, rng: random.Random) -> None:
    """Signals at any time during `statmech run`: importing, simulating, solving, drawing."""
    given = ["learner=hebb,max_stability", "N=20", "seeds=16"]
    start = time.perf_counter()
    clean = scratch / "signals"
    quiet = {"stdout": subprocess.DEVNULL}
    assert ended(command("run", "capacity", *given, folder=clean, **quiet))[0] == 0
    takes = time.perf_counter() - start
    from statmech.stores import zarr_store as stores

    right = stores.load(clean / "simulation.zarr")
    expected = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: -signal.SIGHUP}
    with Count("SIGINT, SIGTERM, SIGHUP at any time during `statmech run`") as count:
        folder, slowest = scratch / "signalled", 0.0
        while count.tries < size.kills:
            sent = list(expected)[count.tries % 3]
            running = command("run", "capacity", *given, folder=folder, start_new_session=True, **quiet)
            time.sleep(takes * rng.random())
            running.send_signal(sent)
            start = time.perf_counter()
            code, errors = ended(running)
            slowest = max(slowest, time.perf_counter() - start if code else 0.0)
            right_end = code in (0, expected[sent], -sent) and "Traceback" not in errors
            if not right_end:
                print(f"{sent.name}: exit code {code}\n{errors}", file=sys.stderr)
            count.tried(right_end)
            if count.tries % 5 == 0:
                again, _ = ended(command("run", "capacity", *given, folder=folder, **quiet))
                count.wrong += again != 0 or not finished(folder / "simulation.zarr", right)
                shutil.rmtree(folder)
        count.wrong += slowest > 5
        count.fault += f" (the slowest ended after {slowest:.2g} s)"


THROUGHPUT = {
    "stored, hebb": {"learner": "hebb", "N": 20, "flip": [0, 0.1, 0.2, 0.3], "alpha": 4, "seeds": 1},
    "stored, minover": {
        "learner": "minover",
        "N": 20,
        "flip": [0, 0.1, 0.2, 0.3],
        "alpha": 4,
        "epochs": 20,
        "seeds": 1,
    },
    "random walks": {"boundary": "constant", "N": 32, "walks": 10, "mean": [0, 1], "error_rate": 2, "seeds": 2},
    "online, perceptron": {"rule": "perceptron", "N": 100, "flip": [0, 0.1, 0.2, 0.3], "eta": 4, "t": 1, "seeds": 2},
}
SPANS = {"alpha": [0.5, 2.5], "error_rate": [0.001, 0.4], "eta": [0.5, 1.5]}


def throughput(size: Size, scratch: Path) -> list[list[object]]:
    """Small parameter combinations into a store and in memory, alternately; CPU time, because the machine is shared."""
    import simulate
    from simulate.execution.store_runs import run_into
    from statmech.kinds.registry import scenario_from
    from statmech.stores.sweep_size import compute_chunk_lengths, iterate_chunks

    rows: list[list[object]] = []
    for name, given in list(THROUGHPUT.items())[: None if size is FULL else 1]:
        axis = next(iter(SPANS.keys() & given.keys()))
        config = {**given, axis: {"linspace": [*SPANS[axis], size.combinations // int(given[axis])]}}
        scenario = scenario_from(config)
        simulate.run(scenario_from({**config, axis: SPANS[axis]}))

        def into(scenario: Any = scenario) -> None:
            run_into(Path(tempfile.mkdtemp(dir=scratch)) / "simulation.zarr", scenario)

        calls = {"memory": lambda scenario=scenario: simulate.run(scenario), "store": into}
        took = timing.measure(calls, size.repeats, time.process_time)
        shape = tuple(scenario.shape.values())
        count = len(list(iterate_chunks((*shape, scenario.seeds), compute_chunk_lengths(scenario))))
        plain, stored = took["memory"].seconds, took["store"].seconds
        rows.append(
            [
                name,
                size.combinations,
                count,
                1e3 * plain / size.combinations,
                plain,
                stored,
                f"{stored / plain - 1:+.1%}",
            ]
        )
    return rows


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="statmech-faults-") as folder:
        yield Path(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="?", choices=["faults", "throughput"], help="faults by default")
    parser.add_argument("--tiny", action="store_true")
    given = parser.parse_args()
    size, tables = TINY if given.tiny else FULL, [given.tables or "faults"]
    tables += ["throughput"] if given.tiny and not given.tables else []
    print(timing.machine())
    SLOW["seeds"] = size.slow
    SWEEP["alpha"], GROWN["alpha"] = SWEEP["alpha"][: size.alphas], GROWN["alpha"][: size.alphas * 3 // 2]
    rng = random.Random(1)
    with scratch_folder() as scratch:
        if "faults" in tables:
            with Zygote() as zygote:
                kills(size, scratch, rng, zygote)
                disks(size, scratch, zygote)
                damage(size, scratch, rng, zygote)
                writers(size, scratch, zygote)
                readers(size, scratch, zygote)
            read_only(size, scratch)
            if size is FULL:  # tests kill commands and workers and interrupt them, too
                signals(size, scratch, rng)
                command_kills(size, scratch, rng)
                interrupts(size, scratch)
                clusters(size, scratch, rng)
            timing.table("Faults", ["fault", "tries", "runs lost", "wrong", "seconds"], ROWS)
        if "throughput" in tables:
            header = [
                "scenario",
                "combinations",
                "blocks",
                "ms per combination",
                "in memory, s",
                "into a store, s",
                "overhead",
            ]
            title = f"{size.combinations:,} small parameter combinations written to a store, compared with memory"
            timing.table(title, header, throughput(size, scratch))
    sys.exit(any(row[2] or row[3] for row in ROWS))


if __name__ == "__main__":
    main()
