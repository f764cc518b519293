"""The running command: messages may recommend only the options of this command.

The command line declares it (`statmech.cli.command_group`). In Python no command is running, and functions take
arguments instead of options.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class RunningCommand:
    """The name of a command, and its options, such as "--fresh"."""

    name: str
    options: frozenset[str]


_RUNNING_COMMANDS: list[RunningCommand] = []  # empty if no command runs; shared by all threads


@contextmanager
def declare_running_command(name: str, options: Iterable[str]) -> Iterator[None]:
    """Declare the running command for the duration of a `with` block."""
    _RUNNING_COMMANDS.append(RunningCommand(name, frozenset(options)))
    try:
        yield
    finally:
        _RUNNING_COMMANDS.pop()


def get_running_command_name() -> str:
    """Return the name of the running command, or an empty string if statmech runs as a library."""
    return _RUNNING_COMMANDS[-1].name if _RUNNING_COMMANDS else ""


def format_option(text: str, argument: str = "") -> str:
    """Return a text if the running command has the option that the text mentions, else an empty string.

    In Python, where no command is running, return the argument.

    >>> format_option("--out DIR", "another path")
    'another path'
    >>> with declare_running_command("run", ["--out"]):
    ...     format_option("--out DIR", "another path"), format_option("--fresh", "fresh=True")
    ('--out DIR', '')
    """
    if not _RUNNING_COMMANDS:
        return argument
    return text if {*text.split()} & _RUNNING_COMMANDS[-1].options else ""


def join_alternatives(*alternatives: str) -> str:
    """Join the nonempty alternatives, as in "--data-dir DIR or STATMECH_DATA"."""
    return " or ".join(way for way in alternatives if way)
