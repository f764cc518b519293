"""The `statmech` command."""

from statmech.cli import interrupts


def main() -> None:
    """Run the command. Nothing heavy is imported before Ctrl-C and SIGTERM are watched."""
    interrupts.watch()
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
    try:
        main()
    except SystemExit as done:
        if not isinstance(done.code, int):
            raise
        interrupts.leave(done.code)
    interrupts.leave(0)
