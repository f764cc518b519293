"""Detection of forks after JAX has started.

A fork does not copy JAX's threads, and the child process would wait for these threads forever.
"""

from __future__ import annotations

from statmech.errors import ForkedError
from statmech.runtime.system import call_after_fork

_jax_was_used = False  # True once this process has computed with JAX
_is_forked = False  # True in a fork of a process that had computed with JAX


def check_fork() -> None:
    """Record that this process computes with JAX.

    Raises `ForkedError` in a fork of a process that had already computed with JAX.

    >>> check_fork()
    """
    global _jax_was_used
    if _is_forked:
        raise ForkedError()
    _jax_was_used = True


def _mark_as_forked() -> None:
    global _is_forked
    _is_forked = _jax_was_used


call_after_fork(_mark_as_forked)
