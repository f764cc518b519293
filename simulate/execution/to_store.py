"""Simulation of a scenario into a store, chunk by chunk. An interrupted run can be resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simulate.execution.chunks import get_states_to_simulate, simulate_chunks
from simulate.execution.isolated import simulate_in_child_processes
from simulate.execution.units import check_can_simulate, count_affordable_units, make_dataset_attributes, make_simulator
from statmech.errors import StatmechError, StoreError
from statmech.results.checksums import check_regular_files, find_corrupted_files
from statmech.results.chunks import Chunk, compute_chunk_lengths
from statmech.results.dataset import ProgressCallback
from statmech.results.locks import StoreClaim, claim_store
from statmech.results.log import EventListener, StoreLog
from statmech.results.store import (
    describe_changed_code,
    describe_changed_data,
    describe_other_config,
    get_replacement_hint,
    provenance,
)
from statmech.results.store_creation import (
    check_variable_forms,
    create_store,
    is_extension,
    recover_interrupted_replacement,
    repair_metadata,
)
from statmech.results.stored_config import FIGURE_KEY, list_config_differences
from statmech.results.sweep_store import DONE_STATE, FAILED_STATE, MISSING_STATE, SweepStore
from statmech.runtime.jax_cache import set_up_compilation_cache
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.composition import FigureKeyValue
from statmech.scenarios.registry import scenario_from

ChunkSimulator = Callable[[SweepStore, list[Chunk], bool, StoreLog], Iterator[Chunk]]  # yields written chunks


class Outcome(NamedTuple):
    """The numbers of done, failed and missing runs (parameter combinations times seeds) of a store."""

    done: int
    failed: int
    missing: int


def run_into(
    path: Path,
    scenario: AbstractScenario,
    *,
    fresh: bool = False,
    rerun_failed: bool = False,
    shard: tuple[int, int] = (1, 1),
    workers: int | None = None,
    memory: float | None = None,
    figure: FigureKeyValue = None,
    progress: ProgressCallback | None = None,
    tell: EventListener | None = None,
    chunk_simulator: ChunkSimulator | None = None,
) -> Outcome:
    """Simulate the missing runs of a scenario's store, and write them.

    A store of the same config is resumed. A store with fewer values on its axes or fewer seeds is extended.

    Parameters
    ----------
    path
        The store. Its `state` marks runs as done, failed or missing.
    scenario
        The scenario.
    fresh
        True to replace stored results, including results of another config.
    rerun_failed
        True to try failed runs again.
    shard
        (k, n) to simulate every n-th chunk, starting with the k-th.
    workers
        Number of threads.
    memory
        Memory limit in bytes.
    figure
        Figure that a new store remembers.
    progress
        Callback for the numbers of finished runs and of all runs.
    tell
        Callback for each event of the log.
    chunk_simulator
        Function that simulates and writes chunks instead of this process.

    Returns
    -------
    Outcome
        Numbers of runs that are done, failed and missing.

    Raises
    ------
    StoreError
        If the store has another config or other data, if another run is writing it, if it would have to be
        extended while shards write it, or if the disk is full.

    Examples
    --------
    >>> import tempfile
    >>> from statmech import Scenario
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run_into(Path(folder) / "simulation.zarr", Scenario(rule="hebb", N=20, t=[1], seeds=4))
    Outcome(done=4, failed=0, missing=0)
    """
    simulator = make_simulator(scenario)
    set_up_compilation_cache()
    check_can_simulate(simulator)
    compute_chunk_lengths(scenario)  # fails before anything is written if there are too many chunks
    workers = count_affordable_units(simulator, workers, memory)
    with claim_store(path, shard) as claim:
        log = StoreLog(path, tell, shard)
        run = StoreRun(path, scenario, log, fresh, rerun_failed, shard, workers, figure, progress, chunk_simulator)
        store = run.open(claim)
        run.run(store, run.plan_chunks(store))
        return run.log_final_counts(store)


@dataclass
class StoreRun:
    """A run of a scenario into a store: opening the store, planning its chunks and simulating them."""

    path: Path
    scenario: AbstractScenario
    log: StoreLog
    fresh: bool = False
    again: bool = False
    shard: tuple[int, int] = (1, 1)
    workers: int | None = None
    figure: FigureKeyValue = None
    progress: ProgressCallback | None = None
    chunk_simulator: ChunkSimulator | None = None
    done: int = 0  # finished runs of this shard
    num_shard_runs: int = 0
    suspect_chunk_numbers: set[int] = field(
        default_factory=set
    )  # numbers of chunks that may have killed the last two runs

    def open(self, claim: StoreClaim) -> SweepStore:
        """Open the store, creating or extending it if necessary."""
        return claim.open(
            find=lambda: None if self.fresh else find_matching_store(self.path, self.scenario, self.again),
            create=self._create_or_extend,
            wait=lambda owner: self.log(event="waiting", owner=owner),
        )

    def _create_or_extend(self) -> SweepStore:
        """Open the store, which is created if missing and extended if the scenario has grown."""
        path, scenario, log = self.path, self.scenario, self.log
        recover_interrupted_replacement(path)
        if self.fresh or not (path.exists() or path.is_symlink()):
            return create_store(path, scenario, _make_store_attributes(scenario), figure=self.figure)
        check_regular_files(path)
        try:
            for name in repair_metadata(path):
                log(event="restored", file=name)
            store = SweepStore(path)
            config = store.config
        except StatmechError as failure:
            raise StoreError(f"{failure}. {get_replacement_hint()}") from None
        changed = list_config_differences(scenario.config(), config)
        if changed and not is_extension(scenario, config):
            raise StoreError(describe_other_config(path, changed, get_replacement_hint()))
        if problem := _describe_data_or_code_change(store, scenario_from(config)):
            raise StoreError(f"{problem}. {get_replacement_hint()}")
        if not changed and not _must_record_version(store, self.again):
            return store
        check_variable_forms(store, scenario_from(config))
        if changed:
            log(event="grown", differences=changed)
        if not store.is_running_version:
            log(event="version", stored=store.provenances[-1], running=provenance())
        return create_store(
            path, scenario, _make_store_attributes(scenario), old=store, figure=self.figure or config.get(FIGURE_KEY)
        )

    def plan_chunks(self, store: SweepStore) -> list[Chunk]:
        """Return this shard's chunks that have runs to simulate, including corrupted chunks."""
        k, n = self.shard
        self.suspect_chunk_numbers = self.log.find_repeated_crash_chunks()
        mine = [chunk for chunk in store.list_chunks() if chunk.number % n == k - 1]
        states = get_states_to_simulate(self.again)
        todo = [chunk for chunk in mine if np.isin(_get_intact_states(store, chunk, self.log), states).any()]
        self.num_shard_runs = sum(chunk.runs for chunk in mine)
        self.done = self.num_shard_runs - sum(chunk.runs for chunk in todo)
        if todo:
            check_variable_forms(store, self.scenario)
        self.log(
            event="begun", runs=self.num_shard_runs, done=self.done, blocks=len(todo), machine=provenance()["machine"]
        )
        self._report_progress()
        return todo

    def run(self, store: SweepStore, todo: list[Chunk]) -> None:
        """Simulate and write chunks. Suspect chunks come first, each in a process of its own."""
        suspects = [chunk for chunk in todo if chunk.number in self.suspect_chunk_numbers]
        for chunk in simulate_in_child_processes(store, suspects, self.again, self.log):
            todo.remove(chunk)
            self._record_chunk(chunk)
        simulated = (
            self.chunk_simulator(store, todo, self.again, self.log)
            if self.chunk_simulator
            else self._simulate_here(store, todo)
        )
        for chunk in simulated:
            self._record_chunk(chunk)
            self._report_progress()

    def log_final_counts(self, store: SweepStore) -> Outcome:
        """Log and return the final counts of the store's runs."""
        counts = store.count_states()
        outcome = Outcome(counts[DONE_STATE], counts[FAILED_STATE], counts[MISSING_STATE])
        self.log(event="ended", **outcome._asdict())
        return outcome

    def _simulate_here(self, store: SweepStore, todo: list[Chunk]) -> Iterator[Chunk]:
        """Simulate chunks in this process, and yield each after writing it."""
        filled_chunks = simulate_chunks(
            self.scenario, store, todo, get_states_to_simulate(self.again), self.workers, self.log
        )
        for chunk, values, states in filled_chunks:
            store.write(chunk, values, states)
            yield chunk

    def _record_chunk(self, chunk: Chunk) -> None:
        self.done += chunk.runs
        self.log(event="written", block=chunk.number, done=self.done, runs=self.num_shard_runs)

    def _report_progress(self) -> None:
        if self.progress:
            self.progress(self.done, self.num_shard_runs)


