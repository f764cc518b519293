"""The `statmech` command."""

import io
import os
import sys
from contextlib import suppress

from statmech.cli import interrupts

PACKAGE_PARENT_FOLDER = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main() -> None:
    """Run the command so that Ctrl-C and SIGTERM can end it at any time.

    Nothing heavy is imported before the signal handlers are installed.
    """
    try:
        interrupts.install_signal_handlers()
    except (OSError, RuntimeError) as failure:  # a limit of the shell on open files or threads
        print(
            f"statmech cannot start: {failure}. Raise the limits of this shell (ulimit -n, ulimit -u)", file=sys.stderr
        )
        sys.exit(2)
    try:
        from statmech.cli import command_group

        command_group.main()
    except KeyboardInterrupt:
        interrupts.exit_at_once(interrupts.INTERRUPT_EXIT_CODE)
    except SystemExit as exit_error:
        # typer exits with INTERRUPT_EXIT_CODE after Ctrl-C
        if exit_error.code not in (interrupts.INTERRUPT_EXIT_CODE, interrupts.TERMINATION_EXIT_CODE):
            raise
        interrupts.exit_at_once(exit_error.code)


def command() -> None:
    """Run the command as the only task of this process, then end the process."""
    _remove_current_folder_from_path()
    _prepare_standard_streams()
    try:
        main()
    except SystemExit as exit_error:
        if not isinstance(exit_error.code, int):
            raise
        interrupts.exit_without_unloading(exit_error.code)
    interrupts.exit_without_unloading(0)


def _prepare_standard_streams() -> None:
    """Open closed standard streams and make printing work in every locale.

    Otherwise a file that is opened under the number of a closed stream would receive the printed text.
    """
    stdout_was_closed = sys.stdout is None
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            while os.open(os.devnull, os.O_RDWR) < number:  # os.open returns the smallest free descriptor
                pass
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # the locale may lack some characters
    if stdout_was_closed:
        print("standard output is closed: nothing is printed there", file=sys.stderr)


def _remove_current_folder_from_path() -> None:
    """Remove the current folder, which `python -m` puts first, from the import path.

    The folder of our own source stays.
    """
    with suppress(OSError):  # the current folder may have been deleted
        if sys.path[0] == os.getcwd() != PACKAGE_PARENT_FOLDER:
            del sys.path[0]
