"""Ctrl-C and SIGTERM end a command at once, wherever they find it.

An interrupt is an exception, and one that is raised while Python collects garbage or runs a library's callback is
printed and swallowed: the command would go on as if nobody had asked it to stop. Stores survive a kill at any moment,
so the process ends there and then.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

INTERRUPTED, TERMINATED = 130, 143


def watch() -> None:
    """Make SIGTERM an exception like Ctrl-C, and let neither be swallowed."""
    signal.signal(signal.SIGTERM, _terminated)
    sys.unraisablehook = _unraisable


def end(code: int) -> None:
    """End the process now: an ordinary exit would wait for programs that still run in threads."""
    print("interrupted; what is finished is kept, and the same command resumes it", file=sys.stderr)
    sys.stderr.flush()
    os._exit(code)


def _terminated(*_: Any) -> None:
    raise SystemExit(TERMINATED)


def _unraisable(swallowed: Any) -> None:
    if issubclass(swallowed.exc_type, KeyboardInterrupt):
        end(INTERRUPTED)
    code = getattr(swallowed.exc_value, "code", None)
    if code in (INTERRUPTED, TERMINATED):
        end(code)
    sys.__unraisablehook__(swallowed)
