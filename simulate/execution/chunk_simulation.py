"""Simulation of chunks in one process or in child processes, with retries of failed runs.

Missing runs are simulated unit by unit. The numbers of a chunk depend only on its parameter combinations and seeds, so
that a resumed or sharded run gives the same bits as an uninterrupted one.

Exceptions: a unit that raises an exception does not stop the others. Its parameter combinations are tried again one by
one, three times in total. Combinations that still fail are stored as failed, with the message in the log.

Crashes: a user's rule may crash the interpreter. Chunks that may have killed earlier runs are therefore simulated in
child processes, where `main` simulates one chunk or one parameter combination of a chunk. A child that dies, by a crash
or for lack of memory, costs its chunk's time. The chunk's parameter combinations are then simulated in one child each,
and combinations that die again are stored as failed. A child dies with its parent.
"""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from simulate.execution.work_units import Simulator, UnitResult, make_simulator, pause_garbage_collection, run_units
from statmech.config import user_files
from statmech.errors import StatmechError, StoreError
from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import Cell
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.runtime.compiled_programs import set_up_compilation_cache
from statmech.runtime.operating_system import describe_exit_code, die_with_parent
from statmech.stores.store_status import StoreLog
from statmech.stores.sweep_chunks import DONE_STATE, FAILED_STATE, MISSING_STATE, Chunk, SweepStore
from statmech.stores.zarr_store import describe_changed_inputs

MAX_RUN_ATTEMPTS = 3

FilledChunk = tuple[Chunk, dict[str, np.ndarray], np.ndarray]  # chunk, its variables, states of its runs
PROJECT_ROOT = Path(__file__).parents[2]
CHILD_PROCESS_CODE = (
    "import sys; sys.path.append(sys.argv.pop(1)); from simulate.execution.chunk_simulation import main; main()"
)


def get_states_to_simulate(include_failed: bool) -> tuple[int, ...]:
    """Return the run states to simulate: missing, and with `include_failed` also failed."""
    return (MISSING_STATE, FAILED_STATE) if include_failed else (MISSING_STATE,)


def simulate_stored_chunk(
    path: Path, number: int, rerun_failed: bool = False, cell_index: tuple[int, ...] | None = None
) -> None:
    """Simulate the missing runs of one chunk of the store at `path`, and write the chunk.

    A child process has this task, while its parent holds the lock of the store.

    Parameters
    ----------
    path, number
        The store, and the chunk.
    rerun_failed
        True to try failed runs again.
    cell_index
        Index of a parameter combination, to simulate it alone.
    """
    store = SweepStore(path)
    scenario, chunk = scenario_from(store.config), store.list_chunks()[number]
    if changed := describe_changed_inputs(path, scenario, store.data, store.code):
        raise StoreError(changed)
    [buffer] = open_buffers(scenario, store, [chunk], get_states_to_simulate(rerun_failed))
    buffer.cells = [cell for cell in buffer.cells if cell_index is None or cell.index == cell_index]
    for _, values, states in simulate_chunks(scenario, [buffer], None, StoreLog(path)):
        store.write(chunk, values, states)


def open_buffers(
    scenario: AbstractScenario, store: SweepStore, todo: list[Chunk], states_to_simulate: tuple[int, ...]
) -> Iterator[ChunkBuffer]:
    """Yield a buffer for each chunk, with its finished runs from the store."""
    cells_by_chunk: dict[tuple[int, ...], list[Any]] = {store.get_chunk_index(chunk.first_index): [] for chunk in todo}
    with pause_garbage_collection():
        for cell in scenario.cells():
            if (neighbours := cells_by_chunk.get(store.get_chunk_index(cell.index))) is not None:
                neighbours.append(cell)
    for chunk in todo:
        states = store.read_states(chunk)
        cells = cells_by_chunk[store.get_chunk_index(chunk.first_index)]
        yield ChunkBuffer(chunk, store.load_chunk_buffer(chunk, states), states, cells, states_to_simulate)


def simulate_chunks(
    scenario: AbstractScenario, chunk_buffers: Iterable[ChunkBuffer], workers: int | None, log: StoreLog
) -> Iterator[FilledChunk]:
    """Simulate chunks, and yield each finished chunk with its variables and run states.

    Parameters
    ----------
    scenario
        The sweep.
    chunk_buffers
        The chunks to simulate, each with its parameter combinations.
    workers
        Number of threads.
    log
        Log of the store.
    """
    simulator = make_simulator(scenario)
    set_up_compilation_cache()
    buffers: deque[ChunkBuffer] = deque()  # one entry per started unit, because results arrive in this order

    def units() -> Iterable[Any]:
        for buffer in chunk_buffers:
            log(event="playing", block=buffer.chunk.number)
            for unit in simulator.prepare_units(buffer.cells, buffer.chunk.seeds):
                buffers.append(buffer)
                yield unit

    current: ChunkBuffer | None = None
    for _, results in run_units(simulator, units(), workers):
        buffer = buffers.popleft()
        if current is not None and buffer is not current:
            yield current.retry_failed_runs(simulator, log)
        current = buffer
        current.add_unit_results(results)
    if current is not None:
        yield current.retry_failed_runs(simulator, log)


