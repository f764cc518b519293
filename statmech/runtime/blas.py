"""BLAS on one thread: below threads of our own, and for products that are too small to share."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from functools import lru_cache

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[object]:
    """A context within which every BLAS library of this process computes on one thread."""
    return _libraries(len(sys.modules)).limit(limits=1, user_api="blas")


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """The libraries that this process has loaded: finding them takes 2 ms, and importing a module may load another."""
    return ThreadpoolController()
