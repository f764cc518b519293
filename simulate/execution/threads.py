"""Threads that run units of work on all cores."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from statmech.runtime.blas import use_one_blas_thread
from statmech.runtime.system import count_cores, get_total_memory


@contextmanager
def open_thread_pool(workers: int | None = None) -> Iterator[ThreadPoolExecutor]:
    """Open a pool with a thread per core. An interrupt cancels tasks that have not started.

    Threads suffice because JAX computes without the interpreter's lock.
    """
    pool = ThreadPoolExecutor(max_workers=workers or count_cores())
    try:
        # every core has a thread: additional BLAS threads would wait for each other (K = 100: 5 times slower)
        with use_one_blas_thread():
            yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def get_memory_per_core() -> float:
    """Return the machine's memory per core, in bytes."""
    return get_total_memory() / count_cores()
