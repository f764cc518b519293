"""Detection of forks after JAX has started.

A fork does not copy JAX's threads, and the child process would wait for these threads forever.
"""

from __future__ import annotations

from statmech.errors import ForkAfterJaxError
from statmech.runtime.system import register_after_fork

_jax_was_used = False  # True once this process has computed with JAX
_is_forked = False  # True in a fork of a process that had computed with JAX


def record_jax_use() -> None:
    """Record that this process computes with JAX.

    Raises `ForkAfterJaxError` in a fork of a process that had already computed with JAX.

    >>> record_jax_use()
    """
    global _jax_was_used
    if _is_forked:
        raise ForkAfterJaxError()
    _jax_was_used = True


def _mark_as_forked() -> None:
    global _is_forked
    _is_forked = _jax_was_used


register_after_fork(_mark_as_forked)
