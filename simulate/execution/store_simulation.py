"""Simulation of a scenario into a store, and recomputation of stored runs.

Simulation proceeds chunk by chunk, and an interrupted run can be resumed. One process writes a store. Several processes
share a sweep as shards, each with a store of its own (`list_stores` in `statmech.stores.zarr_store`).

Recomputation: samples of every version are simulated again and compared bit by bit. Checksums and fingerprints show
that a number has not changed since it was written. Only recomputation shows that today's code, with the user's files of
today, still gives the same number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simulate.execution.chunk_simulation import (
    get_states_to_simulate,
    open_buffers,
    simulate_chunks,
    simulate_in_child_processes,
)
from simulate.execution.work_units import (
    Simulator,
    check_can_simulate,
    count_affordable_units,
    make_dataset_attributes,
    make_simulator,
    run_units,
)
from statmech.errors import DamagedStoreError, StatmechError, StoreError
from statmech.keys.figure_key import FigureKeyValue
from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import Cell
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.runtime.compiled_programs import set_up_compilation_cache
from statmech.runtime.progress_bar import ProgressCallback
from statmech.runtime.user_code_and_provenance import format_version, provenance
from statmech.stores.checksums import check_regular_files
from statmech.stores.dataset import FIGURE_KEY, list_config_differences
from statmech.stores.locks import find_writing_process, lock_store
from statmech.stores.store_creation import (
    check_variable_forms,
    create_store,
    is_extension,
    recover_interrupted_replacement,
    remove_store,
    repair_metadata,
)
from statmech.stores.store_status import EventListener, StoreLog, describe_chunk
from statmech.stores.sweep_chunks import (
    FAILED_STATE,
    MISSING_STATE,
    UNKNOWN_VERSION_INDEX,
    Chunk,
    SweepStore,
    compute_chunk_lengths,
    count_states,
)
from statmech.stores.zarr_store import (
    DONE_STATE,
    describe_changed_inputs,
    describe_other_config,
    get_replacement_hint,
    get_shard_path,
    list_stores,
    record_figure,
)

ChunkSimulator = Callable[[SweepStore, list[Chunk], bool, StoreLog], Iterator[Chunk]]  # yields written chunks


class Recomputation(NamedTuple):
    """Number of recomputed runs, a line per differing parameter combination, and any obstacle."""

    runs: int
    difference_descriptions: list[str]
    obstacle: str = ""


def recompute(path: Path, max_cells: int) -> Recomputation:
    """Simulate stored runs again, of up to `max_cells` random parameter combinations of every version in the store.

    Parameters
    ----------
    path
        The store of a simulation.
    max_cells
        Maximum number of parameter combinations per version. The seeds simulated together count as one.

    Returns
    -------
    Recomputation
        With an `obstacle` if data or code differ from the stored runs'.

    Examples
    --------
    >>> import tempfile
    >>> from statmech import Scenario
    >>> from simulate.execution.store_simulation import run_into
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "simulation.zarr"
    ...     _ = run_into(path, Scenario(rule="hebb", N=20, t=[1], seeds=4))
    ...     result = recompute(path, 1)
    >>> result.runs, result.difference_descriptions, result.obstacle
    (4, [], '')
    """
    store = SweepStore(path)
    try:
        scenario = scenario_from(store.config)
        missing = " ".join(sentence for _, sentence in scenario.find_input_file_problems())
        obstacle = missing or describe_changed_inputs(path, scenario, store.data, store.code)
    except StatmechError as failure:  # for example, a user's rule is not loaded
        obstacle = str(failure)
    if obstacle:
        return Recomputation(0, [], obstacle)
    simulator, runs, differing = make_simulator(scenario), 0, list[str]()
    cells = {cell.index: cell for cell in scenario.cells()}
    for sample, version in _draw_run_samples(store, max_cells, scenario.seeds_per_batch):
        index = sample.first_index
        stored = store.load_chunk_buffer(sample, store.read_states(sample))
        is_done = _find_done_runs_of_version(store, sample, version)
        runs += int(is_done.sum())
        for names in _find_differing_variables(simulator, cells[index], sample, stored, is_done):
            made_by = (
                format_version(store.provenances[version]) if version != UNKNOWN_VERSION_INDEX else "an unknown version"
            )
            differing.append(
                f"{describe_chunk(store, sample)}: {names} differ from the values of this version; by {made_by}"
            )
    return Recomputation(runs, differing)


def _draw_run_samples(store: SweepStore, max_cells: int, seeds_together: int) -> Iterator[tuple[Chunk, int]]:
    """Draw random samples of stored runs to simulate again, and yield each with its version.

    A sample has one parameter combination and the seeds that are simulated together.
    """
    rng, chunks = np.random.default_rng(0), store.list_chunks()
    for version in [*range(len(store.provenances)), UNKNOWN_VERSION_INDEX]:
        counts = [int(_find_done_runs_of_version(store, chunk, version).sum()) for chunk in chunks]
        numbers = rng.choice(sum(counts), min(max_cells, sum(counts)), replace=False)
        for number in sorted(numbers):
            chunk_number = int(np.searchsorted(np.cumsum(counts), number, side="right"))
            chunk, inside = chunks[chunk_number], int(number) - sum(counts[:chunk_number])
            *cell_index, seed = np.argwhere(_find_done_runs_of_version(store, chunk, version))[inside] + [
                side.start for side in chunk.slices
            ]
            first = int(seed) // seeds_together * seeds_together
            seeds = slice(first, min(first + seeds_together, chunk.slices[-1].stop))
            yield Chunk(chunk.number, (*(slice(int(i), int(i) + 1) for i in cell_index), seeds)), version


def _find_done_runs_of_version(store: SweepStore, chunk: Chunk, version: int) -> np.ndarray:
    """Return a mask of a chunk's finished runs that this version simulated."""
    return (store.read_states(chunk) == DONE_STATE) & (store.read_versions(chunk) == version)


