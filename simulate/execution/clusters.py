"""Play a sweep's blocks on the workers of a Dask cluster.

A block is a task. A worker opens the store, plays what the block lacks, writes it, and sends back what it has to say;
results never travel. The store, not the scheduler, knows what is done: whatever dies, the next run goes on from there.
Only a few blocks for each thread of the workers are handed out at a time, so that a scheduler holds as little of a
large sweep as of a small one.

No wait is endless. A block may take as long as a worker is seen at work; without any, `patience` ends the run. A block
whose worker has died several times may have stood beside the one that kills: it is tried once more, alone.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import queue
import shutil
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from simulate.execution.threads import cores
from simulate.execution.to_store import Outcome, play_block, run_into
from statmech import plugins
from statmech.data_sets import FOLDER
from statmech.errors import ClusterError, ConfigError, StoreError
from statmech.results.block_store import FAILED, MISSING, Growing
from statmech.results.chunks import Block
from statmech.results.log import Log
from statmech.scenarios.base import Sweep

PATIENCE, QUEUE = 300.0, 86400.0  # seconds without a worker at work: of workers that are there, and of a queue
ANSWER, LOOK = 8.0, 2.0  # seconds that a scheduler has to answer, and between looks at it
QUERY = 60.0  # seconds for a cluster to begin, and for SLURM to answer
AHEAD = 4  # blocks handed out for each thread of the workers
SEEN = 60.0  # seconds within which a shared file system shows a new store to every worker
KNOWN = "local, local:WORKERS, tcp://HOST:PORT, slurm:FILE"


def run_on(where: str, path: Path, scenario: Sweep, *, patience: float | None = None, **options: Any) -> Outcome:
    """Play what a store lacks of a scenario, as `run_into` does, on the workers of a Dask cluster.

    `where` is `local` (a worker a core), `local:3`, `tcp://host:port` of a running scheduler, or `slurm:FILE`, a YAML
    file of dask-jobqueue's keywords for `SLURMCluster` and `jobs`, their number. The bits are those of a local run.
    After `patience` seconds in which no worker was seen at work, raises `ClusterError`; the store is whole, and the
    same call goes on from there. Raises `ConfigError` for a cluster that cannot be had, before anything is written.
    """
    check(where)
    with ExitStack() as closing:
        client, mend = _client(where, closing)
        waits = patience or (QUEUE if where.startswith("slurm:") else PATIENCE)
        return run_into(path, scenario, elsewhere=Workers(client, where, waits, mend).play, **options)


def check(where: str) -> None:
    """Refuse what names no cluster, or one that cannot be started here, with a `ConfigError`."""
    scheme, _, rest = where.partition(":")
    local = where == "local" or (scheme == "local" and rest.isdecimal() and int(rest) >= 1)
    if not (local or (scheme == "tcp" and rest.startswith("//") and len(rest) > 2) or (scheme == "slurm" and rest)):
        raise ConfigError(f"--dask {where}: names no cluster. Known: {KNOWN}")
    if scheme == "slurm" and not Path(rest).is_file():
        raise ConfigError(f"--dask {where}: no such file")
    for module in ("distributed", "dask_jobqueue") if scheme == "slurm" else ("distributed",):
        if importlib.util.find_spec(module) is None:
            raise ConfigError(
                f"--dask needs {module}, of the extra `cluster`: pip install -e '.[cluster]' where statmech lies"
            )
    if scheme == "slurm" and shutil.which("sbatch") is None:
        raise ConfigError(f"--dask {where}: there is no sbatch here; start this where jobs are submitted")


class Workers:
    """The workers behind a Dask client, and how long to wait for them."""

    def __init__(self, client: Any, where: str, patience: float, mend: Callable[[], None]):
        self.client, self.where, self.patience, self.mend = client, where, patience, mend
        self.seen, self.threads, self.busy = -LOOK, 1, False

    def play(self, store: Growing, todo: list[Block], again: bool, log: Log) -> Iterator[Block]:
        """Blocks, as workers have written them or have failed to."""
        run = partial(self._handed_out, partial(_play, str(store.path.resolve()), _name(store), again, _needed()), log)
        suspects = []
        for block, problem in run(todo, self._room):
            if _is_fatal(problem):
                suspects.append(block)
            else:
                yield _settled(store, block, again, problem, log)
        for block, problem in run(suspects, lambda: 1):
            yield _settled(store, block, again, problem, log)

    def _handed_out(
        self, task: Callable[..., Any], log: Log, blocks: list[Block], room: Callable[[], int]
    ) -> Iterator[tuple[Block, Exception | None]]:
        """Each block when its task has ended, and what went wrong with it; no more than `room()` are handed out."""
        out: dict[str, tuple[Block, Any]] = {}
        ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        left, name = iter(blocks), uuid.uuid4().hex  # other clients of the scheduler may have blocks of these numbers
        try:
            while True:
                for block in islice(left, max(0, room() - len(out))):
                    log(event="playing", block=block.number)
                    future = self.client.submit(task, block.number, key=f"block-{block.number}-{name}", pure=False)
                    out[future.key] = block, future
                    future.add_done_callback(ended.put)
                if not out:
                    return
                future = self._awaited(ended)
                block, _ = out.pop(future.key)
                yield block, self._heard(future, log)
        finally:
            for _, future in out.values():
                future.release()

    def _room(self) -> int:
        self._look()
        return AHEAD * max(self.threads, 1)

    def _awaited(self, ended: queue.SimpleQueue[Any]) -> Any:
        """The next task that has ended; gives up when no worker has been at work for too long."""
        last = time.monotonic()
        while True:
            with suppress(queue.Empty):
                return ended.get(timeout=LOOK)
            self._look()
            if self.busy:
                last = time.monotonic()
            elif time.monotonic() - last > self.patience:
                raise self._given_up(f"no worker has been at work for {self.patience:.0f} seconds")

    def _look(self) -> None:
        """See, not too often, how many threads the workers have and whether any of them works; mend what has died."""
        if time.monotonic() - self.seen < LOOK:
            return
        self.busy = False
        if self.client.status not in ("running", "connecting"):
            raise self._given_up("the scheduler is gone")
        with suppress(OSError, TimeoutError):
            known = self.client.sync(self.client.scheduler.identity, callback_timeout=ANSWER)["workers"].values()
            self.threads = sum(worker["nthreads"] for worker in known)
            self.busy = any(worker["metrics"].get("task_counts", {}).get("executing") for worker in known)
            self.mend()
        self.seen = time.monotonic()

    def _heard(self, future: Any, log: Log) -> Exception | None:
        """What went wrong with a task; what it had to say is logged."""
        if future.status == "finished":
            for event in future.result(timeout=ANSWER):
                log(**event)
            return None
        if future.status != "error":
            raise self._given_up("the scheduler is gone, or has dropped a block")
        problem: Exception = future.exception(timeout=ANSWER)
        if isinstance(problem, StoreError):  # a full disk, a store out of sight: no other block would fare better
            raise problem
        return problem

    def _given_up(self, told: str) -> ClusterError:
        kept = "What was written is whole; the same command goes on from there"
        return ClusterError(f"--dask {self.where}: {told}. {kept}")


def _is_fatal(problem: Exception | None) -> bool:
    """Whether workers have died over a block, or over one beside it."""
    from distributed import KilledWorker

    return isinstance(problem, KilledWorker)


def _settled(store: Growing, block: Block, again: bool, problem: Exception | None, log: Log) -> Block:
    """The block, its runs kept as failed if there was a problem that the worker could not keep itself."""
    if problem is not None:
        states = store.states(block)
        lacking = np.isin(states, (MISSING, FAILED) if again else (MISSING,))
        told = f"{type(problem).__name__}: {problem}"
        if _is_fatal(problem):
            told = "its worker died again and again: a crash, or too little memory"
        for place in map(tuple, np.argwhere(lacking.any(axis=-1))):
            cell = [int(i) + part.start for i, part in zip(place, block.box[:-1], strict=True)]
            seeds = [block.seeds.start + int(at) for at in np.flatnonzero(lacking[place])]
            log(event="failed", cell=cell, seeds=seeds, attempt=1, error=told)
        store.write(block, store.blank(block, states), np.where(lacking, FAILED, states).astype(states.dtype))
    return block


_ALONE = threading.Lock()  # a worker plays one block at a time, with all of its threads


def _play(path: str, name: str, again: bool, needed: tuple[str, list[str]], number: int) -> list[dict[str, Any]]:
    """A task: play a block and write it; returns the events."""
    from distributed import get_worker

    notes = Notes()
    data, files = needed
    if data:
        os.environ[FOLDER] = data
    for file in files:
        plugins.load(file)
    with _ALONE:
        _await_sight(Path(path), name)
        play_block(Path(path), number, again, workers=get_worker().state.nthreads, log=notes)
    return notes.events


class Notes(Log):
    """Events, kept for whoever writes the log: lines from many hosts would run into each other."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def __call__(self, **event: Any) -> None:
        if event["event"] != "playing":
            self.events.append(event)


