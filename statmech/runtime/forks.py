"""Detection of forks after JAX has started.

A fork does not copy JAX's threads, and the child process would wait for these threads forever.
"""

from __future__ import annotations

from statmech.errors import ForkedError
from statmech.runtime.system import after_fork

_used = False  # True once this process has computed with JAX
_forked = False  # True in a fork of a process that had computed with JAX


def check_fork() -> None:
    """Record that this process computes with JAX.

    Raises `ForkedError` in a fork of a process that had already computed with JAX.

    >>> check_fork()
    """
    global _used
    if _forked:
        raise ForkedError()
    _used = True


def _in_child() -> None:
    global _forked
    _forked = _used


after_fork(_in_child)
