"""Simulation of a sweep's chunks on the workers of a Dask cluster.

Each chunk is a task. A worker simulates the chunk's missing runs, and returns their values with the events for the log.
This process alone writes the store, which workers need not see. The store, not the scheduler, records the finished
runs: whatever process dies, the next run resumes from the store. Only a few chunks per worker thread are submitted at a
time, so that the memory of scheduler and workers does not grow with the sweep.

No wait is endless. A chunk may take any time while some worker is active. Without an active worker, `patience` ends the
run. If a chunk's worker has died several times, another chunk on the same worker may be the cause: the chunk is tried
once more, separately.
"""

from __future__ import annotations

import logging
import os
import queue
import shutil
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from simulate.execution.chunk_simulation import ChunkBuffer, get_states_to_simulate, simulate_chunks
from simulate.execution.store_simulation import Outcome, run_into
from statmech.config import user_files
from statmech.errors import ClusterError, ConfigError, StoreError, format_option
from statmech.inputs.data_sets import DATA_FOLDER_ENV_VARIABLE
from statmech.keys.scenario import AbstractScenario
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.runtime import files
from statmech.runtime.installed_packages import require_modules
from statmech.runtime.operating_system import count_cores
from statmech.runtime.user_code_and_provenance import format_version, get_recorded_version, provenance
from statmech.stores.store_status import StoreLog
from statmech.stores.sweep_chunks import FAILED_STATE, Chunk, SweepStore, make_missing_values
from statmech.stores.zarr_store import describe_changed_inputs

# longest time without an active worker: on running clusters, and with queued jobs
ACTIVE_WORKER_SECONDS = 300.0
QUEUE_SECONDS = 86400.0
MAX_CLUSTER_FILE_BYTES = 1_000_000
ANSWER_TIMEOUT_SECONDS, POLL_SECONDS = 8.0, 2.0
SLOW_OPERATION_TIMEOUT_SECONDS = 60.0  # to start a cluster, ask SLURM, or get a result from a busy machine
LOST_RESULT_STATES = ("lost", "pending")  # a finished task has these states if its worker has died
MAX_SUBMITTED_CHUNKS_PER_THREAD = 4  # keeps every thread busy without submitting the whole sweep
CLUSTER_FORMATS = "local, local:WORKERS, tcp://HOST:PORT, slurm:FILE"
_ONE_CHUNK_LOCK = threading.Lock()  # all threads of a worker simulate the same chunk
SILENT_LOG_LEVELS = {"distributed": "critical", "distributed.worker": "critical", "distributed.nanny": "critical"}
_SIGNAL_PATCH_LOCK = threading.Lock()  # overlapping patches of signal.signal might never be undone


def run_on_cluster(
    cluster: str, path: Path, scenario: AbstractScenario, *, patience: float | None = None, **options: Any
) -> Outcome:
    """Simulate the missing runs of a scenario's store on a Dask cluster.

    The results equal the results of a local `run_into` bit by bit.

    Parameters
    ----------
    cluster
        `local` (a worker per core), `local:3`, `tcp://host:port` of a running scheduler, or `slurm:FILE`, a YAML file
        of dask-jobqueue's keywords for `SLURMCluster` and `jobs`, the number of jobs.
    patience
        Seconds without an active worker before the run ends.
    options
        Keywords of `run_into`.

    Raises `ClusterError` when no worker has been active for `patience` seconds. The store is then intact, and the same
    call resumes it. Raises `ConfigError` for a cluster that cannot be reached, before anything is written.
    """
    check_cluster_name(cluster)
    with ExitStack() as closing:
        client, revive = _connect_to_cluster(cluster, closing)
        limit = patience or (QUEUE_SECONDS if cluster.startswith("slurm:") else ACTIVE_WORKER_SECONDS)
        return run_into(path, scenario, chunk_simulator=DaskWorkers(client, cluster, limit, revive).simulate, **options)


