"""Loops compiled by Numba: steps of coordinates one after the other, which neither BLAS nor array operations can do.

Only modules that a fit imports import this one: Numba takes 0.2 s. A loop is compiled once in each process, for the
types of its signature and not for each new shape. Numba's own cache on disk is not used, because it unpickles files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from statmech.runtime.extras import require

Loop = Callable[..., Any]
ANY_ORDER = {"reassoc", "contract", "nsz", "nnan"}  # sums and minima several at a time


def compiled(signature: str) -> Callable[[Loop], Loop]:
    """A decorator: the function, compiled now for arguments of this signature."""
    require("a compiled loop", "estimators", "numba")
    import numba

    decorator: Callable[[Loop], Loop] = numba.njit(signature, fastmath=ANY_ORDER, nogil=True)
    return decorator
