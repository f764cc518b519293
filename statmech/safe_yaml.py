"""YAML of a bounded size: small files can hold lists that are deeper, or with their aliases longer, than any memory."""

from __future__ import annotations

from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, NodeEvent
from ruamel.yaml.parser import RoundTripParser

MOST_VALUES, DEEPEST = 25_000, 20  # keys count as values, and what an alias stands for each time it is used

MOST_LINES = 100_000  # empty ones and comments, too


class TooMuch(MarkedYAMLError):
    """A document beyond the bounds; it knows its line."""


def document_of(text: bytes | str) -> Any:
    """What YAML holds, with the lines of its keys and values. Raises what ruamel does, and `TooMuch`.

    >>> document_of("a: [1, 2]")["a"][1]
    2
    """
    if text.count(b"\n" if isinstance(text, bytes) else "\n") > MOST_LINES:  # type: ignore[arg-type]
        raise TooMuch(problem=f"has more than {MOST_LINES:,} lines")
    reader = YAML(typ="rt")
    reader.Parser = Bounded
    return reader.load(text)


class Bounded(RoundTripParser):
    """Counts what it parses, before anything is made of it."""

    def __init__(self, *given: Any, **extra: Any):
        super().__init__(*given, **extra)
        self._values, self._open, self._sizes = 0, [], {}  # type: ignore[var-annotated]

    def get_event(self) -> Any:
        event = super().get_event()
        if isinstance(event, AliasEvent):
            self._count(self._size_of(event), event)
        elif isinstance(event, NodeEvent):
            self._begin(event)
        elif isinstance(event, CollectionEndEvent):
            anchor, before = self._open.pop()
            self._sizes[anchor] = self._values - before
        return event

    def _begin(self, event: Any) -> None:
        """A value or, nested in others, a collection of values."""
        self._sizes[event.anchor] = 1
        if isinstance(event, CollectionStartEvent):
            self._open.append((event.anchor, self._values))
            self._sizes.pop(event.anchor)
            if len(self._open) > DEEPEST:
                raise TooMuch(problem=f"is nested more than {DEEPEST} deep", problem_mark=event.start_mark)
        self._count(1, event)

    def _size_of(self, alias: Any) -> int:
        """How many values an alias stands for; what it is part of has no end."""
        if alias.anchor in [anchor for anchor, _ in self._open]:
            raise TooMuch(problem=f"*{alias.anchor} stands for what it is part of", problem_mark=alias.start_mark)
        return int(self._sizes.get(alias.anchor, 1))

    def _count(self, values: int, event: Any) -> None:
        self._values += values
        if self._values > MOST_VALUES:
            raise TooMuch(problem=f"holds more than {MOST_VALUES:,} values", problem_mark=event.start_mark)
