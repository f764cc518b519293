"""The command that is running, so that messages advise only the options that it has.

The command line states it (`statmech.cli.groups`); in Python no command runs, and functions take arguments instead.
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


_RUNNING: list[RunningCommand] = []  # none in Python; threads of a command share it


@contextmanager
def running(name: str, options: Iterable[str]) -> Iterator[None]:
    """State in this block which command is running."""
    _RUNNING.append(RunningCommand(name, frozenset(options)))
    try:
        yield
    finally:
        _RUNNING.pop()


def command_name() -> str:
    """Return the name of the running command, empty in Python."""
    return _RUNNING[-1].name if _RUNNING else ""


def option(text: str, argument: str = "") -> str:
    """Return a text with an option if the running command has the option, else nothing; in Python the argument.

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
    """Join the ways that exist: "--data-dir DIR or STATMECH_DATA", or one of them alone."""
    return " or ".join(way for way in ways if way)