def check_cluster_name(cluster: str) -> None:
    """Raise `ConfigError` if a cluster name is invalid, or if the cluster cannot be started on this machine."""
    scheme, _, rest = cluster.partition(":")
    local = cluster == "local" or (scheme == "local" and rest.isdecimal() and int(rest) >= 1)
    if not (local or (scheme == "tcp" and rest.startswith("//") and len(rest) > 2) or (scheme == "slurm" and rest)):
        raise ConfigError(f"{_format_cluster_option(cluster)} is not a cluster. Known: {CLUSTER_FORMATS}")
    if scheme == "slurm" and not Path(rest).is_file():
        raise ConfigError(f"{_format_cluster_option(cluster)}: no such file")
    packages = {"local": ["cryptography"], "slurm": ["dask_jobqueue"]}.get(scheme, [])
    require_modules(format_option("--dask", "a Dask cluster"), "cluster", "distributed", *packages)
    if scheme == "slurm" and shutil.which("sbatch") is None:
        raise ConfigError(
            f"{_format_cluster_option(cluster)}: sbatch was not found; "
            "run this command on a machine that submits SLURM jobs"
        )


def _format_cluster_option(cluster: str) -> str:
    """Return the cluster as the user wrote it, as a command-line option or as a Python argument."""
    return format_option(f"--dask {cluster}", cluster)


class _ResultLostError(Exception):
    """Raised if a worker died before its result was fetched. The scheduler repeats the task."""


class DaskWorkers:
    """The workers of a Dask client. A run ends if no worker is active for `patience` seconds."""

    def __init__(self, client: Any, where: str, patience: float, revive: Callable[[], None]):
        self.client, self.cluster, self.patience, self.revive = client, where, patience, revive
        self.seen, self.threads, self.busy = -POLL_SECONDS, 1, False

    def simulate(self, store: SweepStore, todo: list[Chunk], rerun_failed: bool, log: StoreLog) -> Iterator[Chunk]:
        """Simulate chunks on the workers, and yield each chunk once it is written or has failed."""
        states_to_simulate = get_states_to_simulate(rerun_failed)
        contents = store.config, store.data, store.code, store.missing_values
        sweep = SweepTask(str(store.path), *contents, states_to_simulate)
        task = partial(_simulate_chunk_on_worker, sweep, _collect_worker_requirements())
        run = partial(self._submit_chunks, store, task, log)
        write = partial(_write_chunk, store, states_to_simulate, log)
        suspects = []
        for chunk, result in run(todo, self._get_submission_capacity):
            if _has_killed_workers(result):
                suspects.append(chunk)
            else:
                yield write(chunk, result)
        for chunk, result in run(suspects, lambda: 1):
            yield write(chunk, result)

    def _submit_chunks(
        self,
        store: SweepStore,
        task: Callable[..., ChunkResult],
        log: StoreLog,
        chunks: list[Chunk],
        get_capacity: Callable[[], int],
    ) -> Iterator[tuple[Chunk, ChunkResult | Exception]]:
        """Submit chunks to the workers up to a capacity, and yield each finished chunk with result or exception."""
        submitted: dict[str, tuple[Chunk, Any]] = {}
        ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        left, name = iter(chunks), uuid.uuid4().hex  # keys unique among all clients of the scheduler
        try:
            while True:
                for chunk in islice(left, max(0, get_capacity() - len(submitted))):
                    log(event="playing", block=chunk.number)
                    call = partial(task, chunk, store.read_states(chunk))
                    future = self.client.submit(call, key=f"chunk-{chunk.number}-{name}", pure=False)
                    submitted[future.key] = chunk, future
                    future.add_done_callback(ended.put)
                if not submitted:
                    return
                future = self._wait_for_task(ended)
                try:
                    result = self._get_task_result(future)
                except _ResultLostError:
                    future.add_done_callback(ended.put)
                    continue
                chunk = submitted.pop(future.key)[0]
                del future  # the worker may forget the result
                yield chunk, result
        finally:
            for _, future in submitted.values():
                future.release()

    def _get_submission_capacity(self) -> int:
        """Return the number of chunks that may be submitted at a time."""
        self._poll_scheduler()
        return MAX_SUBMITTED_CHUNKS_PER_THREAD * max(self.threads, 1)

    def _wait_for_task(self, ended: queue.SimpleQueue[Any]) -> Any:
        """Wait for a task to end. Raises `ClusterError` if no worker is active for too long."""
        last = time.monotonic()
        while True:
            with suppress(queue.Empty):
                return ended.get(timeout=POLL_SECONDS)
            self._poll_scheduler()
            if self.busy:
                last = time.monotonic()
            elif time.monotonic() - last > self.patience:
                raise self._make_cluster_error(f"no worker has been active for {self.patience:.0f} seconds")

    def _poll_scheduler(self) -> None:
        """Update the number of threads and the activity of the workers, and replace dead workers."""
        if time.monotonic() - self.seen < POLL_SECONDS:
            return
        self.busy = False
        if self.client.status not in ("running", "connecting"):
            raise self._make_cluster_error("the scheduler is gone")
        with suppress(OSError, TimeoutError):
            workers = self.client.sync(self.client.scheduler.identity, callback_timeout=ANSWER_TIMEOUT_SECONDS)[
                "workers"
            ].values()
            self.threads = sum(worker["nthreads"] for worker in workers)
            self.busy = any(worker["metrics"].get("task_counts", {}).get("executing") for worker in workers)
            self.revive()
        self.seen = time.monotonic()

    def _get_task_result(self, future: Any) -> ChunkResult | Exception:
        """Return the result of a task on the cluster, or its exception.

        Raises `_ResultLostError` if the worker died before its result was fetched.
        """
        if future.status in LOST_RESULT_STATES:
            raise _ResultLostError
        if future.status not in ("finished", "error"):
            raise self._make_cluster_error("the scheduler is gone, or has dropped a chunk")
        try:
            if future.status == "finished":
                return future.result(timeout=SLOW_OPERATION_TIMEOUT_SECONDS)
            problem: Exception = future.exception(timeout=SLOW_OPERATION_TIMEOUT_SECONDS)
        except (OSError, CancelledError) as failure:  # including timeouts and closed connections
            if future.status in LOST_RESULT_STATES:
                raise _ResultLostError from None
            raise self._make_cluster_error(f"the scheduler is gone ({type(failure).__name__})") from None
        if isinstance(problem, StoreError):  # for example a full disk: all other chunks would also fail
            raise problem
        return problem

    def _make_cluster_error(self, reason: str) -> ClusterError:
        """Return an error that says how to resume the run."""
        advice = "Finished chunks are saved; rerun the same command to resume"
        return ClusterError(f"{_format_cluster_option(self.cluster)}: {reason}. {advice}")