def _await_sight(path: Path, name: str) -> None:
    """Wait until this host sees the store that the client has made: file systems of a network are late at times."""
    until = time.monotonic() + SEEN
    while True:
        with suppress(Exception):  # whatever zarr raises on what is not there, or is half there
            if _name(Growing(path)) == name:
                return
        if time.monotonic() > until:
            told = "a store must lie where all workers see it"
            raise StoreError(f"{path}: the worker on {socket.gethostname()} does not see this store; {told}")
        time.sleep(1.0)


def _name(store: Growing) -> str:
    """A store's config, in short."""
    return hashlib.sha256(str(store.group.attrs["config"]).encode()).hexdigest()


def _needed() -> tuple[str, list[str]]:
    """What workers need from this host's file system: the folder of data, and files of the user's own."""
    given = os.environ.get(FOLDER, "")
    return (str(Path(given).resolve()) if given else ""), plugins.loaded()


def _client(where: str, closing: ExitStack) -> tuple[Any, Callable[[], None]]:
    """A client of the cluster, and what brings back its workers."""
    import dask
    from distributed import Client

    closing.enter_context(_quiet())
    closing.enter_context(dask.config.set({"distributed.scheduler.worker-saturation": 1.0, "logging": SILENT}))
    scheme, _, rest = where.partition(":")
    if scheme == "tcp":
        at, mend = where, lambda: None
    else:
        cluster, mend = _within(QUERY, partial(_local, rest) if scheme == "local" else partial(_slurm, Path(rest)))
        closing.callback(_bounded, cluster.close)
        at = cluster.scheduler_address
    try:
        client = _within(2 * ANSWER, partial(Client, at, timeout=ANSWER, set_as_default=False))
    except (OSError, ValueError) as failure:  # a timeout is an OSError
        raise ConfigError(f"--dask {where}: the scheduler does not answer ({failure})") from None
    closing.callback(_bounded, client.close)
    return client, mend


