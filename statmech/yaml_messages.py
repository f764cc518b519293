"""Clear messages for errors of the YAML parser: the line, the mistake, and the correct form."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.reader import ReaderError

MOST = 60  # characters
KEY = re.compile(r"\s*[\w.]+:(\s|$)")
WITHOUT_SPACE = re.compile(r"\s*([\w.]+):(?!//)([^\s:].*)")

Sentence = tuple[int | None, str]  # a line, counted from 1, and a message about it


@dataclass(frozen=True)
class Mistake:
    """A mistake in a YAML text, as the parser reports it.

    `problem` is the match of the parser's message. The parser stopped at `here` and `column`; the construct begins at
    `start` and `start_column`.
    """

    problem: re.Match[str]
    here: int
    column: int
    start: int
    start_column: int
    lines: list[str]

    def line(self, number: int) -> str:
        """Return a line by its number from 1, an empty string outside the text."""
        return self.lines[number - 1] if 1 <= number <= len(self.lines) else ""

    @property
    def above(self) -> int:
        """The number of the last line above with content, or 0."""
        return next((n for n in range(self.here - 1, 0, -1) if _has_content(self.line(n))), 0)


def located(failure: Exception, text: str) -> Sentence:
    """Return the line of a mistake, and a sentence about it.

    >>> from statmech.safe_yaml import document_of
    >>> text = "rule: hebb\\nt: [1, 2\\nseeds: 3\\n"
    >>> try:
    ...     document_of(text)
    ... except Exception as failure:
    ...     located(failure, text)
    (2, 'the bracket [ is not closed: ] is missing')
    """
    if isinstance(failure, ReaderError):
        return _unreadable(failure, text)
    if not isinstance(failure, MarkedYAMLError):
        first = (str(failure).splitlines() or [""])[0]
        return None, f"not readable as YAML: {type(failure).__name__}: {first}"
    problem = " ".join(str(failure.problem or failure.context).split())
    mark = failure.problem_mark or failure.context_mark
    if mark is None:
        return None, problem
    start = failure.context_mark or mark
    for pattern, sentence in SENTENCES.items():
        if match := re.match(pattern, problem):
            positions = (mark.line + 1, mark.column, start.line + 1, start.column)
            return sentence(Mistake(match, *positions, text.splitlines()))
    return mark.line + 1, f"not readable as YAML: {problem}"


def missing_space(text: str) -> Sentence | None:
    """Find the first line of the form `key:value`, and return it with a sentence about the missing space, or None."""
    for number, line in enumerate(text.splitlines(), 1):
        if match := WITHOUT_SPACE.fullmatch(line):
            return number, f"a space is missing after the colon: {match[1]}: {_quoted(match[2])}"
    return None


def _bracket(of: Mistake) -> Sentence:
    """Explain a bracket that is not closed, or closed by a different bracket."""
    opening = of.line(of.start)[of.start_column : of.start_column + 1]
    closing = {"[": "]", "{": "}"}.get(opening, "")
    if of.problem[1] in ("]", "}"):
        return of.here, f"the bracket {opening} is closed by {of.problem[1]} instead of {closing}"
    return of.start, f"the bracket {opening} is not closed: {closing} is missing"


def _quote(of: Mistake) -> Sentence:
    """Explain a quote that is not closed."""
    return of.start, f"the quote {of.line(of.start)[of.start_column : of.start_column + 1]} is not closed"


def _no_colon(of: Mistake) -> Sentence:
    """Explain a key without a colon, or without a space after the colon."""
    return _without_space(of, of.start) or (of.start, _not_a_key(of, of.start))


def _second_colon(of: Mistake) -> Sentence:
    """Explain a second colon in a line, or a wrong line above it."""
    line, above = of.line(of.here), of.line(of.above)
    if above and not re.search(r":(\s|$)", above):
        return _without_space(of, of.above) or (of.above, _not_a_key(of, of.above))
    if above and _indent(line) > _indent(above):
        return of.here, f"indented further than the line above, which has a value already: {_quoted(line)}"
    key, _, value = _quoted(line).partition(": ")
    return of.here, f'a value contains a second colon; put it in quotes: {key}: "{value}"'


def _first_character(of: Mistake) -> Sentence:
    """Explain a character that cannot begin a value."""
    character = of.line(of.here)[of.column : of.column + 1]
    if character == "\t":
        return of.here, "a tab; YAML is indented and separated by spaces"
    return of.here, f"a value cannot begin with {character}; put it in quotes"


def _alias(of: Mistake) -> Sentence:
    """Explain an alias without an anchor."""
    name = of.problem[1]
    return of.here, f"*{name} repeats a value that no &{name} has named; put it in quotes if it is a text"


def _misplaced(of: Mistake) -> Sentence:
    """Explain text that does not fit to the lines above."""
    line = of.line(of.here)
    above = [text for text in of.lines[: of.here - 1] if _has_content(text)]
    if of.problem[1] == "'<document start>'" and above and not KEY.match(above[0]):
        first = of.lines.index(above[0]) + 1
        return _without_space(of, first) or (first, _not_a_key(of, first))
    if above and line.lstrip().startswith("- ") != above[0].lstrip().startswith("- "):
        return of.here, f"a list item and a key side by side: {_quoted(line)}"
    if above and KEY.match(line) and of.column == _indent(line):
        return of.here, f"not indented like the keys above: {_quoted(line)}"
    return of.here, f"more text where a value has ended: {_quoted(line[of.column :])}"


SENTENCES: dict[str, Callable[[Mistake], Sentence]] = {
    r"expected ',' or '[\]}]', but got '(.*)'": _bracket,
    "found unexpected end of stream": _quote,
    "could not find expected ':'": _no_colon,
    "mapping values are not allowed here": _second_colon,
    "found character .* that cannot start any token": _first_character,
    'found duplicate key "(.*?)" with': lambda mistake: (
        mistake.here,
        f'"{_quoted(mistake.problem[1])}" is given twice',
    ),
    "found undefined alias '(.*)'": _alias,
    "but found another document": lambda mistake: (
        mistake.here,
        "a second document begins (---); a config is a single one",
    ),
    "expected (<block end>|'<document start>')": _misplaced,
}


def _without_space(of: Mistake, number: int) -> Sentence | None:
    """Explain a missing space in a line, or return None."""
    missing = missing_space(of.line(number))
    return missing and (number, missing[1])


def _not_a_key(of: Mistake, number: int) -> str:
    """Return the sentence for a line without a colon."""
    return f'"{_quoted(of.line(number))}" is not `key: value`: the colon is missing'


def _has_content(line: str) -> bool:
    """Return True for a line that is neither empty nor a comment."""
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _indent(line: str) -> int:
    """Return the number of spaces at the beginning of a line."""
    return len(line) - len(line.lstrip(" "))


def _quoted(text: str) -> str:
    """Shorten a line for a message."""
    text = text.strip()
    return text if len(text) <= MOST else f"{text[: MOST - 3]}..."


def _unreadable(failure: Any, text: str) -> Sentence:
    """Explain a character that YAML does not allow, or a byte that is not UTF-8."""
    number = text.count("\n", 0, failure.position) + 1
    character = failure.character if isinstance(failure.character, int) else ord(failure.character)
    if failure.encoding == "unicode":
        return number, f"contains the control character U+{character:04X}"
    return number, f"the byte 0x{character:02x} is not UTF-8, in which configs are written"
