"""Forks of a process that has computed with JAX: its threads are not copied, and a child would wait for them."""

from __future__ import annotations

import os

from statmech.errors import ForkedError

_used = False  # whether this process has computed with JAX
_forked = False  # whether it is a fork of one that had


def check_fork() -> None:
    """Note that this process computes with JAX from here on. Raises `ForkedError` in a fork of one that already had.

    >>> check_fork()
    """
    global _used
    if _forked:
        raise ForkedError()
    _used = True


def _in_child() -> None:
    global _forked
    _forked = _used


os.register_at_fork(after_in_child=_in_child)
