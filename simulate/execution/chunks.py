"""Simulation of a store's chunks: their missing runs are simulated unit by unit, failed ones are tried again.

The numbers of a chunk depend on its parameter combinations and seeds alone, so a resumed or sharded run gives the same
bits as an uninterrupted one. A unit that raises an exception does not stop the others: its parameter combinations are
tried again one by one, three times in all, and those that still fail are stored as failed, with the message in the log.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from simulate.execution.units import Simulator, UnitResult, run_units, simulator_of
from statmech.errors import StatmechError, StoreError
from statmech.results.chunks import Chunk
from statmech.results.log import Listener, Log
from statmech.results.store import other_code, other_data
from statmech.results.sweep_store import DONE, FAILED, MISSING, SweepStore
from statmech.runtime import garbage
from statmech.runtime.jax_cache import use_cache
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.cells import Cell
from statmech.scenarios.registry import scenario_from

ATTEMPTS = 3

Filled = tuple[Chunk, dict[str, np.ndarray], np.ndarray]  # a chunk, its variables, the state of each run


def lacking(again: bool) -> tuple[int, ...]:
    """The states of runs that are to be simulated: missing, and failed if these are tried `again`."""
    return (MISSING, FAILED) if again else (MISSING,)


def simulate_chunk(
    path: Path,
    number: int,
    again: bool = False,
    tell: Listener | None = None,
    *,
    only: tuple[int, ...] | None = None,
    workers: int | None = None,
    log: Log | None = None,
) -> dict[str, int]:
    """Simulate the missing runs of one chunk of the store at `path`, and write it: the task of a cluster's worker.

    Chunks are independent, and their writers share no file.

    Parameters
    ----------
    path, number
        The store, and the chunk.
    again
        True to try failed runs again.
    tell
        Is called with each event of the log.
    only
        The index of a parameter combination, to simulate it alone.
    workers
        Number of threads.
    log
        The log to write to, if not the store's own.

    Returns
    -------
    The numbers of done and failed runs of the chunk.

    Raises `StoreError` if the store has been replaced meanwhile.
    """
    store = SweepStore(path)
    scenario, chunk = scenario_from(store.config), store.chunks()[number]
    # this host may have other files of the same names
    if other := other_data(path, scenario, store.data) or other_code(path, scenario, store.code):
        raise StoreError(other)
    cells = [cell for cell in scenario.cells() if only is None or cell.index == only]
    log = log or Log(path, tell)
    for _, values, states in simulate_chunks(scenario, store, [chunk], lacking(again), workers, log, cells):
        store.write(chunk, values, states)
    states = store.states(chunk)
    return {"done": int((states == DONE).sum()), "failed": int((states == FAILED).sum())}


def simulate_chunks(
    scenario: AbstractScenario,
    store: SweepStore,
    todo: list[Chunk],
    lacking: tuple[int, ...],
    workers: int | None,
    log: Log,
    cells: list[Any] | None = None,
) -> Iterator[Filled]:
    """Simulate chunks, and yield each in turn as it is finished: the chunk, its variables, the state of each run.

    Parameters
    ----------
    scenario, store
        The sweep and its store.
    todo
        The chunks.
    lacking
        States of the runs that are to be simulated.
    workers
        Number of threads.
    log
        Log of the store.
    cells
        Parameter combinations to simulate; all by default.
    """
    simulator = simulator_of(scenario)
    use_cache()
    inside: dict[tuple[int, ...], list[Any]] = {store.chunk_index(chunk.corner): [] for chunk in todo}
    with garbage.put_off():
        for cell in scenario.cells() if cells is None else cells:
            if (neighbours := inside.get(store.chunk_index(cell.index))) is not None:
                neighbours.append(cell)
    begun: deque[ChunkBuffer] = deque()  # of each unit that has begun: results come in the same order

    def units() -> Iterable[Any]:
        for chunk in todo:
            log(event="playing", block=chunk.number)
            buffer = ChunkBuffer(store, chunk, inside[store.chunk_index(chunk.corner)], lacking)
            for unit in simulator.ready_units(buffer.cells, chunk.seeds):
                begun.append(buffer)
                yield unit

    current: ChunkBuffer | None = None
    for _, results in run_units(simulator, units(), workers):
        buffer = begun.popleft()
        if current is not None and buffer is not current:
            yield current.finished(simulator, log)
        current = buffer
        current.take(results)
    if current is not None:
        yield current.finished(simulator, log)


class ChunkBuffer:
    """The numbers of a chunk whose units are being simulated."""

    def __init__(self, store: SweepStore, chunk: Chunk, cells: list[Any], lacking: tuple[int, ...]):
        self.chunk, self.states = chunk, store.states(chunk)
        self.values = store.buffer(chunk, self.states)
        self.open = np.isin(self.states, lacking)  # runs that were done before keep their bits
        self.cells = [cell for cell in cells if self.open[self._inside(cell.index)].any()]

    def take(self, results: list[UnitResult] | Exception) -> None:
        """Store the results of a unit; if it raised an exception, its runs remain to be tried again."""
        if isinstance(results, Exception):
            return
        first = self.chunk.seeds.start
        for result in results:
            seeds = slice(result.seeds.start - first, result.seeds.stop - first)
            index: tuple[Any, ...] = (*self._inside(result.where), seeds)
            new = self.open[index]
            for name, value in result.values.items():
                inside = (*index, *(slice(n) for n in value.shape[new.ndim :]))
                if not new.all():
                    wanted = new.reshape(*new.shape, *[1] * (value.ndim - new.ndim))
                    value = np.where(wanted, value, self.values[name][inside])
                self.values[name][inside] = value
            self.states[index] = np.where(new, DONE, self.states[index])

    def finished(self, simulator: Simulator, log: Log) -> Filled:
        """The chunk, after its failed runs have been tried again."""
        if (self.open & (self.states != DONE)).any():
            for cell in self.cells:
                self._retry(simulator, cell, log)
        return self.chunk, self.values, self.states

    def _retry(self, simulator: Simulator, cell: Cell, log: Log) -> None:
        """Simulate the open runs of a parameter combination again, alone; mark those that keep failing as failed."""
        index = self._inside(cell.index)
        failed = self._open_at(index)
        for attempt in range(2, ATTEMPTS + 1):
            if not failed.any():
                break
            error = self._simulate(simulator, cell)
            failed = self._open_at(index)
            if failed.any():
                seeds = [self.chunk.seeds.start + int(seed) for seed in np.flatnonzero(failed)]
                log(event="failed", cell=list(cell.index), seeds=seeds, attempt=attempt, error=error)
        self.states[index][failed] = FAILED

    def _open_at(self, index: tuple[int, ...]) -> np.ndarray:
        unfinished: np.ndarray = self.open[index] & (self.states[index] != DONE)
        return unfinished

    def _simulate(self, simulator: Simulator, cell: Cell) -> str:
        """Simulate a parameter combination; the message of the last exception, if there was one."""
        error = ""
        for unit in simulator.ready_units([cell], self.chunk.seeds):
            try:
                self.take(simulator.run(unit))
            except Exception as problem:  # a user's rule may raise anything
                line = traceback.extract_tb(problem.__traceback__)[-1]
                place = "" if isinstance(problem, StatmechError) else f" ({Path(line.filename).name}:{line.lineno})"
                error = f"{type(problem).__name__}: {problem}{place}"
        return error

    def _inside(self, index: Any) -> Any:
        """The index in the chunk of a parameter combination of the sweep, or of several."""
        return tuple(i - start for i, start in zip(index, self.chunk.corner, strict=True))