def _has_killed_workers(result: ChunkResult | Exception) -> bool:
    """Return True if workers died repeatedly while they had this chunk."""
    from distributed import KilledWorker

    return isinstance(result, KilledWorker)


def _write_chunk(
    store: SweepStore,
    states_to_simulate: tuple[int, ...],
    log: StoreLog,
    chunk: Chunk,
    result: ChunkResult | Exception,
) -> Chunk:
    """Write a chunk that a worker has simulated, or mark its runs as failed, and return the chunk."""
    states = store.read_states(chunk)
    values, is_new = store.load_chunk_buffer(chunk, states), np.isin(states, states_to_simulate)
    if isinstance(result, Exception):
        _log_failed_runs(chunk, is_new, result, log)
        states[is_new] = FAILED_STATE
    else:
        for event in result.events:
            log(**event)
        for name, array in result.values.items():
            values[name][is_new] = array[is_new]
        states = result.states
    store.write(chunk, values, states)
    return chunk


def _log_failed_runs(chunk: Chunk, failed: np.ndarray, problem: Exception, log: StoreLog) -> None:
    """Log the exception of a worker's chunk for each parameter combination with runs that failed."""
    error = f"{type(problem).__name__}: {problem}"
    if _has_killed_workers(problem):
        error = "its worker died repeatedly: a crash, or too little memory"
    for inside in map(tuple, np.argwhere(failed.any(axis=-1))):
        cell = [int(i) + start for i, start in zip(inside, chunk.first_index, strict=True)]
        seeds = [chunk.seeds.start + int(seed) for seed in np.flatnonzero(failed[inside])]
        log(event="failed", cell=cell, seeds=seeds, attempt=1, error=error)


class WorkerRequirements(NamedTuple):
    """The settings of this host that workers need: the data folder, the user's files, and the version."""

    data: str
    files: list[str]
    version: dict[str, Any]


