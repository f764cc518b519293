"""Loops compiled by Numba: steps of coordinates one after the other, which neither BLAS nor array operations can do.

Only modules that a fit imports import this one. A loop is compiled once in each process, by its first call, for the
types of its signature and not for each new shape. Numba's own cache on disk is not used, because it unpickles files.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any

from statmech.runtime.extras import require

ANY_ORDER = {"reassoc", "contract", "nsz", "nnan"}  # sums and minima several at a time


class CompiledLoop:
    """A function that is compiled when it is called first, or when a loop that calls it is compiled."""

    def __init__(self, signature: str, function: Callable[..., Any]):
        update_wrapper(self, function)
        self.function, self.signature = function, signature
        self._compiled: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """The function's result."""
        return (self._compiled or self.compiled())(*arguments)

    def compiled(self) -> Any:
        """Numba's dispatcher."""
        import numba
        from numba.core.compiler_lock import global_compiler_lock

        with global_compiler_lock:  # units of work that start together wait for one compilation
            if self._compiled is None:
                self._compiled = numba.njit(self.signature, fastmath=ANY_ORDER, nogil=True)(self.function)
        return self._compiled

    @property
    def _numba_type_(self) -> Any:
        """Numba's type of the loop, where another one calls it."""
        import numba

        return numba.typeof(self.compiled())


def compiled(signature: str) -> Callable[[Callable[..., Any]], CompiledLoop]:
    """A decorator: the loop, for arguments of this signature."""
    require("a compiled loop", "estimators", "numba")
    return partial(CompiledLoop, signature)
