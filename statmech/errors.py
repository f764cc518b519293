"""Errors that the user can fix, with messages that state the location, the given value and the remedy.

Messages recommend only options of the running command, which the command line declares (`statmech.cli.command_group`).
In Python no command is running, and functions take arguments instead of options.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any

Problem = tuple[tuple[str | int, ...], str]  # location (keys and list positions) and one sentence

# ratios of difflib; for short names, "Kk" must still suggest "K"
MIN_NAME_SIMILARITY, MIN_SHORT_NAME_SIMILARITY, MAX_SHORT_NAME_LENGTH = 0.68, 0.6, 3
MAX_LISTED_KNOWN_NAMES = 12  # longer lists are omitted if the message suggests a name
MAX_QUOTED_VALUE_LENGTH = 60  # longer quoted values are shortened
MAX_QUOTED_TEXT_LENGTH = 200  # limit for names and for messages of other libraries
INVISIBLE_UNICODE_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}  # includes control characters
UNESCAPED_LAYOUT_CHARACTERS = "\n\t\u200c\u200d"  # line break, tab and joiners, which messages and some scripts need
# synonym in other programs and books -> {name in statmech: explanation}
EXTERNAL_NAME_SYNONYMS: dict[str, dict[str, str]] = {
    "delta": {"distance": ", the distance between the centres of two clusters", "drift": ""},
    "flip": {"noise": ", the noise of the output"},
    "ising": {"binary": ""},
    "lambda": {"lam": ""},
    "lasso": {"l1": "", "square": " with penalty: l1"},
    "learning_rate": {"eta": ""},
    "least_squares": {"square": ""},
    "mse": {"square": ""},
    "ridge": {"l2": "", "square": " with penalty: l2"},
    "svm": {"hinge": ""},
}
_RUNNING_COMMANDS: list[RunningCommand] = []  # empty if no command runs; shared by all threads


class StatmechError(Exception):
    """The base class of all errors that a user can fix, with the exit status of the command."""

    status = 2

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the message instead of the constructor's arguments, which differ between classes."""
        return _rebuild_unpickled_error, (type(self), *self.args), vars(self)


def _rebuild_unpickled_error(kind: type[StatmechError], *args: object) -> StatmechError:
    """Rebuild an unpickled error from its message, without calling its constructor."""
    error = kind.__new__(kind, *args)
    error.args = args  # an OSError sets them only in its constructor
    return error


class ScenarioError(StatmechError, ValueError):
    """A scenario that cannot be simulated or solved, with a sentence for each problem.

    `problems` holds pairs (location, sentence). The location is a path of keys and list positions, which the config
    loader translates to a line.
    """

    def __init__(self, problems: Iterable[Problem]):
        self.problems = list(problems)
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        return [
            f"{_format_location(location)}: {sentence}" if location else sentence
            for location, sentence in self.problems
        ]


class ConfigError(StatmechError, ValueError):
    """A config file that is not a valid scenario. The message names file and line."""


class StoreError(StatmechError, OSError):
    """A stored result that is missing, unreadable, or belongs to another config."""


def make_unwritable_file_error(path: object, failure: OSError) -> StoreError:
    """Make the error for a file that cannot be written."""
    return StoreError(f"{path}: cannot be written: {failure.strerror or failure}")


class DamagedStoreError(StoreError):
    """A store with missing or corrupted files."""

    def __init__(self, path: object, names: list[str]):
        files = ", ".join(_join_and_shorten_lines(name, MAX_QUOTED_TEXT_LENGTH) for name in names[:5]) + (
            ", ..." if len(names) > 5 else ""
        )
        super().__init__(f"{path}: not a readable store (corrupted or missing: {files})")


def make_unreadable_store_error(path: object, failure: Exception) -> DamagedStoreError:
    """Make the error for a store that cannot be read or interpreted."""
    return DamagedStoreError(path, [f"{type(failure).__name__}: {failure}"])


class ClusterError(StatmechError, RuntimeError):
    """The loss of workers or of the scheduler during a sweep, which leaves the results incomplete."""

    status = 1


class SolverError(StatmechError, ArithmeticError):
    """A failure to solve the equations of theory, with the parameters in the message."""


class DivergedStudentError(StatmechError, ArithmeticError):
    """A simulated student whose length has left the range of accurate arithmetic."""


class MissingDeviceError(StatmechError, RuntimeError):
    """A device that JAX is configured to use but this machine lacks."""


class ForkAfterJaxError(StatmechError, RuntimeError):
    """A computation in a forked process, which would hang because its parent has used JAX."""

    def __init__(self) -> None:
        cause = "this process is a fork of one that has computed with JAX, whose threads are missing here"
        super().__init__(f"{cause}: start it with the spawn or forkserver method of multiprocessing")


