"""The running command: messages recommend only the options of this command.

The command line declares it (`statmech.cli.groups`). In Python no command is running, and functions take arguments
instead of options.
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


_RUNNING: list[RunningCommand] = []  # empty in Python; shared by the threads of a command


@contextmanager
def running(name: str, options: Iterable[str]) -> Iterator[None]:
    """Declare the running command within a `with` block."""
    _RUNNING.append(RunningCommand(name, frozenset(options)))
    try:
        yield
    finally:
        _RUNNING.pop()


def command_name() -> str:
    """Return the name of the running command, an empty string in Python."""
    return _RUNNING[-1].name if _RUNNING else ""


def option(text: str, argument: str = "") -> str:
    """Return a text if the running command has the option in it, else an empty string.

    In Python, where no command is running, return the argument.

    >>> option("--out DIR", "another path")
    'another path'
    >>> with running("run", ["--out"]):
    ...     option("--out DIR", "another path"), option("--fresh", "fresh=True")
    ('--out DIR', '')
    """
    if not _RUNNING:
        return argument
    return text if {*text.split()} & _RUNNING[-1].options else ""


def either(*ways: str) -> str:
    """Join the alternatives that are not empty, as in "--data-dir DIR or STATMECH_DATA"."""
    return " or ".join(way for way in ways if way)
