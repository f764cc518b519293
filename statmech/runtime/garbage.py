"""Python's search for unused objects, put off while a sweep makes many that it uses."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def put_off() -> Iterator[None]:
    """Within this context nothing is searched: with libraries loaded, each full search takes a tenth of a second."""
    active = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if active:
            gc.enable()
