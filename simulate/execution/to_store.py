"""Simulation of a scenario into a store, chunk by chunk. The next run resumes an interrupted one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simulate.execution.chunks import lacking, simulate_chunks
from simulate.execution.isolated import simulate_isolated
from simulate.execution.units import affordable, attrs, check, simulator_of
from statmech.errors import StatmechError, StoreError
from statmech.results.checksums import check_ordinary, corrupted
from statmech.results.chunks import Chunk, chunk_lengths
from statmech.results.dataset import Progress
from statmech.results.locks import Claim, claimed
from statmech.results.log import Listener, Log
from statmech.results.store import another_config, other_code, other_data, provenance, replacing
from statmech.results.store_creation import check_form, complete_replacement, create, is_extension, repair_metadata
from statmech.results.stored_config import FIGURE, differences
from statmech.results.sweep_store import DONE, FAILED, MISSING, SweepStore
from statmech.runtime.jax_cache import use_cache
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.composition import FigureKey
from statmech.scenarios.registry import scenario_from

Elsewhere = Callable[[SweepStore, list[Chunk], bool, Log], Iterator[Chunk]]  # yields written chunks


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
    again: bool = False,
    shard: tuple[int, int] = (1, 1),
    workers: int | None = None,
    memory: float | None = None,
    figure: FigureKey = None,
    progress: Progress | None = None,
    tell: Listener | None = None,
    elsewhere: Elsewhere | None = None,
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
    again
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
        elsewhere
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
    simulator = simulator_of(scenario)
    use_cache()
    check(simulator)
    chunk_lengths(scenario)  # raises an error for too many chunks before anything is written
    workers = affordable(simulator, workers, memory)
    with claimed(path, shard) as claim:
        log = Log(path, tell, shard)
        run = StoreRun(path, scenario, log, fresh, again, shard, workers, figure, progress, elsewhere)
        store = run.open(claim)
        run.run(store, run.plan(store))
        return run.finish(store)


@dataclass
class StoreRun:
    """One run of a scenario into a store: it opens the store, plans its chunks and simulates them."""

    path: Path
    scenario: AbstractScenario
    log: Log
    fresh: bool = False
    again: bool = False
    shard: tuple[int, int] = (1, 1)
    workers: int | None = None
    figure: FigureKey = None
    progress: Progress | None = None
    elsewhere: Elsewhere | None = None
    done: int = 0  # runs of this shard
    total: int = 0
    suspects: set[int] = field(default_factory=set)  # chunks that may have killed the last two runs

    def open(self, claim: Claim) -> SweepStore:
        """Open the store, after creating or extending it if necessary."""
        return claim.open(
            find=lambda: None if self.fresh else find_store(self.path, self.scenario, self.again),
            create=self._create_or_extend,
            wait=lambda owner: self.log(event="waiting", owner=owner),
        )

    def _create_or_extend(self) -> SweepStore:
        """Open the store. Create it if it does not exist, and extend it if the scenario does."""
        path, scenario, log = self.path, self.scenario, self.log
        complete_replacement(path)
        if self.fresh or not (path.exists() or path.is_symlink()):
            return create(path, scenario, _attrs(scenario), figure=self.figure)
        check_ordinary(path)
        try:
            for name in repair_metadata(path):
                log(event="restored", file=name)
            store = SweepStore(path)
            config = store.config
        except StatmechError as failure:
            raise StoreError(f"{failure}. {replacing()}") from None
        changed = differences(scenario.config(), config)
        if changed and not is_extension(scenario, config):
            raise StoreError(another_config(path, changed, replacing()))
        if problem := _problem(store, scenario_from(config)):
            raise StoreError(f"{problem}. {replacing()}")
        if not changed and not _needs_this_version(store, self.again):
            return store
        check_form(store, scenario_from(config))
        if changed:
            log(event="grown", differences=changed)
        if not store.is_of_this_version:
            log(event="version", stored=store.provenances[-1], running=provenance())
        return create(path, scenario, _attrs(scenario), old=store, figure=self.figure or config.get(FIGURE))

    def plan(self, store: SweepStore) -> list[Chunk]:
        """Return the chunks of this shard with runs to simulate, including corrupted chunks."""
        k, n = self.shard
        self.suspects = self.log.suspects()
        mine = [chunk for chunk in store.chunks() if chunk.number % n == k - 1]
        states = lacking(self.again)
        todo = [chunk for chunk in mine if np.isin(_intact_states(store, chunk, self.log), states).any()]
        self.total = sum(chunk.runs for chunk in mine)
        self.done = self.total - sum(chunk.runs for chunk in todo)
        if todo:
            check_form(store, self.scenario)
        self.log(event="begun", runs=self.total, done=self.done, blocks=len(todo), machine=provenance()["machine"])
        self._show()
        return todo

    def run(self, store: SweepStore, todo: list[Chunk]) -> None:
        """Simulate and write these chunks: first the suspects, in a process each."""
        suspects = [chunk for chunk in todo if chunk.number in self.suspects]
        for chunk in simulate_isolated(store, suspects, self.again, self.log):
            todo.remove(chunk)
            self._record(chunk)
        simulated = self.elsewhere(store, todo, self.again, self.log) if self.elsewhere else self._here(store, todo)
        for chunk in simulated:
            self._record(chunk)
            self._show()

    def finish(self, store: SweepStore) -> Outcome:
        """Log and return the final counts of the store's runs."""
        counts = store.counts()
        outcome = Outcome(counts[DONE], counts[FAILED], counts[MISSING])
        self.log(event="ended", **outcome._asdict())
        return outcome

    def _here(self, store: SweepStore, todo: list[Chunk]) -> Iterator[Chunk]:
        """Simulate chunks in this process, and yield each after writing it."""
        filled_chunks = simulate_chunks(self.scenario, store, todo, lacking(self.again), self.workers, self.log)
        for chunk, values, states in filled_chunks:
            store.write(chunk, values, states)
            yield chunk

    def _record(self, chunk: Chunk) -> None:
        self.done += chunk.runs
        self.log(event="written", block=chunk.number, done=self.done, runs=self.total)

    def _show(self) -> None:
        if self.progress:
            self.progress(self.done, self.total)


