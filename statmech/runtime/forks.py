"""Detection of forks after JAX has started: its threads are not copied, and the child would wait for them forever."""

from __future__ import annotations

from statmech.errors import ForkedError
from statmech.runtime.system import after_fork

_used = False  # whether this process has computed with JAX
_forked = False  # whether it is a fork of a process that had


def check_fork() -> None:
    """Record that this process computes with JAX. Raises `ForkedError` in a fork of a process that already had.

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
