"""Ctrl-C and SIGTERM end a command at once, whatever it is doing.

An interrupt is an exception, and Python prints and discards exceptions that are raised during garbage collection or in
a library's callback: the command would continue as if nobody had asked it to stop. Stores survive a kill at any time,
so the process ends immediately.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

INTERRUPTED, TERMINATED = 130, 143
said = "Interrupted. Completed work is saved; rerun the command to resume."  # a command may say something else


def watch() -> None:
    """Make SIGTERM an exception like Ctrl-C, and let Python discard neither."""
    signal.signal(signal.SIGTERM, _terminated)
    sys.unraisablehook = _unraisable


def end(code: int) -> None:
    """End the process now: an ordinary exit would wait for programs that are still running in threads."""
    print(said, file=sys.stderr)
    sys.stderr.flush()
    os._exit(code)


def _terminated(*_: Any) -> None:
    raise SystemExit(TERMINATED)


def _unraisable(discarded: Any) -> None:
    if issubclass(discarded.exc_type, KeyboardInterrupt):
        end(INTERRUPTED)
    code = getattr(discarded.exc_value, "code", None)
    if code in (INTERRUPTED, TERMINATED):
        end(code)
    sys.__unraisablehook__(discarded)
