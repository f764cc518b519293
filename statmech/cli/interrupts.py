"""Ctrl-C and SIGTERM end a command at once, whatever it is doing.

An interrupt is an exception, and Python prints and discards exceptions that are raised during garbage collection or in
a library's callback: the command would continue as if nobody had asked it to stop. One raised during an import can
crash the process, because compiled libraries create Python types while they are loaded. And a signal that arrives just
before the main thread begins to wait does not end that wait. Stores survive a kill at any time, so in these cases the
process ends without unwinding.
"""

from __future__ import annotations

import atexit
import functools
import os
import signal
import socket
import sys
import threading
import time
from types import FrameType
from typing import Any, NoReturn

INTERRUPTED, TERMINATED = 130, 143
UNWRITTEN = 120  # Python's exit code if the last output could not be written
CODES: dict[int, int] = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}
PATIENCE = 2.0  # s within which the main thread begins to handle a signal
_handled = set[int]()  # signals whose handler has run: it raises, so the command is ending
said = "Interrupted. Completed work is saved; rerun the command to resume."  # a command may say something else


def watch() -> None:
    """Make SIGTERM an exception like Ctrl-C, let Python discard neither, and raise neither during an import."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # it is ignored in the background of a shell
        signal.signal(signal.SIGINT, _interrupted)
    signal.signal(signal.SIGTERM, _terminated)
    sys.unraisablehook = _unraisable
    _watch_the_main_thread()


def end(code: int) -> NoReturn:
    """End the process now: an ordinary exit would wait for programs that are still running in threads."""
    print(said, file=sys.stderr)
    sys.stderr.flush()
    os._exit(code)


def leave(code: int) -> NoReturn:
    """End a finished process without unloading its modules, which takes half a second after JAX was imported."""
    threading._shutdown()  # type: ignore[attr-defined]  # as Python does: threads and pools end, then exit functions
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # the reader of a pipe has left
            code = code or UNWRITTEN
    os._exit(code)


@functools.cache
def _watch_the_main_thread() -> socket.socket:
    """Start the thread that ends the process if no handler runs; Python writes each signal's number to the socket."""
    signals, written = socket.socketpair()
    written.setblocking(False)
    signal.set_wakeup_fd(written.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_end_after, args=(signals,), name="interrupts", daemon=True).start()
    return written  # which stays open because the cache holds it


def _end_after(signals: socket.socket) -> None:
    while True:
        sent = signals.recv(1)[0]
        time.sleep(PATIENCE)
        if signal.getsignal(sent) in (_interrupted, _terminated) and sent not in _handled:
            end(CODES[sent])


def _interrupted(sent: int, frame: FrameType | None) -> None:
    _handled.add(sent)
    if _importing(frame):
        end(INTERRUPTED)
    raise KeyboardInterrupt


def _terminated(sent: int, frame: FrameType | None) -> None:
    _handled.add(sent)
    if _importing(frame):
        end(TERMINATED)
    raise SystemExit(TERMINATED)


def _importing(frame: FrameType | None) -> bool:
    """True if a module is being imported where the signal arrived."""
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


def _unraisable(discarded: Any) -> None:
    if issubclass(discarded.exc_type, KeyboardInterrupt):
        end(INTERRUPTED)
    code = getattr(discarded.exc_value, "code", None)
    if code in (INTERRUPTED, TERMINATED):
        end(code)
    sys.__unraisablehook__(discarded)