def find_store(path: Path, scenario: AbstractScenario, again: bool = False) -> SweepStore | None:
    """Return the store at `path` if it is intact and has exactly this scenario and its data, otherwise None."""
    check_ordinary(path)
    if not path.exists() or corrupted(path):
        return None
    store = SweepStore(path)
    change = differences(scenario.config(), store.config) or _problem(store, scenario)
    return None if change or _needs_this_version(store, again) else store


def _problem(store: SweepStore, scenario: AbstractScenario) -> str:
    """Describe changes of the user's data or code that forbid mixing stored and new runs, or return an empty string."""
    return other_data(store.path, scenario, store.data) or other_code(store.path, scenario, store.code or {})


def _needs_this_version(store: SweepStore, again: bool) -> bool:
    """Return True if new runs would join another version's runs, so that the store must record this version first."""
    return not store.is_of_this_version and any(store.counts()[state] for state in lacking(again))


def _attrs(scenario: AbstractScenario) -> dict[str, object]:
    """Return the attributes of a new store."""
    return {"title": "statmech simulation", **attrs(simulator_of(scenario))}


def _intact_states(store: SweepStore, chunk: Chunk, log: Log) -> np.ndarray:
    """Return the states of a chunk's runs, all missing if the chunk is corrupted."""
    states = store.states(chunk)
    faults = store.faults(chunk, states)
    if not faults:
        return states
    log(event="damaged", block=chunk.number, faults=faults)
    store.mark_missing(chunk)
    return np.full_like(states, MISSING)
