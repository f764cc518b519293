"""The `statmech` command."""

import io
import os
import sys
from contextlib import suppress

from statmech.cli import interrupts

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main() -> None:
    """Run the command. Nothing heavy is imported before Ctrl-C and SIGTERM are watched."""
    try:
        interrupts.watch()
    except (OSError, RuntimeError) as failure:  # too few open files or threads are allowed
        print(
            f"statmech cannot start: {failure}. Raise the limits of this shell (ulimit -n, ulimit -u)", file=sys.stderr
        )
        sys.exit(2)
    try:
        from statmech.cli import commands

        commands.main()
    except KeyboardInterrupt:
        interrupts.end(interrupts.INTERRUPTED)
    except SystemExit as done:
        if done.code not in (interrupts.INTERRUPTED, interrupts.TERMINATED):  # the first is how typer ends after Ctrl-C
            raise
        interrupts.end(done.code)


def command() -> None:
    """Run the command as a process of its own, which ends with it."""
    _leave_current_folder()
    _prepare_streams()
    try:
        main()
    except SystemExit as done:
        if not isinstance(done.code, int):
            raise
        interrupts.leave(done.code)
    interrupts.leave(0)


def _prepare_streams() -> None:
    """Open the standard streams that are closed, and print in every locale.

    A file that was opened under the number of a closed stream would receive what is printed.
    """
    closed = sys.stdout is None
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            while os.open(os.devnull, os.O_RDWR) < number:  # the smallest number that is free
                pass
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # characters that the locale lacks
    if closed:
        print("standard output is closed: nothing is printed there", file=sys.stderr)


def _leave_current_folder() -> None:
    """Import nothing more from the current folder, which `python -m` puts first on the path, unless it is our own."""
    with suppress(OSError):  # it has been removed
        if sys.path[0] == os.getcwd() != ROOT:
            del sys.path[0]