def find_matching_store(path: Path, scenario: AbstractScenario, rerun_failed: bool = False) -> SweepStore | None:
    """Return the store at `path` if it is intact and matches this scenario and its data, else None."""
    check_regular_files(path)
    if not path.exists() or find_corrupted_files(path):
        return None
    store = SweepStore(path)
    change = list_config_differences(scenario.config(), store.config) or _describe_data_or_code_change(store, scenario)
    return None if change or _must_record_version(store, rerun_failed) else store


def _describe_data_or_code_change(store: SweepStore, scenario: AbstractScenario) -> str:
    """Describe a change of data or code that forbids adding runs to the store, or return an empty string."""
    return describe_changed_data(store.path, scenario, store.data) or describe_changed_code(
        store.path, scenario, store.code or {}
    )


def _must_record_version(store: SweepStore, rerun_failed: bool) -> bool:
    """Return True if the store must record this version before runs are added."""
    return not store.is_running_version and any(
        store.count_states()[state] for state in get_states_to_simulate(rerun_failed)
    )


def _make_store_attributes(scenario: AbstractScenario) -> dict[str, object]:
    """Return the attributes of a new store."""
    return {"title": "statmech simulation", **make_dataset_attributes(make_simulator(scenario))}


def _get_intact_states(store: SweepStore, chunk: Chunk, log: StoreLog) -> np.ndarray:
    """Return the run states of a chunk. A corrupted chunk has only missing runs."""
    states = store.read_states(chunk)
    faults = store.faults(chunk, states)
    if not faults:
        return states
    log(event="damaged", block=chunk.number, faults=faults)
    store.mark_missing(chunk)
    return np.full_like(states, MISSING_STATE)
