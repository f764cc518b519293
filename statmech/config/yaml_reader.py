"""A reader of YAML texts of bounded size, with clear messages for errors.

Size: with nesting and aliases, even a small file could exhaust the memory.

Messages contain the line, the mistake and the correct form.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, NodeEvent
from ruamel.yaml.parser import RoundTripParser
from ruamel.yaml.reader import ReaderError

MAX_YAML_VALUES, MAX_YAML_DEPTH = 25_000, 20  # keys count as values, and each alias as its full content
MAX_YAML_LINES = 100_000  # including empty lines and comments
MAX_QUOTED_LINE_LENGTH = 60  # characters
YAML_KEY_PATTERN = re.compile(r"\s*[\w.]+:(\s|$)")
MISSING_COLON_SPACE_PATTERN = re.compile(r"\s*([\w.]+):(?!//)([^\s:].*)")
LineMessage = tuple[int | None, str]  # line number from 1, if known, and message


class YamlSizeError(MarkedYAMLError):
    """The error for a document that is too large, with a line number like other YAML errors."""


def load_yaml_document(text: bytes | str) -> Any:
    """Load a YAML text with the lines of its keys and values, or raise `YamlSizeError` or errors of ruamel.

    >>> load_yaml_document("a: [1, 2]")["a"][1]
    2
    """
    if text.count(b"\n" if isinstance(text, bytes) else "\n") > MAX_YAML_LINES:  # type: ignore[arg-type]
        raise YamlSizeError(problem=f"has more than {MAX_YAML_LINES:,} lines")
    reader = YAML(typ="rt")
    reader.Parser = BoundedYamlParser
    return reader.load(text)


class BoundedYamlParser(RoundTripParser):
    """A YAML parser that counts values before any value is constructed."""

    def __init__(self, *arguments: Any, **extra: Any):
        super().__init__(*arguments, **extra)
        self._values, self._open, self._sizes = 0, [], {}  # type: ignore[var-annotated]

    def get_event(self) -> Any:
        """Return the next event of a YAML text after counting its values."""
        event = super().get_event()
        if isinstance(event, AliasEvent):
            self._count_values(self._count_alias_values(event), event)
        elif isinstance(event, NodeEvent):
            self._count_node(event)
        elif isinstance(event, CollectionEndEvent):
            anchor, before = self._open.pop()
            self._sizes[anchor] = self._values - before
        return event

    def _count_node(self, event: Any) -> None:
        """Count a value of a YAML text, or start counting a collection."""
        self._sizes[event.anchor] = 1
        if isinstance(event, CollectionStartEvent):
            self._open.append((event.anchor, self._values))
            self._sizes.pop(event.anchor)
            if len(self._open) > MAX_YAML_DEPTH:
                raise YamlSizeError(problem=f"is nested more than {MAX_YAML_DEPTH} deep", problem_mark=event.start_mark)
        self._count_values(1, event)

    def _count_alias_values(self, alias: Any) -> int:
        """Return the number of values that an alias represents.

        An alias inside its own collection represents infinitely many values and raises `YamlSizeError`.
        """
        if alias.anchor in [anchor for anchor, _ in self._open]:
            raise YamlSizeError(problem=f"*{alias.anchor} contains itself", problem_mark=alias.start_mark)
        return int(self._sizes.get(alias.anchor, 1))

    def _count_values(self, values: int, event: Any) -> None:
        """Increase the number of values, or raise `YamlSizeError` if it exceeds the limit."""
        self._values += values
        if self._values > MAX_YAML_VALUES:
            raise YamlSizeError(problem=f"contains more than {MAX_YAML_VALUES:,} values", problem_mark=event.start_mark)


@dataclass(frozen=True)
class YamlMistake:
    """A mistake in a YAML text, as reported by the parser.

    `problem` is the match of the parser's message. The parser stopped at `line_number` and `column`. The construct
    begins at `start` and `start_column`.
    """

    problem: re.Match[str]
    line_number: int
    column: int
    start: int
    start_column: int
    lines: list[str]

    def line(self, number: int) -> str:
        """Return a line by its number from 1, or an empty string outside the text."""
        return self.lines[number - 1] if 1 <= number <= len(self.lines) else ""

    @property
    def nonempty_line_above_number(self) -> int:
        """The number of the nearest line above that is not empty, or 0."""
        return next((n for n in range(self.line_number - 1, 0, -1) if _has_content(self.line(n))), 0)


def describe_yaml_mistake(failure: Exception, text: str) -> LineMessage:
    """Return the line number of a YAML error and a message that explains the mistake.

    >>> from statmech.config.yaml_reader import load_yaml_document
    >>> text = "rule: hebb\\nt: [1, 2\\nseeds: 3\\n"
    >>> try:
    ...     load_yaml_document(text)
    ... except Exception as failure:
    ...     describe_yaml_mistake(failure, text)
    (2, 'the bracket [ is not closed: ] is missing')
    """
    if isinstance(failure, ReaderError):
        return _explain_invalid_character(failure, text)
    if not isinstance(failure, MarkedYAMLError):
        first = (str(failure).splitlines() or [""])[0]
        return None, f"not readable as YAML: {type(failure).__name__}: {first}"
    problem = " ".join(str(failure.problem or failure.context).split())
    mark = failure.problem_mark or failure.context_mark
    if mark is None:
        return None, problem
    start = failure.context_mark or mark
    for pattern, sentence in EXPLAINERS_BY_PARSER_ERROR.items():
        if match := re.match(pattern, problem):
            positions = (mark.line + 1, mark.column, start.line + 1, start.column)
            return sentence(YamlMistake(match, *positions, text.splitlines()))
    return mark.line + 1, f"not readable as YAML: {problem}"


def find_missing_colon_space(text: str) -> LineMessage | None:
    """Return the line number and a message about the first missing space after a colon in YAML, or None."""
    for number, line in enumerate(text.splitlines(), 1):
        if match := MISSING_COLON_SPACE_PATTERN.fullmatch(line):
            return number, f"a space is missing after the colon: {match[1]}: {_quote_line(match[2])}"
    return None


def _explain_unclosed_bracket(mistake: YamlMistake) -> LineMessage:
    """Explain a bracket in YAML that is not closed, or is closed by a different bracket."""
    opening = mistake.line(mistake.start)[mistake.start_column : mistake.start_column + 1]
    closing = {"[": "]", "{": "}"}.get(opening, "")
    if mistake.problem[1] in ("]", "}"):
        return mistake.line_number, f"the bracket {opening} is closed by {mistake.problem[1]} instead of {closing}"
    return mistake.start, f"the bracket {opening} is not closed: {closing} is missing"


def _explain_open_quote(mistake: YamlMistake) -> LineMessage:
    """Explain a quote in YAML that is not closed."""
    return (
        mistake.start,
        f"the quote {mistake.line(mistake.start)[mistake.start_column : mistake.start_column + 1]} is not closed",
    )


def _explain_missing_colon(mistake: YamlMistake) -> LineMessage:
    """Explain a YAML key without a colon, or without a space after the colon."""
    return _explain_missing_space(mistake, mistake.start) or (
        mistake.start,
        _format_missing_colon_message(mistake, mistake.start),
    )


def _explain_second_colon(mistake: YamlMistake) -> LineMessage:
    """Explain a second colon in a line of YAML, or a mistake in the line above."""
    line, above = mistake.line(mistake.line_number), mistake.line(mistake.nonempty_line_above_number)
    if above and not re.search(r":(\s|$)", above):
        return _explain_missing_space(mistake, mistake.nonempty_line_above_number) or (
            mistake.nonempty_line_above_number,
            _format_missing_colon_message(mistake, mistake.nonempty_line_above_number),
        )
    if above and _get_indent(line) > _get_indent(above):
        return (
            mistake.line_number,
            f"indented further than the line above, which has a value already: {_quote_line(line)}",
        )
    key, _, value = _quote_line(line).partition(": ")
    return mistake.line_number, f'a value contains a second colon; put it in quotes: {key}: "{value}"'


def _explain_bad_first_character(mistake: YamlMistake) -> LineMessage:
    """Explain a character that cannot begin a YAML value."""
    character = mistake.line(mistake.line_number)[mistake.column : mistake.column + 1]
    if character == "\t":
        return mistake.line_number, "a tab; YAML is indented and separated by spaces"
    return mistake.line_number, f"a value cannot begin with {character}; put it in quotes"


def _explain_unknown_alias(mistake: YamlMistake) -> LineMessage:
    """Explain a YAML alias without an anchor."""
    name = mistake.problem[1]
    return mistake.line_number, f"*{name} repeats a value that no &{name} has named; put it in quotes if it is a text"


def _explain_misplaced_text(mistake: YamlMistake) -> LineMessage:
    """Explain text that does not match the structure of the lines of YAML above."""
    line = mistake.line(mistake.line_number)
    above = [text for text in mistake.lines[: mistake.line_number - 1] if _has_content(text)]
    if mistake.problem[1] == "'<document start>'" and above and not YAML_KEY_PATTERN.match(above[0]):
        first = mistake.lines.index(above[0]) + 1
        return _explain_missing_space(mistake, first) or (first, _format_missing_colon_message(mistake, first))
    if above and line.lstrip().startswith("- ") != above[0].lstrip().startswith("- "):
        return mistake.line_number, f"a list item and a key side by side: {_quote_line(line)}"
    if above and YAML_KEY_PATTERN.match(line) and mistake.column == _get_indent(line):
        return mistake.line_number, f"not indented like the keys above: {_quote_line(line)}"
    return mistake.line_number, f"more text where a value has ended: {_quote_line(line[mistake.column :])}"


EXPLAINERS_BY_PARSER_ERROR: dict[str, Callable[[YamlMistake], LineMessage]] = {
    r"expected ',' or '[\]}]', but got '(.*)'": _explain_unclosed_bracket,
    "found unexpected end of stream": _explain_open_quote,
    "could not find expected ':'": _explain_missing_colon,
    "mapping values are not allowed here": _explain_second_colon,
    "found character .* that cannot start any token": _explain_bad_first_character,
    'found duplicate key "(.*?)" with': lambda mistake: (
        mistake.line_number,
        f'"{_quote_line(mistake.problem[1])}" is given twice',
    ),
    "found undefined alias '(.*)'": _explain_unknown_alias,
    "but found another document": lambda mistake: (
        mistake.line_number,
        "a second document begins (---): a config must be a single document",
    ),
    "expected (<block end>|'<document start>')": _explain_misplaced_text,
}


def _explain_missing_space(mistake: YamlMistake, number: int) -> LineMessage | None:
    """Explain a missing space after a colon, or return None if no space is missing."""
    missing = find_missing_colon_space(mistake.line(number))
    return missing and (number, missing[1])


def _format_missing_colon_message(mistake: YamlMistake, number: int) -> str:
    """Return the message for a line without a colon."""
    return f'"{_quote_line(mistake.line(number))}" is not `key: value`: the colon is missing'


def _has_content(line: str) -> bool:
    """Return True for a line that is neither empty nor a comment."""
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _get_indent(line: str) -> int:
    """Return the number of spaces at the beginning of a line."""
    return len(line) - len(line.lstrip(" "))


def _quote_line(text: str) -> str:
    """Shorten a line for a message."""
    text = text.strip()
    return text if len(text) <= MAX_QUOTED_LINE_LENGTH else f"{text[: MAX_QUOTED_LINE_LENGTH - 3]}..."


def _explain_invalid_character(failure: Any, text: str) -> LineMessage:
    """Explain a character that YAML does not allow, or a byte that is not UTF-8."""
    number = text.count("\n", 0, failure.position) + 1
    character = failure.character if isinstance(failure.character, int) else ord(failure.character)
    if failure.encoding == "unicode":
        return number, f"contains the control character U+{character:04X}"
    return number, f"the byte 0x{character:02x} is not UTF-8, in which configs are written"
