"""The values of curves as a page shows them in one line, in which they are edited."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from figures.explorer.settings import is_number
from figures.labels import value_in_words


def line_from(values: Iterable[Any]) -> str:
    """Return values in one line: a section by its own name or, if it has none, in words.

    >>> line_from([0, 0.001, "best"]), line_from([{"replay": 0.1}, {"name": "one unit", "v": [1]}])
    ('0, 0.001, best', '0.1, one unit')
    """
    return ", ".join(map(_word_from, values))


def config_from(line: str, listed: Iterable[Any]) -> str:
    """Return an edited line as a config has it: the words of sections that a config has listed stand for these.

    >>> config_from("one unit, 2", [{"name": "one unit", "v": [1]}])
    '{"name": "one unit", "v": [1]}, 2'
    """
    sections = {_word_from(value): json.dumps(value) for value in listed if isinstance(value, dict)}
    words = "|".join(map(re.escape, sorted(sections, key=len, reverse=True)))
    return re.sub(words, lambda match: sections[match[0]], line) if sections else line


def _word_from(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("name") or value_in_words(value))
    return value if isinstance(value, str) else f"{value:g}" if is_number(value) else json.dumps(value)
