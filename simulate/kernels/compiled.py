"""Loops compiled by Numba: steps of coordinates one after the other, which neither BLAS nor array operations can do.

Only modules that a fit imports import this one: Numba takes 0.2 s. What it compiles is kept in the folder of
`statmech.jax_cache`, by source file, signature, processor and version.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from statmech.jax_cache import folder

Loop = Callable[..., Any]
SETTINGS: Any = numba.config  # a module that reads its names from the environment
ANY_ORDER = {"reassoc", "contract", "nsz", "nnan"}  # sums and minima several at a time


def compiled(signature: str) -> Callable[[Loop], Loop]:
    """A decorator: the function compiled for arguments of this signature, now or by an earlier process."""

    def compile_now(function: Loop) -> Loop:
        users, path = SETTINGS.CACHE_DIR, _writable(folder())
        SETTINGS.CACHE_DIR = users or str(path or "")
        try:
            loop: Loop = numba.njit(signature, cache=path is not None, fastmath=ANY_ORDER, nogil=True)(function)
        finally:
            SETTINGS.CACHE_DIR = users
        return loop

    return compile_now


def _writable(path: Path | None) -> Path | None:
    """This folder, if it exists or can be made: else loops are compiled again by each process."""
    try:
        if path is not None:
            path.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return path
