"""Simulation of chunks that may have killed earlier runs, in child processes.

A user's rule may crash the interpreter. A child that dies, by a crash or for lack of memory, costs its
chunk's time. The chunk's parameter combinations are then simulated in one child each, and combinations that die again
are stored as failed. A child dies with its parent.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from statmech import plugins
from statmech.results.chunks import Chunk
from statmech.results.log import StoreLog
from statmech.results.sweep_store import DONE_STATE, FAILED_STATE, SweepStore
from statmech.runtime.system import describe_exit_code

PROJECT_ROOT = Path(__file__).parents[2]
CHILD_PROCESS_CODE = (
    "import sys; sys.path.append(sys.argv.pop(1)); from simulate.execution.child_process import main; main()"
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
    process = subprocess.run(command, capture_output=True, check=False, env=plugins.make_child_environment())
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
