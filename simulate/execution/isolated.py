"""Play blocks in a process of their own: those that may have killed the runs before, as a rule that crashes does.

A child that dies (a crash, too much memory) costs its block's time; the block's cells are then played in a child each,
and the ones that die again are kept as failed. A child dies with its parent.
"""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from statmech import plugins
from statmech.results.block_store import DONE, FAILED, Growing
from statmech.results.chunks import Block
from statmech.results.log import Log

CHILD = "from simulate.execution.isolated import child; child()"
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux


def played_apart(path: Path, store: Growing, blocks: Iterable[Block], again: bool, log: Log) -> Iterator[Block]:
    """The blocks that children could play, whatever came of them; the others are left to this process."""
    for block in blocks:
        log(event="apart", block=block.number)
        died = _played(path, block, again)
        if died == "":
            yield block
        elif died is not None:
            log(event="crashed", block=block.number, error=died)
            _cell_by_cell(path, store, block, again, log)
            yield block


def child() -> None:
    """What the child does: play a block, or one cell of it."""
    from simulate.execution.to_store import play_block

    plugins.load_named()
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
    path, number, again, *index = sys.argv[1:]
    play_block(Path(path), int(number), again == "True", only=tuple(map(int, index)) if index else None)


def _played(path: Path, block: Block, again: bool, index: tuple[int, ...] = ()) -> str | None:
    """Empty if a child has played it, how it died if it did, None if it could not play it."""
    given = [str(path), str(block.number), str(again), *map(str, index)]
    command = [sys.executable, "-c", CHILD, *given]
    done = subprocess.run(command, capture_output=True, check=False, env=plugins.for_children())
    if done.returncode < 0:
        return f"the process died of {signal.Signals(-done.returncode).name}"
    return "" if done.returncode == 0 else None


def _cell_by_cell(path: Path, store: Growing, block: Block, again: bool, log: Log) -> None:
    for place in np.ndindex(store.states(block).shape[:-1]):
        if (store.states(block)[place] == DONE).all():
            continue
        index = tuple(int(at + first) for at, first in zip(place, block.corner, strict=True))
        died = _played(path, block, again, index)
        if died:
            states = store.states(block)
            values = store.blank(block, states)
            states[place][states[place] != DONE] = FAILED
            store.write(block, values, states)
            log(event="failed", cell=list(index), seeds=list(block.seeds), attempt=3, error=died)
