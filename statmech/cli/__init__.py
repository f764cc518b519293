"""The `statmech` command."""

import os
import sys
from contextlib import suppress

from statmech.cli import interrupts
from statmech.cli.terminal_output import prepare_standard_streams

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
    prepare_standard_streams()
    try:
        main()
    except SystemExit as exit_error:
        if not isinstance(exit_error.code, int):
            raise
        interrupts.exit_without_unloading(exit_error.code)
    interrupts.exit_without_unloading(0)


def _remove_current_folder_from_path() -> None:
    """Remove the current folder, which `python -m` puts first, from the import path.

    The folder of our own source stays.
    """
    with suppress(OSError):  # the current folder may have been deleted
        if sys.path[0] == os.getcwd() != PACKAGE_PARENT_FOLDER:
            del sys.path[0]
