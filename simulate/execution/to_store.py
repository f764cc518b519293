"""Play a scenario into a store, block by block, and go on where an earlier run has stopped.

What a block holds depends on its cells and seeds alone, so a run that was killed and went on, or was cut into shards,
ends with the bits of one that was not. A unit that raises does not stop the others: its cells are tried again one by
one, three times in all, and those that still fail are kept as failed, with the message in the log.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from simulate.execution.isolated import played_apart
from simulate.execution.units import Simulator, UnitResult, affordable, attrs, check, run_units
from simulate.run import simulator_of
from statmech.errors import StatmechError, StoreError
from statmech.jax_cache import use_cache
from statmech.results.block_store import DONE, FAILED, MISSING, Growing, create, extends, recover, restore
from statmech.results.checksums import broken
from statmech.results.chunks import Block
from statmech.results.dataset import Progress
from statmech.results.locks import claimed
from statmech.results.log import Log, Tell
from statmech.results.store import another_config, differences, other_data
from statmech.scenarios.base import Sweep
from statmech.scenarios.registry import scenario_from

ATTEMPTS = 3


class Outcome(NamedTuple):
    """Runs (cells times seeds) of a store that are done, failed and still missing."""

    done: int
    failed: int
    missing: int


Filled = tuple[Block, dict[str, np.ndarray], np.ndarray]  # a block, its variables, the state of each run
Elsewhere = Callable[[Growing, list[Block], bool, Log], Iterator[Block]]  # yields blocks as they have been written


def run_into(
    path: Path,
    scenario: Sweep,
    *,
    fresh: bool = False,
    again: bool = False,
    shard: tuple[int, int] = (1, 1),
    workers: int | None = None,
    memory: float | None = None,
    progress: Progress | None = None,
    tell: Tell | None = None,
    elsewhere: Elsewhere | None = None,
) -> Outcome:
    """Play what a store lacks of a scenario, and write it; the store's `state` tells which runs are done or failed.

    A store of the same config, or of one with fewer values on its axes or fewer seeds, is gone on with; of another one
    only if `fresh` says to replace it. `again` tries what has failed once more. `shard` (k, n) takes every n-th block.
    `elsewhere` plays and writes blocks in place of this process.
    `memory`, in bytes, bounds what is played together; `workers` threads play blocks side by side.
    Raises `StoreError` for a store of another config or other data, for one that another run holds, or that would have
    to grow while shards write it, and for a disk that is full.
    """
    use_cache()
    simulator = simulator_of(scenario)
    check(simulator)
    workers = affordable(simulator, workers, memory)
    with claimed(path, shard) as claim:
        log = Log(path, tell, shard)
        store = claim.open(
            ready=lambda: None if fresh else present(path, scenario),
            make=lambda: opened(path, scenario, fresh, log),
            wait=lambda owner: log(event="waiting", owner=owner),
        )
        suspects = log.suspects()
        mine = [block for block in store.blocks() if block.number % shard[1] == shard[0] - 1]
        lacked = (MISSING, FAILED) if again else (MISSING,)
        todo = [block for block in mine if np.isin(_sound(store, block, log), lacked).any()]
        total = sum(block.runs for block in mine)
        done = total - sum(block.runs for block in todo)
        log(event="begun", runs=total, done=done, blocks=len(todo))
        if progress:
            progress(done, total)
        for block in played_apart(path, store, [block for block in todo if block.number in suspects], again, log):
            todo.remove(block)
            done += block.runs
            log(event="written", block=block.number, done=done, runs=total)
        if elsewhere:
            written = elsewhere(store, todo, again, log)
        else:
            written = _written(store, played_blocks(scenario, store, todo, lacked, workers, log))
        for block in written:
            done += block.runs
            log(event="written", block=block.number, done=done, runs=total)
            if progress:
                progress(done, total)
        counts = store.counts()
        outcome = Outcome(counts[DONE], counts[FAILED], counts[MISSING])
        log(event="ended", **outcome._asdict())
        return outcome


def _written(store: Growing, played: Iterator[Filled]) -> Iterator[Block]:
    for block, values, states in played:
        store.write(block, values, states)
        yield block


def _sound(store: Growing, block: Block, log: Log) -> np.ndarray:
    """The states of a block, missing if it is damaged."""
    states = store.states(block)
    faults = store.faults(block, states)
    if not faults:
        return states
    log(event="damaged", block=block.number, faults=faults)
    store.forget(block)
    return np.full_like(states, MISSING)


def present(path: Path, scenario: Sweep) -> Growing | None:
    """The store at `path` if it is there, whole, and of this very scenario and its data."""
    if not path.exists() or broken(path):
        return None
    store = Growing(path)
    same = not differences(scenario.config(), store.config) and not other_data(path, scenario, store.data)
    return store if same else None


def opened(path: Path, scenario: Sweep, fresh: bool, log: Log) -> Growing:
    """The store at `path`, made if there is none, and grown if the scenario has."""
    recover(path)
    new = {"title": "statmech simulation"}
    simulator = simulator_of(scenario)
    if fresh or not path.exists():
        return create(path, scenario, new | attrs(simulator))
    try:
        for name in restore(path):
            log(event="restored", file=name)
        store = Growing(path)
        config = store.config
    except StatmechError as failure:
        raise StoreError(f"{failure}. Use --fresh to replace it.") from None
    changed = differences(scenario.config(), config)
    if changed and not extends(scenario, config):
        raise StoreError(another_config(path, changed))
    if other := other_data(path, scenario_from(config), store.data):
        raise StoreError(other)
    if not changed:
        return store
    log(event="grown", differences=changed)
    return create(path, scenario, new | attrs(simulator), old=store)


def play_block(
    path: Path,
    number: int,
    again: bool = False,
    tell: Tell | None = None,
    *,
    only: tuple[int, ...] | None = None,
    workers: int | None = None,
    log: Log | None = None,
) -> dict[str, int]:
    """Play what one block of the store at `path` lacks, and write it: what a worker of a cluster does.

    Blocks are independent, and their writers share no file. `only` plays the cell of this index alone. Returns how many
    runs of the block are done and failed. Raises `StoreError` if another store has come into its place meanwhile.
    """
    use_cache()
    store = Growing(path)
    scenario, block = scenario_from(store.config), store.blocks()[number]
    if other := other_data(path, scenario, store.data):  # this host may have another file of the same name
        raise StoreError(other)
    lacked = (MISSING, FAILED) if again else (MISSING,)
    cells = [cell for cell in scenario.cells() if only is None or cell.index == only]
    log = log or Log(path, tell)
    for _, values, states in played_blocks(scenario, store, [block], lacked, workers, log, cells):
        store.write(block, values, states)
    states = store.states(block)
    return {"done": int((states == DONE).sum()), "failed": int((states == FAILED).sum())}


def played_blocks(
    scenario: Any,
    store: Growing,
    todo: list[Block],
    lacked: tuple[int, ...],
    workers: int | None,
    log: Log,
    cells: list[Any] | None = None,
) -> Iterator[Filled]:
    """Blocks as they are finished, in their order: their variables, and the state of each run; of `cells`, or all."""
    simulator = simulator_of(scenario)
    at: dict[tuple[int, ...], list[Any]] = {store.place(block.corner): [] for block in todo}
    for cell in scenario.cells() if cells is None else cells:
        if (here := at.get(store.place(cell.index))) is not None:
            here.append(cell)
    begun: dict[int, _Filling] = {}

    def units() -> Iterable[tuple[Block, Any]]:
        for block in todo:
            log(event="playing", block=block.number)
            begun[block.number] = filling = _Filling(store, block, at[store.place(block.corner)], lacked)
            for unit in simulator.units(filling.cells, block.seeds):
                yield block, unit

    current: _Filling | None = None
    for (block, _), found in run_units(simulator, units(), workers, run=lambda unit: simulator.run(unit[1])):
        if current is None or current.block.number != block.number:
            if current is not None:
                yield current.finished(simulator, log)
            current = begun.pop(block.number)
        current.take(found)
    if current is not None:
        yield current.finished(simulator, log)


class _Filling:
    """A block under way."""

    def __init__(self, store: Growing, block: Block, cells: list[Any], lacked: tuple[int, ...]):
        self.block, self.states = block, store.states(block)
        self.values = store.blank(block, self.states)
        self.open = np.isin(self.states, lacked)  # what was done before keeps its bits
        self.cells = [cell for cell in cells if self.open[_place(block, cell)].any()]

    def take(self, found: list[UnitResult] | Exception) -> None:
        """What a unit found; of one that raised nothing, its cells are tried again in the end."""
        first = self.block.seeds.start
        for one in found if isinstance(found, list) else ():
            at: tuple[Any, ...] = (*_place(self.block, one), slice(one.seeds.start - first, one.seeds.stop - first))
            new = self.open[at]
            every = new.all()  # a plain slice takes a tenth of the time that an index of truths takes
            for name, value in one.values.items():
                inner = tuple(slice(n) for n in value.shape[1:])
                if every:
                    self.values[name][(*at, *inner)] = value
                else:
                    self.values[name][at][(new, *inner)] = value[new]
            self.states[at][new] = DONE

    def finished(self, simulator: Simulator, log: Log) -> Filled:
        """The block, after what has failed was tried again, cell by cell."""
        for cell in self.cells if (self.open & (self.states != DONE)).any() else ():
            place = _place(self.block, cell)
            failed = self.open[place] & (self.states[place] != DONE)
            for attempt in range(2, ATTEMPTS + 1):
                if not failed.any():
                    break
                told = self._again(simulator, cell)
                failed = self.open[place] & (self.states[place] != DONE)
                if failed.any():
                    log(event="failed", cell=list(cell.index), seeds=self._seeds(failed), attempt=attempt, error=told)
            self.states[place][failed] = FAILED
        return self.block, self.values, self.states

    def _again(self, simulator: Simulator, cell: Any) -> str:
        told = ""
        for unit in simulator.units([cell], self.block.seeds):
            try:
                self.take(simulator.run(unit))
            except Exception as problem:  # a user's own rule may raise anything
                line = traceback.extract_tb(problem.__traceback__)[-1]
                at = "" if isinstance(problem, StatmechError) else f" ({Path(line.filename).name}:{line.lineno})"
                told = f"{type(problem).__name__}: {problem}{at}"
        return told

    def _seeds(self, failed: np.ndarray) -> list[int]:
        return [self.block.seeds.start + int(at) for at in np.flatnonzero(failed)]


def _place(block: Block, cell: Any) -> tuple[int, ...]:
    index = cell.where if isinstance(cell, UnitResult) else cell.index
    return tuple(i - start for i, start in zip(index, block.corner, strict=True))
