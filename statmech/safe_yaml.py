"""YAML of bounded size: with nesting and aliases, even a small file could exhaust the memory."""

from __future__ import annotations

from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, NodeEvent
from ruamel.yaml.parser import RoundTripParser

MAX_YAML_VALUES, MAX_YAML_DEPTH = 25_000, 20  # keys count as values, and each alias as its full content
MAX_YAML_LINES = 100_000  # including empty lines and comments


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
        """Return the next event after counting its values."""
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
        """Count a value, or start counting a collection."""
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