def format_unknown_name(value: object, noun: str, choices: Iterable[str], listing: str = "") -> str:
    """Return the message for an unknown name, with the closest known name and, if there are few, all known names.

    If there are many, `listing` is a sentence that says where they are listed.

    >>> print(format_unknown_name("adtron", "a learning rule", ["hebb", "adatron"]))
    "adtron" is not a learning rule. Did you mean "adatron"? Known: hebb, adatron.
    >>> print(format_unknown_name("svm", "a loss", ["square", "hinge"]))
    "svm" is not a loss. Did you mean "hinge"? Known: square, hinge.
    >>> print(format_unknown_name("40", "a column", ["0", "4"]))
    "40" is not a column. Known: 0, 4.
    """
    names = list(choices)
    folded, lowered = {_fold_name(name): name for name in names}, _fold_name(str(value))
    candidates = get_close_matches(
        "" if lowered.isdecimal() else lowered,  # the number of a column is not a misspelt one
        folded,
        n=1,
        cutoff=MIN_NAME_SIMILARITY if len(lowered) > MAX_SHORT_NAME_LENGTH else MIN_SHORT_NAME_SIMILARITY,
    )
    suggestions = {name: remark for name, remark in EXTERNAL_NAME_SYNONYMS.get(lowered, {}).items() if name in names}
    candidates = (
        [*suggestions]
        or candidates
        or [name for name in folded if len(lowered) > MAX_SHORT_NAME_LENGTH and name.startswith(lowered)]
    )  # last resort: names that begin with the value
    likely = f' Did you mean "{folded[candidates[0]]}"{suggestions.get(candidates[0], "")}?' if candidates else ""
    name = _join_and_shorten_lines(str(value).encode(errors="backslashreplace").decode())
    known_names = f" {listing}." if listing else f" Known: {', '.join(names)}."
    listed = "" if likely and len(names) > MAX_LISTED_KNOWN_NAMES else known_names
    return f'"{name}" is not {noun}.{likely}{listed}'


def _fold_name(name: str) -> str:
    return name.casefold().replace(" ", "_")


def list_synonyms(name: str) -> list[str]:
    """Return a name and its synonyms in other programs and books."""
    return [name, *EXTERNAL_NAME_SYNONYMS.get(name.casefold(), {})]


def quote_value(value: object) -> str:
    """Quote a value in a message as JSON, shortening long text.

    >>> print(quote_value("0.1"), quote_value([1, True]), len(quote_value("a" * 1000)))
    "0.1" [1, true] 60
    """
    for write in (partial(json.dumps, default=str), repr):
        with suppress(TypeError, ValueError, RecursionError):  # e.g. lists as keys, or lists that contain themselves
            return _join_and_shorten_lines(write(value))
    return f"of type {type(value).__name__}"  # for example, an integer too long for Python to format


def shorten_text(text: str, max_length: int = MAX_QUOTED_VALUE_LENGTH) -> str:
    """Shorten a text for a message, ending a long text with an ellipsis."""
    return text if len(text) <= max_length else f"{text[: max_length - 3]}..."


def escape_name(name: str) -> str:
    """Escape a name for a message, including its line breaks and tabs.

    >>> print(escape_name("new\\nfolder"))
    new\\u000afolder
    """
    return escape_text(name).replace("\n", "\\u000a").replace("\t", "\\u0009")


def escape_text(text: str) -> str:
    """Escape the control sequences in a text, so that a terminal can display it safely.

    Control characters other than line breaks and tabs, direction marks and other invisible characters, and invalid
    Unicode are written as escapes.

    >>> print(escape_text("\\x1b]0;title\\a é η"))
    \\u001b]0;title\\u0007 é η
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_escape_character, text))


def _escape_character(character: str) -> str:
    """Return a character of a message, or its escape if it is invisible or a control character."""
    hidden = (
        unicodedata.category(character) in INVISIBLE_UNICODE_CATEGORIES and character not in UNESCAPED_LAYOUT_CHARACTERS
    )
    code = ord(character)
    return f"\\u{code:04x}" if hidden and code < 2**16 else f"\\U{code:08x}" if hidden else character


def _format_location(location: tuple[str | int, ...]) -> str:
    """Format a location, such as `start.R[2]`."""
    head, *rest = location
    names = (f"[{part}]" if isinstance(part, int) else f".{_join_and_shorten_lines(part)}" for part in rest)
    return _join_and_shorten_lines(str(head)) + "".join(names)


def _join_and_shorten_lines(text: str, max_length: int = MAX_QUOTED_VALUE_LENGTH) -> str:
    """Join the lines of a text to a single line, and shorten long text."""
    return shorten_text(" ".join(text.split()), max_length)


@dataclass(frozen=True)
class RunningCommand:
    """The name of a command, and its options, such as "--fresh"."""

    name: str
    options: frozenset[str]


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
