"""Loops compiled by Numba, for sequential updates that array operations cannot express.

Only modules that a fit imports import this one. A loop is compiled once per process, at its first call, for the types
of its signature and not for each new shape. Numba's own cache on disk is not used, because it unpickles files.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any

from statmech.runtime.installed_packages import require_modules

FASTMATH_FLAGS = {"reassoc", "contract", "nsz", "nnan"}  # allow vectorised sums and minima


class CompiledLoop:
    """A function that Numba compiles at its first call.

    It is also compiled when a loop that calls it is compiled.
    """

    def __init__(self, signature: str, function: Callable[..., Any]):
        update_wrapper(self, function)
        self.function, self.signature = function, signature
        self._compiled: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        return (self._compiled or self.dispatcher())(*arguments)

    def dispatcher(self) -> Any:
        """Return Numba's dispatcher, compiling the function first if necessary."""
        require_modules("a compiled loop", "estimators", "numba")
        import numba
        from numba.core.compiler_lock import global_compiler_lock

        with global_compiler_lock:  # concurrent units of work wait for one compilation
            if self._compiled is None:
                self._compiled = numba.njit(self.signature, fastmath=FASTMATH_FLAGS, nogil=True)(self.function)
        return self._compiled

    @property
    def _numba_type_(self) -> Any:
        """Numba's type of the loop, for calls by other compiled loops."""
        import numba

        return numba.typeof(self.dispatcher())


def compile_loop(signature: str) -> Callable[[Callable[..., Any]], CompiledLoop]:
    """Make a decorator that compiles a loop for arguments of this signature."""
    return partial(CompiledLoop, signature)
