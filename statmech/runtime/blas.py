"""Single-threaded BLAS, for use within our own threads and for products too small to parallelise."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from functools import lru_cache

from threadpoolctl import ThreadpoolController


def use_one_blas_thread() -> AbstractContextManager[object]:
    """Return a context where every BLAS library of this process uses one thread."""
    return _find_blas_libraries(len(sys.modules)).limit(limits=1, user_api="blas")


@lru_cache(maxsize=1)
def _find_blas_libraries(module_count: int) -> ThreadpoolController:
    """Return the BLAS libraries that this process has loaded, cached by the number of imported modules.

    The search takes 2 ms, and importing a module may load another library.
    """
    return ThreadpoolController()