class SweepTask(NamedTuple):
    """The contents of a store that workers need: config, digests of data and code, and values of a missing run."""

    path: str  # for messages
    config: dict[str, Any]
    data: dict[str, str]
    code: dict[str, str] | None
    missing_values: dict[str, np.ndarray]
    states_to_simulate: tuple[int, ...]


class ChunkResult(NamedTuple):
    """The variables of a chunk, the states of its runs, and the events for the log."""

    values: dict[str, np.ndarray]
    states: np.ndarray
    events: list[dict[str, Any]]


def _simulate_chunk_on_worker(
    sweep: SweepTask, required: WorkerRequirements, chunk: Chunk, states: np.ndarray
) -> ChunkResult:
    """Simulate the missing runs of a chunk on a worker."""
    from distributed import get_worker

    notes = EventCollector()
    _check_worker_version(required.version)
    if required.data:
        os.environ[DATA_FOLDER_ENV_VARIABLE] = required.data
    for file in required.files:
        user_files.load_plugin(file)
    with _ONE_CHUNK_LOCK:
        scenario = scenario_from(sweep.config)
        # files on this host may differ from the files of the same names on the command's host
        if changed := describe_changed_inputs(Path(sweep.path), scenario, sweep.data, sweep.code):
            raise StoreError(changed)
        cells = [cell for cell in scenario.cells() if chunk.contains(cell.index)]
        values = make_missing_values(sweep.missing_values, chunk.shape)
        buffer = ChunkBuffer(chunk, values, states.copy(), cells, sweep.states_to_simulate)
        [(_, values, states)] = simulate_chunks(scenario, [buffer], get_worker().state.nthreads, notes)
    return ChunkResult(values, states, notes.events)


def _check_worker_version(required: dict[str, Any]) -> None:
    """Raise `StoreError` if the worker's version differs from this command's: its results may differ."""
    running = get_recorded_version(provenance())
    if running != required:
        difference = f"{format_version(running)}, and this command {format_version(required)}"
        hint = "Start the workers in the environment of the command"
        raise StoreError(f"the worker on {socket.gethostname()} runs {difference}. {hint}")