SILENT = {"distributed": "critical", "distributed.worker": "critical", "distributed.nanny": "critical"}


def _local(count: str) -> tuple[Any, Callable[[], None]]:
    """Worker processes of this machine, reached from nowhere else; they share its cores."""
    from distributed import LocalCluster

    workers = int(count or cores())
    cluster = LocalCluster(
        n_workers=workers,
        threads_per_worker=max(1, cores() // workers),
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False},
        silence_logs=logging.CRITICAL,
    )
    return cluster, lambda: cluster.scale(workers)


def _slurm(file: Path) -> tuple[Any, Callable[[], None]]:
    """Workers in jobs of SLURM."""
    from dask_jobqueue import SLURMCluster
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        given = dict(YAML(typ="safe").load(file.read_text()) or {})
        jobs = int(given.pop("jobs", 1))
        given["scheduler_options"] = {"dashboard": False, **given.get("scheduler_options", {})}
        cluster = SLURMCluster(**given)
    except (YAMLError, TypeError, ValueError, OSError) as failure:
        raise ConfigError(f"{file}: is no description of a SLURM cluster: {failure}") from None
    _submittable(file, cluster)
    cluster.scale(jobs=jobs)
    return cluster, lambda: cluster.scale(jobs=jobs)


def _submittable(file: Path, cluster: Any) -> None:
    """Ask SLURM whether it would take such a job: what it says to Dask itself nobody hears."""
    try:
        told = subprocess.run(
            ["sbatch", "--test-only"], input=cluster.job_script(), capture_output=True, text=True, timeout=QUERY
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise ConfigError(f"{file}: sbatch does not answer ({failure})") from None
    if told.returncode:
        _bounded(cluster.close)
        raise ConfigError(f"{file}: SLURM takes no such job: {' '.join(told.stderr.split())}")


def _within(seconds: float, make: Callable[[], Any]) -> Any:
    """What `make` returns or raises, or `TimeoutError`: Dask's clients wait for ever for who listens and is mute."""
    ended: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            ended.put((make(), None))
        except BaseException as problem:
            ended.put((None, problem))

    threading.Thread(target=run, daemon=True).start()
    try:
        made, problem = ended.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"no answer in {seconds:.0f} seconds") from None
    if problem is not None:
        raise problem
    return made


def _bounded(close: Callable[..., Any]) -> None:
    """Close, but wait for it no longer than for an answer."""
    with suppress(Exception):  # whatever breaks while all is done, or already broken
        close(timeout=ANSWER)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without Dask's own lines on workers that come and go."""
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado.application")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
