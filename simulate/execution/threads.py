"""Units of work on all cores."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from statmech.runtime.blas import one_thread
from statmech.runtime.system import cores, memory


@contextmanager
def threads(workers: int | None = None) -> Iterator[ThreadPoolExecutor]:
    """A thread per core (JAX computes without the interpreter's lock); an interrupt cancels what has not begun."""
    pool = ThreadPoolExecutor(max_workers=workers or cores())
    try:
        # all cores are busy: BLAS threads below each of ours would wait for each other (K = 100: 5 times slower)
        with one_thread():
            yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def memory_per_core() -> float:
    """The machine's memory, in bytes, per core."""
    return memory() / cores()