class EventCollector(StoreLog):
    """Collector of log events. The client writes the log, because lines from many hosts would interleave."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def __call__(self, **event: Any) -> None:
        if event["event"] != "playing":
            self.events.append(event)


def _collect_worker_requirements() -> WorkerRequirements:
    """Collect the settings of this host that workers need."""
    folder = os.environ.get(DATA_FOLDER_ENV_VARIABLE, "")
    data = str(Path(folder).resolve()) if folder else ""
    return WorkerRequirements(data, user_files.list_loaded_plugin_files(), get_recorded_version(provenance()))


def _connect_to_cluster(where: str, closing: ExitStack) -> tuple[Any, Callable[[], None]]:
    """Connect to the cluster, and return a client and a function that replaces dead workers."""
    import dask
    from distributed import Client

    closing.enter_context(_silence_dask_loggers())
    closing.enter_context(_forbid_imports_from_cwd())
    closing.enter_context(
        dask.config.set({"distributed.scheduler.worker-saturation": 1.0, "logging": SILENT_LOG_LEVELS})
    )
    scheme, _, rest = where.partition(":")
    if scheme == "tcp":
        address, security, revive = where, None, lambda: None
    else:
        cluster, revive = _call_with_timeout(
            SLOW_OPERATION_TIMEOUT_SECONDS,
            partial(_start_local_cluster, rest) if scheme == "local" else partial(_start_slurm_cluster, Path(rest)),
        )
        closing.callback(_close_with_timeout, cluster.close)
        if not cluster.scheduler_spec["options"]["dashboard"]:  # Dask starts its HTTP server even without a dashboard
            cluster.loop.add_callback(cluster.scheduler.http_server.stop)
        address, security = cluster.scheduler_address, cluster.security
    try:
        connect = partial(Client, address, timeout=ANSWER_TIMEOUT_SECONDS, set_as_default=False, security=security)
        client = _call_with_timeout(2 * ANSWER_TIMEOUT_SECONDS, connect)
    except (OSError, ValueError) as failure:  # including timeouts
        raise ConfigError(f"{_format_cluster_option(where)}: the scheduler does not answer ({failure})") from None
    closing.callback(_close_with_timeout, client.close)
    return client, revive


def _start_local_cluster(count: str) -> tuple[Any, Callable[[], None]]:
    """Start a cluster of worker processes on this machine, which share its cores.

    Other users of the machine can reach their ports. A key that is made for this run, and stays in memory, prevents
    these users from running code there.
    """
    from distributed import LocalCluster

    workers = int(count or count_cores())
    cluster = LocalCluster(
        n_workers=workers,
        threads_per_worker=max(1, count_cores() // workers),
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False},
        silence_logs=logging.CRITICAL,
        security=True,
    )
    return cluster, lambda: cluster.scale(workers)


def _start_slurm_cluster(file: Path) -> tuple[Any, Callable[[], None]]:
    """Prepare a SLURM cluster, and return it with a function that submits its jobs."""
    import dask
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    # the import installs a Ctrl-C handler: in the main thread it would replace ours, in other threads it fails
    with _SIGNAL_PATCH_LOCK, mock.patch("signal.signal"):
        from dask_jobqueue import SLURMCluster

    try:
        keywords = dict(YAML(typ="safe").load(files.read_bounded_file(file, MAX_CLUSTER_FILE_BYTES).decode()) or {})
        if (jobs := int(keywords.pop("jobs", 1))) < 1:
            raise ValueError(f"jobs must be at least 1, not {jobs}")
        python = keywords.get("python") or dask.config.get("jobqueue.slurm.python", None) or sys.executable
        keywords["python"] = f"{python} -P"  # -P: jobs must not import from the current folder
        no_page = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
        keywords["scheduler_options"] = no_page | keywords.get("scheduler_options", {})
        cluster = SLURMCluster(**keywords)
    except (YAMLError, TypeError, ValueError, OSError, RuntimeError) as failure:
        raise ConfigError(f"{file}: is not a valid SLURM cluster description: {failure}") from None
    _test_slurm_submission(file, cluster)
    return cluster, lambda: cluster.scale(jobs=jobs)


def _test_slurm_submission(file: Path, cluster: Any) -> None:
    """Raise `ConfigError` if SLURM would reject the jobs: Dask does not report a rejection."""
    try:
        process = subprocess.run(
            ["sbatch", "--test-only"],
            input=cluster.job_script(),
            capture_output=True,
            text=True,
            timeout=SLOW_OPERATION_TIMEOUT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise ConfigError(f"{file}: sbatch does not answer ({failure})") from None
    if process.returncode:
        _close_with_timeout(cluster.close)
        raise ConfigError(f"{file}: SLURM rejected the job: {' '.join(process.stderr.split())}")


def _call_with_timeout(seconds: float, function: Callable[[], Any]) -> Any:
    """Call a function that waits for a Dask server, and raise `TimeoutError` after `seconds`.

    A Dask client waits forever for a server that accepts the connection but does not answer.
    """
    ended: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            ended.put((function(), None))
        except BaseException as problem:
            ended.put((None, problem))

    threading.Thread(target=run, daemon=True).start()
    try:
        result, problem = ended.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"no answer in {seconds:.0f} seconds") from None
    if problem is not None:
        raise problem
    return result


def _close_with_timeout(close: Callable[..., Any]) -> None:
    """Close a client or cluster, but wait only a limited time for an answer."""
    with suppress(Exception):  # errors no longer matter: the work is finished or already broken
        close(timeout=ANSWER_TIMEOUT_SECONDS)


@contextmanager
def _forbid_imports_from_cwd() -> Iterator[None]:
    """Prevent new workers from importing from the current folder, which may belong to another user."""
    previous = os.environ.get(user_files.SAFE_PATH_ENV_VARIABLE)
    os.environ[user_files.SAFE_PATH_ENV_VARIABLE] = "1"
    try:
        yield
    finally:
        del os.environ[user_files.SAFE_PATH_ENV_VARIABLE]
        if previous is not None:
            os.environ[user_files.SAFE_PATH_ENV_VARIABLE] = previous


@contextmanager
def _silence_dask_loggers() -> Iterator[None]:
    """Silence Dask's messages about starting and stopping workers."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client", "tornado.application")]
    previous_levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, previous_levels, strict=True):
            logger.setLevel(level)