class ChunkBuffer:
    """The variables, run states and parameter combinations of a chunk during its simulation."""

    def __init__(
        self,
        chunk: Chunk,
        values: dict[str, np.ndarray],
        states: np.ndarray,
        cells: list[Any],
        states_to_simulate: tuple[int, ...],
    ):
        self.chunk, self.values, self.states = chunk, values, states
        self.open = np.isin(states, states_to_simulate)  # finished runs are never overwritten
        self.cells = [cell for cell in cells if self.open[self._convert_to_chunk_index(cell.index)].any()]

    def add_unit_results(self, results: list[UnitResult] | Exception) -> None:
        """Add the results of a unit of work to its chunk. After an exception the unit's runs stay open for a retry."""
        if isinstance(results, Exception):
            return
        first = self.chunk.seeds.start
        for result in results:
            seeds = slice(result.seeds.start - first, result.seeds.stop - first)
            index: tuple[Any, ...] = (*self._convert_to_chunk_index(result.cell_index), seeds)
            new = self.open[index]
            for name, value in result.values.items():
                inside = (*index, *(slice(n) for n in value.shape[new.ndim :]))
                if not new.all():
                    is_new = new.reshape(*new.shape, *[1] * (value.ndim - new.ndim))
                    value = np.where(is_new, value, self.values[name][inside])
                self.values[name][inside] = value
            self.states[index] = np.where(new, DONE_STATE, self.states[index])

    def retry_failed_runs(self, simulator: Simulator, log: StoreLog) -> FilledChunk:
        """Retry the failed runs of a chunk, and return the chunk with its variables and run states."""
        if (self.open & (self.states != DONE_STATE)).any():
            for cell in self.cells:
                self._retry_cell(simulator, cell, log)
        return self.chunk, self.values, self.states

    def _retry_cell(self, simulator: Simulator, cell: Cell, log: StoreLog) -> None:
        """Retry the open runs of a chunk for one parameter combination, and mark runs that keep failing as failed."""
        index = self._convert_to_chunk_index(cell.index)
        failed = self._find_unfinished_runs(index)
        for attempt in range(2, MAX_RUN_ATTEMPTS + 1):
            if not failed.any():
                break
            error = self._simulate_and_catch_error(simulator, cell)
            failed = self._find_unfinished_runs(index)
            if failed.any():
                seeds = [self.chunk.seeds.start + int(seed) for seed in np.flatnonzero(failed)]
                log(event="failed", cell=list(cell.index), seeds=seeds, attempt=attempt, error=error)
        self.states[index][failed] = FAILED_STATE

    def _find_unfinished_runs(self, index: tuple[int, ...]) -> np.ndarray:
        """Return a mask of the unfinished runs of a parameter combination."""
        return self.open[index] & (self.states[index] != DONE_STATE)

    def _simulate_and_catch_error(self, simulator: Simulator, cell: Cell) -> str:
        """Simulate one parameter combination of a chunk. Returns the message of an exception, or an empty string."""
        error = ""
        for unit in simulator.prepare_units([cell], self.chunk.seeds):
            try:
                self.add_unit_results(simulator.run(unit))
            except Exception as problem:  # a user's rule may raise anything
                line = traceback.extract_tb(problem.__traceback__)[-1]
                location = "" if isinstance(problem, StatmechError) else f" ({Path(line.filename).name}:{line.lineno})"
                error = f"{type(problem).__name__}: {problem}{location}"
        return error

    def _convert_to_chunk_index(self, index: Any) -> Any:
        """Convert sweep indices of one or several parameter combinations into indices within the chunk."""
        return tuple(i - start for i, start in zip(index, self.chunk.first_index, strict=True))


def main() -> None:
    """Simulate the chunk that the arguments of a child process name: store, number, whether to retry, optional cell."""
    user_files.load_plugins_from_environment()
    die_with_parent()
    path, number, again, *index = sys.argv[1:]
    simulate_stored_chunk(
        Path(path), int(number), again == "True", cell_index=tuple(map(int, index)) if index else None
    )


def simulate_in_child_processes(
    store: SweepStore, chunks: Iterable[Chunk], rerun_failed: bool, log: StoreLog
) -> Iterator[Chunk]:
    """Simulate chunks in child processes, and yield each chunk that a child could simulate.

    Some of their runs may have failed. Chunks that no child could simulate are left to this process.
    """
    for chunk in chunks:
        log(event="apart", block=chunk.number)
        death = _run_child_and_get_death_cause(store.path, chunk, rerun_failed)
        if death == "":
            yield chunk
        elif death is not None:
            log(event="crashed", block=chunk.number, error=death)
            _simulate_cells_in_children(store, chunk, rerun_failed, log)
            yield chunk


def _run_child_and_get_death_cause(
    path: Path, chunk: Chunk, rerun_failed: bool, cell_index: tuple[int, ...] = ()
) -> str | None:
    """Simulate a chunk in a child process, and return the child's cause of death.

    The result is empty if the child has simulated the chunk, and None if it could not simulate it.
    """
    arguments = [str(PROJECT_ROOT), str(path), str(chunk.number), str(rerun_failed), *map(str, cell_index)]
    command = [sys.executable, "-c", CHILD_PROCESS_CODE, *arguments]
    process = subprocess.run(command, capture_output=True, check=False, env=user_files.make_child_environment())
    if death := describe_exit_code(process.returncode):
        return f"the process died of {death}"
    return "" if process.returncode == 0 else None


def _simulate_cells_in_children(store: SweepStore, chunk: Chunk, rerun_failed: bool, log: StoreLog) -> None:
    """Simulate each parameter combination of a chunk in a separate child process."""
    for inside in np.ndindex(store.read_states(chunk).shape[:-1]):
        if (store.read_states(chunk)[inside] == DONE_STATE).all():
            continue
        index = tuple(int(i + start) for i, start in zip(inside, chunk.first_index, strict=True))
        death = _run_child_and_get_death_cause(store.path, chunk, rerun_failed, index)
        if death:
            states = store.read_states(chunk)
            values = store.load_chunk_buffer(chunk, states)
            states[inside][states[inside] != DONE_STATE] = FAILED_STATE
            store.write(chunk, values, states)
            log(event="failed", cell=list(index), seeds=list(chunk.seeds), attempt=3, error=death)
