"""Signal handlers that let Ctrl-C and SIGTERM end a command at once.

An interrupt is an exception, and Python prints and discards exceptions that are raised during garbage collection or in
a library's callback: the command would then continue. An exception during an import can crash the process, because
compiled libraries create Python types while they are loaded. And a signal that arrives just before the main thread
starts to wait does not end that wait. Stores survive a kill at any time, so in these cases the process ends without
unwinding.
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

INTERRUPT_EXIT_CODE, TERMINATION_EXIT_CODE = 130, 143
LOST_OUTPUT_EXIT_CODE = 120  # Python's own exit code if standard output cannot be flushed
SIGNAL_EXIT_CODES: dict[int, int] = {signal.SIGINT: INTERRUPT_EXIT_CODE, signal.SIGTERM: TERMINATION_EXIT_CODE}
SIGNAL_HANDLER_GRACE_SECONDS = 2.0  # a process that has not handled a signal by then is ended
_handled_signals = set[int]()  # signals whose handlers have raised: the command is ending
# replaced by commands that cannot be resumed
interrupt_message = "Interrupted. Completed work is saved; rerun the command to resume."


def install_signal_handlers() -> None:
    """Install signal handlers that make Ctrl-C and SIGTERM end the command reliably.

    Both raise an exception that Python cannot discard, except during an import, where the process ends instead.
    """
    # background jobs of a shell ignore SIGINT and should continue to do so
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _handle_interrupt)
    signal.signal(signal.SIGTERM, _handle_termination)
    sys.unraisablehook = _handle_unraisable
    _start_watchdog_thread()


def exit_at_once(code: int) -> NoReturn:
    """End the process at once, without waiting for threads.

    An ordinary exit would wait for compiled programs that are still running in threads.
    """
    print(interrupt_message, file=sys.stderr)
    sys.stderr.flush()
    os._exit(code)


def exit_without_unloading(code: int) -> NoReturn:
    """End the process of a finished command without unloading its modules.

    Unloading takes half a second after JAX was imported.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # Python's order: threads and pools end before exit functions
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # the reader has closed the pipe
            code = code or LOST_OUTPUT_EXIT_CODE
    os._exit(code)


@functools.cache
def _start_watchdog_thread() -> socket.socket:
    """Start a watchdog thread that ends the process if no signal handler runs.

    Python writes the number of each signal to the socket that the thread reads.
    """
    read_end, write_end = socket.socketpair()
    write_end.setblocking(False)
    signal.set_wakeup_fd(write_end.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_exit_if_unhandled, args=(read_end,), name="interrupts", daemon=True).start()
    return write_end  # functools.cache keeps the socket open


def _exit_if_unhandled(signals: socket.socket) -> None:
    while True:
        signal_number = signals.recv(1)[0]
        time.sleep(SIGNAL_HANDLER_GRACE_SECONDS)
        if (
            signal.getsignal(signal_number) in (_handle_interrupt, _handle_termination)
            and signal_number not in _handled_signals
        ):
            exit_at_once(SIGNAL_EXIT_CODES[signal_number])


def _handle_interrupt(signal_number: int, frame: FrameType | None) -> None:
    _handled_signals.add(signal_number)
    if _is_importing(frame):
        exit_at_once(INTERRUPT_EXIT_CODE)
    raise KeyboardInterrupt


def _handle_termination(signal_number: int, frame: FrameType | None) -> None:
    _handled_signals.add(signal_number)
    if _is_importing(frame):
        exit_at_once(TERMINATION_EXIT_CODE)
    raise SystemExit(TERMINATION_EXIT_CODE)


def _is_importing(frame: FrameType | None) -> bool:
    """Return True if a module was being imported when the signal arrived."""
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


def _handle_unraisable(discarded: Any) -> None:
    if issubclass(discarded.exc_type, KeyboardInterrupt):
        exit_at_once(INTERRUPT_EXIT_CODE)
    code = getattr(discarded.exc_value, "code", None)
    if code in (INTERRUPT_EXIT_CODE, TERMINATION_EXIT_CODE):
        exit_at_once(code)
    sys.__unraisablehook__(discarded)
