"""A pause of Python's garbage collection while a sweep creates many objects that stay in use."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Open a context without garbage collection, since each full collection takes 0.1 s with all libraries loaded."""
    active = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if active:
            gc.enable()