def _find_differing_variables(
    simulator: Simulator, cell: Cell, sample: Chunk, stored: dict[str, np.ndarray], is_done: np.ndarray
) -> Iterator[str]:
    """Simulate a sample of stored runs again, and yield the names of differing variables or the error raised."""
    wrong = set[str]()
    for _, results in run_units(simulator, simulator.prepare_units([cell], sample.seeds)):
        if isinstance(results, Exception):
            yield f"{type(results).__name__}: {results}: all variables"
            return
        for result in results:
            seeds = slice(result.seeds.start - sample.seeds.start, result.seeds.stop - sample.seeds.start)
            for name, values in result.values.items():
                stored_values = stored[name].reshape(
                    sample.seeds.stop - sample.seeds.start, *stored[name].shape[is_done.ndim :]
                )
                inner = tuple(slice(length) for length in values.shape[1:])
                mask = is_done.reshape(-1)[seeds]
                new_values = np.asarray(values).astype(stored_values.dtype)
                if stored_values[(seeds, *inner)][mask].tobytes() != new_values[mask].tobytes():
                    wrong.add(name)
    if wrong:
        yield ", ".join(sorted(wrong))


class Outcome(NamedTuple):
    """The numbers of done, failed and missing runs (parameter combinations times seeds) of a sweep or shard."""

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
    """Simulate the missing runs of a scenario, and write them into its store.

    A store of the same config is resumed. A store with fewer values on its axes or fewer seeds is extended. Chunks that
    another store of this simulation has are not simulated again.

    Parameters
    ----------
    path
        The store. Its `state` marks runs as done, failed or missing.
    scenario
        The scenario.
    fresh
        True to replace stored results, including results of another config. Without `shard` this deletes all shards.
    rerun_failed
        True to try failed runs again.
    shard
        (k, n) to simulate every n-th chunk, starting with the k-th, into the store `NAME.K-of-N.zarr` next to `path`.
    workers
        Number of threads.
    memory
        Memory limit in bytes.
    figure
        Figure that the store remembers, instead of the figure of an earlier run.
    progress
        Callback for the numbers of finished runs and of all runs.
    tell
        Callback for each event of the log.
    chunk_simulator
        Function that simulates and writes chunks instead of this process.

    Returns
    -------
    Outcome
        Numbers of runs of the sweep or shard that are done, failed and missing.

    Raises
    ------
    StoreError
        If a store of this simulation has another config or other data, if another run is writing the store, if a
        shard is being written and this run is not a shard, or if the disk is full.

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
    own_path = get_shard_path(path, shard)
    with lock_store(own_path):
        log = StoreLog(own_path, tell)
        run = StoreRun(own_path, scenario, log, fresh, rerun_failed, shard, workers, figure, progress, chunk_simulator)
        run.open_other_stores([store for store in list_stores(path) if store != own_path])
        store = run.open()
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
    other_stores: list[SweepStore] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)  # this shard, finished or not
    done: int = 0  # finished runs of this shard
    num_shard_runs: int = 0
    # numbers of chunks that may have killed the last two runs
    suspect_chunk_numbers: set[int] = field(default_factory=set)

    def open_other_stores(self, paths: list[Path]) -> None:
        """Open the other stores of a simulation before it runs, or delete them for a fresh run of the entire sweep.

        Raises `StoreError` for another config, data or code. Another shard may still have fewer values or seeds.
        """
        is_shard = self.shard[1] > 1
        for path in paths:
            if not is_shard and self.fresh:
                with lock_store(path):
                    remove_store(path)
            elif not self.fresh:
                if not is_shard and (writer := find_writing_process(path)):
                    raise StoreError(f"{path}: is being written by {writer}")
                check_regular_files(path)
                with suppress(DamagedStoreError):  # readers report it
                    store = SweepStore(path)
                    changed = self._list_extensions(store)
                    if changed and not is_shard:
                        remedy = f"Repeat this command with the shards, or: {get_replacement_hint()}"
                        raise StoreError(describe_other_config(path, changed, remedy))
                    self.other_stores += [] if changed else [store]

    def open(self) -> SweepStore:
        """Open the store of a simulation before it runs, creating it if it is missing, and extending it if needed."""
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
        changed = self._list_extensions(store)
        if not changed and not _must_record_version(store, self.again):
            record_figure(path, self.figure)
            return store
        check_variable_forms(store, scenario_from(config))
        if changed:
            log(event="grown", differences=changed)
        if not store.is_running_version:
            log(event="version", stored=store.provenances[-1], running=provenance())
        return create_store(
            path, scenario, _make_store_attributes(scenario), old=store, figure=self.figure or config.get(FIGURE_KEY)
        )

    def _list_extensions(self, store: SweepStore) -> list[str]:
        """Return a line for each key that a simulation extends in its store, or nothing for the same sweep.

        Raises `StoreError` if the store has another config, data or code, so that no runs may be added.
        """
        changed = list_config_differences(self.scenario.config(), store.config)
        if changed and not is_extension(self.scenario, store.config):
            raise StoreError(describe_other_config(store.path, changed, get_replacement_hint()))
        stored = scenario_from(store.config)
        if problem := describe_changed_inputs(store.path, stored, store.data, store.code or {}):
            raise StoreError(f"{problem}. {get_replacement_hint()}")
        return changed

    def plan_chunks(self, store: SweepStore) -> list[Chunk]:
        """Return the chunks that a simulation into a store has to run for its shard, including corrupted chunks."""
        k, n = self.shard
        self.suspect_chunk_numbers = self.log.find_repeated_crash_chunks()
        self.chunks = [chunk for chunk in store.list_chunks() if chunk.number % n == k - 1]
        states = get_states_to_simulate(self.again)
        todo = [
            chunk
            for chunk in self.chunks
            if np.isin(_get_intact_states(store, chunk, self.log), states).any() and not self._is_done_elsewhere(chunk)
        ]
        self.num_shard_runs = sum(chunk.runs for chunk in self.chunks)
        self.done = self.num_shard_runs - sum(chunk.runs for chunk in todo)
        if todo:
            check_variable_forms(store, self.scenario)
        self.log(
            event="begun", runs=self.num_shard_runs, done=self.done, blocks=len(todo), machine=provenance()["machine"]
        )
        self._report_progress()
        return todo

    def _is_done_elsewhere(self, chunk: Chunk) -> bool:
        """Return True if a simulation can skip a chunk, because another store has all its runs intact."""
        for store in self.other_stores:
            states = store.read_states(chunk)
            if (states == DONE_STATE).all() and not store.faults(chunk, states):
                return True
        return False

    def run(self, store: SweepStore, todo: list[Chunk]) -> None:
        """Simulate the planned chunks into the store. Suspect chunks come first, each in a process of its own."""
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
        """Log and return the final counts of runs after a simulation of the sweep or shard into its store."""
        counts = count_states([store, *self.other_stores], self.chunks)
        outcome = Outcome(counts[DONE_STATE], counts[FAILED_STATE], counts[MISSING_STATE])
        self.log(event="ended", **outcome._asdict())
        return outcome

    def _simulate_here(self, store: SweepStore, todo: list[Chunk]) -> Iterator[Chunk]:
        """Simulate chunks in this process, and yield each after writing it into the store."""
        buffers = open_buffers(self.scenario, store, todo, get_states_to_simulate(self.again))
        for chunk, values, states in simulate_chunks(self.scenario, buffers, self.workers, self.log):
            store.write(chunk, values, states)
            yield chunk

    def _record_chunk(self, chunk: Chunk) -> None:
        self.done += chunk.runs
        self.log(event="written", block=chunk.number, done=self.done, runs=self.num_shard_runs)

    def _report_progress(self) -> None:
        if self.progress:
            self.progress(self.done, self.num_shard_runs)


def _must_record_version(store: SweepStore, rerun_failed: bool) -> bool:
    """Return True if the store must record this version before runs are added."""
    return not store.is_running_version and any(
        store.count_states()[state] for state in get_states_to_simulate(rerun_failed)
    )


def _make_store_attributes(scenario: AbstractScenario) -> dict[str, object]:
    """Return the attributes of a new store."""
    return {"title": "statmech simulation", **make_dataset_attributes(make_simulator(scenario))}


def _get_intact_states(store: SweepStore, chunk: Chunk, log: StoreLog) -> np.ndarray:
    """Return the run states of a chunk before its simulation. A corrupted chunk has only missing runs."""
    states = store.read_states(chunk)
    faults = store.faults(chunk, states)
    if not faults:
        return states
    log(event="damaged", block=chunk.number, faults=faults)
    store.mark_missing(chunk)
    return np.full_like(states, MISSING_STATE)
